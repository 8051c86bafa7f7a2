"""Plans of reductions: the cheapest of all, near what the Engine measures, priced as PopLibs prices its vertices."""

from math import prod

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import new_graph, variable

from pypoplar import FLOAT, HALF, INT, Engine, Graph, IPUModel, Target, concat, popops
from pypoplar.popops import Operation
from pypoplar.popops.reduction.local_plan import ReduceTypes, _split, plan_local
from pypoplar.popops.reduction.reduce_cycles import (
    ReduceKind,
    contiguous_cycles,
    flops_of,
    single_output_cycles,
    strided_cycles,
    vertex_worker_cycles,
)
from pypoplar.popops.reduction.reduce_plan import (
    WIDER,
    Results,
    Spread,
    Stage,
    _cheapest,
    _Fronts,
    exchange_cycles,
    plan_stages,
    return_cycles,
    sync_cycles,
    vertex_cycles,
)
from pypoplar.popops.reduction.regular_views import places_view
from pypoplar.popops.reduction.tile_holdings import holdings_of
from pypoplar.program import Sequence


def stage_cycles(target, spread, kind, group, width, splits):
    adjacent, lying = np.int64(spread.adjacent), np.int64(spread.width)
    moved = exchange_cycles(target, spread.type.size, spread.outputs, adjacent, lying, np.int64(group), np.int64(width))
    return sync_cycles(target) + int(moved) + int(vertex_cycles(kind, target, np.int64(group), np.int64(width), splits))


def least_cycles(target, spread, types, results, operation="ADD", depth=0):
    """The cycles of the cheapest of all plans, found one after the other; squares are summed once, and then sums."""
    kind = ReduceKind(operation, spread.type, results.type)
    further = "ADD" if operation == "SQUARE_ADD" else operation
    fewest = -(-spread.outputs // target.getNumTiles())
    widths = {min(max(1 << power, fewest), spread.outputs) for power in range(12)}
    back = {width: int(return_cycles(target, results, np.int64(width))) if results.placed else 0 for width in widths}
    found = [stage_cycles(target, spread, kind, spread.partials, width, False) + back[width] for width in widths]
    if results.placed:
        found.append(stage_cycles(target, spread, kind, spread.partials, results.placed, False))
    for splits in (False, True):
        kind = ReduceKind(operation, spread.type, types[splits])
        for groups in {-(-spread.partials // size) for size in range(2, spread.partials + 1)}:
            if groups > target.getNumTiles() or (groups == 1 and not splits) or depth == 3:
                continue
            group = -(-spread.partials // groups)
            parts = -(-group // -(-group // 6)) if splits else 1
            left = -(-spread.partials // group) * parts
            least = -(-spread.outputs // max(target.getNumTiles() // groups, 1))
            for width in {least, *(min(-(-least // 2) * 2 * times, spread.outputs) for times in WIDER)}:
                if left < spread.partials:
                    rest = Spread(left, spread.outputs, parts, width, types[splits])
                    cycles = stage_cycles(target, spread, kind, group, width, splits)
                    found.append(cycles + least_cycles(target, rest, types, results, further, depth + 1))
    return min(found)


@examples(25)
@given(
    st.integers(2, 14), st.integers(1, 20), st.integers(1, 6), st.integers(1, 20), st.sampled_from([1, 4, 40]), st.integers(0, 20)
)
def test_no_plan_is_cheaper_than_the_chosen_one(partials, outputs, adjacent, width, tiles, placed):
    target = Target.createIPUTarget(1, tiles, "bow")
    spread = Spread(partials, outputs, min(adjacent, partials), min(width, outputs), FLOAT)
    results = Results(FLOAT, placed=min(placed, outputs))
    plan = plan_stages(target, "ADD", spread, (FLOAT, FLOAT), results)
    assert plan.cycles == least_cycles(target, spread, (FLOAT, FLOAT), results)


@pytest.mark.parametrize("operation", ["ADD", "SQUARE_ADD", "LOG_ADD", "MAX"])
@pytest.mark.parametrize(
    ("partials", "outputs", "adjacent", "width", "tiles", "placed"),
    [
        (14, 1, 1, 1, 40, 0),
        (12, 20, 1, 20, 40, 0),
        (13, 7, 3, 5, 40, 0),
        (14, 16, 6, 16, 4, 0),
        (9, 20, 1, 20, 40, 3),
        (14, 3, 2, 3, 1, 0),
    ],
)
def test_no_plan_of_an_operation_is_cheaper_than_the_chosen_one(operation, partials, outputs, adjacent, width, tiles, placed):
    target = Target.createIPUTarget(1, tiles, "bow")
    spread, results = Spread(partials, outputs, adjacent, width, HALF), Results(HALF, placed=placed)
    plan = plan_stages(target, operation, spread, (FLOAT, HALF), results)
    assert plan.cycles == least_cycles(target, spread, (FLOAT, HALF), results, operation)


@pytest.mark.parametrize(
    ("type", "placed", "width", "cycles"),
    [(FLOAT, 64, 64, 64), (HALF, 64, 64, 32), (FLOAT, 64, 1, 192), (FLOAT, 1, 64, 64)],
)
def test_results_return_in_the_time_of_their_bytes_or_of_their_pieces(type, placed, width, cycles):
    target = Target.createIPUTarget(1, 64, "ipu2")
    assert return_cycles(target, Results(type, placed=placed), width) == target.getMaxIPUSyncDelay() + cycles


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 6))
def test_a_plan_leaves_one_result_of_each_output_and_is_not_dearer_than_one_stage(partials, outputs, adjacent):
    target = Target.createIPUTarget(1, 1472, "bow")
    spread = Spread(partials, outputs, min(adjacent, partials), outputs, FLOAT)
    plan = plan_stages(target, "ADD", spread, (FLOAT, FLOAT), Results(FLOAT))
    left = partials
    for stage in plan.stages:
        groups = -(-left // stage.partials)
        assert groups * -(-outputs // stage.width) <= max(1472, groups)
        left = groups * (-(-stage.partials // -(-stage.partials // 6)) if stage.splits else 1)
    assert left == 1
    kind = ReduceKind("ADD", FLOAT, FLOAT)
    assert plan.cycles <= stage_cycles(target, spread, kind, partials, outputs, False)


def test_partial_results_of_all_tiles_are_not_gathered_on_one():
    target = Target.createIPUTarget(1, 1472, "bow")
    spread = Spread(1472, 1, 1, 1, FLOAT)
    plan = plan_stages(target, "ADD", spread, (FLOAT, FLOAT), Results(FLOAT))
    assert len(plan.stages) > 1
    assert plan.cycles < stage_cycles(target, spread, ReduceKind("ADD", FLOAT, FLOAT), 1472, 1, False) / 4


@pytest.mark.parametrize("type", [FLOAT, HALF])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ([1_000_000], [0]),
        ([1000, 1000], [0]),
        ([1000, 1000], [1]),
        ([64, 23552], [0]),
        ([32, 32, 28, 28], [0, 2, 3]),
        ([5000], [0]),
    ],
)
def test_the_prediction_is_near_what_the_engine_measures(type, shape, dims):
    device = IPUModel("bow").createDevice()
    graph = Graph(device)
    popops.addCodelets(graph)
    x = variable(graph, type, shape, "x")
    prog = Sequence()
    types = ReduceTypes(FLOAT, FLOAT, FLOAT)
    places = prod(shape[dimension] for dimension in dims)
    plan = plan_local(graph.getTarget(), "ADD", holdings_of(graph, x, dims), places, types, Results(type))
    popops.reduce(graph, x, dims, Operation.ADD, prog)
    engine = Engine(graph, prog)
    engine.load(device)
    engine.run()
    measured = engine.getReport().execution.totalCycles.total
    assert abs(plan.all_cycles - measured) <= 0.05 * measured + 30


@pytest.mark.parametrize(("rows", "type"), [((20, 20), HALF), ((20, 30), FLOAT)])
def test_a_tile_with_several_partial_results_hands_on_wide_ones(rows, type):
    """64 outputs of a tile and 20 places of each are too many to be split or taken elsewhere; other numbers are held apart."""
    graph, _ = new_graph(2)
    x = graph.addVariable(HALF, [60, 128], "x")
    for columns, count in zip((slice(0, 64), slice(64, 128)), rows, strict=True):
        graph.setTileMapping(x[:count, columns], 0)
        graph.setTileMapping(x[count:, columns], 1)
    holdings = holdings_of(graph, x, [0])
    assert len(holdings) == 2 * len(set(rows))
    types = ReduceTypes(FLOAT, HALF, FLOAT)
    plan = plan_local(graph.getTarget(), "ADD", holdings, 60, types, Results(HALF))
    assert (plan.type, plan.complete.any(), plan.pieces) == (type, False, None)
    assert plan.after is not None
    assert plan.all_cycles == plan.cycles + plan.after.cycles > plan.cycles
    complete = plan_local(graph.getTarget(), "ADD", holdings_of(graph, x[:20], [0]), 20, types, Results(HALF))
    assert complete.after is None


@pytest.mark.parametrize(("pieces", "regions", "partials"), [(24, 4, 1), (12, 2, 2), (4, 1, 4), (1, 1, 4)])
def test_a_worker_of_a_split_vertex_takes_its_places_in_as_many_pieces_as_they_lie_in(pieces, regions, partials):
    """Of 24 places, 4 for each of six workers, so many pieces of memory have as many each."""
    graph, _ = new_graph(1)
    x = graph.addVariable(FLOAT, [24, 8], "x")
    graph.setTileMapping(x, 0)
    target, holdings = graph.getTarget(), holdings_of(graph, x, [0])
    assert len(holdings) == 1
    bounds = np.arange(pieces + 1) * (24 * 8 // pieces)
    holdings = evolve(holdings, rows=evolve(holdings.rows, first=np.array([0, pieces]), begin=bounds[:-1], end=bounds[1:]))
    plan = _split(target, "ADD", holdings, ReduceTypes(FLOAT, FLOAT, FLOAT), Results(FLOAT))
    of_worker = vertex_worker_cycles(ReduceKind("ADD", FLOAT, FLOAT), 8, int(holdings.inner[0]), partials, regions)
    assert plan.cycles == sync_cycles(target) + 6 * of_worker


@pytest.mark.parametrize(("placed", "at_output"), [(0, False), (6, True)])
def test_the_last_stage_lies_where_results_are_wanted_if_they_need_not_return_then(placed, at_output):
    target = Target.createIPUTarget(1, 1, "bow")
    plan = plan_stages(target, "ADD", Spread(2, 6, 1, 6, FLOAT), (FLOAT, FLOAT), Results(FLOAT, placed=placed))
    assert (plan.at_output, plan.stages[-1].width) == (at_output, 6)


@pytest.mark.parametrize(
    ("outputs", "adjacent", "lying", "partials", "width", "cycles"),
    [
        (1, 1, 1, 100, 1, 300),  # 100 pieces are received, one is sent
        (64, 1, 64, 2, 1, 192),  # 64 pieces are sent, two are received
        (64, 5, 64, 2, 1, 960),  # 5 x 64 pieces are sent
        (64, 5, 64, 5, 64, 320),  # one piece that lies as it is wanted: 5 x 64 elements of 4 B, 4 B in a cycle
        (64, 1, 8, 2, 64, 128),  # 2 x 8 pieces are received, which take less than their bytes
        (64, 1, 8, 2, 3, 9),  # three pieces are sent, two are received
        (64, 1, 3, 2, 8, 18),  # 2 x 3 pieces are received, one is sent
    ],
)
def test_an_exchange_lasts_as_long_as_the_tile_that_sends_or_receives_most(outputs, adjacent, lying, partials, width, cycles):
    target = Target.createIPUTarget(1, 64, "ipu2")
    assert target.getExchangeBytesPerCycle() == 4
    assert exchange_cycles(target, 4, outputs, adjacent, lying, partials, width) == cycles


@pytest.mark.parametrize(
    ("type", "result", "outputs", "partials", "single", "contiguous", "strided"),
    [
        (FLOAT, FLOAT, 10, 1, 18, 139, 71),
        (FLOAT, FLOAT, 10, 64, 49, 457, 386),
        (FLOAT, FLOAT, 10, 1024, 529, 5257, 5186),
        (HALF, FLOAT, 10, 64, 33, 297, 244),
        (HALF, HALF, 10, 4096, 1046, 10377, 12343),
        (INT, INT, 10, 64, 86, 777, 756),
    ],
)
def test_vertices_cost_what_poplibs_says(type, result, outputs, partials, single, contiguous, strided):
    kind = ReduceKind("ADD", type, result)
    assert single_output_cycles(kind, partials) == single
    assert contiguous_cycles(kind, outputs, partials) == contiguous
    assert strided_cycles(kind, outputs, 8, partials) == strided
    assert strided_cycles(kind, outputs, 7, partials) >= strided


def test_flops_are_those_of_each_element_but_the_first():
    assert flops_of(ReduceKind("ADD", FLOAT, FLOAT), 3, 30) == 27
    assert flops_of(ReduceKind("SQUARE_ADD", HALF, FLOAT, True), 3, 30) == 60
    assert flops_of(ReduceKind("ADD", INT, INT), 3, 30) == 0
    assert Stage(4, 3).column_bounds(7) == [0, 3, 6, 7]


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_views_of_places_have_the_elements_at_these(first, gap, rows, columns, turned):
    graph, _ = new_graph(1)
    vector = graph.addVariable(FLOAT, [400], "v")
    places = first + np.arange(rows)[:, None] * (columns * (gap + 1)) + np.arange(columns) * (gap + 1)
    places = places.T if turned else places
    assert places_view(vector, places) == elements(vector, places)


def elements(vector, places):
    """The elements at places, one by one."""
    return concat([vector[place].reshape([1]) for place in places.reshape(-1).tolist()]).reshape(list(places.shape))


@pytest.mark.parametrize(("cycles", "kept"), [(147, [1, 2]), (148, [1])])
def test_a_beginning_that_leaves_more_and_takes_48_cycles_more_is_given_up(cycles, kept):
    alike = np.array([8, 8])
    fronts = _Fronts(np.array([1, 2]), alike, alike, np.array([100, cycles]), alike, alike, alike, alike)
    assert _cheapest(fronts).partials.tolist() == kept
