"""Calls on elements as programs make them: PopLibs' names, forms and types; all tiles; what is refused before the graph changes."""

import numpy as np
import pytest
from element_references import STEPS, TOLERANCE
from library_programs import new_graph, run, variable

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    SHORT,
    UNSIGNED_INT,
    Graph,
    InvalidOption,
    InvalidTileMapping,
    IPUModel,
    PoplarError,
    PoplarTypeError,
    popops,
    poputil,
)
from pypoplar.popops.elements.element_operations import OPERATIONS
from pypoplar.program import Sequence

FORMS = ("", "InPlace", "WithOutput")
FLOATS = (FLOAT, HALF)


def deviation(variance, epsilon):
    return 1 / np.sqrt(variance + epsilon)


def variance(deviation, epsilon):
    return 1 / (deviation * deviation) - epsilon


REFERENCES = {"varianceToInvStdDev": deviation, "invStdDevToVariance": variance}


@pytest.mark.parametrize("name", REFERENCES)
def test_variances_and_deviations_are_numpys_in_every_form_and_type(name, mode):
    graph, device = new_graph(4)
    prog, values, results, wanted = Sequence(), {}, {}, {}
    function, steps = getattr(popops, name), STEPS["INV_STD_DEV_TO_VARIANCE"]
    array = np.random.default_rng(1).uniform(0.5, 2.0, [3, 7])

    def expect(key, type, epsilon, result, tensor):
        results[key] = tensor
        wide = REFERENCES[name](array.astype(type.dtype).astype(np.float64), float(type.dtype.type(epsilon)))
        wanted[key] = (wide, steps * TOLERANCE[HALF if HALF in (type, result) else FLOAT], result)

    for type in FLOATS:
        for result in FLOATS:
            for kind in ("number", "tensor"):
                key = f"{type.code} {result.code} {kind}"
                src, epsilon = variable(graph, type, [3, 7], key), 0.125
                if kind == "tensor":
                    epsilon = graph.addConstant(type, [1], 0.125, f"epsilon {key}")
                    graph.setTileMapping(epsilon, 1)
                expect(key, type, 0.125, result, function(graph, src, epsilon, prog, result, key))
                values[key] = array.astype(type.dtype)
        key = f"{type.code} in place"
        place = variable(graph, type, [3, 7], key)
        assert getattr(popops, f"{name}InPlace")(graph, place, 0.25, prog, "place") is None
        expect(key, type, 0.25, type, place)
        values[key] = array.astype(type.dtype)
        same = variable(graph, type, [3, 7], f"{type.code} same")
        values[f"{type.code} same"] = array.astype(type.dtype)
        expect(f"{type.code} same", type, 0.25, type, function(graph, same, 0.25, prog, "with a name and options", {}))
        out = variable(graph, type, [3, 7], f"{type.code} out")
        getattr(popops, f"{name}WithOutput")(graph, same, 0.25, out, prog)
        expect(f"{type.code} out", type, 0.25, type, out)
    read, _ = run(graph, device, prog, values, results, mode)
    for key, (wide, tolerance, result) in wanted.items():
        assert read[key].dtype == result.dtype, key
        np.testing.assert_allclose(read[key].astype(np.float64), wide, rtol=tolerance, atol=tolerance, err_msg=key)


def test_the_types_of_deviations_are_poplibs_by_default():
    graph, _ = new_graph(4)
    x, prog = variable(graph, FLOAT, [4], "x"), Sequence()
    assert popops.varianceToInvStdDev(graph, x, 1e-5, prog).elementType() is HALF
    assert popops.varianceToInvStdDev(graph, variance=x, epsilon=1e-5, prog=prog).elementType() is FLOAT
    assert popops.varianceToInvStdDev(graph, 2.0, x, prog).elementType() is FLOAT  # a number for the variance
    assert popops.invStdDevToVariance(graph, variable(graph, HALF, [4], "h"), 1e-5, prog).elementType() is FLOAT


def test_selections_and_bounds_have_poplibs_names_and_may_be_numbers(mode):
    graph, device = new_graph(4)
    a, b, prog = variable(graph, INT, [3, 4], "a"), variable(graph, INT, [4], "b"), Sequence()
    flags = variable(graph, BOOL, [3, 1], "flags")
    values = {"a": np.arange(12).reshape(3, 4) - 6, "b": np.array([5, -5, 0, 1]), "flags": np.array([[True], [False], [True]])}
    values = {name: value.astype(bool if name == "flags" else np.int32) for name, value in values.items()}
    results = {
        "select": popops.select(graph, A=a, B=b, conditions=flags, prog=prog),
        "number": popops.select(graph, 7, a, flags, prog),
        "always": popops.select(graph, a, 3, True, prog),
        "clamp": popops.clamp(graph, values=a, minimums=-2, maximums=b, prog=prog),
    }
    popops.clampInPlace(graph, a, minimums=-1, maximums=1, prog=prog)
    read, _ = run(graph, device, prog, values, {**results, "a": a}, mode)
    np.testing.assert_array_equal(read["select"], np.where(values["flags"], values["a"], values["b"]))
    np.testing.assert_array_equal(read["number"], np.where(values["flags"], 7, values["a"]))
    np.testing.assert_array_equal(read["always"], values["a"])
    np.testing.assert_array_equal(read["clamp"], np.minimum(np.maximum(values["a"], -2), values["b"]))
    np.testing.assert_array_equal(read["a"], np.clip(values["a"], -1, 1))


def test_numbers_share_the_codelet_of_their_call():
    graph, _ = new_graph(4)
    a, prog = variable(graph, INT, [9], "a"), Sequence()
    popops.shiftLeft(graph, a, 1, prog)
    before = len(graph.getVertexTypes())
    popops.shiftLeft(graph, a, 2, prog)
    assert len(graph.getVertexTypes()) == before


CALLS = {
    "add": lambda g, a, b, p: popops.add(g, a, b, p),
    "add a number": lambda g, a, b, p: popops.addInPlace(g, a, 1.0, p),
    "exp": lambda g, a, b, p: popops.exp(g, a, p),
    "tanh of rows turned round": lambda g, a, b, p: popops.tanh(g, a.reverse(0), p),
    "a comparison": lambda g, a, b, p: popops.gt(g, a, b, p),
    "a row to each": lambda g, a, b, p: popops.mul(g, a, b[0], p),
    "clamp": lambda g, a, b, p: popops.clamp(g, a, -1.0, 1.0, p),
    "select": lambda g, a, b, p: popops.select(g, a, b, popops.lt(g, a, b, p), p),
    "scaledAddTo": lambda g, a, b, p: popops.scaledAddTo(g, a, b, 0.5, p),
    "deviations": lambda g, a, b, p: popops.varianceToInvStdDev(g, a, 1e-3, p),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_million_elements_use_the_tiles_of_the_bow(call):
    graph = Graph(IPUModel("bow").createDevice())
    popops.addCodelets(graph)
    a, b = (graph.addVariable(FLOAT, [1000, 1000], name) for name in "ab")
    for tensor in (a, b):
        poputil.mapTensorLinearly(graph, tensor)
    call(graph, a, b, Sequence())
    vertices = graph.freeze().vertices
    for number in range(graph.numComputeSets()):
        tiles = vertices.tile[vertices.compute_set == number]
        assert len(set(tiles.tolist())) >= 0.99 * 1472
        assert len(tiles) <= 1472  # one vertex a tile


ROWS = [row for row in OPERATIONS.values() if row.name != "RELU"]


def made(graph, row):
    """Operands of an operation's first type, and one of a type that it does not have or that does not mix."""
    type = row.types[0]
    types = [type, type, BOOL] if row.name == "SELECT" else [type] * row.operands
    tensors = [variable(graph, each, [4], f"operand {place} of {row.function}") for place, each in enumerate(types)]
    other = next(each for each in (SHORT, BOOL, UNSIGNED_INT, FLOAT) if each not in row.types or each is not type)
    return tensors, variable(graph, other, [4], f"other {row.name}"), variable(graph, type, [5], f"five of {row.name}")


@pytest.mark.parametrize("form", FORMS)
def test_mistakes_are_refused_by_the_name_of_the_call_before_the_graph_is_changed(form):
    graph, _ = new_graph(4)
    for row in ROWS:
        prog = Sequence()
        mistakes = mistakes_of(graph, row, form, prog)
        before = graph.numComputeSets(), len(graph.getVertexTypes()), len(graph._variables.names)
        for error, text, mistake in mistakes:
            with pytest.raises(PoplarError, match=text) as fault:
                mistake()
            assert isinstance(fault.value, error)
        assert (graph.numComputeSets(), len(graph.getVertexTypes()), len(graph._variables.names)) == before
        assert len(prog) == 0


def mistakes_of(graph, row, form, prog):
    """Calls of a function that are wrong: the error that they raise, its text, and the call."""
    operands, other, five = made(graph, row)
    result = row.result(row.types[0])
    out = [variable(graph, result, [4], f"out of {row.name}")] if form == "WithOutput" else []
    name = f"{row.function}{form}"
    call = getattr(popops, name)
    constant = graph.addConstant(result, [4], 0, "constant")
    graph.setTileMapping(constant, 0)

    def given(*arguments):
        return lambda: call(graph, *arguments)

    fits = poputil.PoplibsError
    mistakes = [
        (PoplarTypeError, "prog", given(*operands, *out, None)),
        (PoplarTypeError, "takes a tensor, got 'x'|a number or a tensor, got 'x'", given("x", *operands[1:], *out, prog)),
        (PoplarTypeError, "first argument is the graph", lambda: call(None, *operands, *out, prog)),
    ]
    if "VARIANCE" not in row.name or form:
        wrong = {"enableGenerateCodelt": "true"}
        mistakes.append((InvalidOption, "did you mean 'enableGenerateCodelet'", given(*operands, *out, prog, "x", wrong)))
        mistakes.append((PoplarTypeError, "a debug name is a string", given(*operands, *out, prog, 3)))
    if row.operands > 1:
        mixed = [operands[0], other, *operands[2:], *out, prog]
        mistakes.append((fits, "one type|chooses by|has no", given(*mixed)))
        mistakes.append((fits, "broadcast.*'five of", given(operands[0], five, *operands[2:], *out, prog)))
    if not row.relation and row.operands == 2 and not row.types[0].is_floating:
        mistakes.append((PoplarTypeError, rf"operand of popops.{name}.*1\.5", given(operands[0], 1.5, *out, prog)))
    if form == "WithOutput":
        mistakes.append((fits, f"popops.{name}: .*cannot be written", given(*operands, constant, prog)))
        mistakes.append((fits, "fit into .*'five of", given(*operands, five, prog)))
        mistakes.append((fits, "holds an element twice", given(*operands, out[0][0:1].broadcast(4, 0), prog)))
    if form == "InPlace" and result is row.types[0]:
        mistakes.append((fits, f"popops.{name}: .*cannot be written", given(constant, *operands[1:], prog)))
    return mistakes


def test_tensors_without_tiles_and_lists_of_no_tensors_are_refused_first():
    graph, _ = new_graph(4)
    unmapped, a, prog = graph.addVariable(FLOAT, [4], "unmapped"), variable(graph, FLOAT, [4], "a"), Sequence()
    before = graph.numComputeSets(), len(graph._variables.names)
    for mistake in (
        lambda: popops.exp(graph, unmapped, prog),
        lambda: popops.expInPlace(graph, unmapped, prog),
        lambda: popops.addInPlace(graph, unmapped, 1.0, prog),
        lambda: popops.add(graph, a, unmapped, prog),
    ):
        with pytest.raises(InvalidTileMapping, match=r"popops\.\w+: 4 of 4 elements of <Tensor 'unmapped'"):
            mistake()
    output = popops.createOutputForElementWiseOp
    for text, mistake in (
        ("the first argument is the graph, got None", lambda: output(None, [a], FLOAT)),
        ("takes a tensor, got 3", lambda: output(graph, [a, 3], FLOAT)),
        ("popops.createOutputForElementWiseOp: inputs is a list of tensors, got <Tensor", lambda: output(graph, a, FLOAT)),
        ("popops.createOutputForElementWiseOp: inputs is a list of tensors, got None", lambda: output(graph, None, FLOAT)),
        ("popops.createOutputForElementWiseOp: outputType is an element type such as FLOAT, got 1", lambda: output(graph, [a], 1)),
        ("the options of popops.add are a dict, got 'fast'", lambda: popops.add(graph, a, a, prog, "x", "fast")),
    ):
        with pytest.raises(PoplarError, match=text):
            mistake()
    assert (graph.numComputeSets(), len(graph._variables.names)) == before
    assert len(prog) == 0


def test_a_number_that_the_type_has_not_and_shapes_beside_numbers_are_refused_first():
    graph, _ = new_graph(4)
    a, prog = variable(graph, UNSIGNED_INT, [2, 4], "a"), Sequence()
    row = variable(graph, UNSIGNED_INT, [4], "row")
    before = len(graph._variables.names)
    for mistake in (
        lambda: popops.add(graph, a, -1, prog),
        lambda: popops.mulInPlace(graph, row, 2**32, prog),
        lambda: popops.clamp(graph, a, 0, float("nan"), prog),
        lambda: popops.clampInPlace(graph, row, 1, a, prog),
        lambda: popops.addWithOutput(graph, a, 1, row, prog),
        lambda: popops.select(graph, a, 1, 2, prog),
        lambda: popops.select(graph, 1, 2, variable(graph, BOOL, [2], "flags"), prog),
    ):
        with pytest.raises(PoplarError, match=r"popops\.\w+"):
            mistake()
    assert len(graph._variables.names) == before + 1  # the flags
    assert len(prog) == 0
