"""poplin: products of matrices by each of its plans, and operands laid out for them."""

import io
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, call, new_graph, run, variable

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    Graph,
    InvalidOption,
    IPUModel,
    MissingFeature,
    PoplarTypeError,
    Target,
    concat,
    poplin,
    poputil,
    setStochasticRounding,
)
from pypoplar.poplin.matmul.block_keepers import left_keepers, left_places, right_keepers, right_places
from pypoplar.poplin.matmul.block_layout import BlockMatrix
from pypoplar.poplin.matmul.block_plan import plan_blocks
from pypoplar.poplin.matmul.operand_transposes import OperandTranspose
from pypoplar.poplin.matmul.product_params import ProductParams
from pypoplar.poplin.matmul.vector_product import plan_vector_product
from pypoplar.program import Copy, Sequence

SIZES, TYPES = st.integers(2, 70), st.sampled_from([FLOAT, HALF])
LAID_OUT = (poplin.createMatMulInputLHS, poplin.createMatMulInputRHS)


def operands(m, k, n, type=FLOAT, seed=0):
    random = np.random.default_rng(seed)
    return [(random.integers(-64, 65, shape) / 16).astype(type.dtype) for shape in ((m, k), (k, n))]


def exact(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def multiply(graph, t, prog, *arguments):
    return poplin.matMul(graph, *t, prog, *arguments)


# The operands are small multiples of 1/16, so every product and sum is exact in float, whatever the order.


@examples(40)
@given(st.integers(1, 24), st.integers(1, 24), st.integers(1, 24), st.integers(1, 24))
def test_a_product_of_any_shape_on_any_number_of_tiles_is_exact_where_floats_are(m, k, n, tiles):
    a, b = operands(m, k, n, seed=m * k * n)
    result, _ = call(multiply, [FLOAT, FLOAT], [a, b], tiles)
    assert result.shape == (m, n)
    assert (result == exact(a, b)).all()


@pytest.mark.parametrize(
    ("m", "k", "n"), [(10, 100, 1), (1, 100, 10), (10, 1, 100), (30, 40, 20), (1, 7, 1), (1, 1, 1), (1, 1, 50)]
)
@pytest.mark.parametrize("types", [(FLOAT, FLOAT), (HALF, HALF), (HALF, FLOAT), (FLOAT, HALF)])
def test_products_of_floats_and_halves_are_summed_in_float_and_rounded_once(m, k, n, types, mode):
    type, output = types
    a, b = operands(m, k, n, type)
    result, _ = call(lambda graph, t, prog: poplin.matMul(graph, *t, prog, output), [type, type], [a, b], mode=mode)
    assert result.dtype == output.dtype
    assert (result == exact(a, b).astype(output.dtype)).all()


@pytest.mark.no_cover
def test_half_partial_sums_are_rounded_at_random_unless_the_option_says_otherwise():
    random = np.random.default_rng(7)
    a, b = random.standard_normal((9, 30)).astype(np.float16), random.standard_normal((30, 11)).astype(np.float16)

    def product(at_random, off, mode):
        def function(graph, t, prog):
            setStochasticRounding(graph, prog, at_random)
            options = {"partialsType": "half", "disableSRForAMPVertices": off}
            return poplin.matMul(graph, *t, prog, None, None, options)

        result, engine = call(function, [HALF, HALF], [a, b], 1, mode)
        return result, engine._state.clock

    (nearest, cycles), (kept, _) = product(False, False, "native"), product(True, True, "native")
    assert (kept == nearest).all()
    (result, cycles_at_random), (interpreted, _) = (product(True, False, mode) for mode in MODES)
    assert (result == interpreted).all()
    assert cycles_at_random == cycles
    assert 0.2 < (result != nearest).mean() < 0.8
    assert (abs(result - exact(a, b)) <= np.spacing(abs(exact(a, b)).astype(np.float16))).all()


@examples(15)
@given(st.integers(1, 12), st.integers(1, 40), st.integers(1, 12), st.integers(1, 9))
def test_both_engines_agree_to_the_bit(m, k, n, tiles):
    random = np.random.default_rng(m + k + n)
    a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
    (native, engine), (interpreted, other) = (call(multiply, [FLOAT, FLOAT], [a, b], tiles, mode) for mode in MODES)
    assert (native.view(np.uint32) == interpreted.view(np.uint32)).all()
    np.testing.assert_allclose(native, exact(a, b), rtol=1e-4, atol=1e-5)
    assert engine.getReport().execution.totalCycles == other.getReport().execution.totalCycles


@pytest.mark.parametrize(("m", "k", "n"), [(12, 30, 1), (1, 30, 12), (12, 1, 9), (12, 9, 15)])
@pytest.mark.parametrize("transposed", [(True, False), (False, True), (True, True)])
def test_transposed_operands_are_views_and_multiply_as_such(m, k, n, transposed):
    a, b = operands(m, k, n)

    def function(graph, t, prog):
        return poplin.matMul(graph, *(one.transpose() if turned else one for one, turned in zip(t, transposed, strict=True)), prog)

    given = [one.T if turned else one for one, turned in zip((a, b), transposed, strict=True)]
    assert (call(function, [FLOAT, FLOAT], given)[0] == exact(a, b)).all()


def test_a_matrix_times_itself_and_chained_products():
    a, b = operands(12, 12, 12)

    def function(graph, t, prog):
        square = poplin.matMul(graph, t[0], t[0], prog)
        return poplin.matMul(graph, square, t[1], prog)

    assert (call(function, [FLOAT, FLOAT], [a, b])[0] == exact(exact(a, a), b)).all()


# What the plans promise


def test_a_matrix_times_a_vector_does_not_move_the_matrix_where_it_is_spread():
    a, b = operands(10, 784, 1)
    _, engine = call(multiply, [FLOAT, FLOAT], [a, b], 1472)
    moved = [name for one in engine.executable.exchanges for name in one.messages["variable"].tolist()]
    assert "t0" not in moved
    assert "t1" in moved
    assert engine.getReport().compilation.graph.numComputeSets == 2


def test_a_tall_matrix_times_a_vector_has_a_vertex_for_each_worker_not_for_each_row():
    a, b = operands(3000, 6, 1)
    result, engine = call(multiply, [FLOAT, FLOAT], [a, b], 8)
    assert (result == exact(a, b)).all()
    assert engine.getReport().compilation.graph.numVertices <= 8 * 3 * 6


def test_a_column_times_a_row_is_computed_where_a_linear_mapping_puts_it():
    graph, device = new_graph(64)
    column, row = variable(graph, FLOAT, [10, 1], "column"), variable(graph, FLOAT, [1, 784], "row")
    prog = Sequence()
    product = poplin.matMul(graph, column, row, prog)
    same = graph.addVariable(FLOAT, [10, 784], "same")
    poputil.mapTensorLinearly(graph, same)
    assert graph.getTileMapping(product) == graph.getTileMapping(same)
    _, engine = run(graph, device, prog, {"column": np.ones((10, 1), np.float32), "row": np.ones((1, 784), np.float32)}, {})
    assert engine.getReport().compilation.graph.numComputeSets == 1
    (after,) = [one for one in engine.executable.exchanges if one.phase == "after"] or [None]
    assert after is None or len(after.messages) == 0


@examples(60)
@given(
    st.integers(1, 9),
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 200),
    st.sampled_from([FLOAT, HALF]),
)
def test_a_block_plan_covers_the_product_once_on_no_more_tiles_than_there_are(g, m, k, n, tiles, type):
    target = Target.createIPUTarget(1, tiles, "bow")
    plan = plan_blocks(target, ProductParams(g, m, k, n, type, type, FLOAT, 0.6))
    cuts = plan.cuts
    for size, bounds in ((g, cuts.group_bounds()), (m, cuts.row_bounds()), (k, cuts.depth_bounds()), (n, cuts.column_bounds())):
        assert bounds[0] == 0
        assert bounds[-1] == size
        assert all(begin < end for begin, end in pairwise(bounds))
    places = cuts.tiles(tiles).flatten().tolist()
    assert len(set(places)) == len(places) == cuts.blocks <= tiles
    assert max(places) < tiles


@examples(20)
@given(
    st.integers(1, 5),
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 200),
    st.sampled_from([FLOAT, HALF]),
)
def test_blocks_lie_whole_on_a_tile_that_uses_them_or_in_stretches_on_as_many_that_do_not(g, m, k, n, tiles, type):
    target = Target.createIPUTarget(1, tiles, "bow")
    cuts = plan_blocks(target, ProductParams(g, m, k, n, type, type, FLOAT, 0.6)).cuts
    for places, stretches in ((left_places(cuts, tiles), cuts.left_stretches), (right_places(cuts, tiles), cuts.right_stretches)):
        users, keepers = places.users, places.keepers(stretches)
        assert keepers.shape == (*users.shape[:3], stretches)
        assert 0 <= keepers.min() <= keepers.max() < tiles
        assert len(np.unique(keepers)) == keepers.size  # each tile keeps some of one block at most
        meet = (keepers[..., None] == users[..., None, :]).any(axis=(-2, -1))
        assert (meet == (stretches == 1)).all()


@pytest.mark.parametrize(
    ("shape", "type", "least"), [([128, 512], FLOAT, 1400), ([128, 128], FLOAT, 500), ([512, 128], HALF, 1000)]
)
def test_weights_lie_on_so_many_tiles_that_their_update_is_short(shape, type, least):
    graph = Graph(IPUModel().createDevice().getTarget())
    weights = poplin.createMatMulInputRHS(graph, type, [512, shape[0]], shape)
    held = [sum(region.size() for region in regions) for regions in graph.getTileMapping(weights)]
    assert np.count_nonzero(held) >= least
    assert max(held) * type.size <= 256


def test_more_tiles_never_make_a_plan_slower():
    costs = [
        plan_blocks(Target.createIPUTarget(1, tiles, "bow"), ProductParams(1, 900, 600, 300, FLOAT, FLOAT, FLOAT, 0.6)).cycles
        for tiles in (64, 128, 256, 512, 1024, 1472)
    ]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("memory", [0.6, 0.2, 0.05, 0.01, 0.0])
def test_a_plan_keeps_within_its_part_of_the_memory_or_takes_the_least(memory):
    target = Target.createIPUTarget(1, 64, "bow")

    def planned(memory):
        return plan_blocks(target, ProductParams(1, 600, 700, 500, FLOAT, FLOAT, FLOAT, memory))

    plan, least = planned(memory), planned(0.0)
    assert plan.bytes <= max(memory * target.getBytesPerTile(), least.bytes)
    assert plan.cycles >= planned(1.0).cycles


@pytest.mark.no_cover
@pytest.mark.parametrize("type", [FLOAT, pytest.param(HALF, marks=pytest.mark.slow)])
def test_where_memory_is_short_a_product_is_computed_in_steps(type, mode):
    m, k, n = 60, 50, 70
    a, b = operands(m, k, n, type)
    options = {"availableMemoryProportion": 0.004}
    plan = plan_blocks(Target.createIPUTarget(1, 4, "bow"), ProductParams(1, m, k, n, type, FLOAT, FLOAT, 0.004))
    assert len(plan.cuts.steps) > 1

    def function(graph, t, prog):
        shapes = [m, k], [k, n]
        left, right = (make(graph, type, FLOAT, *shapes, "", options) for make in LAID_OUT)
        prog.add(Copy(t[0], left))
        prog.add(Copy(t[1], right))
        product = poplin.matMul(graph, left, right, prog, FLOAT, "", options)
        other = poplin.matMul(graph, *t, prog, FLOAT, "", options)  # operands that lie elsewhere
        return concat(product.expand([0]), other.expand([0]))

    result, _ = call(function, [type, type], [a, b], 4, mode)
    assert (result == exact(a, b)).all()


@examples(30)
@given(
    st.sampled_from([1, 1, 2, 5]),
    SIZES,
    SIZES,
    SIZES,
    st.sampled_from([1, 4, 9, 16, 60]),
    st.sampled_from([FLOAT, HALF]),
    TYPES,
    TYPES,
)
@example(1, 2, 2, 3, 4, FLOAT, HALF, FLOAT)  # the smaller part of the sum takes longer
@example(1, 38, 8, 26, 9, HALF, HALF, HALF)  # as does the smaller block
def test_a_run_takes_the_cycles_that_its_plan_says(g, m, k, n, tiles, type, result, partials):
    graph, device = new_graph(tiles)
    prog, cache = Sequence(), poplin.PlanningCache()
    options = {"partialsType": "half" if partials is HALF else "float"}
    shapes = [g, m, k], [g, k, n]
    make = poplin.createMatMulGroupedInputLHS, poplin.createMatMulGroupedInputRHS
    left, right = (create(graph, type, result, *shapes, "", options, cache) for create in make)
    poplin.matMulGrouped(graph, left, right, prog, result, "", options, cache)
    _, engine = run(graph, device, prog, {}, {})
    out = io.StringIO()
    poplin.matMulGroupedReportPlan(out, graph, type, result, *shapes, options, cache)
    (estimate,) = re.findall(r"estimated cycles: (\d+)", out.getvalue())
    assert cache.size() == 1
    assert int(estimate) == pytest.approx(engine.getReport().execution.totalCycles.total, rel=0.02)


@examples(30)
@given(st.integers(1, 200), st.integers(2, 300), st.sampled_from([1, 4, 9, 16, 60, 300]), st.booleans(), TYPES, TYPES)
def test_a_product_with_a_vector_takes_the_cycles_that_are_estimated(m, k, tiles, turned, type, result):
    graph, device = new_graph(tiles)
    shapes = ([1, k], [k, m]) if turned else ([m, k], [k, 1])
    left, right = (variable(graph, type, shape, name) for shape, name in zip(shapes, "ab", strict=True))
    matrix, vector = (right.transpose(), left.transpose()) if turned else (left, right)
    prog, sizes = Sequence(), (1, shapes[0][0], k, shapes[1][1])
    poplin.matMul(graph, left, right, prog, result)
    plan = plan_vector_product(graph, matrix, vector, result)
    if plan is not None and plan.cycles <= plan_blocks(graph.getTarget(), ProductParams(*sizes, type, result, FLOAT, 0.6)).cycles:
        _, engine = run(graph, device, prog, {}, {})
        assert plan.cycles == pytest.approx(engine.getReport().execution.totalCycles.total, rel=0.15)


@pytest.mark.parametrize(("sizes", "type", "least"), [((4096, 4096, 2048), HALF, 190), ((4096, 4096, 512), FLOAT, 60)])
def test_large_products_are_planned_for_the_rates_that_are_promised(sizes, type, least):
    target = IPUModel().createDevice().getTarget()
    plan = plan_blocks(target, ProductParams(1, *sizes, type, type, FLOAT, 0.6))
    rate = 2 * np.prod(sizes) / plan.cycles * target.getTileClockFrequency() / 1e12
    assert least <= rate <= target.peak_flops(type) / 1e12


def test_operands_laid_out_for_the_product_exchange_less():
    shapes = [64, 48], [48, 40]

    def received(laid_out):
        graph, device = new_graph()
        if laid_out:
            a = poplin.createMatMulInputLHS(graph, FLOAT, *shapes, "a")
            b = poplin.createMatMulInputRHS(graph, FLOAT, FLOAT, *shapes, "b", {"partialsType": "float"})
            graph.createHostWrite("a", a)
            graph.createHostWrite("b", b)
        else:
            a, b = variable(graph, FLOAT, shapes[0], "a"), variable(graph, FLOAT, shapes[1], "b")
        prog = Sequence()
        product = poplin.matMul(graph, a, b, prog)
        values = dict(zip("ab", operands(64, 48, 40), strict=True))
        read, engine = run(graph, device, prog, values, {"product": product})
        assert (read["product"] == exact(values["a"], values["b"])).all()
        return sum(int(one.bytes_received.sum()) for one in engine.executable.exchanges if one.phase == "before")

    assert received(True) < received(False)


def test_transposed_operands_come_in_rows_and_are_transposed_on_their_tiles():
    a, b = operands(50, 301, 77, HALF)

    def function(graph, t, prog):
        return poplin.matMul(graph, t[0].transpose(), t[1].transpose(), prog)

    result, engine = call(function, [HALF, HALF], [a.T, b.T])
    assert (result == exact(a, b).astype(np.float16)).all()
    steps = [one for one in engine.executable.exchanges if one.name in ("left", "right")]
    assert len(steps) == 2
    for one in steps:
        assert one.messages["bytes"].mean() >= 16  # not element by element


@examples(30)
@given(st.sampled_from([1, 1, 3]), SIZES, SIZES, SIZES, st.sampled_from([4, 9, 40]), TYPES, st.booleans(), st.sampled_from(MODES))
def test_an_operand_of_any_shape_is_transposed_into_its_blocks(g, m, k, n, tiles, type, right, mode):
    graph, device = new_graph(tiles)
    plan = plan_blocks(graph.getTarget(), ProductParams(g, m, k, n, type, type, FLOAT, 0.6))
    cuts = plan.cuts
    bounds, keepers = (
        (cuts.right_bounds(), np.tile(right_keepers(cuts, tiles), (1, 1, cuts.column_steps, 1)))
        if right
        else (cuts.left_bounds(), np.tile(left_keepers(cuts, tiles), (1, cuts.row_steps, 1, 1)))
    )
    rows, columns = bounds[1][-1], bounds[2][-1]
    values = np.arange(g * rows * columns).reshape(g, columns, rows) % 2000
    given = variable(graph, type, values.shape, "given").dimShuffle([0, 2, 1])
    prog = Sequence()
    blocks = OperandTranspose(BlockMatrix(bounds, given), keepers).add(graph, prog, "operand")
    flat = concat([tensor.flatten() for _, tensor in blocks.by_size.values()])
    read, _ = run(graph, device, prog, {"given": values.astype(type.dtype)}, {"matrix": blocks.matrix, "flat": flat}, mode)
    assert (read["matrix"] == values.swapaxes(1, 2)).all()
    assert len(read["flat"]) == values.size


def transposed_cycles(rows, columns, type=FLOAT, stretches=1):
    """What it takes to transpose an operand of one block, whose columns lie together."""
    graph, _ = new_graph(4)
    given = variable(graph, type, [1, columns, rows], "given").dimShuffle([0, 2, 1])
    keepers = np.arange(stretches).reshape(1, 1, 1, stretches)
    return OperandTranspose(BlockMatrix(((0, 1), (0, rows), (0, columns)), given), keepers).cycles(graph.getTarget(), columns)


def test_a_row_beyond_whole_blocks_is_transposed_apart():
    assert transposed_cycles(137, 32) < 1.2 * transposed_cycles(136, 32)  # in one piece it takes twice as long
    assert transposed_cycles(137, 33) > 1.5 * transposed_cycles(136, 32)  # nothing is whole


def test_an_operand_that_each_tile_uses_alone_comes_in_rows_also_where_its_last_block_is_uneven():
    a, b = operands(4, 1013, 32)

    def function(graph, t, prog):
        return poplin.matMul(graph, t[0], t[1].transpose(), prog)

    result, engine = call(function, [FLOAT, FLOAT], [a, b.T], 8)
    assert (result == exact(a, b)).all()
    (step,) = [one for one in engine.executable.exchanges if one.name == "right"]
    assert step.messages["bytes"].mean() >= 64  # not element by element


# Refusals


def test_operands_that_do_not_fit_are_refused_with_their_names():
    graph, _ = new_graph()
    a, b = variable(graph, FLOAT, [4, 5], "left"), variable(graph, FLOAT, [4, 5], "right")
    prog = Sequence()
    with pytest.raises(poputil.PoplibsError, match=r"A is \[m, k\] = \[4, 5\], B is \[k, n\] = \[4, 5\].*'left'.*'right'"):
        poplin.matMul(graph, a, b, prog)
    with pytest.raises(poputil.PoplibsError, match=r"got .*'left'.*INT"):
        poplin.matMul(graph, a, variable(graph, INT, [5, 2], "whole"), prog)
    with pytest.raises(poputil.PoplibsError, match="one type, FLOAT or HALF"):
        poplin.matMul(graph, a, variable(graph, HALF, [5, 2], "halves"), prog)
    with pytest.raises(poputil.PoplibsError, match="output type INT"):
        poplin.matMul(graph, a, b.transpose(), prog, INT)
    with pytest.raises(poputil.PoplibsError, match=r"createMatMulInputLHS.*A is \[m, k\] = \[4, 5\], B is \[k, n\] = \[4, 5\]"):
        poplin.createMatMulInputLHS(graph, FLOAT, [4, 5], [4, 5])
    with pytest.raises(poputil.PoplibsError, match=r"B is \[k, n\] = \[3\]"):
        poplin.createMatMulInputRHS(graph, FLOAT, [4, 5], [3])
    with pytest.raises(PoplarTypeError, match="bShape is a list, each a whole number, got 3"):
        poplin.createMatMulInputRHS(graph, FLOAT, [4, 5], 3)
    assert len(prog) == 0


def test_options_are_checked_and_what_is_not_there_says_so():
    graph, _ = new_graph()
    a, b = variable(graph, FLOAT, [4, 5], "a"), variable(graph, FLOAT, [5, 3], "b")
    prog = Sequence()
    with pytest.raises(InvalidOption, match="did you mean 'partialsType'"):
        poplin.matMul(graph, a, b, prog, "product", {"partialType": "float"})
    with pytest.raises(InvalidOption, match="one of half, float"):
        poplin.matMul(graph, a, b, prog, "product", {"partialsType": "double"})
    with pytest.raises(InvalidOption, match="is a number"):
        poplin.matMul(graph, a, b, prog, options={"availableMemoryProportion": "much"})
    with pytest.raises(poputil.PoplibsError, match="from 0 to 1, got nan"):
        poplin.matMul(graph, a, b, prog, options={"availableMemoryProportion": "nan"})
    with pytest.raises(poputil.PoplibsError, match=r"from 0 to 1, got 1\.5"):
        poplin.matmulValidateOptions({"availableMemoryProportion": 1.5})
    with pytest.raises(MissingFeature, match="gatherOutput"):
        poplin.matMul(graph, a, b, prog, FLOAT, "product", {"gatherOutput": True})
    with pytest.raises(MissingFeature, match="planConstraints"):
        poplin.matMul(graph, a, b, prog, options={"planConstraints": '{"method": "AMP"}'})
    with pytest.raises(PoplarTypeError, match="cache is a PlanningCache"):
        poplin.matMul(graph, a, b, prog, cache={})
    with pytest.raises(InvalidOption, match="did you mean 'partialsType'"):
        poplin.matmulValidateOptions({"partialType": "float"})
    poplin.matmulValidateOptions({"partialsType": "half"})
    poplin.matMul(graph, a, b, prog, "product", {"fullyConnectedPass": "TRAINING_FWD", "availableMemoryProportion": 0.3})
