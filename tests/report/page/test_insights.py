"""Insights: what each rule finds, what it says, and when it says nothing."""

import numpy as np
import pytest
from page_reports import LIMIT, compute, exchange, memory, report, variables

from pypoplar.report.execution import Step, VertexTypeCycles
from pypoplar.report.page import insights as rules
from pypoplar.report.page.insights import RULES, insights

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
    assert ("1 tile does not fit" in finding.text) is (weight == "grave")


def test_what_fills_the_largest_tile_decides_what_to_try():
    assert "vertex types" in rules.largest_tile(report(tile_memory=memory([1, 0, 0, 0], code=[9, 9, 9, 9]))).advice


def test_a_program_without_memory_has_no_largest_tile():
    assert rules.largest_tile(report(tile_memory=memory([0, 0, 0, 0]))) is None


def test_the_worst_balance_is_that_which_loses_the_most_cycles():
    finding = rules.worst_balance(report(compute("a", 0, [100, 0, 0, 0]), compute("b", 1, [1000, 500, 500, 500])))
    assert finding.title == 'Worst tile balance: "b"'
    assert "the mean tile works 62.5% of the time of the slowest" in finding.text
    assert "it would save 375 cycles, 34.1% of the total; all compute sets together would save 40.9%." in finding.text
    assert finding.weight == "grave"


def test_a_compute_set_that_is_executed_in_two_places_is_balanced_as_one():
    finding = rules.worst_balance(
        report(compute("a", 0, [100, 0, 0, 0]), compute("a", 1, [100, 0, 0, 0]), compute("b", 2, [150, 0, 0, 0]))
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
    assert finding.text.endswith("Tile 1 receives the most: 60 B.")
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


def test_a_program_without_exchange_has_no_biggest_one():
    assert rules.biggest_exchange(report(EVEN)) is None


def test_the_most_expensive_vertex_type_is_that_of_the_most_cycles():
    types = {"Cheap": VertexTypeCycles(1000, 25), "Dear": VertexTypeCycles(2, 75)}
    finding = rules.dearest_vertex_type(report(EVEN, types=types))
    assert finding.title == 'Most expensive vertex type: "Dear"'
    assert finding.text == 'The 2 vertices of "Dear" take 75 worker cycles, 75.0% of all vertices\' cycles.'


def test_idle_threads_are_counted_over_the_tiles_that_compute():
    finding = rules.idle_worker_threads(report(compute("a", 0, [100, 100, 0, 0], active=[100, 50, 0, 0])))
    assert "25.0% of their worker threads' cycles are idle" in finding.text
    assert "multiple of 6" in finding.advice


@pytest.mark.parametrize("active", [[100, 100, 100, 100], [90, 90, 90, 90]])
def test_few_idle_threads_are_no_finding(active):
    assert rules.idle_worker_threads(report(compute("a", 0, [100] * 4, active=active))) is None


@pytest.mark.parametrize(("cycles", "weight"), [(10, None), (50, "notable"), (200, "grave")])
def test_a_program_is_host_bound_by_its_share_of_host_cycles(cycles, weight):
    stream = Step(name="in", type="StreamCopy", executions=1, number=1, host_exchange_cycles=cycles, host_bytes=4000)
    finding = rules.host_bound(report(EVEN, stream))
    assert (finding.weight if finding else None) == weight
    if finding:
        assert f"takes {cycles} cycles, {cycles / (100 + cycles):.1%} of the total, for 4,000 B" in finding.text


@pytest.mark.parametrize(("cycles", "weight"), [(10, None), (50, "notable"), (200, "grave")])
def test_a_program_is_sync_bound_by_its_share_of_sync_cycles(cycles, weight):
    finding = rules.sync_bound(report(compute("a", 0, [100] * 4, sync=cycles, times=10)))
    assert (finding.weight if finding else None) == weight
    if finding:
        assert f"10 steps synchronise, for {cycles} cycles" in finding.text
        assert f"{cycles // 10} each time" in finding.text


def test_unused_tiles_are_those_that_never_compute():
    finding = rules.unused_tiles(report(compute("a", 0, [5, 0, 0, 0]), compute("b", 1, [0, 5, 0, 0])))
    assert finding.text == "2 of 4 tiles never compute, 50.0%; the first is tile 2."
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


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_rule_fails_for_want_of_data(rule):
    bare = Step(name="", type="OnTileExecute", executions=0)
    empty = memory([], code=[], gaps=[])
    for bare_report in (report(), report(tile_memory=empty), report(bare, tile_memory=empty, types={}), report(bare, types={})):
        finding = rule(bare_report)
        assert finding is None or finding.text


def test_findings_stand_with_the_gravest_first():
    findings = insights(report(compute("a", 0, [100, 1, 1, 1], sync=20)))
    order = ["grave", "notable", "good to know"]
    places = [order.index(finding.weight) for finding in findings]
    assert places == sorted(places)
    assert len({finding.rule for finding in findings}) == len(findings) >= 3


def test_a_program_that_has_not_run_has_only_findings_of_memory():
    assert [finding.rule for finding in insights(report())] == ["largest_tile"]


def test_steps_without_numbers_are_known_by_their_place():
    step = exchange("move", -1, [10, 0, 0, 0], [8, 0, 0, 0], [0, 8, 0, 0])
    assert rules.biggest_exchange(report(EVEN, step)).link == "exchange?step=1"


def test_names_are_said_as_they_are():
    name = '<b>"x"\\n\u2028'
    finding = rules.worst_balance(report(compute(name, 0, [np.int64(100), 0, 0, 0])))
    assert name in finding.title
