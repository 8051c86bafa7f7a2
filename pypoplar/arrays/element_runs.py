"""Views that are not strided: runs of element ids in flattened order, as NumPy arrays (start, count, step).

Run k holds ``start[k] + i * step[k]`` for ``i < count[k]``. A run of one element has step 1; a run never leaves its variable.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import group_positions, offsets, opens, ragged, stepped
from pypoplar.arrays.interval_algebra import touched_strands
from pypoplar.arrays.run_sweeps import count_crossing, cut_crossing, cut_runs, find_runs
from pypoplar.arrays.swept import filled

FEWEST_IN_ROW = 5  # elements of a row: what the rows beside it do not take is a run of three at least
SHORT_PART = 8  # rows: where parts are shorter, elements are looked at one by one
SHORT_ROW = 8  # elements, likewise


class RunList:
    """Runs with the position of each one's first element in the flattened view; ``first[-1]`` is the number of elements."""

    __slots__ = ("_order", "_single", "_stretch", "aliases", "count", "first", "start", "step")

    def __init__(self, start: Int64s, count: Int64s, step: Int64s) -> None:
        self.start = start
        self.count = count
        self.step = step
        self.first = offsets(count)
        self._single: RunList | None = None
        self._order: Int64s | None = None
        self._stretch: bool | None = None
        self.aliases: bool | None = None  # whether an element occurs twice, once that is known

    def elements(self) -> int:
        """How many elements all runs have together."""
        return int(self.first[-1])

    def __len__(self) -> int:
        return len(self.start)

    def ids(self) -> Int64s:
        """All element ids in flattened order."""
        if len(self.start) == self.elements():
            return self.start
        return stepped(self.start, self.count, self.step)

    def bounds(self) -> tuple[int, int]:
        """The half-open range of element ids from the smallest to the largest; there is at least one run."""
        last = self.start + (self.count - 1) * self.step
        return int(np.minimum(self.start, last).min()), int(np.maximum(self.start, last).max()) + 1

    def cut(self, begin: Int64s, end: Int64s) -> tuple[RunList, Int64s]:
        """The pieces of the flattened ranges ``[begin, end)``, range by range, and for each piece the number of its range."""
        code = cut_runs.code(len(begin))
        if code is None:
            return self.cut_by_search(begin, end)
        *pieces, owner = filled(code, (self.first, self.start, self.step, begin, end), len(begin), 4)
        return RunList(*pieces), owner

    def cut_by_search(self, begin: Int64s, end: Int64s) -> tuple[RunList, Int64s]:
        """The same, of few ranges, or where there is no machine code."""
        low = np.searchsorted(self.first, begin, side="right") - 1
        high = np.searchsorted(self.first, end, side="left")
        pieces = np.where(end > begin, high - low, 0)
        owner = np.repeat(np.arange(len(begin)), pieces)
        run = np.repeat(low, pieces) + group_positions(pieces)
        piece_begin = np.maximum(self.first[run], begin[owner])
        piece_end = np.minimum(self.first[run + 1], end[owner])
        count = piece_end - piece_begin
        start = self.start[run] + (piece_begin - self.first[run]) * self.step[run]
        return RunList(start, count, np.where(count > 1, self.step[run], 1)), owner

    def part(self, begin: int, end: int) -> RunList:
        """The flattened range ``[begin, end)``."""
        low = int(self.first.searchsorted(begin, side="right")) - 1
        high = int(self.first.searchsorted(end, side="left"))
        if end <= begin:
            return RunList(self.start[:0], self.count[:0], self.step[:0])
        start, count, step = self.start[low:high].copy(), self.count[low:high].copy(), self.step[low:high].copy()
        skipped = begin - int(self.first[low])
        start[0] += skipped * step[0]
        count[0] -= skipped
        count[-1] -= int(self.first[high]) - end
        step[0] = step[0] if count[0] > 1 else 1
        step[-1] = step[-1] if count[-1] > 1 else 1
        return RunList(start, count, step)

    def moved(self, by: int) -> RunList:
        """The same view of elements that lie so much further on."""
        runs = RunList.__new__(RunList)
        runs.start, runs.count, runs.step, runs.first = self.start + by, self.count, self.step, self.first
        runs._order, runs._stretch, runs.aliases = self._order, self._stretch, self.aliases
        runs._single = None if self._single is None else self._single.moved(by)
        return runs

    def is_like(self, other: RunList) -> bool:
        """Whether this is the view of elements that lie elsewhere, all as far on."""
        if len(self) != len(other) or not np.array_equal(self.first, other.first) or not np.array_equal(self.step, other.step):
            return False
        further = self.start - other.start
        return bool((further == further[:1]).all())

    def surely_distinct(self) -> bool:
        """Whether stretches of memory show that no element is there twice: matrices are some, whichever way they are read."""
        last = self.start + (self.count - 1) * self.step
        order = np.argsort(np.minimum(self.start, last), kind="stable")
        columns = (column[order] for column in (self.start, self.count, self.step))
        strands = touched_strands(np.zeros(len(order), np.int64), *columns)
        if int(strands.length.sum()) < self.elements():
            return False
        order = np.argsort(strands.begin, kind="stable")
        begin, end = strands.begin[order], (strands.begin + strands.length)[order]
        return bool((begin[1:] >= end[:-1]).all())

    def is_stretch(self) -> bool:
        """Whether the elements are a stretch of memory without gaps, in which each of them is once; it is found out once."""
        if self._stretch is None:
            low, high = self.bounds() if len(self) else (0, 0)
            self._stretch = high - low == self.elements()
            if self._stretch and len(self) > 1 and not self.surely_distinct():
                there = np.zeros(high - low, bool)
                there[self.ids() - low] = True
                self._stretch = bool(there.all())
        return self._stretch

    def memory_order(self) -> Int64s:
        """The order of the runs by where they begin; it is found once."""
        if self._order is None:
            self._order = np.argsort(self.start, kind="stable")
        return self._order

    def parts(self, size: int) -> Int64s:
        """Where the parts of so many elements begin, of which each run of step 1 has a whole number."""
        several = self.count // size
        return np.repeat(self.start, several) + group_positions(several) * size

    def unit_steps(self) -> RunList:
        """The same view in runs of step 1 only; they are made once."""
        if (self.step == 1).all():
            return self
        if self._single is None:
            self._single = self._unit_steps()
        return self._single

    def _unit_steps(self) -> RunList:
        times = np.where(self.step == 1, 1, self.count)
        owner = np.repeat(np.arange(len(self.start)), times)
        start = self.start[owner] + group_positions(times) * self.step[owner]
        return RunList(start, np.where(self.step == 1, self.count, 1)[owner], np.ones(len(owner), np.int64))


def compress(ids: Int64s, variable_first: Int64s) -> RunList:
    """The runs of a flat array of element ids. `variable_first` has the first element id of each variable."""
    ids = np.ascontiguousarray(ids, dtype=np.int64).reshape(-1)
    if len(ids) == 0:
        return RunList(ids, ids, ids)
    start, count, step = _greedy(ids)
    if _crosses(start, count, step, variable_first):
        start, count, step = _within_variables(start, count, step, variable_first)
    return RunList(start, count, np.where(count > 1, step, 1))


def _crosses(start: Int64s, count: Int64s, step: Int64s, variable_first: Int64s) -> bool:
    """Whether a run is of more than one variable."""
    code = count_crossing.code(len(start))
    if code is not None:
        return code(start, count, step, variable_first) > 0
    return bool(_crossing(start, count, step, variable_first).any())


def _crossing(start: Int64s, count: Int64s, step: Int64s, variable_first: Int64s) -> Bools:
    """[runs]: whether a run is of more than one variable."""
    last = start + (count - 1) * step
    first_variable, last_variable = (np.searchsorted(variable_first, ids, side="right") for ids in (start, last))
    crossing: Bools = first_variable != last_variable
    return crossing


def _within_variables(start: Int64s, count: Int64s, step: Int64s, variable_first: Int64s) -> tuple[Int64s, ...]:
    """The runs, those of several variables cut where one begins."""
    code = cut_crossing.code(len(start))
    if code is not None:
        return filled(code, (start, count, step, variable_first), len(start) + len(start) // 8 + 2, 3)
    crossing = _crossing(start, count, step, variable_first)
    cut, whole = np.flatnonzero(crossing), np.flatnonzero(~crossing)
    ids, run = stepped(start[cut], count[cut], step[cut]), np.repeat(cut, count[cut])
    first = np.flatnonzero(opens(run, np.searchsorted(variable_first, ids, side="right")))
    lengths = np.diff(np.concatenate((first, [len(ids)])))
    order = np.argsort(np.concatenate((whole, run[first])), kind="stable")
    columns = (start[whole], ids[first]), (count[whole], lengths), (step[whole], step[run[first]])
    return tuple(np.concatenate(column)[order] for column in columns)


def _greedy(ids: Int64s) -> tuple[Int64s, ...]:
    """Runs of step 1 first, as memory lies; then, among the elements left alone, runs of three and more at an equal step."""
    code = find_runs.code(len(ids))
    return greedy_by_differences(ids) if code is None else filled(code, (ids,), len(ids), 3)


def greedy_by_differences(ids: Int64s) -> tuple[Int64s, ...]:
    """The same, of few elements, or where there is no machine code."""
    difference = np.diff(ids)
    first = np.flatnonzero(np.concatenate(([True], difference != 1)))
    count = np.diff(np.concatenate((first, [len(ids)])))
    start = ids[first]
    step = np.ones(len(first), np.int64)
    alone = count == 1
    if len(first) < 3 or not alone.any():
        return start, count, step
    # `gap[k]` joins runs k and k + 1, if both are single elements; equal neighbouring gaps form a group.
    gap = np.diff(start)
    joinable = alone[1:] & alone[:-1]
    new_group = np.concatenate(([True], (gap[1:] != gap[:-1]) | ~joinable[1:] | ~joinable[:-1]))
    group_first = np.flatnonzero(new_group)
    group_length = np.diff(np.concatenate((group_first, [len(gap)])))
    claims = joinable[group_first] & (group_length >= 2)
    # Neighbouring groups share an element; the earlier one keeps it.
    joined = np.repeat(claims, group_length)
    taken = np.concatenate(([False], claims[:-1] & claims[1:]))
    joined[group_first[taken]] = False
    keep = np.concatenate(([True], ~joined))
    kept = np.flatnonzero(keep)
    merged = np.diff(np.concatenate((kept, [len(start)])))
    step = np.where(merged > 1, gap[np.minimum(kept, len(gap) - 1)], 1)
    return start[kept], np.where(merged > 1, merged, count[kept]), step


def compress_rows(rows: RunList, variable_first: Int64s) -> RunList:
    """The runs that `compress` finds among the elements of rows, each of which is of one variable.

    Long rows are those runs, but where the last element of one and the first of the next lie in a step of theirs.
    """
    single = rows.step == 1
    if single.all():
        return join([rows], variable_first)
    if (rows.count < np.where(single, 2, FEWEST_IN_ROW)).any():
        return compress(rows.ids(), variable_first)
    meets = _meeting(rows)
    beside = np.append(meets, False) | np.append(False, meets)
    parts = np.flatnonzero(np.diff(beside, prepend=not beside[0]))  # rows that meet no others, and those that do, in turn
    if SHORT_PART * len(parts) > len(rows):
        return compress(rows.ids(), variable_first)
    lists = []
    for begin, end in pairwise([*parts.tolist(), len(rows)]):
        part = RunList(rows.start[begin:end], rows.count[begin:end], rows.step[begin:end])
        lists.append(compress(part.ids(), variable_first) if beside[begin] else part)
    return touching_as_one(end_to_end(lists), variable_first)


def _meeting(rows: RunList) -> Bools:
    """Whether an element of each row but the last and one of the next may be in one run, which is none of step 1 as both are."""
    start, count, step = rows.start, rows.count, rows.step
    gap, single = start[1:] - (start + (count - 1) * step)[:-1], step == 1
    meets: Bools = (~single[:-1] & (gap == step[:-1])) | (~single[1:] & (gap == step[1:]))
    meets |= ~(single[1:] & single[:-1]) & (gap == 1)
    return meets


def permuted_rows(runs: RunList, shape: tuple[int, ...], order: tuple[int, ...], variable_first: Int64s) -> RunList | None:
    """A view of a shape with its dimensions in another order, as `compress` finds it, by what stays together: long rows.

    None where rows or pieces of them are so short that elements are looked at one by one, and unless all runs are of step 1 and of
    two elements at least.
    """
    outer = len(order)
    while outer and order[outer - 1] == outer - 1:
        outer -= 1
    moving = [dimension for dimension in order if shape[dimension] != 1]
    outer = 0 if moving == sorted(moving) else outer
    size = prod(shape[outer:])
    if size < SHORT_ROW or runs.elements() < SHORT_ROW * len(runs) or not (runs.step == 1).all():
        return None
    if outer:
        begin = np.arange(runs.elements() // size).reshape(shape[:outer]).transpose(order[:outer]).reshape(-1) * size
        runs, _ = runs.cut(begin, begin + size)
    found = join([runs], variable_first)
    return found if ((found.count > 1) & (found.step == 1)).all() else None


def end_to_end(lists: list[RunList]) -> RunList:
    """The views one after another, run by run."""
    return RunList(*(np.concatenate([getattr(runs, name) for runs in lists]) for name in ("start", "count", "step")))


def join(lists: list[RunList], variable_first: Int64s) -> RunList:
    """The views one after another, with touching runs made one."""
    whole = end_to_end(lists)
    if len(whole) < 2:
        return whole
    if joins_as_elements(len(whole), whole.elements()):
        return compress(whole.ids(), variable_first)
    return touching_as_one(whole, variable_first)


def joins_as_elements(runs: int, elements: int) -> bool:
    """Whether so many runs are so short that they are joined element by element."""
    return elements <= 4 * runs


def touching(runs: RunList, variable_first: Int64s) -> Bools:
    """Whether each run but the first follows the one before it in memory and in one variable, both with step 1."""
    start, count, step = runs.start, runs.count, runs.step
    follows: Bools = (step[1:] == 1) & (step[:-1] == 1) & (start[1:] == start[:-1] + count[:-1])
    place = np.minimum(np.searchsorted(variable_first, start[1:]), len(variable_first) - 1)
    follows &= variable_first[place] != start[1:]
    return follows


def touching_as_one(runs: RunList, variable_first: Int64s) -> RunList:
    """The same view; runs of step 1 that follow each other in memory and in one variable are one."""
    first = np.flatnonzero(np.concatenate(([True], ~touching(runs, variable_first))))
    return RunList(runs.start[first], np.add.reduceat(runs.count, first), runs.step[first])


def interleaved(views: list[RunList], rows: int, variable_first: Int64s, times: int = 1) -> RunList:
    """Views of as many rows each, whose rows follow each other in turn, those of one number `times` times before the next."""
    least = max(sum(map(len, views)), rows * sum(runs.elements() > 0 for runs in views))
    elements = sum(runs.elements() for runs in views)
    if joins_as_elements(least, elements):
        ids = np.concatenate([runs.ids().reshape(rows, -1) for runs in views], axis=1)
        return compress(ids if times == 1 else np.repeat(ids, times, axis=0), variable_first)
    cuts, owners = [], []
    for runs in views:
        begin = np.arange(rows + 1) * (runs.elements() // rows)
        pieces, owner = runs.cut(begin[:-1], begin[1:])
        cuts.append(pieces)
        owners.append(owner)
    row_of = np.concatenate(owners)
    order = np.argsort(row_of, kind="stable")
    if times > 1:
        first = np.searchsorted(row_of[order], np.arange(rows + 1))
        row = np.repeat(np.arange(rows), times)
        order = order[ragged(first[row], first[row + 1] - first[row])]
    start, count, step = (np.concatenate([getattr(runs, name) for runs in cuts])[order] for name in ("start", "count", "step"))
    return join([RunList(start, count, step)], variable_first)
