"""popops.reduce, reduceWithOutput and reduceMany: every operation and type over shapes, mappings and tile counts, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import call, new_graph, run, variable

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    UNSIGNED_INT,
    Engine,
    Graph,
    InvalidOption,
    InvalidTileMapping,
    IPUModel,
    PoplarTypeError,
    Tensor,
    concat,
    popops,
    poputil,
)
from pypoplar.errors import PoplarIndexError
from pypoplar.popops import Operation, ReduceParams, SingleReduceOp
from pypoplar.popops.reduction.reduce_params import TYPES
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Execute, Sequence

NUMPY = {
    Operation.ADD: np.add.reduce,
    Operation.MUL: np.multiply.reduce,
    Operation.MIN: np.minimum.reduce,
    Operation.MAX: np.maximum.reduce,
    Operation.LOGICAL_AND: np.logical_and.reduce,
    Operation.LOGICAL_OR: np.logical_or.reduce,
    Operation.SQUARE_ADD: lambda values, axis: np.square(values).sum(axis=axis),
    Operation.LOG_ADD: lambda values, axis: np.log(np.exp(values).sum(axis=axis)),
}
EVERY = [(operation, type) for operation, types in TYPES.items() for type in types]
SHAPES = [([1000], [0]), ([13, 17], [0]), ([13, 17], [1]), ([4, 5, 6, 7], [0, 2]), ([300, 3], [1]), ([5, 6], []), ([3, 1], [1])]
ADD, MAX = Operation.ADD, Operation.MAX


def values_for(operation, type, shape, seed=0):
    random = np.random.default_rng(seed)
    if type is BOOL:
        return np.asarray(random.random(shape) < (0.9 if operation is Operation.LOGICAL_AND else 0.1))
    if not type.is_floating:
        return np.asarray(random.integers(0 if type is UNSIGNED_INT else -4, 5, shape), type.dtype)
    spread = 1 + 0.01 * random.standard_normal(shape) if operation is Operation.MUL else random.standard_normal(shape)
    return np.asarray(spread, type.dtype)


def expected(operation, values, dims):
    exact = values.astype(np.float64) if values.dtype.kind == "f" else values
    with np.errstate(over="ignore"):
        return np.asarray(NUMPY[operation](exact, axis=tuple(dims))).astype(values.dtype)


def close(result, wanted):
    assert result.shape == wanted.shape
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(result, wanted)
    else:
        tolerance = 2e-3 if wanted.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance * 5)


@pytest.mark.parametrize(("operation", "type"), EVERY)
def test_every_operation_reduces_every_type_that_it_takes(operation, type, mode):
    graph, device = new_graph(4)
    prog, given, results, wanted = Sequence(), {}, {}, {}
    for number, (shape, dims) in enumerate(SHAPES if mode == "native" else SHAPES[1:3]):
        name = str(number)
        given[name] = values_for(operation, type, shape, number)
        results[name] = popops.reduce(graph, variable(graph, type, shape, name), dims, operation, prog)
        wanted[name] = expected(operation, given[name], dims)
    read, _ = run(graph, device, prog, given, results, mode)
    for name, result in read.items():
        close(result, wanted[name])


@pytest.mark.parametrize("operation", [ADD, Operation.MUL])
@pytest.mark.parametrize(("shape", "dims"), [([1000], [0]), ([13, 17], [0]), ([13, 17], [1]), ([4, 0], [1]), ([3, 1], [1])])
def test_integers_of_32_bits_are_combined_in_64(operation, shape, dims, mode):
    graph, device = new_graph(4)
    prog = Sequence()
    result = popops.reduce(graph, variable(graph, INT, shape, "x"), LONGLONG, dims, operation, prog)
    values = np.random.default_rng(0).integers(-(2**31), 2**31, shape).astype(np.int32)
    read, _ = run(graph, device, prog, {"x": values}, {"r": result}, mode)
    wanted = NUMPY[operation](values.astype(np.int64), axis=tuple(dims))
    assert read["r"].dtype == np.int64
    np.testing.assert_array_equal(read["r"], wanted)


def mapped(graph, tensor, kind):
    """Map a tensor linearly, in pieces here and there, or along its last dimension."""
    tiles = graph.getTarget().getNumTiles()
    if kind == "linear" or tensor.numElements() == 0:
        poputil.mapTensorLinearly(graph, tensor, 1, 1)
    elif kind == "scattered":
        flat, begin = tensor.flatten(), 0
        while begin < flat.numElements():
            end = min(flat.numElements(), begin + 1 + begin * 7 % 5)
            graph.setTileMapping(flat[begin:end], begin * 5 % tiles)
            begin = end
    else:
        for column in range(tensor.dim(-1) if tensor.rank() else 0):
            graph.setTileMapping(tensor.slice(column, column + 1, tensor.rank() - 1), column % tiles)
        if tensor.rank() == 0:
            graph.setTileMapping(tensor, 0)


@examples(40)
@given(
    st.lists(st.integers(0, 7), max_size=4),
    st.sets(st.integers(0, 3)),
    st.permutations(range(4)),
    st.sampled_from(["linear", "scattered", "columns"]),
    st.sampled_from([1, 2, 5, 13]),
    st.sampled_from([(ADD, FLOAT), (MAX, HALF), (Operation.MUL, INT), (Operation.LOGICAL_OR, BOOL)]),
)
def test_shapes_views_mappings_and_tiles_do_not_matter(shape, dims, order, kind, tiles, what):
    operation, type = what
    graph, device = new_graph(tiles)
    variable = graph.addVariable(type, shape, "x")
    mapped(graph, variable, kind)
    graph.createHostWrite("x", variable)
    order = [dimension for dimension in order if dimension < len(shape)]
    dims = sorted(dimension for dimension in dims if dimension < len(shape))
    prog = Sequence()
    result = popops.reduce(graph, variable.dimShuffle(order), dims, operation, prog)
    values = values_for(operation, type, shape, sum(shape))
    read, _ = run(graph, device, prog, {"x": values}, {"r": result})
    turned = values.transpose(order)
    if turned.size or not result.numElements():
        wanted = expected(operation, turned, dims) if turned.size else np.zeros(result.shape(), type.dtype)
    else:
        start = {ADD: 0, MAX: -np.inf, Operation.MUL: 1, Operation.LOGICAL_OR: 0}[operation]
        wanted = np.full(result.shape(), start, type.dtype)
    close(read["r"], wanted)


@pytest.mark.parametrize(("shape", "dims"), [([100_000], [0]), ([700, 150], [0]), ([150, 700], [1]), ([8, 64, 14, 14], [0, 2, 3])])
def test_sums_over_all_tiles_of_a_bow(shape, dims):
    for type in (FLOAT, HALF):
        graph, device = new_graph(1472)
        prog = Sequence()
        values = values_for(ADD, type, shape, 5)
        result = popops.reduce(graph, variable(graph, type, shape, "x"), dims, ADD, prog)
        read, _ = run(graph, device, prog, {"x": values}, {"r": result})
        np.testing.assert_allclose(
            read["r"], values.astype(np.float64).sum(tuple(dims)), rtol=3e-3, atol=0.05 if type is HALF else 1e-3
        )


@pytest.mark.parametrize("sizes", [([40], []), ([5, 40], [5]), ([40, 5], [5])])
@pytest.mark.parametrize(("operation", "type"), [(o, t) for o, t in EVERY if o in (ADD, Operation.SQUARE_ADD, Operation.LOG_ADD)])
def test_a_result_is_scaled_and_combined_with_what_is_there(sizes, operation, type, mode):
    shape, rest = sizes
    dims = [dimension for dimension, size in enumerate(shape) if size == 40]
    graph, device = new_graph(5)
    x = variable(graph, type, shape, "x")
    scale = graph.addConstant(FLOAT, [1], 3.0, "scale")
    graph.setTileMapping(scale, 1)
    prog, outs, before = Sequence(), {}, values_for(operation, type, rest, 1)
    for update in (False, True):
        for params in (ReduceParams(operation, update), ReduceParams(operation, update, scale)):
            name = f"{update} {params.useScale}"
            outs[name] = variable(graph, type, rest, name)
            popops.reduceWithOutput(graph, x, outs[name], dims, params, prog)
    values = values_for(operation, type, shape)
    read, _ = run(graph, device, prog, {"x": values} | dict.fromkeys(outs, before), outs, mode)
    whole = np.asarray(NUMPY[operation](values.astype(np.float64), axis=tuple(dims)))
    for name, result in read.items():
        update, scaled = (word == "True" for word in name.split())
        wanted = whole
        if scaled:
            wanted = whole + 3 if operation is Operation.LOG_ADD else whole * 3
        if update:
            wanted = np.logaddexp(before, wanted) if operation is Operation.LOG_ADD else before + wanted
        np.testing.assert_allclose(result, wanted, rtol=4e-3 if type is HALF else 1e-5, atol=1e-2 if type is HALF else 1e-4)


def test_types_of_halves_and_floats_go_into_each_other():
    for source, target in ((FLOAT, HALF), (HALF, FLOAT)):
        values = values_for(ADD, source, [50, 60])
        result, _ = call(lambda graph, t, prog, to=target: popops.reduce(graph, t[0], to, [0], ADD, prog), [source], [values])
        assert result.dtype == target.dtype
        np.testing.assert_allclose(result, values.astype(np.float64).sum(0), rtol=2e-3, atol=5e-3)


def test_halves_are_summed_in_float_unless_the_options_say_half():
    values = np.random.default_rng(0).random(5000).astype(np.float16)
    exact = np.float16(values.astype(np.float64).sum())

    def total(options):
        def reduced(graph, tensors, prog):
            return popops.reduce(graph, tensors[0], [0], ADD, prog, None, options)

        return float(call(reduced, [HALF], [values], tiles=1)[0])

    assert total({}) == exact
    assert total({"accumType.inVertex": "half", "accumType.interTile": "half"}) != exact


def test_results_of_16_bits_on_one_tile_share_no_word_wrongly(mode):
    for type in (HALF, BOOL):
        operation = MAX if type is HALF else Operation.LOGICAL_AND
        values = values_for(operation, type, [7, 9], 3)
        graph, device = new_graph(1)
        halves = [variable(graph, type, [7, size], f"x{size}") for size in (4, 5)]
        joined = popops.reduce(graph, concat(halves, 1), [0], operation, prog := Sequence())
        given = {"x4": values[:, :4].copy(), "x5": values[:, 4:].copy()}
        read, _ = run(graph, device, prog, given, {"r": joined}, mode)
        close(read["r"], expected(operation, values, [0]))


def test_a_list_of_compute_sets_is_filled_stage_by_stage(mode):
    graph, device = new_graph(9)
    first, second = (variable(graph, FLOAT, [20, 30], name) for name in "ab")
    css = []
    sums = popops.reduce(graph, first, [0], ADD, css=css)
    stages = len(css)
    out = variable(graph, FLOAT, [20], "out")
    popops.reduceWithOutput(graph, second, out, [1], MAX, css)
    single = popops.reduce(graph, second[:, :1], [1], ADD, css)
    assert stages >= 1
    assert len(css) >= stages
    prog = Sequence(*map(Execute, css))
    values = {name: values_for(ADD, FLOAT, [20, 30], place) for place, name in enumerate("ab")}
    read, _ = run(graph, device, prog, values, {"sums": sums, "out": out, "single": single}, mode)
    close(read["sums"], values["a"].sum(0))
    close(read["out"], values["b"].max(1))
    close(read["single"], values["b"][:, 0])


@pytest.mark.parametrize("given_outputs", [False, True])
def test_many_reductions_run_side_by_side(given_outputs, mode):
    graph, device = new_graph(6)
    x, y = variable(graph, FLOAT, [24, 25], "x"), variable(graph, HALF, [31], "y")
    asked = [
        SingleReduceOp(x, [0], ADD, "columns"),
        SingleReduceOp(x, [1], ReduceParams(MAX)),
        SingleReduceOp(y, [0], ADD, FLOAT),
        SingleReduceOp(y, [], MAX),
        SingleReduceOp(y[:0], [0], ADD),
    ]
    outputs = []
    shapes = [[25], [24], [], [31], []]
    if given_outputs:
        types = [FLOAT, FLOAT, HALF, HALF, HALF]
        outputs = [variable(graph, type, shape, f"o{n}") for n, (type, shape) in enumerate(zip(types, shapes, strict=True))]
    prog = Sequence()
    results = popops.reduceMany(graph, asked, outputs, prog)
    assert results is outputs
    assert [result.shape() for result in outputs] == shapes
    assert outputs[2].elementType() is (HALF if given_outputs else FLOAT)
    given = {"x": values_for(ADD, FLOAT, [24, 25]), "y": values_for(ADD, HALF, [31])}
    read, _ = run(graph, device, prog, given, {str(n): out for n, out in enumerate(outputs)}, mode)
    for name, wanted in zip(
        "0123", (given["x"].sum(0), given["x"].max(1), given["y"].astype(float).sum(), given["y"]), strict=True
    ):
        np.testing.assert_allclose(read[name], wanted, rtol=2e-3, atol=2e-3)
    assert read["4"] == 0


def test_one_engine_adds_up_as_the_other_does_to_the_bit_and_the_cycle():
    for shape, dims in (([900], [0]), ([17, 21], [0]), ([17, 21], [1]), ([3, 5, 4, 6], [0, 2])):
        bits = set()
        for mode in ("native", "interpret"):
            result, engine = call(
                lambda graph, t, prog, dims=dims: popops.reduce(graph, t[0], dims, ADD, prog),
                [FLOAT],
                [values_for(ADD, FLOAT, shape)],
                tiles=7,
                mode=mode,
            )
            bits.add((result.tobytes(), engine.getReport().execution.totalCycles.total))
        assert len(bits) == 1


def refused(error, text, call):
    """A call that is refused with a text, before it changes the graph."""
    graph, _ = new_graph(4)
    x = variable(graph, FLOAT, [3, 4], "x")
    before = graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names)
    with pytest.raises(error, match=text):
        call(graph, x, Sequence())
    assert before == (graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names))


def with_scale_later():
    params = ReduceParams(ADD)
    params.useScale = True
    return params


def reduced(graph, x, prog, options):
    return popops.reduce(graph, x, [0], ADD, prog, "", options)


def many(graph, x, prog, outputs, params=ADD):
    return popops.reduceMany(graph, [SingleReduceOp(x, [0], params)], outputs, prog)


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (PoplarIndexError, "a dimension is 2, and .*'x' FLOAT", lambda g, x, p: popops.reduce(g, x, [2], ADD, p)),
        (PoplibsError, "a dimension is 0 at least, got -1", lambda g, x, p: popops.reduce(g, x, [-1], ADD, p)),
        (PoplarTypeError, "each a whole number, got .0.5.", lambda g, x, p: popops.reduce(g, x, [0.5], ADD, p)),
        (PoplarTypeError, "dims is", lambda g, x, p: popops.reduce(g, x, 0, ADD, p)),
        (PoplarTypeError, "has no order", lambda g, x, p: popops.reduce(g, x, {0}, ADD, p)),
        (PoplarTypeError, "params is", lambda g, x, p: popops.reduce(g, x, [0], "ADD", p)),
        (PoplarTypeError, "with an operation", lambda g, x, p: popops.reduce(g, x, [0], ReduceParams(), p)),
        (PoplarTypeError, "popops.reduce", lambda g, x, p: popops.reduce(g, x, [0], ADD)),
        (PoplarTypeError, "popops.reduce", lambda g, x, p: popops.reduce(g, x, [0], ADD, None)),
        (PoplarTypeError, "the argument prog is the Sequence", lambda g, x, p: popops.reduce(g, x, [0], ADD, [1])),
        (PoplibsError, "LOGICAL_AND takes BOOL, got .*'x'", lambda g, x, p: popops.reduce(g, x, [0], Operation.LOGICAL_AND, p)),
        (PoplibsError, "MAX of FLOAT gives FLOAT, not HALF", lambda g, x, p: popops.reduce(g, x, HALF, [0], MAX, p)),
        (PoplibsError, "ADD of FLOAT gives FLOAT or HALF, not INT", lambda g, x, p: popops.reduce(g, x, INT, [0], ADD, p)),
        (PoplibsError, "call popops.reduceWithOutput", lambda g, x, p: popops.reduce(g, x, [0], ReduceParams(ADD, True), p)),
        (InvalidOption, "did you mean 'accumType.inVertex'", lambda g, x, p: reduced(g, x, p, {"accumType.invertex": "half"})),
        (InvalidOption, "one of float, half", lambda g, x, p: reduced(g, x, p, {"accumType.inVertex": "int"})),
        (PoplibsError, "gives shape .4., got .*'x'", lambda g, x, p: popops.reduceWithOutput(g, x, x[0, :3], [0], ADD, p)),
        (PoplibsError, "has elements of what is reduced", lambda g, x, p: popops.reduceWithOutput(g, x, x[0], [0], ADD, p)),
        (PoplarTypeError, "another graph", lambda g, x, p: popops.reduce(new_graph(4)[0], x, [0], ADD, p)),
        (PoplibsError, "LOG_ADD of no elements", lambda g, x, p: popops.reduce(g, x[:0], [0], Operation.LOG_ADD, p)),
        (PoplarTypeError, "update is True or False", lambda g, x, p: ReduceParams(ADD, 0.5)),
        (PoplarTypeError, "a popops.Operation, got 'ADD'", lambda g, x, p: ReduceParams("ADD")),
        (PoplarTypeError, "graph.addConstant", lambda g, x, p: ReduceParams(ADD, False, 0.5)),
        (PoplarTypeError, "belongs to no graph", lambda g, x, p: popops.reduce(g, Tensor(), [0], ADD, p)),
        (PoplarTypeError, "dims is a list of dimensions, got 0", lambda g, x, p: SingleReduceOp(x, 0, ADD)),
        (PoplarTypeError, "reductions is a list", lambda g, x, p: popops.reduceMany(g, SingleReduceOp(x, [0], ADD), [], p)),
        (PoplarTypeError, "useScale, and no scale", lambda g, x, p: popops.reduce(g, x, [0], with_scale_later(), p)),
        (PoplarTypeError, "a popops.SingleReduceOp", lambda g, x, p: popops.reduceMany(g, [x], [], p)),
        (PoplibsError, "1 reductions, got 2 outputs", lambda g, x, p: many(g, x, p, [x, x])),
        (PoplibsError, "reduction 0 updates", lambda g, x, p: many(g, x, p, [], ReduceParams(ADD, True))),
        (PoplarTypeError, "outputs is a list", lambda g, x, p: many(g, x, p, None)),
    ],
)  # fmt: skip
def test_mistakes_are_refused_before_the_graph_changes(error, text, call):
    refused(error, text, call)


def test_scales_and_outputs_that_do_not_fit_are_refused():
    graph, _ = new_graph(4)
    x, out = variable(graph, FLOAT, [3, 4], "x"), variable(graph, FLOAT, [4], "out")
    for scale in (graph.addConstant(HALF, [1], 1.0), graph.addConstant(FLOAT, [2], 1.0)):
        with pytest.raises(PoplibsError, match="the scale is one FLOAT, got"):
            popops.reduce(graph, x, [0], ReduceParams(ADD, False, scale), Sequence())
    with pytest.raises(PoplibsError, match="only ADD, SQUARE_ADD and LOG_ADD are scaled, got MAX"):
        popops.reduce(graph, x, [0], ReduceParams(MAX, False, graph.addConstant(FLOAT, [1], 1.0)), Sequence())
    with pytest.raises(PoplibsError, match=r"the output .*'out'.* has elements of the scale"):
        popops.reduceWithOutput(graph, x, out, [0], ReduceParams(ADD, False, out[1:2]), Sequence())
    for wrong in (graph.addConstant(FLOAT, [4], 0.0), out[:1].broadcast(4)):
        with pytest.raises(PoplibsError, match="cannot be written"):
            popops.reduceWithOutput(graph, x, wrong, [0], ADD, Sequence())
    with pytest.raises(PoplibsError, match=r"output 0, .* has elements that reduction 1 uses"):
        popops.reduceMany(graph, [SingleReduceOp(x, [0], ADD), SingleReduceOp(out, [0], ADD)], [out, x[0, :1]], Sequence())
    assert graph.numVertices() == 0


def test_what_has_no_tile_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    x, lost = variable(graph, FLOAT, [4], "x"), graph.addVariable(FLOAT, [5], "lost")
    names = graph.freeze().variables.names
    for asked in ([SingleReduceOp(lost, [0], ADD)], [SingleReduceOp(x, [0], ADD), SingleReduceOp(lost, [0], ADD)]):
        with pytest.raises(InvalidTileMapping, match=r"popops\.\w+: 5 of 5 elements of <Tensor 'lost'"):
            popops.reduceMany(graph, asked, [], Sequence())
    with pytest.raises(InvalidTileMapping, match="1 of 1 elements of <Tensor 'lost'"):
        popops.reduce(graph, x, [0], ReduceParams(ADD, False, lost[:1]), Sequence())
    assert graph.freeze().variables.names == names


def test_an_output_without_a_mapping_is_mapped():
    graph, device = new_graph(8)
    x, out = variable(graph, FLOAT, [40, 50], "x"), graph.addVariable(FLOAT, [50], "out")
    prog = Sequence()
    popops.reduceWithOutput(graph, x, out, [0], ADD, prog)
    assert graph.getTileMapping(out).complete
    values = values_for(ADD, FLOAT, [40, 50])
    read, _ = run(graph, device, prog, {"x": values}, {"out": out})
    close(read["out"], values.sum(0))


def test_what_is_added_is_named_below_the_name_of_the_call():
    graph, _ = new_graph(8)
    x = variable(graph, FLOAT, [4000], "x")
    popops.reduce(graph, x, [0], ADD, Sequence(), "loss")
    frozen = graph.freeze()
    assert all(name.startswith("loss/reduce") for name in frozen.compute_sets)
    assert all(name == "x" or name.startswith("loss/reduce") for name in frozen.variables.names)


def test_a_sum_of_a_million_floats_takes_2000_cycles_on_a_bow():
    device = IPUModel("bow").createDevice()
    graph = Graph(device)
    popops.addCodelets(graph)
    x = variable(graph, FLOAT, [1_000_000], "x")
    prog = Sequence()
    popops.reduce(graph, x, [0], ADD, prog)
    engine = Engine(graph, prog)
    engine.load(device)
    engine.run()
    assert engine.getReport().execution.totalCycles.total <= 2000


def test_a_transposed_view_is_reduced_as_what_it_views_is():
    vertices = []
    values = values_for(ADD, FLOAT, [40, 50])
    for transposed in (False, True):
        graph, device = new_graph(8)
        x, prog = variable(graph, FLOAT, [40, 50], "x"), Sequence()
        view, dims = (x.transpose(), [1]) if transposed else (x, [0])
        result = popops.reduce(graph, view, dims, ADD, prog)
        read, engine = run(graph, device, prog, {"x": values}, {"out": result})
        close(read["out"], values.sum(0))
        vertices.append((graph.numVertices(), engine.getReport().execution.totalCycles.total))
    assert vertices[0] == vertices[1]


@pytest.mark.parametrize("order", [[2, 0, 1], [1, 2, 0]])
def test_all_elements_are_reduced_in_the_order_of_memory(order):
    """A tile would gather the elements of a view in another order one by one."""
    made = []
    values = values_for(ADD, FLOAT, [40, 6, 16])
    for dimensions in ([0, 1, 2], order):
        graph, device = new_graph(8)
        x, prog = variable(graph, FLOAT, [40, 6, 16], "x"), Sequence()
        result = popops.reduce(graph, x.dimShuffle(dimensions), [0, 1, 2], ADD, prog)
        read, engine = run(graph, device, prog, {"x": values}, {"out": result})
        made.append((read["out"].tolist(), engine.getReport().execution.totalCycles.total))
    assert made[0] == made[1]


@pytest.mark.parametrize("operation", [Operation.MUL, Operation.MIN, Operation.MAX, Operation.LOGICAL_AND, Operation.LOGICAL_OR])
@pytest.mark.parametrize("shape", [[0, 4], [3, 4]])
def test_only_sums_update_their_output_also_where_nothing_is_reduced(operation, shape):
    """PopLibs checks it before it looks for elements, and its tests turn the update off for other operations."""
    graph, _ = new_graph(4)
    type = BOOL if operation in (Operation.LOGICAL_AND, Operation.LOGICAL_OR) else FLOAT
    t, out = variable(graph, type, shape, "t"), variable(graph, type, [4], "out")
    with pytest.raises(PoplibsError, match=f"only ADD, SQUARE_ADD and LOG_ADD are updated, got {operation.name}"):
        popops.reduceWithOutput(graph, t, out, [0], ReduceParams(operation, True), Sequence())
