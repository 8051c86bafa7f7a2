"""popops.map and the named functions on elements: every operation, type and form against NumPy; trees fused and not."""

import io
import math

import numpy as np
import pytest
from element_references import STEPS, TOLERANCE, expected, operands
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    CodeletArithmeticError,
    Engine,
    Graph,
    InvalidOption,
    IPUModel,
    PoplarTypeError,
    popops,
    poputil,
)
from pypoplar.popops.elements.element_operations import OPERATIONS
from pypoplar.popops.expr import (
    Abs,
    Add,
    Asin,
    BinaryOp,
    BinaryOpType,
    Cast,
    Const,
    ConstHalf,
    Exp,
    Max,
    Min,
    PlaceHolder,
    Select,
    Tanh,
    TernaryOpType,
    UnaryOp,
    UnaryOpType,
    _1,
    _2,
    _3,
    _4,
    operation,
)
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

CASES = [(row, type) for row in OPERATIONS.values() for type in row.types]
SOME = [  # two types of each operation, others of the next, and all operations of a type that has few
    (row, type)
    for number, row in enumerate(OPERATIONS.values())
    for place, type in enumerate(row.types)
    if place in {number % len(row.types), (number + len(row.types) // 2) % len(row.types)}
    or sum(other is type for _, other in CASES) < 8
]


def named(row, type):
    """Whether an operation has a function of its own name."""
    return row.name != "RELU" and "VARIANCE" not in row.name


class Bench:
    """A graph on some tiles, its variables with their values, and results to be read."""

    def __init__(self, tiles=4):
        model = IPUModel("bow")
        model.tilesPerIPU = tiles
        self.device = model.createDevice()
        self.graph = Graph(self.device)
        popops.addCodelets(self.graph)
        self.prog = Sequence()
        self.results = {}

    def variable(self, values, name, type=None):
        known = {known.dtype: known for known in (FLOAT, HALF, INT)}
        tensor = self.graph.addVariable(type or known[np.asarray(values).dtype], list(np.shape(values)), name)
        poputil.mapTensorLinearly(self.graph, tensor, 1, 1)
        self.graph.setInitialValue(tensor, values)
        return tensor

    def variables(self, values, name, type):
        """The operands of an operation on a type; a select's last is BOOL."""
        return [
            self.variable(value, f"{name} {place}", BOOL if value.dtype == bool else type) for place, value in enumerate(values)
        ]

    def result(self, name, tensor):
        self.graph.createHostRead(name, tensor)
        self.results[name] = tensor

    def run(self, mode="native"):
        engine = Engine(self.graph, self.prog, mode=mode)
        engine.load(self.device)
        engine.run()
        steps = engine.getReport().execution.steps
        return {name: engine.readTensor(name) for name in self.results}, steps


def close(row, type, got, values):
    """Integers and BOOLs to the bit, floats within the tolerance of their type."""
    wanted = expected(row, type, values)
    if type not in TOLERANCE or row.relation:
        np.testing.assert_array_equal(got, wanted)
        return
    tolerance = TOLERANCE[type] * STEPS.get(row.name, 1)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(got.astype(np.float64), wanted.astype(type.dtype), rtol=tolerance, atol=tolerance)


def test_every_operation_is_tried_and_every_type():
    assert {row.name for row, _ in SOME} == set(OPERATIONS)
    assert {type for _, type in SOME} == {type for _, type in CASES}
    assert all(sum(row.name == name for row, _ in SOME) >= min(2, len(OPERATIONS[name].types)) for name in OPERATIONS)


SHARES = pytest.mark.parametrize("cases", [pytest.param(SOME, id="some"), pytest.param(CASES, id="all", marks=pytest.mark.slow)])


@pytest.mark.no_cover
@SHARES
def test_every_operation_on_every_type_is_numpys(cases):
    for types in ({FLOAT, HALF}, set(OPERATIONS["SELECT"].types) - {FLOAT, HALF}):
        bench, made = Bench(), []
        for number, (row, type) in enumerate((row, type) for row, type in cases if type in types):
            values = operands(row, type, 37, np.random.default_rng(number))
            tensors = [
                bench.variable(value, f"{number} {place}", BOOL if value.dtype == bool else type)
                for place, value in enumerate(values)
            ]
            tree = operation(row.name, *(PlaceHolder(place + 1) for place in range(row.operands)))
            bench.result(str(number), popops.map(bench.graph, tree, tensors, bench.prog))
            made.append((row, type, values))
        (native, _), (interpreted, _) = bench.run(), bench.run("interpret")
        for number, (row, type, values) in enumerate(made):
            assert native[str(number)].dtype == row.result(type).dtype
            np.testing.assert_array_equal(native[str(number)], interpreted[str(number)], err_msg=f"{row.name} {type!r}")
            close(row, type, native[str(number)], values)


@pytest.mark.no_cover
@SHARES
def test_every_named_function_computes_in_place_and_into_a_given_tensor(cases):
    bench, made = Bench(), []
    for number, (row, type) in enumerate(case for case in cases if named(*case)):
        values = operands(row, type, 13, np.random.default_rng(number))
        forms = []
        for form in ("", "InPlace", "WithOutput"):
            if form == "InPlace" and row.result(type) is not type:
                continue
            tensors = [
                bench.variable(value, f"{number} {form} {place}", BOOL if value.dtype == bool else type)
                for place, value in enumerate(values)
            ]
            out = (
                [bench.variable(np.zeros(13, row.result(type).dtype), f"{number} out", row.result(type))]
                if form == "WithOutput"
                else []
            )
            given = getattr(popops, row.function + form)(bench.graph, *tensors, *out, bench.prog)
            result = {"": given, "InPlace": tensors[0], "WithOutput": (*out, None)[0]}[form]
            assert (given is None) == bool(form)
            bench.result(f"{number}{form}", result)
            forms.append(form)
        made.append((row, type, values, forms))
    results, _ = bench.run()
    for number, (row, type, values, forms) in enumerate(made):
        close(row, type, results[str(number)], values)
        for form in forms:
            np.testing.assert_array_equal(results[f"{number}{form}"], results[str(number)], err_msg=f"{row.name}{form} {type!r}")


UNARY = ("EXPONENT", "TANH", "ABSOLUTE", "NEGATE", "SQUARE", "SIGMOID", "FLOOR")
BINARY = ("ADD", "SUBTRACT", "MULTIPLY", "MAXIMUM", "MINIMUM")


def trees(leaves):
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(UnaryOp, st.sampled_from(UNARY), inner),
            st.builds(BinaryOp, st.sampled_from(BINARY), inner, inner),
            st.builds(lambda a, b, c, d: Select(a, b, c < d), inner, inner, inner, inner),
        ),
        max_leaves=7,
    )


def of_type(type):
    """Trees over elements of a type, with the type."""
    constants = st.builds(Const, st.sampled_from([0.5, -1.25, 3.0]), st.just(type))
    return st.tuples(trees(st.one_of(st.sampled_from([_1, _2, _3, _4]), constants)), st.just(type))


@examples(30)
@given(st.one_of(of_type(FLOAT), of_type(HALF)), st.booleans())
def test_a_fused_tree_gives_the_bits_of_the_calls_that_it_replaces_and_is_not_dearer(drawn, in_place):
    (tree, type), bench = drawn, Bench()
    random = np.random.default_rng(7)
    shapes = ([3, 7], [7], [], [3, 1])
    values = [(random.standard_normal(shape) * 2).astype(type.dtype) for shape in shapes]
    cycles = []
    for number, options in enumerate(({}, {"enableGenerateCodelet": "false"})):
        tensors = [bench.variable(value, f"{number} {place}", type) for place, value in enumerate(values)]
        tree = tree + _1
        name = f"call{number}"
        if in_place:
            popops.mapInPlace(bench.graph, tree, tensors, bench.prog, name, options)
        result = tensors[0] if in_place else popops.map(bench.graph, tree, tensors, bench.prog, name, options)
        tree = tree.operands[0]
        bench.result(name, result)
    results, steps = bench.run()
    interpreted, same_steps = bench.run("interpret")
    np.testing.assert_array_equal(results["call0"], results["call1"])
    for name in results:
        np.testing.assert_array_equal(results[name], interpreted[name])
    assert [step.cycles for step in steps] == [step.cycles for step in same_steps]
    cycles = [sum(step.compute_cycles for step in steps if step.name.startswith(f"call{number}")) for number in range(2)]
    assert cycles[0] <= cycles[1]


@pytest.mark.parametrize(
    "trees", [[Tanh(_3 + 1.0)], [_1 * _1, Asin(Abs(_2))]], ids=["a tensor on one tile is not read", "a narrow tree"]
)
def test_trees_that_read_a_part_of_the_tensors_are_not_dearer_than_their_operations(trees):
    bench, row = Bench(), np.linspace(-1, 1, 16, dtype=np.float32)
    for number, options in enumerate(({}, {"enableGenerateCodelet": "false"})):
        wide, narrow = bench.variable(np.ones([64, 16], np.float32), f"{number} wide"), bench.variable(row, f"{number} narrow")
        bench.graph.setTileMapping(wide, 3)
        tensors = [wide, narrow, narrow.expand([0]).broadcast(64, 0)]
        for place, out in enumerate(popops.map(bench.graph, trees, tensors, bench.prog, f"call{number}", options)):
            bench.result(f"{place} {number}", out)
    results, steps = bench.run()
    for place in range(len(trees)):
        np.testing.assert_array_equal(results[f"{place} 0"], results[f"{place} 1"])
    cycles = [sum(step.cycles for step in steps if f"call{number}" in step.name) for number in range(2)]
    assert 0 < cycles[0] <= cycles[1]


def test_several_trees_are_computed_at_once_and_in_place_from_the_values_before():
    bench = Bench()
    x, y = np.arange(10, dtype=np.float32), np.arange(10, 20).astype(np.float32)
    a, b, c, d = (bench.variable(values, name) for values, name in ((x, "a"), (y, "b"), (x, "c"), (y, "d")))
    total, larger = popops.map(bench.graph, [_1 + _2, _1 > 4.0], [a, b], bench.prog)
    popops.mapInPlace(bench.graph, [_2, _1 - _2], [c, d], bench.prog)  # they change places
    for name, tensor in (("total", total), ("larger", larger), ("c", c), ("d", d)):
        bench.result(name, tensor)
    results, steps = bench.run()
    np.testing.assert_array_equal(results["total"], x + y)
    np.testing.assert_array_equal(results["larger"], x > 4)
    np.testing.assert_array_equal(results["c"], y)
    np.testing.assert_array_equal(results["d"], x - y)
    assert sum(step.type == "OnTileExecute" for step in steps) == 2


@pytest.mark.parametrize("fuses", ["true", "false"])
def test_trees_in_place_read_the_values_before(fuses):
    bench = Bench()
    x, y = np.arange(6, dtype=np.float32), np.arange(6, 12).astype(np.float32)
    a, b = bench.variable(x, "a"), bench.variable(y, "b")
    popops.mapInPlace(bench.graph, [_1 * 2.0 + _2, _1 - _2 * 3.0], [a, b], bench.prog, "swap", {"enableGenerateCodelet": fuses})
    bench.result("a", a)
    bench.result("b", b)
    for mode in ("native", "interpret"):
        results, _ = bench.run(mode)
        np.testing.assert_array_equal(results["a"], x * 2 + y)
        np.testing.assert_array_equal(results["b"], x - y * 3)


def test_every_form_of_map_gives_the_same():
    bench = Bench()
    values = [np.linspace(-3, 3, 7).astype(np.float32) + number for number in range(3)]
    a, b, c = (bench.variable(value, name) for value, name in zip(values, "abc", strict=True))
    g, p, outs = bench.graph, bench.prog, [bench.variable(np.zeros(7, np.float32), f"out {number}") for number in range(5)]
    forms = {
        UnaryOpType.TANH: ([a], np.tanh(values[0])),
        BinaryOpType.MAXIMUM: ([a, b], np.maximum(values[0], values[1])),
        TernaryOpType.CLAMP: ([a, b, c], np.minimum(np.maximum(values[0], values[1]), values[2])),
    }
    wanted = {}
    for (op, (given_to, value)), out in zip(forms.items(), outs, strict=False):
        popops.mapWithOutput(g, op, *given_to, out, p)
        copy = poputil.duplicate(g, a, p)
        popops.mapInPlace(g, op, copy, *given_to[1:], p)
        for form, tensor in (("plain", popops.map(g, op, *given_to, p)), ("listed", popops.map(g, op, given_to, p)),
                             ("out", out), ("in place", copy)):  # fmt: skip
            bench.result(f"{op.name} {form}", tensor)
            wanted[f"{op.name} {form}"] = value
    popops.mapWithOutput(g, [_1 + _2, _2 - _1], [a, b], outs[3:], p)
    bench.result("sum", outs[3])
    bench.result("difference", outs[4])
    results, _ = bench.run()
    for name, value in wanted.items():
        np.testing.assert_allclose(results[name], value, rtol=1e-6, err_msg=name)
    np.testing.assert_array_equal(results["sum"], values[0] + values[1])
    np.testing.assert_array_equal(results["difference"], values[1] - values[0])


def test_the_text_of_a_codelet_can_be_had_without_a_call():
    bench, file = Bench(), io.StringIO()
    a, b = bench.variable(np.ones([3, 4], np.float32), "a"), bench.variable(np.ones([], np.float32), "b")
    popops.outputGeneratedCodelet(bench.graph.getTarget(), Exp(_1) + _2, [a, b], {}, file)
    assert "class Map(MultiVertex, name='popops::Map<add(exp(_1),_2),float,float scalar>'):" in file.getvalue()
    names: dict[str, object] = {}
    exec(file.getvalue(), names)
    assert names["Map"]
    with pytest.raises(PoplarTypeError, match=r"os is a text file, got 3"):
        popops.outputGeneratedCodelet(bench.graph.getTarget(), Exp(_1) + _2, [a, b], {}, 3)
    with pytest.raises(PoplarTypeError, match=r"target is a Target such as graph.getTarget\(\), got"):
        popops.outputGeneratedCodelet(bench.graph, Exp(_1) + _2, [a, b], {}, file)
    assert bench.graph.numComputeSets() == 0


def test_casts_cut_floats_hold_them_at_the_ends_and_wrap_integers():
    bench = Bench()
    values = np.array([-3e10, -2.75, -0.5, 0.0, 1.5, 300.25, 3e10], np.float32)
    a = bench.variable(values, "a")
    whole = popops.map(bench.graph, Cast(_1, INT), [a], bench.prog)
    bench.result("whole", whole)
    bench.result("back", popops.map(bench.graph, Cast(_1, FLOAT) * 2.0, [whole], bench.prog))
    bench.result("half", popops.map(bench.graph, Cast(Cast(_1, HALF), FLOAT), [a], bench.prog))
    bench.result("bool", popops.map(bench.graph, Select(Const(1), Const(0), Cast(Cast(_1, INT), BOOL)), [a], bench.prog))
    for results in (bench.run()[0], bench.run("interpret")[0]):
        assert results["whole"].tolist() == [-(2**31), -2, 0, 0, 1, 300, 2**31 - 1]
        np.testing.assert_array_equal(results["back"], results["whole"].astype(np.float32) * 2)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(results["half"], values.astype(np.float16).astype(np.float32))
        assert results["bool"].tolist() == [1, 1, 0, 0, 1, 1, 1]


def test_the_text_of_a_tree_is_shown_where_it_fails():
    bench = Bench()
    a, b = bench.variable(np.array([1, 2], np.int32), "a"), bench.variable(np.array([1, 0], np.int32), "b")
    bench.result("q", popops.map(bench.graph, _1 / _2 + 1, [a, b], bench.prog))
    for mode in ("native", "interpret"):
        with pytest.raises(CodeletArithmeticError, match="division by zero") as fault:
            bench.run(mode)
        assert "whole = a // b" in str(fault.value)


def test_equal_trees_are_one_codelet():
    bench = Bench()
    a = bench.variable(np.ones(4, np.float32), "a")
    before = len(bench.graph.getVertexTypes())
    for _ in range(2):
        popops.map(bench.graph, Exp(_1) + 1.0, [a], bench.prog)
    popops.map(bench.graph, Exp(_1) + 2.0, [a], bench.prog)
    assert len(bench.graph.getVertexTypes()) == before + 2
    long = _1
    for _ in range(100):
        long = Tanh(long) * 0.5
    shared = Add(long, long)
    bench.result("y", popops.map(bench.graph, shared, [a], bench.prog))
    value = np.float32(1)
    for _ in range(100):
        value = np.float32(np.tanh(value)) * np.float32(0.5)
    np.testing.assert_allclose(bench.run()[0]["y"], value + value, rtol=1e-4)


def test_trees_of_one_text_are_one_codelet_though_they_share_other_nodes():
    bench = Bench()
    a = bench.variable(np.array([-0.0, 2, 3], np.float32), "a")
    before, shared = len(bench.graph.getVertexTypes()), Exp(_1)
    trees = [shared + shared, Exp(_1) + Exp(_1), Exp(_1) + Exp(PlaceHolder(1)), *(Exp(_1) + Const(math.nan) for _ in range(2))]
    results = [popops.map(bench.graph, tree, [a], bench.prog) for tree in trees]
    assert len(bench.graph.getVertexTypes()) == before + 2
    zeros = [popops.map(bench.graph, Add(_1, Const(zero)) * Add(_1, Const(-0.0)), [a], bench.prog) for zero in (0.0, -0.0)]
    assert len(bench.graph.getVertexTypes()) == before + 4
    for number, tensor in enumerate([*results, *zeros]):
        bench.result(f"y{number}", tensor)
    given, _ = bench.run()
    for number in range(3):
        np.testing.assert_array_equal(given[f"y{number}"], given["y0"])
    np.testing.assert_array_equal(np.signbit(given["y5"]), [True, False, False])
    np.testing.assert_array_equal(np.signbit(given["y6"]), [False, False, False])


def test_a_map_over_a_million_elements_uses_all_tiles():
    graph = Graph(IPUModel("bow").createDevice())
    popops.addCodelets(graph)
    tensors = [graph.addVariable(FLOAT, [1000, 1000], name) for name in "ab"]
    for tensor in tensors:
        poputil.mapTensorLinearly(graph, tensor)
    popops.map(graph, Exp(_1) * _2 + 1.0, tensors, Sequence())
    assert len(set(graph.freeze().vertices.tile.tolist())) >= 0.99 * 1472


def test_empty_tensors_give_empty_results():
    bench = Bench()
    a = bench.variable(np.zeros([0, 3], np.float32), "a")
    out = popops.map(bench.graph, Exp(_1) + _1, [a], bench.prog)
    assert out.shape() == [0, 3]
    popops.mapInPlace(bench.graph, Exp(_1), [a], bench.prog)
    popops.expInPlace(bench.graph, a, bench.prog)


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (_1 + _2, r"add\(_1,_2\) takes operands of one type, got FLOAT, INT; write Cast\(...\) around one"),
        (_3, "_3 is beyond the 2 tensors that are mapped"),
        (_1 & 1, "bitwiseAnd has no FLOAT: its types are INT"),
        (_2 + 1.5, "the constant 1.5 is no INT"),
        (_2 + 2**31, "the constant 2147483648 is no INT"),
        (_1 + ConstHalf(1.0), "takes operands of one type, got FLOAT, HALF"),
        (Select(_1, _1, _2), "chooses by BOOL, got INT"),
        (_1 + True, "the constant True is no FLOAT"),
        ("_1 + _2", "takes a tree of popops.expr, such as _1 .* got '_1"),
        ([], "needs an expression and a tensor"),
    ],
)
def test_trees_that_do_not_fit_are_refused_by_the_call(tree, text):
    bench = Bench()
    a, b = bench.variable(np.ones(3, np.float32), "a"), bench.variable(np.ones(3, np.int32), "b")
    with pytest.raises(PoplibsError, match=f"popops.map:? .*{text}|{text}"):
        popops.map(bench.graph, tree, [a, b], bench.prog)


def test_mistakes_are_told_by_name():
    bench = Bench()
    a, b = bench.variable(np.ones([2, 3], np.float32), "a"), bench.variable(np.ones([4], np.float32), "b")
    g, p = bench.graph, bench.prog
    with pytest.raises(PoplibsError, match=r"popops.map cannot broadcast"):
        popops.map(g, _1 + _2, [a, b], p)
    with pytest.raises(PoplibsError, match=r"popops.mapInPlace gives BOOL \[2, 3\], which does not fit"):
        popops.mapInPlace(g, _1 > 1.0, [a], p)
    with pytest.raises(PoplibsError, match=r"popops.mapWithOutput gives FLOAT"):
        popops.mapWithOutput(g, _1 + 1.0, [a], b, p)
    with pytest.raises(PoplibsError, match="2 expressions replace as many tensors, got 1"):
        popops.mapInPlace(g, [_1, _1], [a], p)
    with pytest.raises(PoplibsError, match="2 expressions have as many results, got 1 tensors"):
        popops.mapWithOutput(g, [_1, _1], [a], [a], p)
    with pytest.raises(PoplibsError, match=r"cannot write two results to one element: .*'a'"):
        popops.mapInPlace(g, [_1 * 2.0, _2 + _1], [a, a], p)
    with pytest.raises(PoplarTypeError, match=r"popops.map takes a tensor, got 'a'"):
        popops.map(g, BinaryOpType.ADD, a, "a", p)
    with pytest.raises(PoplarTypeError, match=r"popops.map: .*prog.* got None"):
        popops.map(g, _1, [a], None)
    with pytest.raises(InvalidOption, match="no option 'enableGenerateCodlet'; did you mean 'enableGenerateCodelet'"):
        popops.map(g, _1, [a], p, None, {"enableGenerateCodlet": "true"})
    with pytest.raises(PoplarTypeError, match="which has no truth value"):
        popops.map(g, _1 > 0.0 and _1 < 1.0, [a], p)
    with pytest.raises(PoplarTypeError, match="a PlaceHolder has a number from 1 on, got 0"):
        PlaceHolder(0)
    with pytest.raises(PoplarTypeError, match="no operation of 1 operand is called 'EXPONNENT'; did you mean 'EXPONENT'"):
        UnaryOp("EXPONNENT", _1)
    with pytest.raises(TypeError, match=r"Add\(\) missing 1 required positional argument: 'b'"):
        Add(_1)
    with pytest.raises(PoplarTypeError, match="made of placeholders, numbers and operations, got"):
        Max(_1, a)
    with pytest.raises(PoplibsError, match=r"popops.exp|cannot be written"):
        popops.expInPlace(g, a.broadcast(2, 0), p)
    with pytest.raises(PoplibsError, match=r"popops.pow needs a tensor"):
        popops.pow(g, 2.0, 3.0, p)
    with pytest.raises(PoplibsError, match="exp has no INT"):
        popops.exp(g, bench.variable(np.ones(3, np.int32), "n"), p)
    with pytest.raises(PoplarTypeError, match=r"popops.exp takes a tensor, got 'a'"):
        popops.exp(g, "a", p)
    assert popops.map(g, UnaryOpType.ABSOLUTE, [a], p).shape() == [2, 3]
    assert popops.map(g, BinaryOpType.ADD, [a, a], p).shape() == [2, 3]
    assert str(Abs(_1) + 2.0) == "add(abs(_1),2.0)"
    assert popops.varianceToInvStdDev(g, a, 1e-5, p).elementType() is HALF
    assert popops.invStdDevToVariance(g, a, 1e-5, p).elementType() is FLOAT
    assert UNSIGNED_INT in OPERATIONS["ADD"].types


@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_constants_alone_and_narrow_trees_of_a_list_fill_the_common_shape(mode):
    bench = Bench()
    a, row = bench.variable(np.ones([2, 3], np.float32), "a"), bench.variable(np.arange(3, dtype=np.float32), "row")
    for fuses in (True, False):
        options = {"enableGenerateCodelet": fuses}
        bench.result(f"constant {fuses}", popops.map(bench.graph, Const(2.5), [a], bench.prog, "", options))
        for number, result in enumerate(popops.map(bench.graph, [_1 + _2, _2 * 2.0, Const(7)], [a, row], bench.prog, "", options)):
            bench.result(f"{number} {fuses}", result)
    read, _ = bench.run(mode)
    for fuses in (True, False):
        np.testing.assert_array_equal(read[f"constant {fuses}"], np.full([2, 3], 2.5, np.float32))
        np.testing.assert_array_equal(read[f"0 {fuses}"], [[1, 2, 3]] * 2)
        np.testing.assert_array_equal(read[f"1 {fuses}"], [[0, 2, 4]] * 2)
        np.testing.assert_array_equal(read[f"2 {fuses}"], [[7] * 3] * 2)


def test_one_tensor_is_no_list_of_tensors():
    bench = Bench()
    a = bench.variable(np.ones(6, np.float32), "a")
    for ts in (a, None, 3, "ab"):
        with pytest.raises(PoplarTypeError, match=r"popops\.map: ts is a list of tensors, got"):
            popops.map(bench.graph, _1 + _2, ts, bench.prog)


@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_a_number_is_compared_in_its_place_where_the_other_is_nan_or_a_zero_of_the_other_sign(type):
    bench = Bench()
    a = bench.variable(np.array([np.nan, 0.0, -0.0], type.dtype), "a")
    for name in ("max", "min"):
        function, build = getattr(popops, name), {"max": Max, "min": Min}[name]
        bench.result(f"{name} number", function(bench.graph, -0.0, a, bench.prog))
        bench.result(f"{name} tree", popops.map(bench.graph, build(Const(-0.0, type), _1), [a], bench.prog))
    read, _ = bench.run()
    for name in ("max", "min"):
        assert read[f"{name} number"].tobytes() == read[f"{name} tree"].tobytes() == np.full(3, -0.0, type.dtype).tobytes()


def test_the_gelu_of_negative_numbers_keeps_its_relative_error():
    bench = Bench()
    x = -np.linspace(0.5, 9, 40, dtype=np.float32)
    bench.result("gelu", popops.geluErf(bench.graph, bench.variable(x, "x"), bench.prog))
    exact = np.array([0.5 * value * math.erfc(-value / math.sqrt(2)) for value in x.tolist()])
    np.testing.assert_allclose(bench.run()[0]["gelu"], exact, rtol=2.4e-5)
