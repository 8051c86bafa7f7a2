"""Questions about runs: are they one strided view, does an element occur twice, do two views share elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from pypoplar.arrays import strides
from pypoplar.arrays.boxes import Box
from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.element_runs import RunList
from pypoplar.arrays.groups import distinct, group_positions
from pypoplar.arrays.intervals import Interval, VariableInterval

Shape = tuple[int, ...]

_SPARSE = 8  # elements between the first and the last for each that there is: sorting takes less memory beyond


def strided_form(runs: RunList, shape: Shape, variable_first: Int64s) -> tuple[int, Shape] | None:
    """Offset and strides of the runs under `shape`, if they are one run or equal runs at equal distances in one variable."""
    if len(runs) == 0:
        return 0, strides.row_major(shape)
    if len(runs) == 1:
        return int(runs.start[0]), strides.row_major(shape, int(runs.step[0]))
    distance = np.diff(runs.start)
    alike = (distance == distance[0]).all() and (runs.count == runs.count[0]).all() and (runs.step == runs.step[0]).all()
    if not alike or not _in_one_variable(runs.bounds(), variable_first):
        return None
    steps = strides.reshape((len(runs), int(runs.count[0])), (int(distance[0]), int(runs.step[0])), shape)
    return None if steps is None else (int(runs.start[0]), steps)


def strided_form_of_ids(ids: Int64s, variable_first: Int64s) -> tuple[int, Shape] | None:
    """Offset and strides of an array of element ids, if they are strided in the array's own shape and of one variable."""
    if prod(ids.shape) == 0:
        return 0, strides.row_major(ids.shape)
    origin = (0,) * ids.ndim
    offset = int(ids[origin])
    beside = [(*origin[:axis], 1, *origin[axis + 1 :]) for axis in range(ids.ndim)]
    steps = tuple(int(ids[beside[axis]]) - offset if ids.shape[axis] > 1 else 1 for axis in range(ids.ndim))
    if not (ids == strides.element_ids(offset, ids.shape, steps)).all():
        return None
    if not _in_one_variable(strides.bounds(offset, ids.shape, steps), variable_first):
        return None
    return offset, steps


def box_of(runs: RunList, variable_first: Int64s) -> Box | None:
    """The runs as a box of one dimension, if they are alike and begin at regular distances in one variable."""
    if len(runs) == 0 or not ((runs.count == runs.count[0]).all() and (runs.step == runs.step[0]).all()):
        return None
    box = Box.of_starts(runs.start, int(runs.count[0]), int(runs.step[0]))
    return box if box is not None and _in_one_variable(box.bounds(), variable_first) else None


def box_of_ids(ids: Int64s, variable_first: Int64s) -> Box | None:
    """The same of element ids, of which there are some."""
    box = Box.of_starts(ids.reshape(-1), 1, 1)
    return box if box is not None and _in_one_variable(box.bounds(), variable_first) else None


def strided_form_of_long_runs(runs: RunList, shape: Shape, variable_first: Int64s) -> tuple[int, Shape] | None:
    """What `strided_form_of_ids` finds, of runs of step 1 that `compress` finds and that all have two elements at least."""
    common, row, outer = int(np.gcd.reduce(runs.count)), 1, len(shape)
    while outer and common % (row * shape[outer - 1]) == 0:
        outer -= 1
        row *= shape[outer]
    if row == 1:  # the last dimension is no row of memory, and within rows that have a step runs are of one element
        return None
    form = strided_form_of_ids(runs.parts(row).reshape(shape[:outer]), variable_first)
    if form is None:
        return None
    inner = zip(shape[outer:], strides.row_major(shape[outer:]), strict=True)
    steps = (*form[1], *(step if size > 1 else 1 for size, step in inner))
    return (form[0], steps) if _in_one_variable(strides.bounds(form[0], shape, steps), variable_first) else None


def box_of_long_runs(runs: RunList, variable_first: Int64s) -> Box | None:
    """What `box_of_ids` finds of such runs."""
    size = int(runs.count[0])
    if (runs.count % size).any():
        return None
    box = Box.of_starts(runs.parts(size), size, 1)
    return box if box is not None and _in_one_variable(box.bounds(), variable_first) else None


def _in_one_variable(bounds: tuple[int, int], variable_first: Int64s) -> bool:
    low, high = np.searchsorted(variable_first, [bounds[0], bounds[1] - 1], side="right")
    return bool(low == high)


def contiguous(runs: RunList) -> list[Interval]:
    """The runs, all of step 1, as intervals of the flattened view."""
    return [Interval(begin, end) for begin, end in zip(runs.first[:-1].tolist(), runs.first[1:].tolist(), strict=True)]


def of_variables(runs: RunList, variable_first: Int64s, names: Sequence[str]) -> list[VariableInterval]:
    """The runs, all of step 1, as intervals of variables."""
    numbers = np.searchsorted(variable_first, runs.start, side="right") - 1
    begins = runs.start - variable_first[numbers]
    return [
        VariableInterval(names[number], Interval(begin, end))
        for number, begin, end in zip(numbers.tolist(), begins.tolist(), (begins + runs.count).tolist(), strict=True)
    ]


def has_duplicates(runs: RunList) -> bool:
    """Whether an element occurs twice; it is found out once."""
    if runs.aliases is None:
        runs.aliases = _has_duplicates(runs)
    return runs.aliases


def _has_duplicates(runs: RunList) -> bool:
    """The same. Runs are compared as ranges first, element by element only where ranges overlap."""
    if ((runs.step == 0) & (runs.count > 1)).any():
        return True
    last = runs.start + (runs.count - 1) * runs.step
    low, high = np.minimum(runs.start, last), np.maximum(runs.start, last) + 1
    order = runs.memory_order() if (runs.step == 1).all() else np.argsort(low, kind="stable")
    if (low[order][1:] >= high[order][:-1]).all() or runs.surely_distinct():
        return False
    ids, first = runs.ids(), int(low.min())
    span = int(high.max()) - first
    if span > _SPARSE * len(ids):
        return len(distinct(ids)) < len(ids)
    seen = np.zeros(span, bool)  # marks are set much faster than ids are sorted
    seen[ids - first] = True
    return int(np.count_nonzero(seen)) < len(ids)


def misplaced(source: RunList, target: RunList) -> int | None:
    """An element that both views hold, but at different positions; None if there is none. `target` has no aliases.

    Two runs of step 1 that overlap agree if both have their elements at the same distance from the positions in their views.
    """
    source, target = source.unit_steps(), target.unit_steps()
    order = np.argsort(target.start, kind="stable")
    begin, end = target.start[order], (target.start + target.count)[order]
    low = np.searchsorted(end, source.start, side="right")
    pairs = np.maximum(np.searchsorted(begin, source.start + source.count, side="left") - low, 0)
    run = np.repeat(np.arange(len(source)), pairs)
    other = order[low[run] + group_positions(pairs)]
    bad = np.flatnonzero(source.first[run] - source.start[run] != target.first[other] - target.start[other])
    if not len(bad):
        return None
    return int(max(source.start[run[bad[0]]], target.start[other[bad[0]]]))
