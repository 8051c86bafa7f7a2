"""popops.topK, topKKeyValue, topKWithPermutation and the sorts against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run, variable

from pypoplar import BOOL, FLOAT, HALF, INT, UNSIGNED_INT, PoplarIndexError, PoplarTypeError, Target, popops, poputil
from pypoplar.compiler.check.connected_regions import collect_regions
from pypoplar.popops import SortOrder, TopKParams
from pypoplar.popops.ordering.topk_cycles import Companions, swap_cycles
from pypoplar.popops.ordering.topk_plan import network_steps, plan_division, step_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

TYPES = (FLOAT, HALF, INT, UNSIGNED_INT)
ORDERS = tuple(SortOrder)


def ranked(wide):
    """Numbers in the order of these, in which NaN is the largest."""
    return np.unique(wide, return_inverse=True)[1].reshape(wide.shape)


def places(values, params):
    """Where in each row the best elements are, equal ones in their order, in the order that is wanted."""
    wide = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    wide = ranked(wide)
    best = np.argsort(-wide if params.largest else wide, axis=-1, kind="stable")[..., : params.k]
    if params.sortOrder is SortOrder.NONE or (params.sortOrder is SortOrder.DESCENDING) == params.largest:
        return best
    chosen = np.take_along_axis(wide, best, -1)  # in the other order, equal ones still by their places
    turned = np.lexsort((best, chosen if params.largest else -chosen), axis=-1)
    return np.take_along_axis(best, turned, -1)


def check(values, params, result, indices):
    wanted = np.take_along_axis(values, places(values, params), -1)
    found = np.take_along_axis(values, indices.astype(np.int64), -1)
    np.testing.assert_array_equal(found, result)
    if params.sortOrder is SortOrder.NONE:
        wanted, result = np.sort(wanted, -1), np.sort(result, -1)
    elif params.stableSort:
        np.testing.assert_array_equal(indices, places(values, params))
    np.testing.assert_array_equal(result, wanted)
    assert all(len(set(row)) == len(row) for row in indices.reshape(-1, indices.shape[-1]).tolist())


shapes = st.tuples(st.lists(st.integers(1, 3), max_size=2), st.integers(1, 21)).map(lambda drawn: [*drawn[0], drawn[1]])


@examples(12)
@given(shapes, st.data())
def test_the_best_of_each_row_are_numpys(shape, data):
    type, tiles = data.draw(st.sampled_from(TYPES)), data.draw(st.sampled_from((1, 4, 7)))
    params = TopKParams(
        data.draw(st.integers(1, shape[-1])), data.draw(st.booleans()), data.draw(st.sampled_from(ORDERS)), data.draw(st.booleans())
    )
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 9, shape).astype(type.dtype)
    runs = []
    for mode in MODES:
        graph, device = new_graph(tiles)
        t = popops.createTopKInput(graph, type, shape, params, "t")
        assert graph.getTileMapping(t).complete
        graph.createHostWrite("t", t)
        prog = Sequence()
        results = dict(zip(("best", "indices"), popops.topKWithPermutation(graph, prog, t, params), strict=True))
        results["alone"] = popops.topK(graph, prog, t, params)
        assert results["best"].elementType() is results["alone"].elementType() is type
        assert all(result.isParallelWriteable() for result in results.values())
        read, engine = run(graph, device, prog, {"t": values}, results, mode)
        check(values, params, read["best"], read["indices"])
        np.testing.assert_array_equal(np.sort(read["alone"], -1), np.sort(read["best"], -1))
        if params.sortOrder is not SortOrder.NONE:
            np.testing.assert_array_equal(read["alone"], read["best"])
        runs.append(([read[name].tobytes() for name in results], [step.cycles for step in engine.getReport().execution.steps]))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("value_type", TYPES)
@pytest.mark.parametrize("key_type", TYPES)
def test_values_of_every_type_go_with_keys_of_every_type(key_type, value_type):
    graph, device = new_graph(4)
    keys, values = variable(graph, key_type, [2, 13], "keys"), variable(graph, value_type, [2, 13], "values")
    prog = Sequence()
    result = popops.topKKeyValue(graph, prog, keys, values, TopKParams(5, False, SortOrder.ASCENDING), "best")
    random = np.random.default_rng(3)
    given = {
        "keys": np.array([random.permutation(13) for _ in range(2)]).astype(key_type.dtype),
        "values": random.integers(0, 99, (2, 13)).astype(value_type.dtype),
    }
    read, _ = run(graph, device, prog, given, dict(zip(("keys", "values"), result, strict=True)))
    np.testing.assert_array_equal(read["keys"], np.sort(given["keys"], -1)[:, :5])
    np.testing.assert_array_equal(read["values"], np.take_along_axis(given["values"], np.argsort(given["keys"], -1), -1)[:, :5])


def test_a_view_is_sorted_and_stays_as_it_is():
    graph, device = new_graph(4)
    t = variable(graph, FLOAT, [5, 6], "t")
    prog = Sequence()
    params = TopKParams(1, True, SortOrder.NONE)
    results = {
        "best": popops.topK(graph, prog, t.transpose().reverse(1), params),
        "all": popops.topK(graph, prog, t[:, :1], params),
        "t": t,
    }
    values = np.random.default_rng(0).random((5, 6), np.float32)
    read, _ = run(graph, device, prog, {"t": values}, results)
    np.testing.assert_array_equal(read["best"][:, 0], values.max(0))
    np.testing.assert_array_equal(read["all"], values[:, :1])
    np.testing.assert_array_equal(read["t"], values)
    assert not set(results["all"].variable_numbers()) & set(t.variable_numbers())


NANS = {FLOAT: np.array([0x7FC00000, 0xFFC00000, 0x7FC12345], np.uint32), HALF: np.array([0x7E00, 0xFE00, 0x7E01], np.uint16)}


@examples(12)
@given(shapes, st.data())
def test_nans_of_any_bits_are_larger_than_all_else(shape, data):
    """Whichever are taken, in whichever order; zeros of both signs are equal, and what is stable stays so."""
    type, tiles = data.draw(st.sampled_from((FLOAT, HALF))), data.draw(st.sampled_from((1, 4)))
    params = TopKParams(
        data.draw(st.integers(1, shape[-1])), data.draw(st.booleans()), data.draw(st.sampled_from(ORDERS)), data.draw(st.booleans())
    )
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    known = np.concatenate(
        (np.array([-np.inf, np.inf, -0.0, 0.0, 1, -1, 2, 3], np.float32).astype(type.dtype), NANS[type].view(type.dtype))
    )
    values = random.choice(known, shape)
    runs = []
    for mode in MODES:
        graph, device = new_graph(tiles)
        t = variable(graph, type, shape, "t")
        prog = Sequence()
        results = dict(zip(("best", "indices"), popops.topKWithPermutation(graph, prog, t, params), strict=True))
        results["alone"] = popops.topK(graph, prog, t, params)
        unstable = TopKParams(params.k, params.largest, params.sortOrder)
        keyed = popops.topKKeyValue(graph, prog, t, poputil.duplicate(graph, t, prog), unstable)
        results |= dict(zip(("keys", "values"), keyed, strict=True))
        for dim in range(len(shape)):
            results[f"sorted {dim}"] = popops.sort(graph, t, dim, prog)
            results[f"in place {dim}"] = poputil.duplicate(graph, t, prog)
            popops.sortInPlace(graph, results[f"in place {dim}"], dim, prog)
            results[f"by keys {dim}"] = popops.sortKeyValue(graph, t, t, dim, prog)
            results[f"keys {dim}"], results[f"values {dim}"] = (poputil.duplicate(graph, t, prog) for _ in range(2))
            popops.sortKeyValueInPlace(graph, results[f"keys {dim}"], results[f"values {dim}"], dim, prog)
        read, engine = run(graph, device, prog, {"t": values}, results, mode)
        check(values, params, read["best"], read["indices"])
        wanted = np.sort(read["best"], -1)
        for name in ("alone", "keys", "values"):
            np.testing.assert_array_equal(
                np.sort(read[name], -1) if params.sortOrder is SortOrder.NONE else read[name],
                wanted if params.sortOrder is SortOrder.NONE else read["best"],
            )
        for dim in range(len(shape)):
            for name in ("sorted", "in place", "by keys", "keys", "values"):
                np.testing.assert_array_equal(read[f"{name} {dim}"], np.sort(values, dim))
        runs.append(([read[name].tobytes() for name in results], [step.cycles for step in engine.getReport().execution.steps]))
    assert runs[0] == runs[1]


def test_nans_are_put_last_and_cost_nothing():
    cycles = []
    for values in ([np.inf, -np.inf, 3, -0.0, np.nan, 1, -np.nan, 2], [7, -8, 3, -0.0, 4, 1, 6, 2]):
        graph, device = new_graph(4)
        t = variable(graph, FLOAT, [8], "t")
        prog = Sequence()
        result = popops.sort(graph, t, 0, prog)
        read, engine = run(graph, device, prog, {"t": np.array(values, np.float32)}, {"sorted": result})
        np.testing.assert_array_equal(read["sorted"], np.sort(np.array(values, np.float32)))
        cycles.append(engine.getReport().execution.totalCycles.total)
    assert cycles[0] == cycles[1]


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_sorts_go_along_a_dimension(dim):
    graph, device = new_graph(4)
    t, k, v = (variable(graph, INT, [3, 4, 5], name) for name in ("t", "k", "v"))
    prog = Sequence()
    results = {
        "sorted": popops.sort(graph, t, dim, prog),
        "values": popops.sortKeyValue(graph, k, v, dim, prog),
        "t": t,
        "k": k,
        "v": v,
    }
    popops.sortInPlace(graph, t, dim, prog)
    popops.sortKeyValueInPlace(graph, k, v, dim, prog)
    random = np.random.default_rng(5)
    given = {name: random.permutation(60).reshape(3, 4, 5).astype(np.int32) for name in ("t", "k", "v")}
    read, _ = run(graph, device, prog, given, results)
    order = np.argsort(given["k"], dim)
    wanted = {
        "sorted": np.sort(given["t"], dim),
        "values": np.take_along_axis(given["v"], order, dim),
        "k": np.sort(given["k"], dim),
    }
    wanted |= {"t": wanted["sorted"], "v": wanted["values"]}
    for name, array in wanted.items():
        np.testing.assert_array_equal(read[name], array, err_msg=name)


def test_nothing_is_the_best_of_nothing():
    graph, device = new_graph(4)
    prog = Sequence()
    t = variable(graph, FLOAT, [2, 3], "t")
    empty = graph.addVariable(FLOAT, [0, 3], "empty")
    for tensor, k, shape in ((t, 0, [2, 0]), (empty, 2, [0, 2]), (empty.reshape([3, 0]), 0, [3, 0])):
        for result in popops.topKWithPermutation(graph, prog, tensor, TopKParams(k, True, SortOrder.ASCENDING)):
            assert result.shape() == shape
    run(graph, device, prog, {}, {})


@pytest.mark.parametrize(("shape", "k"), [((20_000,), 10), ((4, 1000), 1000)])
def test_the_whole_machine_finds_the_best(shape, k):
    graph, device = new_graph(1472)
    params = TopKParams(k, True, SortOrder.DESCENDING)
    t = popops.createTopKInput(graph, FLOAT, shape, params)
    graph.createHostWrite("t", t)
    prog = Sequence()
    best, indices = popops.topKWithPermutation(graph, prog, t, params)
    values = np.random.default_rng(1).random(shape, np.float32)
    read, _ = run(graph, device, prog, {"t": values}, {"best": best, "indices": indices})
    check(values, params, read["best"], read["indices"])


@given(st.integers(1, 70), st.data())
def test_the_steps_bring_the_best_forward(elements, data):
    k = data.draw(st.integers(1, elements))
    row = np.random.default_rng(elements).permutation(elements)
    for step in network_steps(elements, k, ordered=True):
        assert step.elements == len(row)
        length = 2 * step.distance
        wide = np.append(row, np.full(-len(row) % length, elements)).reshape(-1, length)
        low, high = wide[:, : step.distance], wide[:, step.distance :]
        high = high[:, ::-1] if step.mirrored else high
        assert ((low < elements) & (high < elements)).sum() == step.pairs()
        low, high = np.minimum(low, high), np.maximum(low, high)
        high = high[:, ::-1] if step.mirrored else high
        row = (low if step.halves else np.concatenate((low, high), 1)).reshape(-1)
        row = row[row < elements]
    np.testing.assert_array_equal(row[:k], np.arange(k))


@pytest.mark.parametrize(
    ("rows", "elements", "k"), [(1, 10, 3), (1, 100_000, 16), (16, 1000, 5), (10_000, 10, 10), (1472 * 6, 64, 64)]
)
def test_the_plan_is_no_dearer_than_one_tile_a_row_or_all_tiles(rows, elements, k):
    target = Target.createIPUTarget(1, 1472, "bow")
    chosen = plan_division(target, rows, elements, k, True, FLOAT, Companions.NONE)
    assert chosen.parts * -(-rows // chosen.rows) <= 1472

    def cost(division):
        pairs = [step.pairs() for step in network_steps(elements, k, True)]
        return sum(step_cycles(target, division, each, FLOAT, Companions.NONE) for each in pairs)

    for parts in (1, 2, 64, max(1472 // rows, 1)):
        groups = min(rows, 1472 // parts)
        assert cost(chosen) <= cost(type(chosen)(-(-rows // groups), parts))


@pytest.mark.parametrize("elements", [21, 64])
def test_what_a_vertex_compares_stays_on_its_tile(elements):
    graph, _ = new_graph(7)
    values = variable(graph, FLOAT, [3, elements], "values")
    popops.topKWithPermutation(graph, Sequence(), values, TopKParams(5, True, SortOrder.ASCENDING))
    frozen = graph.freeze()
    regions = collect_regions(frozen, range(len(frozen.compute_sets)))
    strands = regions.strands
    lies = frozen.mapping.tile[np.searchsorted(frozen.mapping.end, strands.begin, "right")]
    runs = frozen.vertices.tile[regions.vertex][strands.owner]
    np.testing.assert_array_equal(lies[regions.written], runs[regions.written])
    assert len(set(runs[regions.written].tolist())) > 1


def test_comparing_costs_what_poplibs_says():
    assert swap_cycles(10, FLOAT, Companions.NONE) == 3 + 60 + 130
    assert swap_cycles(10, INT, Companions.NONE) == 3 + 67 + 120
    assert swap_cycles(10, FLOAT, Companions.CARRIED) == 3 + 38 + 110
    assert swap_cycles(10, UNSIGNED_INT, Companions.SECONDARY) == 3 + 86 + 270


def test_what_has_no_best_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    t, flags, prog = variable(graph, FLOAT, [2, 3], "t"), variable(graph, BOOL, [3], "flags"), Sequence()
    constant = graph.addConstant(FLOAT, [2, 3], 1.0, "constant")
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    up = TopKParams(2, True, SortOrder.ASCENDING)
    refused = [
        (lambda: popops.topK(graph, prog, t, TopKParams(4, True, SortOrder.NONE)), "popops.topK: k is 4, .* has 3 elements"),
        (lambda: popops.topK(graph, prog, t, TopKParams(-1, True, SortOrder.NONE)), "popops.topK: k is 0 at least, got -1"),
        (lambda: popops.topK(graph, prog, t[0, 0], up), "t has a last dimension, got"),
        (lambda: popops.topK(graph, prog, flags, up), "t is FLOAT, HALF, INT or UNSIGNED_INT, got .*'flags'"),
        (lambda: popops.topKKeyValue(graph, prog, t, t[0], up), "keys and values have one shape, got .*'t'"),
        (lambda: popops.topKKeyValue(graph, prog, t, t, TopKParams(2, True, SortOrder.ASCENDING, True)), "no stable sort of keys"),
        (lambda: popops.createTopKInput(graph, FLOAT, [], up), "rank 0 has no last dimension"),
        (lambda: popops.sortInPlace(graph, constant, 0, prog), "cannot be written: .* a constant"),
        (lambda: popops.sortKeyValue(graph, t, t[0], 0, prog), "popops.sortKeyValue: keys and values have one shape"),
    ]
    for call, message in refused:
        with pytest.raises(PoplibsError, match=message):
            call()
    for wrong in (3, TopKParams(2, True, "up")):
        with pytest.raises(PoplarTypeError, match="params is a TopKParams with a SortOrder, got"):
            popops.topK(graph, prog, t, wrong)
    with pytest.raises(PoplarIndexError, match=r"dim is 2, and .*'t'.* has 2 dimensions"):
        popops.sort(graph, t, 2, prog)
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
    assert len(prog) == 0
