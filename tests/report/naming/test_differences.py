"""What differs between two reports, in words."""

from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from page_reports import compute, exchange, memory, ran_without_steps, report, variables

from benchmarks.made_report import made_report
from pypoplar import ApplicationRuntimeError
from pypoplar.report.execution import Run
from pypoplar.report.failed_runs import FailedRun
from pypoplar.report.naming.differences import (
    Difference,
    comparable,
    comparison_text,
    differences,
    exceeded,
    obstacles,
    option_changes,
    totals,
    unchanged_total,
)
from pypoplar.report.timeline import make_timeline


def halo(cycles, sync=30, **more):
    return report(
        compute("work", 0, [100] * 4, sync=2), exchange("halo", 1, [cycles, 0, 0, 0], [8] * 4, [8] * 4, sync=sync), **more
    )


def words(first, second):
    return [difference.words for difference in differences(first, second)]


def test_differences_are_told_in_words_the_totals_first_and_then_the_largest():
    assert words(halo(33360), halo(7400, sync=40)) == [
        "all cycles fell from 33,492 to 7,542 cycles (-77.5 %)",
        "exchange of 'halo' fell from 33,360 to 7,400 cycles (-77.8 %)",
        "sync of 'halo' rose from 30 to 40 cycles (+33.3 %)",
    ]


def test_what_is_new_and_what_is_gone_is_told_as_such():
    first, second = (
        report(compute("a", 0, [5] * 4), compute("b", 1, [7] * 4)),
        report(compute("b", 0, [7] * 4), compute("c", 1, [9] * 4)),
    )
    assert words(first, second) == [
        "all cycles rose from 12 to 16 cycles (+33.3 %)",
        "compute of 'c' is new: 9 cycles",
        "compute of 'a' is gone: it was 5 cycles",
    ]


def test_a_phase_that_was_not_there_rises_from_nothing():
    first = report(compute("a", 0, [5] * 4))
    assert words(first, report(compute("a", 0, [5] * 4, sync=3)))[-1] == "sync of 'a' rose from 0 to 3 cycles"


def test_steps_match_by_the_path_of_their_name_whatever_moved():
    first = report(compute("layer/fwd", 0, [5] * 4), compute("layer/fwd", 1, [6] * 4), compute("x", 2, [1] * 4))
    second = report(compute("x", 0, [1] * 4), compute("/layer//fwd", 1, [11] * 4))
    assert words(first, second) == []
    assert comparison_text(first, second, 20) == "all cycles: unchanged at 12\nno difference in cycles or memory\n"


def test_several_changes_under_one_path_are_told_together_too():
    first = report(compute("layer/fwd", 0, [50] * 4), compute("layer/bwd", 1, [60] * 4), compute("other/fwd", 2, [1] * 4))
    second = report(compute("layer/fwd", 0, [40] * 4), compute("layer/bwd", 1, [80] * 4), compute("other/fwd", 2, [2] * 4))
    assert words(first, second)[1:] == [
        "compute of 'layer/bwd' rose from 60 to 80 cycles (+33.3 %)",
        "all of 'layer' rose from 110 to 120 cycles (+9.1 %)",
        "compute of 'layer/fwd' fell from 50 to 40 cycles (-20.0 %)",
        "compute of 'other/fwd' rose from 1 to 2 cycles (+100.0 %)",
    ]


def test_memory_is_told_of_the_fullest_tile_of_all_tiles_and_by_name():
    step = compute("work", 0, [1] * 4)
    sides = [
        report(step, tile_memory=memory(sizes), variables=variables(("w", True, -1, -1), places=[{0: size}]))
        for sizes, size in (([10, 20, 0, 0], 10), ([10, 30, 5, 0], 15))
    ]
    assert words(*sides) == [
        "memory of the fullest tile rose from 20 to 30 B (+50.0 %)",
        "memory of all tiles rose from 30 to 45 B (+50.0 %)",
        "memory of 'w' rose from 10 to 15 B (+50.0 %)",
    ]


def test_variables_that_one_profile_does_not_list_are_not_called_gone():
    step = compute("work", 0, [1] * 4)
    listed = report(step, variables=variables(("w", True, -1, -1), places=[{0: 10}]))
    assert words(listed, report(step)) == words(report(step), listed) == []


def test_a_name_with_line_breaks_stays_on_its_line():
    first, second = report(compute("a\nb", 0, [5] * 4)), report(compute("a\nb", 0, [6] * 4), compute("", 1, [1] * 4))
    assert comparison_text(first, second, 20).splitlines() == [
        "all cycles rose from 5 to 7 cycles (+40.0 %)",
        "compute of what has no name is new: 1 cycle",
        "compute of 'a b' rose from 5 to 6 cycles (+20.0 %)",
    ]


def test_a_profile_that_does_not_tell_copies_apart_is_compared_with_both_together():
    move = exchange("move", 0, [50, 25, 0, 0], [8] * 4, [8] * 4)
    known = report(evolve(move, copy_cycles=10, copy_cycles_by_tile=np.array([0, 35, 0, 0])))
    older = report(evolve(move, exchange_cycles=60, exchange_cycles_by_tile=np.array([50, 60, 0, 0])))
    older = evolve(older, execution=evolve(older.execution, copies_known=False))
    assert words(older, known) == words(known, older) == []
    _, merged = comparable(older, known)
    assert merged.execution.steps[0].exchange_cycles_by_tile.tolist() == [50, 60, 0, 0]
    assert merged.execution.runs[0].steps[0].copy_cycles == 0
    assert comparable(known, known) == (known, known)
    assert "exchange and copies on the tile of 'move' rose" in words(older, report(evolve(move, copy_cycles=11)))[-1]


def test_other_targets_other_runs_and_no_run_are_named():
    ran, target = halo(10), halo(10).compilation.target
    other = evolve(ran, compilation=evolve(ran.compilation, target=evolve(target, tilesPerIpu=8, clockFrequency=2e9)))
    assert obstacles(ran, other) == [
        "the targets differ: 4 tiles an IPU, 0.00 GHz in A, 8 tiles an IPU, 2.00 GHz in B",
    ]
    assert obstacles(ran, report()) == ["B has not run: it has no cycles to compare"]
    assert len(obstacles(report(), report())) == 2
    (run,) = ran.execution.runs
    twice = evolve(ran, execution=evolve(ran.execution, runs=(Run(run.name, run.steps, 2),)))
    assert obstacles(ran, twice) == ["A has 1 run and B 2: cycles are of all runs together"]
    assert obstacles(ran, ran) == []
    assert comparison_text(ran, report(), 5).startswith("note: B has not run")


def test_options_that_were_set_to_something_else_are_named():
    ran = halo(10)
    other = evolve(ran, compilation=evolve(ran.compilation, options={"pypoplar.codelet_cost": "scalar"}))
    assert option_changes(ran, other) == ["the option pypoplar.codelet_cost is scalar in B and was not set in A"]


def test_only_the_largest_of_a_kind_are_listed():
    first = report(*(compute(name, number, [10] * 4) for number, name in enumerate("abcdefghi")))
    second = report(*(compute(name, number, [11 + number] * 4) for number, name in enumerate("abcdefghi")))
    lines = comparison_text(first, second, 3).splitlines()
    assert lines[1].startswith("compute of 'i' rose from 10 to 19")
    assert lines[4:] == ["and 6 smaller differences of cycles"]
    assert comparison_text(first, second, 8).splitlines()[9:] == ["and 1 smaller difference of cycles"]


def unrolled(*steps):
    return report(*(compute(name, number, [cycles] * 4) for number, (name, cycles) in enumerate(steps)))


LOOP = [("net/inc", 40), ("net/sum", 2)]
SAME_NAMES = [("net/inc", 10), ("net/inc_1", 10), ("net/inc_2", 10), ("net/inc_3", 10), ("net/sum", 2)]
NUMBERED = [*((f"net{number}/inc", 10) for number in range(4)), ("net/sum", 2)]


@pytest.mark.parametrize("first", [LOOP, SAME_NAMES, NUMBERED])
@pytest.mark.parametrize("second", [LOOP, SAME_NAMES, NUMBERED])
def test_a_loop_does_not_differ_from_the_same_one_unrolled(first, second):
    text = comparison_text(unrolled(*first), unrolled(*second), 20)
    assert text == "all cycles: unchanged at 42\nno difference in cycles or memory\n"


def test_names_that_differ_in_numbers_only_are_told_together_with_the_one_that_changed_the_most():
    first = unrolled(("s0/a", 10), ("s1/a", 10), ("s2/a", 10))
    assert words(first, unrolled(("s0/a", 11), ("s1/a", 15), ("s2/a", 10)))[1:] == [
        "compute of 's*/a' rose from 30 to 36 cycles (+20.0 %), the most in 's1/a': +5"
    ]
    assert words(first, unrolled(("s0/a", 11), ("s1/a", 11), ("s2/a", 11)))[1:] == [
        "compute of 's*/a' rose from 30 to 33 cycles (+10.0 %)"
    ]
    assert words(first, unrolled(("s0/a", 10), ("s1/a", 10)))[1:] == ["compute of 's*/a' fell from 30 to 20 cycles (-33.3 %)"]


def test_what_one_name_has_more_and_another_less_is_told_by_name():
    sides = unrolled(("s0", 10), ("s1", 10), ("s2", 10)), unrolled(("s0", 12), ("s1", 8), ("s2", 10))
    assert comparison_text(*sides, 20).splitlines() == [
        "all cycles: unchanged at 30",
        "compute of 's0' rose from 10 to 12 cycles (+20.0 %)",
        "compute of 's1' fell from 10 to 8 cycles (-20.0 %)",
    ]


def test_memory_folds_as_cycles_do():
    step = compute("work", 0, [1] * 4)
    names = [("w", True, -1, -1)], [(f"w_{number}", True, -1, -1) for number in range(3)]
    one, several = (report(step, variables=variables(*side, places=[{0: 30 // len(side)} for _ in side])) for side in names)
    assert words(one, several) == []


def test_what_has_run_without_a_cycle_is_no_other_than_what_has_run():
    never, idle, ran = report(), ran_without_steps(), halo(10)
    assert obstacles(idle, idle) == []
    assert unchanged_total(idle, idle) == ["all cycles: unchanged at 0"]
    assert comparison_text(never, ran, 20).splitlines()[:2] == [
        "note: A has not run: it has no cycles to compare",
        "all cycles of B: 142",
    ]
    assert "no difference in cycles" not in comparison_text(never, ran, 20)
    assert "all cycles of B: 0" in comparison_text(never, idle, 20)
    assert comparison_text(never, never, 20).splitlines()[2:] == ["no difference in memory"]


def test_what_has_only_failed_runs_has_no_cycles_and_no_trace_and_says_why(tmp_path):
    failed = evolve(report(), failed_runs=(FailedRun("main", "IndexError: 4"),))
    assert obstacles(halo(10), failed) == ["no run of B has come to its end: it has no cycles to compare"]
    with pytest.raises(ApplicationRuntimeError, match="no run has come to its end"):
        make_timeline(failed)


def test_where_the_profiles_went_is_no_difference():
    sides = [
        evolve(halo(10), compilation=evolve(halo(10).compilation, options={"autoReport.directory": directory}))
        for directory in ("before", "after")
    ]
    assert option_changes(*sides) == []


@pytest.mark.parametrize(
    ("cycles", "limit", "judged"), [(105, 5, False), (106, 5, True), (129, 29, False), (130, 29, True), (50, 0, False)]
)
def test_a_limit_is_exact(cycles, limit, judged):
    sides = report(compute("a", 0, [100] * 4)), report(compute("a", 0, [cycles] * 4))
    assert bool(exceeded(*sides, Fraction(limit, 100))) == judged


def test_memory_of_the_fullest_tile_is_judged_too_and_whatever_comes_of_nothing():
    sides = [report(compute("a", 0, [100] * 4), tile_memory=memory(sizes)) for sizes in ([10, 0, 0, 0], [11, 0, 0, 0])]
    assert [total.subject for total in exceeded(*sides, Fraction(5, 100))] == ["memory of the fullest tile"]
    empty = report(compute("a", 0, [100] * 4), tile_memory=memory([0, 0, 0, 0]))
    assert exceeded(empty, sides[0], Fraction(10**6))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "a/b", "a/c", "", "d", "d1", "d2", "d3", "a/b1", "a/b_2"]), st.integers(0, 9), st.integers(0, 9)
        ),
        max_size=6,
    ),
    st.data(),
)
def test_the_changes_by_phase_and_name_add_up_to_the_change_of_all_cycles(rows, data):
    def side(rows):
        return report(*(compute(name, number, [cycles] * 4, sync=sync) for number, (name, cycles, sync) in enumerate(rows)))

    first, second = side([("x", 1, 1), *rows]), side([("x", 1, 2), *data.draw(st.permutations(rows))[1:]])
    found = differences(first, second)
    leaves = [one.change for one in found if one.part not in ("total", "name")]
    assert sum(leaves) == totals(first, second)[0].change
    assert all(one.change for one in found)
    assert [(one.path, one.part, -one.change) for one in found] == sorted(
        ((one.path, one.part, one.change) for one in differences(second, first)),
        key=lambda row: [(one.path, one.part) for one in found].index(row[:2]),
    )


def test_a_large_report_does_not_differ_from_itself():
    ran = made_report(tiles=8, events=100)
    assert differences(ran, ran) == []
    assert isinstance(totals(ran, ran)[0], Difference)
