"""Views put into the order of memory, and broadcasts undone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from pypoplar.arrays.boxes import common_extents
from pypoplar.arrays.dtypes import Int64s, Integers
from pypoplar.arrays.element_runs import RunList, compress, end_to_end, join, joins_as_elements, touching, touching_as_one
from pypoplar.arrays.groups import is_sorted, offsets, sorting_order
from pypoplar.arrays.intervals import Interval, bounds_of
from pypoplar.arrays.strides import collapse
from pypoplar.braces import INTERVALS, ordered
from pypoplar.errors import PoplarIndexError, TensorShapeError
from pypoplar.graph.tensor import Tensor

FEWEST_IN_TABLE = 256  # pieces: fewer are as quickly sorted
SPARSE = 2  # elements that a table has for each that there is, at most
ORDERED_AT_ONCE = 1 << 20  # elements: what their ids take while they are sorted is some 100 MB


def sorted_contiguous_regions(tensor: Tensor, intervals: Iterable[Any], remove_aliased: bool) -> list[list[Interval]]:
    """See `Graph.getSortedContiguousRegions`."""
    ordered(intervals, "intervals", INTERVALS)
    pairs = np.array([bounds_of(interval, "an interval") for interval in intervals], np.int64).reshape(-1, 2)
    begin, end = pairs[:, 0], pairs[:, 1]
    if ((begin < 0) | (end < begin) | (end > tensor.numElements())).any():
        raise PoplarIndexError(f"intervals are out of range for {tensor._described()} of {tensor.numElements()} elements")
    pieces, owner = tensor._run_list().unit_steps().cut(begin, end)
    place = pieces.first[:-1] + (begin - offsets(end - begin)[:-1])[owner]  # where each piece begins in the flattened tensor
    order = np.argsort(pieces.start, kind="stable")
    start, count, place = pieces.start[order], pieces.count[order], place[order]
    if remove_aliased:
        start, count, place = _without_seen(start, count, place)
    bounds = tensor._bounds()
    variable = np.searchsorted(bounds, start, side="right")
    regions: list[list[Interval]] = []
    previous = (-1, -1)
    for one_start, one_count, one_place, number in zip(
        start.tolist(), count.tolist(), place.tolist(), variable.tolist(), strict=True
    ):
        interval = Interval(one_place, one_place + one_count)
        if previous == (one_start, number):
            last = regions[-1][-1]
            if last.end() == one_place:
                regions[-1][-1] = Interval(last.begin(), interval.end())
            else:
                regions[-1].append(interval)
        else:
            regions.append([interval])
        previous = (one_start + one_count, number)
    return regions


def _without_seen(start: Int64s, count: Int64s, place: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Pieces sorted by start, cut so that no element occurs twice."""
    end = start + count
    covered = np.maximum.accumulate(np.concatenate((start[:1], end[:-1])))
    skipped = np.clip(covered - start, 0, count)
    skipped[:1] = 0
    kept = skipped < count
    return (start + skipped)[kept], (count - skipped)[kept], (place + skipped)[kept]


def simplified(reference: Tensor, others: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """See `Graph.reorderToSimplify`."""
    for other in others:
        if other.numElements() != reference.numElements():
            raise TensorShapeError(f"{other._described()} and {reference._described()} have different numbers of elements")
    if (boxes := _boxes_in_order(reference, others)) is not None:
        return boxes
    runs = reference._run_list()
    if (stretches := _stretches(reference, runs, [view._run_list() for view in others])) is not None:
        views = zip((reference, *others), stretches, strict=True)
        first, *rest = (view._scattered(stretch, (view.numElements(),)) for view, stretch in views)
        return first, rest
    if runs.elements() > ORDERED_AT_ONCE:
        return _in_order_by_parts(reference, others)
    if (places := _order_of_elements(runs)) is not None:
        if is_sorted(places):
            return reference.flatten(), [view.flatten() for view in others]
        return elements_in_order(reference, places), [elements_in_order(view, places) for view in others]
    runs = runs.unit_steps()
    order = runs.memory_order()
    if _overlap(runs.start[order], runs.count[order]):
        runs = touching_as_one(runs, reference._bounds())
        order = runs.memory_order()
    if (order[1:] > order[:-1]).all():
        return reference.flatten(), [view.flatten() for view in others]
    return _in_order(reference, runs, order), [_in_order(view, runs, order) for view in others]


def _overlap(start: Int64s, count: Int64s) -> bool:
    """Whether pieces, sorted by start, share elements.

    Their order then depends on how they are cut, so that a view has to be cut into its longest pieces, however it is kept.
    """
    return bool((np.maximum.accumulate(start + count)[:-1] > start[1:]).any())


def copied_in_order(source: Tensor, destination: Tensor) -> tuple[Tensor, Tensor]:
    """Both ends of a copy in the order in which the destination lies in memory, where both are boxes; else as they are.

    What lies together at both ends is one piece then, whatever the order of the dimensions.
    """
    run = destination.single_run()
    if run is not None and run[2] > 0:
        return source, destination
    boxes = _boxes_in_order(destination, [source])
    return (source, destination) if boxes is None else (boxes[1][0], boxes[0])


def _boxes_in_order(reference: Tensor, others: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]] | None:
    """The same by the axes of a box, if the other tensors can be seen as its axes, too."""
    box = reference._whole_box()
    if box is None or not box.surely_distinct() or min(box.steps, default=1) < 0:
        return None
    _, steps = collapse(box.extents, box.steps)
    if steps == tuple(sorted(steps, reverse=True)):
        return reference.flatten(), [view.flatten() for view in others]
    boxes = [own for own in (box, *(view._whole_box() for view in others)) if own is not None]
    extents = common_extents(boxes)
    if len(boxes) <= len(others) or extents is None:
        return None
    shaped = [own.reshaped(extents) for own in boxes]
    axes = next(own.steps for own in shaped if own is not None)
    order = tuple(sorted(range(len(axes)), key=lambda axis: -axes[axis]))
    turned = [own.permuted(order).reshaped((prod(extents),)) for own in shaped if own is not None]
    first, *rest = (view._boxed(own) for view, own in zip((reference, *others), turned, strict=True) if own is not None)
    return first, rest


def _in_order(tensor: Tensor, reference: RunList, order: Int64s) -> Tensor:
    """What a tensor has where a reference has its runs, these in an order."""
    runs = tensor._run_list()
    if np.array_equal(runs.first, reference.first):
        pieces = RunList(runs.start[order], runs.count[order], runs.step[order])
    else:
        pieces, _ = runs.cut(reference.first[:-1][order], reference.first[1:][order])
    return tensor._scattered(join([pieces], tensor._bounds()), (tensor.numElements(),))


def _order_of_elements(runs: RunList) -> Integers | None:
    """The places of elements in the order of memory, by a table of that memory; None where sorting pieces is less work.

    That is where they are few or long, lie far apart, or where an element occurs twice.
    """
    pieces = int(np.where(runs.step == 1, 1, runs.count).sum()) if len(runs) else 0
    if pieces < FEWEST_IN_TABLE or not joins_as_elements(pieces, runs.elements()):
        return None
    low, high = runs.bounds()
    if high - low > SPARSE * runs.elements():
        return None
    places: Integers = np.full(high - low, -1, np.int32 if runs.elements() <= np.iinfo(np.int32).max else np.int64)
    places[runs.ids() - low] = np.arange(runs.elements())
    held = places >= 0
    if int(np.count_nonzero(held)) < runs.elements():
        return None
    return places if len(places) == runs.elements() else places[held]


def elements_in_order(tensor: Tensor, places: Integers) -> Tensor:
    """What a tensor has at these places."""
    return tensor._scattered(compress(tensor._run_list().ids()[places], tensor._bounds()), (len(places),))


def _stretches(tensor: Tensor, runs: RunList, others: Sequence[RunList]) -> list[RunList] | None:
    """Views that all go through a stretch of a variable in one order, in the order of memory instead; None if one does not."""
    if len(runs) < 2 or not all(view.is_like(runs) for view in others) or not runs.is_stretch():
        return None
    ends = [view.bounds() for view in (runs, *others)]
    variables = np.searchsorted(tensor._bounds(), [(low, high - 1) for low, high in ends], side="right")
    if (variables[:, 0] != variables[:, 1]).any():
        return None
    return [RunList(np.array([low]), np.array([high - low]), np.ones(1, np.int64)) for low, high in ends]


def _in_order_by_parts(reference: Tensor, others: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The same for many elements, a part of memory at a time: what sorting takes besides is much more than the views.

    Such a part is a variable, or a parameter of many that are one variable, with nothing of others between its elements.
    """
    runs, bounds = reference._run_list(), reference._bounds()
    variable = np.searchsorted(bounds, runs.start, side="right")
    order = sorting_order(variable)
    order = np.arange(len(variable)) if order is None else order
    before = offsets(runs.count[order])[:-1]
    opens = _parts_of_memory(runs, order)
    large = np.diff(np.append(before[opens], runs.elements())) >= ORDERED_AT_ONCE // 8  # by itself, as others like it are
    opens = opens[(np.diff(before[opens] // ORDERED_AT_ONCE, prepend=-1) > 0) | large | np.append(True, large[:-1])]
    views = [view._run_list() for view in (reference, *others)]
    parts: list[list[RunList]] = []
    lowest: list[list[int]] = []
    known: dict[bytes, int] = {}
    for part in np.split(order, opens[1:]):
        whole = RunList(runs.start[part], runs.count[part], runs.step[part])
        begin = runs.first[part]
        seen = [whole, *(view.cut(begin, begin + whole.count)[0] for view in views[1:])]
        lowest.append([view.bounds()[0] for view in seen])
        like = known.setdefault(_digest(seen, lowest[-1], bounds), len(parts))
        if like == len(parts):
            parts.append(_part_in_order(reference, seen))
        else:  # equal layers have equal weights, which are put in order once
            parts.append([_moved(*view) for view in zip(parts[like], lowest[like], lowest[-1], strict=True)])
    first, *rest = (
        view._scattered(touching_as_one(end_to_end(list(pieces)), bounds), (view.numElements(),))
        for view, pieces in zip((reference, *others), zip(*parts, strict=True), strict=True)
    )
    return first, rest


def _parts_of_memory(runs: RunList, order: Int64s) -> Int64s:
    """The first run of each part: of runs in an order, all before it lie before all others."""
    first, last = runs.start[order], (runs.start + (runs.count - 1) * runs.step)[order]
    before = np.maximum.accumulate(np.maximum(first, last))[:-1]
    behind = np.minimum.accumulate(np.minimum(first, last)[::-1])[::-1][1:]
    return np.flatnonzero(np.append(True, before < behind))


def _part_in_order(reference: Tensor, seen: list[RunList]) -> list[RunList]:
    """A part of the memory of a reference, first, and what others have there, in its order."""
    bounds, whole = reference._bounds(), seen[0]
    if (stretches := _stretches(reference, whole, seen[1:])) is not None:
        return stretches
    if (places := _order_of_elements(whole)) is not None:
        return [compress(view.ids()[places], bounds) for view in seen]
    low, high = _places_by_memory(whole, whole.first[:-1], bounds)
    return [join([view.cut(low, high)[0]], bounds) for view in seen]


def _digest(views: list[RunList], lowest: list[int], bounds: Int64s) -> bytes:
    """Of views, and of where variables begin within the memory that they span, as if the lowest element of each were the first."""
    digest = hashlib.blake2b(digest_size=32)
    for view, low in zip(views, lowest, strict=True):
        within = bounds[np.searchsorted(bounds, low, side="right") : np.searchsorted(bounds, view.bounds()[1])]
        digest.update(np.array([len(view), len(within)]).tobytes())
        for column in (view.start - low, view.count, view.step, within - low):
            digest.update(column.tobytes())
    return digest.digest()


def _moved(view: RunList, lowest: int, other: int) -> RunList:
    return RunList(view.start + (other - lowest), view.count, view.step)


def _places_by_memory(runs: RunList, begin: Int64s, bounds: Int64s) -> tuple[Int64s, Int64s]:
    """Where the pieces of runs begin and end in a tensor, in the order of memory; each run begins at `begin` there."""
    single = runs.unit_steps()
    owner = np.searchsorted(runs.first, single.first[:-1], side="right") - 1
    place = (begin - runs.first[:-1])[owner] + single.first[:-1]
    order = single.memory_order()
    if not _overlap(single.start[order], single.count[order]):
        return place[order], (place + single.count)[order]
    opens = np.flatnonzero(np.concatenate(([True], ~touching(single, bounds) | (place[1:] != (place + single.count)[:-1]))))
    place, start, count = place[opens], single.start[opens], np.add.reduceat(single.count, opens)
    order = np.argsort(start, kind="stable")
    return place[order], (place + count)[order]


def unbroadcast(tensor: Tensor) -> Tensor | None:
    """The tensor with each broadcast dimension cut to its first period, or None if no dimension repeats."""
    result = tensor
    for dimension in range(tensor.rank()):
        extent = result._shape[dimension]
        if extent > 1 and result._strides is not None:
            if result._strides[dimension] == 0:
                result = result.slice(0, 1, dimension)
            continue
        result = result.slice(0, _period(np.moveaxis(result._ids(), dimension, 0)), dimension)
    return None if result._shape == tensor._shape else result


def _period(ids: Int64s) -> int:
    """The smallest number of rows that repeated gives all rows."""
    rows = len(ids)
    for period in range(1, rows // 2 + 1):
        if rows % period == 0 and (ids[period:] == ids[:-period]).all():
            return period
    return rows
