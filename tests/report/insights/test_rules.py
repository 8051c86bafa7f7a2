"""Insights: what each rule finds, what it says, and when it says nothing."""

import json

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from page_reports import LIMIT, compute, exchange, memory, messages, report, two_ipus, variables
from profile_reports import reports

from pypoplar.report.execution import STEP_TYPES, Step, VertexTypeCycles
from pypoplar.report.insights import ranking as rules
from pypoplar.report.insights.ranking import RULES, insights
from pypoplar.report.memory_report import MemoryByTile
from pypoplar.report.page.blocks import plain
from pypoplar.report.report import VertexType
from pypoplar.report.slowest_tile import SlowestTile, SlowestTiles, busiest_tile, critical_tile
from pypoplar.report.text.summary_values import summary_values
from pypoplar.report.tile_vertices import FieldSizes, SizedVertices

EVEN = compute("even", 0, [100, 100, 100, 100])


def test_the_largest_tile_is_named_with_what_fills_it():
    lowered = variables(("big", True, -1, -1), ("small", False, 0, 1), places=[{2: 500, 0: 10}, {2: 8}])
    finding = rules.largest_tile(report(tile_memory=memory([10, 0, 508, 0], code=[4, 4, 4, 4]), variables=lowered))
    assert finding.title == "Fullest tile: 2"
    assert "Tile 2 holds 512 B, 51.2% of its 1,000 B; the mean tile holds 134 B." in finding.text
    assert "Most of it: variables, 508 B." in finding.text
    assert finding.text.endswith('Its largest variables: "big" 500 B, "small" 8 B.')
    assert "mapTensorLinearly" in finding.advice
    assert (finding.weight, finding.link) == ("good to know", "memory?tile=2")


@pytest.mark.parametrize(
    ("bytes_held", "weight"), [(850, "good to know"), (851, "notable"), (LIMIT, "notable"), (LIMIT + 1, "grave")]
)
def test_the_largest_tile_is_the_graver_the_fuller(bytes_held, weight):
    finding = rules.largest_tile(report(tile_memory=memory([0, bytes_held, 0, 0])))
    assert finding.weight == weight
    assert finding.text.startswith("1 of 4 tiles does not fit. Tile 1 holds") is (weight == "grave")


def test_what_fills_the_largest_tile_decides_what_to_try():
    assert "vertex types" in rules.largest_tile(report(tile_memory=memory([1, 0, 0, 0], code=[9, 9, 9, 9]))).advice
    assert "those of floats take half as much" in rules.largest_tile(report(tile_memory=memory([9, 0, 0, 0]))).advice


def test_how_many_tiles_do_not_fit_comes_first():
    finding = rules.largest_tile(report(tile_memory=memory([LIMIT + 1, LIMIT, LIMIT + 5, LIMIT + 1])))
    assert finding.title == "Out of memory: 3 of 4 tiles"
    assert finding.text.startswith("3 of 4 tiles do not fit. Tile 2 holds 1,005 B")


def test_tiles_that_are_equally_full_and_have_room_have_no_fullest():
    assert rules.largest_tile(report(tile_memory=memory([850] * 4))) is None
    assert rules.largest_tile(report(tile_memory=memory([851] * 4))).share == pytest.approx(0.001)


def test_a_program_without_memory_has_no_largest_tile():
    assert rules.largest_tile(report(tile_memory=memory([0, 0, 0, 0]))) is None


def test_the_worst_balance_is_that_which_loses_the_most_cycles():
    finding = rules.worst_balance(report(compute("a", 0, [100, 0, 0, 0]), compute("b", 1, [1000, 500, 500, 500])))
    assert finding.title == 'Worst tile balance: "b"'
    assert "the mean tile works 62.5% of the time of the slowest" in finding.text
    assert "it would save 375 cycles, 34.1% of the total; all compute sets together would save 40.9%." in finding.text
    assert finding.text.endswith(" The slowest is tile 0: 1,000 cycles against 625 of the mean tile.")
    assert (finding.weight, finding.link) == ("grave", "balance?step=1")
    assert finding.share == pytest.approx((375 + 75) / 1100)


def test_a_compute_set_that_is_executed_in_two_places_is_balanced_as_one():
    finding = rules.worst_balance(
        report(compute("a", 0, [100, 0, 0, 0]), compute("a", 1, [100, 0, 0, 0]), compute("b", 2, [150, 0, 0, 0]), EVEN)
    )
    assert finding.title == 'Worst tile balance: "a"'


def test_an_even_spread_has_no_worst_balance():
    assert rules.worst_balance(report(EVEN)) is None


def test_the_biggest_exchange_is_that_of_the_most_cycles():
    few = exchange("few", 1, [10, 0, 0, 0], [80, 0, 0, 0], [0, 0, 80, 0])
    many = exchange("many", 2, [5, 40, 5, 5], [32, 32, 0, 0], [0, 60, 4, 0], times=3)
    finding = rules.biggest_exchange(report(EVEN, few, many))
    assert finding.title == 'Biggest exchange: "many"'
    assert (
        '"many" takes 40 cycles, 26.7% of the total, in 3 executions, and moves 64 B. All exchanges together take 33.3%.'
        in finding.text
    )
    assert finding.text.endswith(" The limit is tile 1: 40 cycles against 14 of the mean tile, 32 B sent, 60 B received.")
    assert (finding.weight, finding.link) == ("notable", "exchange?step=2")


@pytest.mark.parametrize(
    ("sent", "received", "words"),
    [
        ([8, 0, 0, 0], [0, 8, 8, 8], "in 1 execution, and moves 8 B, which arrive as 24 B on several tiles at once."),
        ([0] * 4, [0] * 4, "in 1 execution, and moves bytes on their tiles only, into another order."),
    ],
)
def test_the_biggest_exchange_tells_what_is_sent_once_from_what_arrives(sent, received, words):
    finding = rules.biggest_exchange(report(EVEN, exchange("one", 1, [5] * 4, sent, received)))
    assert words in finding.text


def test_the_limit_of_an_exchange_is_the_busiest_port_also_where_it_sends():
    step = exchange("scatter", 1, [24, 8, 8, 8], [96, 0, 0, 0], [0, 32, 32, 32])
    finding = rules.biggest_exchange(report(EVEN, step))
    assert finding.text.endswith(" The limit is tile 0: 24 cycles against 12 of the mean tile, 96 B sent.")
    assert "sends much more" in finding.advice


def test_of_ports_that_are_busy_equally_long_the_one_with_the_most_bytes_is_the_limit():
    finding = rules.biggest_exchange(report(EVEN, exchange("many", 1, [6, 6, 6, 0], [0, 8, 4, 0], [4, 0, 0, 8])))
    assert finding.text.endswith(" The limit is tile 1 (2 others take as long): 6 cycles against 4 of the mean tile, 8 B sent.")


@pytest.mark.parametrize(
    ("received", "pieces", "words"),
    [
        (80, 10, " 10 pieces of 8 B in the mean, at 3 cycles each; its bytes in one piece would take 20."),
        (160, 10, " 10 pieces of 16 B in the mean, at 3 cycles each; its bytes in one piece would take 20 or more."),
        (240, 10, ""),  # its bytes take as long, over two buses
        (80, 9, ""),
        (80, 0, ""),
    ],
)
def test_an_exchange_is_said_to_wait_for_its_pieces_where_it_does(received, pieces, words):
    step = exchange("few", 1, [6, 30, 6, 6], [0, 0, received, 0], [0, received, 0, 0], pieces=[0, pieces, pieces, 0])
    finding = rules.biggest_exchange(report(EVEN, step))
    assert finding.text.endswith(words)
    assert ("pieces of" in finding.text) is bool(words)
    assert finding.share == pytest.approx((10 if words else 30) / 130)


def test_of_exchanges_that_take_as_long_the_first_is_the_biggest():
    first, second = (exchange(name, number, [5] * 4, [8] * 4, [8] * 4) for number, name in ((1, "first"), (2, "second")))
    assert rules.biggest_exchange(report(EVEN, first, second)).title == 'Biggest exchange: "first"'


@pytest.mark.parametrize(("sent", "received", "words"), [(8, 9, "gathers"), (8, 8, "gathers"), (9, 8, "sends much more")])
def test_a_tile_that_sends_no_more_than_it_receives_gathers(sent, received, words):
    step = exchange("one", 1, [6, 1, 1, 1], [sent, 1, 1, 1], [received, 1, 1, 1])
    assert words in rules.biggest_exchange(report(EVEN, step)).advice


@pytest.mark.parametrize(("over", "told"), [(19, True), (20, True), (21, False)])
def test_a_tile_is_the_limit_of_an_exchange_that_takes_as_long_between_ipus_as_on_tiles(over, told):
    step = evolve(exchange("across", 1, [12, 6, 6, 0], [8] * 4, [8] * 4), copy_cycles=8, global_exchange_cycles=over)
    assert ("The limit is tile 0" in rules.biggest_exchange(report(EVEN, step)).text) is told


@pytest.mark.parametrize(("sent", "words"), [(39, "gathers"), (40, "gathers"), (41, "sends much more")])
def test_a_tile_that_sends_no_more_to_another_ipu_than_it_receives_gathers(sent, words):
    ran = two_ipus()
    step = evolve(ran.execution.steps[0], bytesSentByTile=np.array([]), bytesReceivedByTile=np.array([]))
    both = messages("over", 0, (0, 2, sent), (3, 0, 40))
    compilation = evolve(ran.compilation, exchanges=(both,))
    made = evolve(ran, compilation=compilation, execution=evolve(ran.execution, steps=(step,)))
    finding = rules.biggest_exchange(made)
    assert finding.text.endswith(f", {sent} B sent, 40 B received.")
    assert words in finding.advice


def test_an_exchange_between_ipus_is_limited_by_their_link():
    step = evolve(exchange("across", 1, [6, 6, 6, 0], [0, 8, 4, 0], [4, 0, 0, 8]), global_exchange_cycles=90)
    finding = rules.biggest_exchange(report(EVEN, step))
    assert finding.text.endswith(" 90 of its cycles go between IPUs, at the pace of the slowest link or tile.")


def test_a_rearranged_stream_is_told_as_an_exchange_with_its_bytes_and_a_link():
    step = evolve(exchange("images", 1, [40, 8, 8, 8], [96, 0, 0, 0], [0, 32, 32, 32]), type="StreamCopy")
    finding = rules.biggest_exchange(report(EVEN, step))
    assert finding.text.startswith('Rearranging the stream "images" between its order and the tensor\'s tiles takes 40 cycles')
    assert "and moves 96 B" in finding.text
    assert finding.link == "exchange?step=1"
    assert "stream's order" in finding.advice


def test_what_moves_on_its_tiles_only_is_shown_in_the_trace():
    assert rules.biggest_exchange(report(EVEN, exchange("one", 1, [5] * 4, [0] * 4, [0] * 4))).link == "trace"


def test_a_program_without_exchange_has_no_biggest_one():
    assert rules.biggest_exchange(report(EVEN)) is None


def test_the_most_expensive_vertex_type_is_that_of_the_most_cycles():
    types = {"Cheap": VertexTypeCycles(1000, 25), "Dear": VertexTypeCycles(2, 75)}
    finding = rules.dearest_vertex_type(report(EVEN, types=types))
    assert finding.title == 'Most expensive vertex type: "Dear"'
    assert finding.text == (
        'Tiles wait 75 cycles for vertices of "Dear", 75.0% of the total.'
        " All 2 take 75 worker slots, 75.0% of all vertices' slots."
    )


def test_idle_threads_are_counted_over_the_tiles_that_compute():
    finding = rules.idle_worker_threads(report(compute("a", 0, [100, 100, 0, 0], active=[80, 70, 0, 0])))
    assert "25.0% of their worker threads' cycles are idle" in finding.text
    assert "multiple of 6" in finding.advice


@pytest.mark.parametrize("active", [[1000] * 4, [996] * 4, [1000, 10, 10, 10]])
def test_idle_threads_that_cost_next_to_nothing_are_no_finding(active):
    assert rules.idle_worker_threads(report(compute("a", 0, [1000] * 4, active=active))) is None


@pytest.mark.parametrize(("host", "weight"), [(0, "grave"), (20, "grave"), (200, "notable"), (1500, "good to know")])
def test_idle_threads_weigh_what_they_cost_of_the_total(host, weight):
    stream = Step(name="in", type="StreamCopy", executions=1, number=1, host_exchange_cycles=host)
    finding = rules.idle_worker_threads(report(compute("a", 0, [100] * 4, active=[20] * 4), stream))
    assert finding.weight == weight
    assert finding.share == pytest.approx(80 / (100 + host))
    assert "80.0% of their worker threads' cycles are idle" in finding.text
    assert (
        f"it would save up to 80 cycles, {80 / (100 + host):.1%} of the total, as far as the work can be divided." in finding.text
    )


@pytest.mark.parametrize(("cycles", "weight"), [(0, None), (10, "good to know"), (50, "notable"), (200, "grave")])
def test_a_program_is_host_bound_by_its_share_of_host_cycles(cycles, weight):
    stream = Step(name="in", type="StreamCopy", executions=1, number=1, host_exchange_cycles=cycles, host_bytes=4000)
    finding = rules.host_bound(report(EVEN, stream))
    assert (finding.weight if finding else None) == weight
    if finding:
        assert f"takes {cycles} cycles, {cycles / (100 + cycles):.1%} of the total, for 4,000 B" in finding.text


@pytest.mark.parametrize(("cycles", "weight"), [(0, None), (10, "good to know"), (50, "notable"), (200, "grave")])
def test_a_program_is_sync_bound_by_its_share_of_sync_cycles(cycles, weight):
    finding = rules.sync_bound(report(compute("a", 0, [100] * 4, sync=cycles, times=10)))
    assert (finding.weight if finding else None) == weight
    if finding:
        assert f"10 steps synchronise, for {cycles} cycles" in finding.text
        assert f"{cycles // 10} each time" in finding.text


def test_unused_tiles_are_those_that_never_compute():
    finding = rules.unused_tiles(report(compute("a", 0, [5, 0, 0, 0]), compute("b", 1, [0, 5, 0, 0])))
    assert finding.text.startswith("2 of 4 tiles never compute, 50.0%; the first is tile 2. With their share of the work,")
    assert (finding.share, finding.link) == (pytest.approx(0.5), "balance?step=0")
    assert rules.unused_tiles(report(EVEN, compute("b", 1, [0, 5, 0, 0]))) is None


def test_the_most_live_memory_is_at_the_step_with_the_most_bytes():
    lowered = variables(
        ("x", False, 0, 1),
        ("y", False, 1, 2),
        ("z", False, 1, 2),
        ("w", True, -1, -1),
        places=[{0: 30}, {0: 20}, {1: 20}, {0: 900}],
    )
    finding = rules.peak_liveness(report(EVEN, compute("late", 1, [1] * 4), variables=lowered))
    assert finding.text == 'At step 1, "late", 40 B live besides what is always live. The largest: "y" 20 B, "z" 20 B.'
    assert finding.link == "liveness?step=1"


def test_memory_that_always_lives_is_no_peak():
    lowered = variables(("w", True, -1, -1), places=[{0: 900}])
    assert rules.peak_liveness(report(EVEN, variables=lowered)) is None


def test_the_floating_point_rate_stands_beside_the_highest_peak():
    finding = rules.far_from_peak(report(compute("a", 0, [100] * 4, flops=800), peaks={"float": 2.0, "half": 8.0}))
    # 800 operations in 100 us, of 8 operations x 4 tiles x 1 MHz
    assert finding.text == "800 floating-point operations in 100.0 \u00b5s: 8.0 MFLOP/s, 25.00% of the 32.0 MFLOP/s of half."
    assert rules.far_from_peak(report(EVEN, peaks={"float": 2.0})) is None
    assert rules.far_from_peak(report(compute("a", 0, [100] * 4, flops=800))) is None


def rated(*types, flops):
    """The rate of vertices of these precisions."""
    names = [f"Work{number}" for number in range(len(types))]
    costs = {name: VertexTypeCycles(1, 100, count, 0, 100, 100) for name, count in zip(names, flops, strict=True)}
    peaks = {"half, units": 8.0, "float, units": 2.0, "float, code": 1.0}
    ran = report(compute("a", 0, [100] * 4, flops=sum(flops)), peaks=peaks, types=costs)
    made = tuple(VertexType(name, 1, 64, {}, precision) for name, precision in zip(names, types, strict=True))
    return rules.far_from_peak(evolve(ran, compilation=evolve(ran.compilation, vertex_types=made)))


@pytest.mark.parametrize(
    ("types", "flops", "words"),
    [
        (["float"], [400], "50.00% of the 8.0 MFLOP/s of float, units."),
        (["half"], [400], "12.50% of the 32.0 MFLOP/s of half, units."),
        ([""], [400], "12.50% of the 32.0 MFLOP/s of half, units."),
        (["float", "half"], [400, 0], "50.00% of the 8.0 MFLOP/s of float, units."),
        (["float", "half"], [200, 800], "of the 20.0 MFLOP/s of float, units and half, units."),
    ],
)
def test_code_is_compared_with_the_peak_of_its_precision(types, flops, words):
    assert rated(*types, flops=flops).text.endswith(words)


def test_a_target_of_which_no_peak_is_known_has_no_rate():
    assert rules.far_from_peak(report(compute("a", 0, [100] * 4, flops=800), peaks={"float": 0.0})) is None
    finding = rules.far_from_peak(report(compute("a", 0, [100] * 4, flops=800), peaks={"float": 0.0, "half": 2.0}))
    assert finding.text.endswith(" of half.")


def test_tiles_that_hold_nothing_but_gaps_are_told_without_what_fills_them():
    finding = rules.largest_tile(report(tile_memory=MemoryByTile({}, np.array([0, 0, 900, 0]))))
    assert finding.text == "Tile 2 holds 900 B, 90.0% of its 1,000 B; the mean tile holds 225 B."


def test_code_at_its_peak_could_save_nothing():
    assert rated("float", flops=[800]).share == 0


def test_the_rate_is_never_a_warning():
    finding = rated("float", flops=[1])
    assert (finding.weight, finding.share > 0.9) == ("good to know", True)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_rule_fails_for_want_of_data(rule):
    bare = Step(name="", type="OnTileExecute", executions=0)
    empty = memory([], code=[], gaps=[])
    for bare_report in (report(), report(tile_memory=empty), report(bare, tile_memory=empty, types={}), report(bare, types={})):
        finding = rule(bare_report)
        assert finding is None or finding.text


def test_findings_stand_with_those_first_that_could_save_the_most():
    findings = insights(report(compute("a", 0, [100, 1, 1, 1], sync=20)))
    shares = [finding.share for finding in findings]
    assert shares[:-1] == sorted(shares[:-1], reverse=True)
    assert findings[-1].rule == "largest_tile"  # there is room: it costs no time
    assert len({finding.rule for finding in findings}) == len(findings) >= 3
    types = {"Dear": VertexTypeCycles(4, 400)}
    shares = {
        finding.rule: (place, finding.weight)
        for place, finding in enumerate(insights(report(compute("a", 0, [100] * 4, sync=10), types=types)))
    }
    assert shares["dearest_vertex_type"] == (0, "grave")
    assert shares["sync_bound"] == (1, "good to know")


def test_what_does_not_fit_comes_before_all_else_and_a_tile_without_room_among_what_costs_time():
    def order(held):
        return [
            finding.rule
            for finding in insights(report(compute("a", 0, [100] * 4, sync=10), tile_memory=memory([held, 300, 300, 300])))
        ]

    assert order(LIMIT + 1)[0] == "largest_tile"
    assert order(990) == ["dearest_vertex_type", "largest_tile", "sync_bound"]
    assert order(800) == ["dearest_vertex_type", "sync_bound", "largest_tile"]


COMPUTE_RULES = ("worst_balance", "lone_vertices", "unused_tiles", "idle_worker_threads", "dearest_vertex_type", "far_from_peak")


@given(
    st.lists(st.tuples(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 6)), min_size=4, max_size=4), st.integers(0, 9))),
    st.integers(0, 100),
    st.integers(0, 4000),
)
def test_no_cycle_is_claimed_by_two_findings(rows, bound, flops):
    steps = [
        compute("abc"[n % 3], n, [c for c, _ in tiles], active=[c * busy // 6 for c, busy in tiles], sync=sync, flops=flops)
        for n, (tiles, sync) in enumerate(rows)
    ]
    types = {"Work": VertexTypeCycles(4, 100, flops, 0, 100, bound), "Rest": VertexTypeCycles(4, 50)}
    made = report(*steps, types=types, peaks={"float": 4.0})
    findings = [finding for rule in RULES if (finding := rule(made)) is not None and not finding.of_memory]
    assert sum(finding.share for finding in findings) <= 1 + 1e-9
    total = sum(step.cycles for step in steps)
    computing = sum(step.compute_cycles for step in steps) / total if total else 0
    assert sum(finding.share for finding in findings if finding.rule in COMPUTE_RULES) <= computing + 1e-9


def test_work_on_one_tile_is_told_once_and_no_further_than_it_can_be_divided():
    step = compute("alone", 0, [294, 0, 0, 0], active=[49, 0, 0, 0])
    ran = report(step, types={"Work": VertexTypeCycles(1, 49)})
    assert rules.worst_balance(ran) is None
    assert rules.unused_tiles(ran).share == pytest.approx(3 / 4)
    assert rules.idle_worker_threads(ran).share == pytest.approx(1 / 4 * 5 / 6)
    for elements, share in ((1, 0), (2, 1 / 2), (100, 3 / 4)):
        sized = {0: (SizedVertices("Work", 1, (FieldSizes("x", elements, elements),)),)}
        few = evolve(ran, execution=evolve(ran.execution, slowest_vertices=sized))
        assert rules.unused_tiles(few).share == pytest.approx(share)
    assert 'The most in compute set "alone", on tile 0: 294 cycles against 74 of the mean tile' in rules.unused_tiles(ran).text


def test_balance_is_told_of_the_tiles_that_compute_beside_what_the_others_would_save():
    finding = rules.worst_balance(report(compute("a", 0, [100, 50, 0, 0])))
    assert finding.text.startswith(
        'In compute set "a" the mean of the 2 tiles that compute works 75.0% of the time of the slowest.'
        " Spread evenly over the 2 tiles that compute it would save 12 cycles beside what unused tiles would, 12.5% of the total;"
    )
    assert finding.share == pytest.approx(0.125)


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "split the vertex of tile 0,"), (18, "move some of the 18 vertices of tile 0 to others, or split them,")],
)
def test_what_to_do_for_balance_depends_on_the_vertices_of_the_slowest_tile(count, words):
    ran = report(compute("a", 0, [100, 10, 10, 10]))
    sized = {0: (SizedVertices("Work", count, (FieldSizes("x", 100, 100),)),)}
    assert words in rules.worst_balance(evolve(ran, execution=evolve(ran.execution, slowest_vertices=sized))).advice


def test_what_hand_written_code_needs_is_not_claimed():
    step = compute("a", 0, [100] * 4)

    def finding(cost, priced):
        ran = report(step, types={"Work": cost})
        types = (VertexType("Work", 4, 64, priced),)
        return rules.dearest_vertex_type(evolve(ran, compilation=evolve(ran.compilation, vertex_types=types)))

    by_code = finding(VertexTypeCycles(4, 400, 0, 0, 400, 100), {"code": 4, "estimate": 0})
    assert (by_code.share, by_code.weight) == (pytest.approx(0.75), "grave")
    assert by_code.text.endswith(" Hand-written code could do with 100.")
    assert finding(VertexTypeCycles(4, 400, 0, 0, 400, 400), {"code": 4}).share == 0
    by_estimate = finding(VertexTypeCycles(4, 400, 0, 0, 900, 100), {"code": 2, "estimate": 2})
    assert (by_estimate.share, "Hand-written" in by_estimate.text) == (1, False)


def test_exchanges_of_one_name_are_told_apart_and_weigh_what_they_take_themselves():
    copies = [evolve(exchange("Copy", number, [10 + number] * 4, [8] * 4, [8] * 4), sync_cycles=50) for number in (1, 2)]
    finding = rules.biggest_exchange(report(EVEN, *copies))
    assert finding.title == 'Biggest exchange: "Copy", step 2'
    assert finding.text.startswith(
        '"Copy" (step 2, one of 2 exchanges of this name) takes 12 cycles, 5.4% of the total, and 50 more for its syncs, in'
    )
    assert finding.share == pytest.approx(12 / 223)
    assert "All exchanges together take 10.3%." in finding.text


def test_tiles_that_do_not_fit_stand_beside_the_empty_ones_and_the_way_to_run_all_the_same():
    finding = rules.largest_tile(report(tile_memory=memory([LIMIT * 3, 0, 0, LIMIT + 1])))
    assert finding.text.startswith("2 of 4 tiles do not fit. Tile 0 holds 3,000 B")
    assert finding.text.endswith(" 2 tiles are empty. The option pypoplar.run_out_of_memory runs the program all the same.")
    assert finding.share == pytest.approx((3000 - 850) / 3000)


@pytest.mark.parametrize(("sync", "told"), [(4, False), (5, True), (6, True)])
def test_what_could_save_less_than_half_a_percent_is_not_told(sync, told):
    findings = insights(report(compute("a", 0, [1000 - sync] * 4, sync=sync)))
    assert ("sync_bound" in [finding.rule for finding in findings]) is told
    assert min(finding.share for finding in findings) >= 0.005


def test_a_program_that_has_not_run_has_only_findings_of_memory():
    assert [finding.rule for finding in insights(report())] == ["largest_tile"]


def test_steps_without_numbers_are_known_by_their_place():
    step = exchange("move", -1, [10, 0, 0, 0], [8, 0, 0, 0], [0, 8, 0, 0])
    assert rules.biggest_exchange(report(EVEN, step)).link == "exchange?step=1"


def test_names_are_said_as_they_are():
    name = '<b>"x"\\n\u2028'
    finding = rules.worst_balance(report(compute(name, 0, [np.int64(100), 1, 1, 1])))
    assert name in finding.title


@examples(25)
@given(reports())
def test_reports_of_any_form_have_findings_of_at_most_the_whole(any_report):
    findings = insights(any_report)
    assert all(finding.of_memory or 0.005 <= finding.share <= 1 + 1e-9 for finding in findings)
    assert all(finding.text and finding.title for finding in findings)
    values = json.loads(json.dumps(summary_values(any_report), default=plain))
    assert [finding["rule"] for finding in values["insights"]] == [finding.rule for finding in findings]


@pytest.mark.parametrize("kind", STEP_TYPES)
def test_a_step_that_computes_and_does_not_exchange_has_no_busiest_port(kind):
    step = evolve(compute("work", 0, [5, 0, 9, 0]), type=kind)
    assert critical_tile(step) == 2
    assert busiest_tile(step) is None
    assert SlowestTiles.of(report(step).execution).of_step(step) == (SlowestTile(2, 9, 3.5) if kind == "OnTileExecute" else None)
