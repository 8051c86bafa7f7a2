"""poplin: products of groups, into given tensors, added to others; operands that are arranged, plans that are kept."""

import gc
import io
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, call, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, PoplarTypeError, TensorShapeError, poplin, poputil
from pypoplar.errors import InvalidTileMapping
from pypoplar.poplin import matMulGrouped
from pypoplar.program import Copy, Sequence

SIZES, TYPES = st.integers(1, 12), st.sampled_from([FLOAT, HALF])
HALVES = {"partialsType": "half"}


def sixteenths(*shape, type=FLOAT, seed=0):
    """Small multiples of 1/16: every product and sum is exact in float, whatever the order."""
    return (np.random.default_rng(seed).integers(-64, 65, shape) / 16).astype(type.dtype)


def exact(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


# Groups


@examples(25)
@given(st.integers(1, 7), SIZES, SIZES, SIZES, st.integers(1, 16), TYPES)
def test_products_of_groups_are_exact_where_floats_are(g, m, k, n, tiles, type):
    a, b = sixteenths(g, m, k, type=type), sixteenths(g, k, n, type=type, seed=1)
    result, engine = call(lambda graph, t, prog: matMulGrouped(graph, *t, prog, FLOAT), [type, type], [a, b], tiles)
    assert (result == exact(a, b)).all()
    assert engine.getReport().compilation.graph.numComputeSets <= 2


@pytest.mark.parametrize("mode", MODES)
def test_groups_are_computed_at_once_on_many_tiles(mode):
    a, b = sixteenths(40, 6, 10), sixteenths(40, 10, 7, seed=1)
    result, engine = call(lambda graph, t, prog: matMulGrouped(graph, *t, prog, HALF, "product"), [FLOAT, FLOAT], [a, b], 64, mode)
    assert (result == exact(a, b).astype(np.float16)).all()
    steps = [step for step in engine.getReport().execution.steps if len(step.cyclesByTile)]
    assert np.count_nonzero(steps[0].cyclesByTile) >= 40


def test_a_grouped_matrix_is_transposed_by_a_view():
    a, b = sixteenths(3, 4, 5), sixteenths(3, 4, 2, seed=1)

    def function(graph, t, prog):
        return matMulGrouped(graph, poplin.transposeGroupedMatrix(t[0]), t[1], prog, FLOAT)

    assert (call(function, [FLOAT, FLOAT], [a, b])[0] == exact(a.transpose(0, 2, 1), b)).all()


# Into tensors that are there


@pytest.mark.parametrize(("m", "k", "n"), [(12, 30, 9), (40, 3, 8), (1, 30, 12), (12, 30, 1), (5, 1, 7), (3, 0, 4), (0, 2, 3)])
@pytest.mark.parametrize("types", [(FLOAT, FLOAT), (HALF, HALF), (FLOAT, HALF)])
@pytest.mark.parametrize("place", ["linear", "one tile", "laid out", "none"])
def test_a_product_is_written_to_a_given_tensor_wherever_it_lies(m, k, n, types, place):
    type, output = types
    a, b = sixteenths(m, k, type=type), sixteenths(k, n, type=type, seed=1)

    def function(graph, t, prog):
        if place == "laid out":
            out = poplin.createMatMulOutput(graph, type, output, [m, k], [k, n], "out")
        else:
            out = graph.addVariable(output, [m, n], "out")
        if place == "linear":
            poputil.mapTensorLinearly(graph, out)
        if place == "one tile":
            graph.setTileMapping(out, 3)
        poplin.matMulWithOutput(graph, *t, out, prog)
        return out

    result, _ = call(function, [type, type], [a, b])
    assert (result == exact(a, b).astype(output.dtype)).all()


def test_products_of_groups_are_written_to_a_given_tensor():
    a, b = sixteenths(3, 4, 5), sixteenths(3, 5, 2, seed=1)

    def function(graph, t, prog):
        out = poplin.createMatMulGroupedOutput(graph, FLOAT, FLOAT, [3, 4, 5], [3, 5, 2], "out")
        poplin.matMulGroupedWithOutput(graph, *t, out, prog)
        return out

    assert (call(function, [FLOAT, FLOAT], [a, b])[0] == exact(a, b)).all()


def test_a_product_may_take_the_place_of_its_operand():
    a, b = sixteenths(8, 8), sixteenths(8, 8, seed=1)

    def function(graph, t, prog):
        poplin.matMulWithOutput(graph, *t, t[0], prog)
        return t[0]

    assert (call(function, [FLOAT, FLOAT], [a, b])[0] == exact(a, b)).all()


# Added to what is there


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("types", [(FLOAT, FLOAT), (HALF, HALF), (FLOAT, HALF), (HALF, FLOAT)])
@pytest.mark.parametrize("tensor", [False, True])
def test_a_multiple_of_a_product_is_added(types, tensor, mode):
    type, output = types
    a, b, c = sixteenths(6, 10, type=type), sixteenths(10, 7, type=type, seed=1), sixteenths(6, 7, type=output, seed=2)

    def function(graph, t, prog):
        left, right, total, k = t
        poplin.matMulAcc(graph, total, k if tensor else 0.5, left, right, prog, "dW")
        return total

    result, _ = call(function, [type, type, output, type], [a, b, c, [0.5]], mode=mode)
    product = exact(a, b).astype(output.dtype).astype(np.float64)
    assert (result == (c + 0.5 * product).astype(output.dtype)).all()


def test_multiples_of_products_of_groups_are_added():
    a, b, c = sixteenths(3, 6, 10), sixteenths(3, 10, 7, seed=1), sixteenths(3, 6, 7, seed=2)

    def function(graph, t, prog):
        poplin.matMulGroupedAcc(graph, t[2], -2.0, t[0], t[1], prog)
        return t[2]

    assert (call(function, [FLOAT] * 3, [a, b, c])[0] == c - 2 * exact(a, b)).all()


def test_nothing_is_added_where_nothing_is_multiplied():
    c = sixteenths(3, 4)

    def function(graph, t, prog):
        poplin.matMulAcc(graph, t[2], 2.0, t[0], t[1], prog)
        return t[2]

    assert (call(function, [FLOAT] * 3, [np.zeros((3, 0)), np.zeros((0, 4)), c])[0] == c).all()


# Half partial products


@examples(25)
@given(st.integers(1, 3), SIZES, st.integers(2, 40), st.integers(2, 21), st.integers(1, 16), TYPES)
def test_half_partial_products_are_rounded_once_a_block(g, m, k, n, tiles, output):
    random = np.random.default_rng(m * k * n)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((g, m, k), (g, k, n)))
    (native, engine), (interpreted, other) = (
        call(lambda graph, t, prog: matMulGrouped(graph, *t, prog, output, "", HALVES), [HALF, HALF], [a, b], tiles, mode)
        for mode in MODES
    )
    assert native.tobytes() == interpreted.tobytes()
    assert engine.getReport().execution.totalCycles == other.getReport().execution.totalCycles
    assert abs(native - exact(a, b)).max() <= 2**-10 * (abs(a).astype(np.float64) @ abs(b).astype(np.float64)).max()


@pytest.mark.parametrize("n", [8, 7])
def test_one_block_of_half_partial_products_is_the_exact_sum_rounded(n, mode):
    a, b = sixteenths(5, 30, type=HALF), sixteenths(30, n, type=HALF, seed=1)
    result, engine = call(lambda graph, t, prog: poplin.matMul(graph, *t, prog, "", HALVES), [HALF, HALF], [a, b], 1, mode)
    assert (result == exact(a, b).astype(np.float16)).all()
    assert engine.getReport().compilation.graph.numComputeSets == 1


# Nothing to multiply


@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0)])
def test_without_elements_the_result_is_empty_or_zeros(m, k, n):
    a, b = np.zeros((m, k)), np.zeros((k, n))

    def function(graph, t, prog):
        left = poplin.createMatMulInputLHS(graph, FLOAT, [m, k], [k, n], "left")
        assert left.shape() == [m, k]
        return poplin.matMul(graph, *t, prog)

    result, _ = call(function, [FLOAT, FLOAT], [a, b])
    assert result.shape == (m, n)
    assert not result.any()


# Arranged operands, plans, reports


def test_operands_that_lie_in_blocks_do_not_keep_their_graph():
    graph, _ = new_graph()
    left, right = (make(graph, FLOAT, [6, 8], [8, 6]) for make in (poplin.createMatMulInputLHS, poplin.createMatMulInputRHS))
    poplin.matMul(graph, left, right, Sequence())
    there = weakref.ref(graph)
    del graph, left, right
    gc.collect()
    assert there() is None


VIEWS = {
    "transpose": lambda t: t.transpose(),
    "reverse": lambda t: t.reverse(0),
    "reshape": lambda t: t.reshape([4, 16]).reshape([8, 8]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_an_operand_in_blocks_is_multiplied_as_it_is(name, mode):
    a, b = sixteenths(8, 8), sixteenths(8, 8, seed=1)

    def function(graph, t, prog):
        left = poplin.createMatMulInputLHS(graph, FLOAT, [8, 8], [8, 8])
        prog.add(Copy(t[0], left))
        return poplin.matMul(graph, VIEWS[name](left), t[1], prog)

    viewed = {"transpose": a.T, "reverse": a[::-1], "reshape": a}[name]
    assert (call(function, [FLOAT, FLOAT], [a, b], mode=mode)[0] == exact(viewed, b)).all()


@pytest.mark.parametrize("grouped", [False, True])
def test_an_arranged_operand_has_its_values_and_its_products_take_no_longer(grouped):
    group = [2] if grouped else []
    a, b = sixteenths(*group, 64, 48), sixteenths(*group, 48, 40, seed=1)

    def cycles(arranged):
        graph, device = new_graph()
        left, right = variable(graph, FLOAT, a.shape, "a"), variable(graph, FLOAT, b.shape, "b")
        prog = Sequence()
        options, cache = {"inputRHSIsPreArranged": arranged}, poplin.PlanningCache()
        arrange = poplin.preArrangeMatMulGroupedInputRHS if grouped else poplin.preArrangeMatMulInputRHS
        if arranged:
            right = arrange(graph, a.shape, right, prog, FLOAT, "arranged", options, cache)
        multiply = poplin.matMulGrouped if grouped else poplin.matMul
        product = multiply(graph, left, right, prog, FLOAT, "product", options, cache)
        assert cache.size() == 1
        read, engine = run(graph, device, prog, {"a": a, "b": b}, {"product": product})
        assert (read["product"] == exact(a, b)).all()
        return sum(step.cycles for step in engine.getReport().execution.steps if step.name.startswith("product/"))

    assert cycles(True) <= cycles(False)


def test_a_cache_has_a_plan_for_each_product_and_finds_it_again():
    cache = poplin.PlanningCache()
    graph, _ = new_graph()
    target = graph.getTarget()
    product = poplin.MatMulParams(FLOAT, FLOAT, [6, 8], [8, 5])
    poplin.preplan([], [(target, product, {}), (target, poplin.MatMulParams(HALF, HALF, [2, 6, 8], [2, 8, 5]), None)], cache)
    assert cache.size() == 2
    left = poplin.createMatMulInputLHS(graph, FLOAT, [6, 8], [8, 5], "left", {}, cache)
    right = poplin.createMatMulInputRHS(graph, FLOAT, FLOAT, [6, 8], [8, 5], "right", {}, cache)
    poplin.matMul(graph, left, right, Sequence(), "product", {}, cache)
    assert cache.size() == 2
    poplin.createMatMulOutput(graph, FLOAT, [6, 8], [8, 5], "out", {"availableMemoryProportion": 0.1}, cache)
    poplin.preplanMatMuls([(target, poplin.MatMulParams(FLOAT, HALF, [6, 8], [8, 5]), {})], cache)
    assert cache.size() == 4


def test_products_are_told_as_convolutions_of_one_dimension():
    target = new_graph()[0].getTarget()
    plain, grouped = poplin.MatMulParams(FLOAT, HALF, [6, 8], [8, 5]), poplin.MatMulParams(HALF, HALF, [2, 6, 8], [2, 8, 5])
    given = {"fullyConnectedPass": "TRAINING_FWD", "availableMemoryProportion": 0.3}
    (first, second), options = poplin.matMulGetConvPlanParams([(target, plain, given), (target, grouped, None)])
    assert first == (target, poplin.ConvParams(FLOAT, HALF, 1, [6], [1], 8, 5, 1), options[frozenset(given.items())])
    assert second == (target, poplin.ConvParams(HALF, HALF, 1, [6], [1], 8, 5, 2), {"pass": "NONE_MATMUL"})
    assert first[2] == {"pass": "FC_TRAINING_FWD", "availableMemoryProportion": 0.3}
    poplin.preplan([first, second], [], poplin.PlanningCache())


def test_matmul_params_are_equal_ordered_and_hashed_by_what_they_hold():
    small, large = poplin.MatMulParams(FLOAT, FLOAT, [2, 3], [3, 4]), poplin.MatMulParams(FLOAT, FLOAT, (2, 4), (4, 4))
    assert small < large
    assert not large < small
    assert small == poplin.MatMulParams(FLOAT, FLOAT, (2, 3), (3, 4))
    assert len({small, large, poplin.MatMulParams(FLOAT, FLOAT, [2, 3], [3, 4])}) == 2


def test_a_report_says_how_the_product_is_cut_and_what_it_takes():
    graph, _ = new_graph(64)
    out = io.StringIO()
    poplin.matMulReportPlan(out, graph, HALF, FLOAT, [128, 64], [64, 32])
    poplin.matMulGroupedReportPlan(out, graph, FLOAT, FLOAT, [2, 600, 700], [2, 700, 500], {"availableMemoryProportion": 0.0})
    poplin.matMulReportPlan(out, graph, HALF, FLOAT, [0, 64], [64, 32])
    text = out.getvalue()
    assert "types: HALF to FLOAT, partial products in FLOAT" in text
    assert "rows: 128 in " in text
    assert "groups: 2 in " in text
    assert "availableMemoryProportion 0 cannot be kept: no plan takes less" in text
    assert text.endswith("nothing is multiplied\n")


# Refusals


def test_what_does_not_go_together_is_refused_before_the_graph_changes():
    graph, _ = new_graph()
    other, _ = new_graph()
    a, b = variable(graph, FLOAT, [2, 4, 5], "a"), variable(graph, FLOAT, [2, 5, 3], "b")
    flat, three, whole = (variable(graph, type, [4, 3], f"c{number}") for number, type in enumerate((FLOAT, FLOAT, INT)))
    bare, prog = graph.addVariable(FLOAT, [4, 5], "bare"), Sequence()
    before = graph.getTarget(), len(prog)
    cases = {
        r"A is \[g, m, k\] = \[2, 4, 5\], B is \[g, k, n\] = \[2, 4, 5\]": lambda: matMulGrouped(graph, a, a, prog, FLOAT),
        r"A is \[m, k\] = \[2, 4, 5\]": lambda: poplin.matMul(graph, a, b, prog),
        r"gives \[m, n\] = \[4, 3\], got .*'a'": lambda: poplin.matMulWithOutput(graph, a[0], b[0], a[0], prog),
        r"gives \[g, m, n\] = \[2, 4, 3\], got .*'c0'": lambda: poplin.matMulGroupedWithOutput(graph, a, b, flat, prog),
        "output type INT": lambda: poplin.matMulWithOutput(graph, a[0], b[0], whole, prog),
        "holds an element twice, or a constant": lambda: poplin.matMulAcc(
            graph, flat[0].expand([0]).broadcast(4, 0), 1.0, a[0], b[0], prog
        ),
        "k is a number, got nan": lambda: poplin.matMulAcc(graph, flat, float("nan"), a[0], b[0], prog),
        "k is a number, or one element of A's type": lambda: poplin.matMulAcc(graph, flat, three, a[0], b[0], prog),
        r"takes \[g, m, k\], got": lambda: poplin.transposeGroupedMatrix(flat),
    }
    for message, refused in cases.items():
        with pytest.raises(poputil.PoplibsError, match=message):
            refused()
    with pytest.raises(InvalidTileMapping, match="bare"):
        poplin.matMul(graph, bare, b[0], prog)
    with pytest.raises(PoplarTypeError, match=r"A = <Tensor 'a' .* belongs to another graph"):
        poplin.matMul(other, a[0], b[0], prog)
    with pytest.raises(PoplarTypeError, match=r"k of poplin\.matMulAcc is FLOAT, which cannot hold 1e\+300"):
        poplin.matMulAcc(graph, flat, 1e300, a[0], b[0], prog)
    with pytest.raises(TensorShapeError, match=r"bShape of poplin\.createMatMulGroupedInputLHS: a shape has no negative sizes"):
        poplin.createMatMulGroupedInputLHS(graph, FLOAT, FLOAT, [2, 3, 4], [2, 4, -3])
    with pytest.raises(PoplarTypeError, match="out is a text file"):
        poplin.matMulReportPlan("plan.txt", graph, FLOAT, FLOAT, [2, 3], [3, 2])
    for refused in (
        lambda: poplin.preplan([], [], {}),
        lambda: matMulGrouped(graph, a, b, prog, FLOAT, cache={}),
        lambda: poplin.createMatMulGroupedInputLHS(graph, FLOAT, FLOAT, [2, 3, 4], [2, 4, 3], cache={}),
    ):
        with pytest.raises(PoplarTypeError, match=r"cache is a poplin\.PlanningCache"):
            refused()
    with pytest.raises(poputil.PoplibsError, match=r"a product is \(target, MatMulParams, options\)"):
        poplin.preplan([], [poplin.MatMulParams(FLOAT, FLOAT, [2, 3], [3, 2])], poplin.PlanningCache())
    assert (graph.getTarget(), len(prog)) == before


@pytest.mark.parametrize("group", [[], [2]])
def test_an_operand_in_many_pieces_is_copied_to_blocks_once_where_that_is_cheaper(group, mode):
    a, b = sixteenths(*group, 128, 32), sixteenths(*group, 32, 32, seed=1)
    graph, device = new_graph(32)
    prog, multiply = Sequence(), poplin.matMulGrouped if group else poplin.matMul
    left, right = variable(graph, HALF, a.shape, "a"), variable(graph, HALF, b.shape, "b")
    turned = right.dimShuffle([0, 2, 1]) if group else right.transpose()
    product = multiply(graph, left, turned, prog, FLOAT, "product")
    read, engine = run(graph, device, prog, {"a": a.astype(np.float16), "b": b.astype(np.float16)}, {"product": product}, mode)
    assert (read["product"] == exact(a, b.swapaxes(-1, -2))).all()
    assert [step.name for step in engine.getReport().execution.steps if step.name.endswith(("left", "right"))] == ["product/right"]


@pytest.mark.parametrize("group", [[], [2]])
def test_an_operand_of_very_many_pieces_is_copied_to_blocks_whatever_it_takes(group, mode, monkeypatch):
    a, b = sixteenths(*group, 48, 32), sixteenths(*group, 32, 48, seed=1)
    monkeypatch.setattr("pypoplar.poplin.matmul.operand_blocks.FEWEST_USERS", 2)
    pieces = []
    for most in (1 << 60, 1):
        monkeypatch.setattr("pypoplar.poplin.matmul.operand_blocks.MOST_PIECES", most)
        graph, device = new_graph(32)
        prog, multiply = Sequence(), poplin.matMulGrouped if group else poplin.matMul
        left, right = variable(graph, HALF, a.shape, "a"), variable(graph, HALF, b.shape, "b")
        product = multiply(graph, left, right, prog, FLOAT, "product")
        pieces.append(int(graph.freeze().edges.first_run[-1]))
        read, engine = run(graph, device, prog, {"a": a.astype(np.float16), "b": b.astype(np.float16)}, {"product": product}, mode)
        assert (read["product"] == exact(a, b)).all()
    assert any(step.name.endswith(("left", "right")) for step in engine.getReport().execution.steps)
    assert pieces[1] < pieces[0] / 2
