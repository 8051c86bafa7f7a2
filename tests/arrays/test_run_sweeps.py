"""Sweeps over runs: as Python, as machine code, as NumPy, and as a few lines of plain Python say it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from sweeping import both, swept_at_once

from pypoplar.arrays import interval_algebra as intervals
from pypoplar.arrays.element_runs import RunList, compress, greedy_by_differences
from pypoplar.arrays.groups import offsets, stepped
from pypoplar.arrays.interval_sweeps import place_behind
from pypoplar.arrays.run_sweeps import (
    count_crossing,
    cut_crossing,
    cut_runs,
    find_runs,
    lay_strands,
    name_parts,
    place_runs,
    step_through,
    touch_strands,
)

RUN = st.tuples(st.integers(0, 60), st.integers(0, 5), st.integers(-4, 4)).map(lambda run: (*run[:2], run[2] if run[1] > 1 else 1))
RUNS = st.lists(RUN, max_size=10)
OWNED = st.lists(st.tuples(st.integers(0, 2), RUN), max_size=10).map(lambda runs: [(owner, *run) for owner, run in sorted(runs)])


@st.composite
def columns_of_matrices(draw: Any) -> list[tuple[int, ...]]:
    """Runs that are alike and lie side by side, rising or falling, with others between."""
    runs = []
    for owner in range(draw(st.integers(1, 3))):
        start, beside, count, step = (draw(st.integers(*bounds)) for bounds in ((20, 50), (1, 9), (0, 4), (-4, 4)))
        runs += [(owner, start + column, count, step if count > 1 else 1) for column in range(beside)]
        runs += [(owner, *run) for run in draw(RUNS)[:2]]
    return runs


def table(rows: list[tuple[int, ...]], width: int) -> list[Any]:
    return list(np.array(rows, np.int64).reshape(-1, width).T.copy())


def elements(start: int, count: int, step: int) -> list[int]:
    return [start + i * step for i in range(count)]


def joined(stretches: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Those that continue the one before are one with it."""
    made: list[tuple[int, int, int]] = []
    for owner, begin, length in stretches:
        if made and made[-1][0] == owner and made[-1][1] + made[-1][2] == begin:
            made[-1] = (owner, made[-1][1], made[-1][2] + length)
        else:
            made.append((owner, begin, length))
    return made


def rows_of(*columns: Any) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(st.lists(st.integers(0, 30), max_size=8).map(sorted), st.integers(-2, 32), st.integers(0, 8))
def test_a_place_is_found_wherever_it_is_looked_for_from(numbers: list[int], key: int, near: int) -> None:
    for place in both(place_behind):
        assert place(np.array(numbers, np.int64), key, min(near, len(numbers))) == sum(number <= key for number in numbers)


@examples(100)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_a_place_is_found_however_far_away_it_is(size: int, seed: int) -> None:
    drawn = np.random.default_rng(seed)
    numbers = np.sort(drawn.integers(0, 400, size))
    for key, near in drawn.integers((-2, 0), (402, size + 1), (20, 2)).tolist():
        for place in both(place_behind):
            assert place(numbers, key, near) == np.searchsorted(numbers, key, "right")


@given(RUNS)
def test_all_elements_of_runs_are_gone_through(runs: list[tuple[int, ...]]) -> None:
    expected = [element for run in runs for element in elements(*run)]
    for through in both(step_through):
        out = np.zeros(len(expected), np.int64)
        assert through(*table(runs, 3), out) == len(expected)
        assert out.tolist() == expected


@examples(200)
@given(RUNS, st.data())
def test_pieces_of_ranges_hold_what_lies_at_their_positions(runs: list[tuple[int, ...]], data: Any) -> None:
    view = RunList(*table(runs, 3))
    flat = [element for run in runs for element in elements(*run)]
    bound = st.integers(0, len(flat))
    ranges = data.draw(st.lists(st.tuples(bound, bound), max_size=6))
    for cut in both(cut_runs):
        given = (view.first, view.start, view.step, *table(ranges, 2))
        count = cut(*given, *[np.zeros(0, np.int64)] * 4)
        outputs = [np.full(count, -99) for _ in range(4)]
        assert cut(*given, *outputs) == count
        start, size, step, owner = outputs
        assert [(number, flat[low:high]) for number, (low, high) in enumerate(ranges) if low < high] == [
            (number, [element for piece in pieces for element in elements(*piece[:3])])
            for number, pieces in itertools.groupby(rows_of(start, size, step, owner), lambda piece: piece[3])
        ]
        pieces, owners = view.cut_by_search(*table(ranges, 2))
        assert rows_of(*outputs) == rows_of(pieces.start, pieces.count, pieces.step, owners)


def greedy(ids: list[int]) -> list[tuple[int, int, int]]:
    """Runs of step 1; then of three and more that are alone, at an equal distance, from the left."""
    runs: list[tuple[int, int, int]] = []
    for number in ids:
        if runs and number == runs[-1][0] + runs[-1][1]:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1, 1)
        else:
            runs.append((number, 1, 1))
    made: list[tuple[int, int, int]] = []
    at, taken = 0, False  # whether the run at `at` is the last of what is made, with others before it
    while at < len(runs):
        last, distance = at, runs[at + 1][0] - runs[at][0] if at + 1 < len(runs) else 0
        while last + 1 < len(runs) and runs[last][1] == runs[last + 1][1] == 1 and runs[last + 1][0] - runs[last][0] == distance:
            last += 1
        if last < at + 2:
            made += [] if taken else [runs[at]]
            at, taken = at + 1, False
        else:
            made.append((runs[at + taken][0], last - at + 1 - taken, distance))
            at, taken = last, True
    return made


IDS = st.lists(st.integers(0, 9), max_size=16) | st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6), st.integers(-3, 3))).map(
    lambda runs: [element for run in runs for element in elements(*run)]
)


@examples(400)
@given(IDS)
def test_runs_of_ids_are_those_that_are_found_from_the_left(ids: list[int]) -> None:
    expected = greedy(ids)
    for find in both(find_runs):
        outputs = [np.full(len(ids), -99) for _ in range(3)]
        count = find(np.array(ids, np.int64), *outputs)
        assert rows_of(*(column[:count] for column in outputs)) == expected
    if ids:
        assert rows_of(*greedy_by_differences(np.array(ids, np.int64))) == expected


@given(RUNS.map(lambda runs: [run for run in runs if run[1] > 0]), st.lists(st.integers(0, 70), max_size=4))
def test_runs_of_several_variables_are_counted(runs: list[tuple[int, ...]], bounds: list[int]) -> None:
    first = np.array([-40, *sorted(bounds)], np.int64)
    ends = [{sum(bound <= element for bound in bounds) for element in elements(*run)} for run in runs]
    for crossing in both(count_crossing):
        assert crossing(*table(runs, 3), first) == sum(len(variables) > 1 for variables in ends)


@examples(400)
@given(RUNS, st.lists(st.integers(-41, 100), max_size=6))
def test_runs_of_several_variables_are_cut_where_one_begins(runs: list[tuple[int, ...]], bounds: list[int]) -> None:
    first = np.array(sorted([-41, *bounds]), np.int64)
    pieces = [
        list(piece)
        for run in runs
        for _, piece in itertools.groupby(elements(*run), lambda element: sum(bound <= element for bound in first.tolist()))
    ]
    expected = [(piece[0], len(piece), piece[1] - piece[0] if len(piece) > 1 else 1) for piece in pieces]
    for cut in both(cut_crossing):
        for room in (0, len(pieces)):
            outputs = [np.full(room, -99) for _ in range(3)]
            assert cut(*table(runs, 3), first, *outputs) == len(pieces)
        assert rows_of(*outputs) == expected


@examples(100)
@given(st.lists(RUNS, max_size=6), st.randoms(use_true_random=False))
def test_runs_of_groups_are_placed_where_each_group_begins(groups: list[list[tuple[int, ...]]], random: Any) -> None:
    order = list(range(len(groups)))
    random.shuffle(order)
    placed = [run for group in order for run in groups[group]]
    begins = dict(zip(order, offsets([len(groups[group]) for group in order]).tolist(), strict=False))
    first, length = (
        np.array(column, np.int64) for column in ([begins[group] for group in range(len(groups))], [*map(len, groups)])
    )
    for place in both(place_runs):
        outputs = [np.full(len(placed), -99) for _ in range(3)]
        assert place(first, length, *table([run for runs in groups for run in runs], 3), *outputs) == len(placed)
        assert rows_of(*outputs) == [(start, count, step if count > 1 else 1) for start, count, step in placed]


VIEWS = st.lists(st.tuples(st.integers(0, 2), RUNS.map(lambda runs: [run for run in runs if run[1] > 0])), max_size=5)


@examples(300)
@given(VIEWS, st.sets(st.integers(1, 90), max_size=6))
def test_the_parts_of_views_are_those_of_their_elements(views: list[tuple[int, list[tuple[int, ...]]]], bounds: set[int]) -> None:
    views = [(group, [(start + 20, *run) for start, *run in runs]) for group, runs in views]
    first = np.array([0, *sorted(bounds)], np.int64)
    wanted = {
        group * len(first) + sum(bound <= element for bound in bounds)
        for group, runs in views
        for run in runs
        for element in elements(*run)
    }
    group = np.array([group for group, _ in views], np.int64)
    of_runs = offsets([len(runs) for _, runs in views]), *table([run for _, runs in views for run in runs], 3)
    for name in both(name_parts):
        short, out = np.full(1, -99), np.full(300, -99)
        count = name(group, *of_runs, first, out)
        assert set(out[:count].tolist()) == wanted
        assert name(group, *of_runs, first, short) == count


def strands(sweep: Any, runs: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """What both forms of a sweep make of runs with owners."""
    found = []
    for lay in both(sweep):
        columns = table(runs, 4)
        outputs = [np.full(sum(1 if step == 1 else count for _, _, count, step in runs), -99) for _ in range(3)]
        count = lay(*columns, *outputs)
        found.append(rows_of(*(column[:count] for column in outputs)))
    assert found[0] == found[1]
    return found[0]


@examples(200)
@given(OWNED | columns_of_matrices())
def test_strands_in_order_hold_the_elements_of_the_runs_in_order(runs: list[tuple[int, ...]]) -> None:
    expected = joined([(owner, element, 1) for owner, *run in runs for element in elements(*run)])
    assert strands(lay_strands, runs) == expected
    found = intervals.ordered_by_pieces(*table(runs, 4))
    assert rows_of(found.owner, found.begin, found.length) == expected


@examples(400)
@given(OWNED | columns_of_matrices())
def test_touched_strands_hold_each_owners_elements(runs: list[tuple[int, ...]]) -> None:
    swept = strands(touch_strands, runs)
    for owner in range(3):
        assert {element for mine, begin, length in swept if mine == owner for element in range(begin, begin + length)} == {
            element for mine, *run in runs if mine == owner for element in elements(*run)
        }
    assert swept == joined(swept)
    found = intervals.touched_by_pieces(*table(runs, 4))
    assert swept == rows_of(found.owner, found.begin, found.length)


@pytest.mark.parametrize("rows", [900, 20_000])
def test_long_lists_of_runs_are_swept_as_numpy_has_them(rows: int) -> None:
    random = np.random.default_rng(rows)
    owner = np.sort(random.integers(0, rows // 3, rows))
    start, count, step = random.integers(0, 10 * rows, rows), random.integers(0, 4, rows), random.integers(-2, 3, rows)
    step[count == 1] = 1
    view = RunList(start, count, step)
    begin = random.integers(0, view.elements(), rows)
    end = np.minimum(begin + random.integers(0, 9, rows), view.elements())
    ids = np.repeat(start[: rows // 3], 3) + np.tile([0, 1, 2], rows // 3) * np.repeat(random.integers(0, 4, rows // 3), 3)
    bounds = np.arange(0, 10 * rows + 10, 7)
    plain = [
        view.cut_by_search(begin, end), intervals.ordered_by_pieces(owner, start, count, step),
        intervals.touched_by_pieces(owner, start, count, step), stepped(start, count, step), compress(ids, bounds),
    ]  # fmt: skip
    with swept_at_once(cut_runs, lay_strands, touch_strands, step_through, find_runs, count_crossing, cut_crossing):
        swept = [
            view.cut(begin, end), intervals.ordered_strands(owner, start, count, step),
            intervals.touched_strands(owner, start, count, step), stepped(start, count, step), compress(ids, bounds),
        ]  # fmt: skip
    for one, other in zip(map(columns_of, plain), map(columns_of, swept), strict=True):
        assert [column.tolist() for column in one] == [column.tolist() for column in other]
        assert [column.dtype for column in one] == [column.dtype for column in other]


def columns_of(made: Any) -> list[Any]:
    """All arrays of what is made."""
    match made:
        case np.ndarray():
            return [made]
        case RunList():
            return [made.start, made.count, made.step, made.first]
        case intervals.Strands():
            return [made.owner, made.begin, made.length]
    return [column for part in made for column in columns_of(part)]
