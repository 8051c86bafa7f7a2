"""Splitting work, given as intervals of a flattened tensor, into even parts of whole grains."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, overload

from attrs import frozen

from pypoplar.arrays.intervals import Interval
from pypoplar.errors import PoplarTypeError
from pypoplar.poputil.arguments import whole_number
from pypoplar.poputil.interval_lists import as_intervals, bounds, entries, is_interval
from pypoplar.target import Target
from pypoplar.tracebacks import public


@overload
def splitRegions(
    regions: Iterable[Interval],
    grainSize: int,
    maxPartitions: int,
    minElementsPerPartition: int = 0,
    maxElementsPerPartition: int | None = None,
    maxElementsPerRegion: int | None = None,
) -> list[list[Interval]]: ...
@overload
def splitRegions(
    regions: Iterable[Sequence[Interval]],
    grainSize: int,
    maxPartitions: int,
    minElementsPerPartition: int = 0,
    maxElementsPerPartition: int | None = None,
    maxElementsPerRegion: int | None = None,
) -> list[list[list[Interval]]]: ...
@public
def splitRegions(
    regions: Iterable[Any],
    grainSize: int,
    maxPartitions: int,
    minElementsPerPartition: int = 0,
    maxElementsPerPartition: int | None = None,
    maxElementsPerRegion: int | None = None,
) -> list[Any]:
    """Split regions, taken one after another, into parts of nearly equal size.

    Of a list of sequences of intervals each part is a list of sequences, whole ones or pieces.

    Parameters
    ----------
    regions:
        Intervals or pairs of bounds, or sequences of them.
    grainSize:
        Every part but the last has a multiple of so many elements, 1 at least.
    maxPartitions:
        How many parts there are at most, 1 at least.
    minElementsPerPartition:
        There are fewer parts, so that each has that many.
    maxElementsPerPartition:
        A part has no more, in whole grains, also if there are more than `maxPartitions` then.
    maxElementsPerRegion:
        No interval of the result, or sequence, is longer.

    Returns
    -------
    list[list[Interval]] | list[list[list[Interval]]]
        The parts; none of no elements.

    Raises
    ------
    PoplibsError
        For numbers that are too small, and an interval that ends before it begins.

    Examples
    --------
    >>> from pypoplar import poputil
    >>> [[tuple(part) for part in parts] for parts in poputil.splitRegions([(0, 10), (20, 24)], 2, 3)]
    [[(0, 4)], [(4, 8)], [(8, 10), (20, 24)]]
    """
    listed = entries("splitRegions", regions)
    nested = bool(listed) and not is_interval(listed[0])
    sequences = [_Sequence.of(as_intervals(*bounds("splitRegions", several))) for several in (listed if nested else [listed])]
    whole_number("splitRegions", "grainSize", grainSize, 1)
    whole_number("splitRegions", "maxPartitions", maxPartitions, 1)
    whole_number("splitRegions", "minElementsPerPartition", minElementsPerPartition)
    for name, limit in (("maxElementsPerPartition", maxElementsPerPartition), ("maxElementsPerRegion", maxElementsPerRegion)):
        if limit is not None:
            whole_number("splitRegions", name, limit)
    items = [Interval(0, sequence.first[-1]) for sequence in sequences] if nested else sequences[0].regions
    total = sum(sequence.first[-1] for sequence in sequences)
    if total == 0:
        return []
    sizes = _bounds_of_parts(total, grainSize, maxPartitions, minElementsPerPartition, maxElementsPerPartition)
    longest = None if maxElementsPerRegion is None else max(grainSize, maxElementsPerRegion // grainSize * grainSize)
    if not nested:
        return [[region for _, region in part] for part in _cut(items, sizes, longest)]
    return [[sequences[number].part(*region) for number, region in part] for part in _cut(items, sizes, longest)]


def _bounds_of_parts(total: int, grain: int, most: int, least: int, largest: int | None) -> list[int]:
    """Where each part begins, and last where the last one ends."""
    grains = -(-total // grain)
    each = -(-grains // most)
    if largest is not None:
        each = min(each, max(1, largest // grain))
    if least:
        parts = max(1, grains // -(-least // grain))
        each = max(each, -(-grains // parts))
    parts = -(-grains // each)
    return [min(total, part * grains // parts * grain) for part in range(parts)] + [total]


@overload
def splitRegionsBetweenWorkers(
    target: Target,
    regions: Iterable[Interval],
    grainSize: int,
    minElementsPerPartition: int = 0,
    maxElementsPerPartition: int | None = None,
    maxElementsPerRegion: int | None = None,
) -> list[list[Interval]]: ...
@overload
def splitRegionsBetweenWorkers(
    target: Target,
    regions: Iterable[Sequence[Interval]],
    grainSize: int,
    minElementsPerPartition: int = 0,
    maxElementsPerPartition: int | None = None,
    maxElementsPerRegion: int | None = None,
) -> list[list[list[Interval]]]: ...
@public
def splitRegionsBetweenWorkers(
    target: Target,
    regions: Iterable[Any],
    grainSize: int,
    minElementsPerPartition: int = 0,
    maxElementsPerPartition: int | None = None,
    maxElementsPerRegion: int | None = None,
) -> list[Any]:
    """`splitRegions` into one part for each worker of a tile, at most.

    Parameters
    ----------
    target:
        The target that says how many workers a tile has.
    regions:
        Intervals or pairs of bounds, or sequences of them.
    grainSize:
        Every part but the last has a multiple of so many elements, 1 at least.
    minElementsPerPartition:
        There are fewer parts, so that each has that many.
    maxElementsPerPartition:
        A part has no more, in whole grains, also if there are more than workers then.
    maxElementsPerRegion:
        No interval of the result, or sequence, is longer.

    Returns
    -------
    list[list[Interval]] | list[list[list[Interval]]]
        The parts; none of no elements.

    Raises
    ------
    PoplibsError
        For numbers that are too small, and an interval that ends before it begins.
    """
    if not isinstance(target, Target):
        raise PoplarTypeError(f"splitRegionsBetweenWorkers takes a target first, got {target!r}; write graph.getTarget()")
    workers = target.getNumWorkerContexts()
    return splitRegions(regions, grainSize, workers, minElementsPerPartition, maxElementsPerPartition, maxElementsPerRegion)


def _cut(regions: Sequence[Interval], bounds: Sequence[int], longest: int | None) -> list[list[tuple[int, Interval]]]:
    """The pieces of `regions` between successive positions of `bounds`, none longer than `longest`, with their regions' numbers."""
    parts: list[list[tuple[int, Interval]]] = []
    place = 0
    begin, left = regions[0].begin(), regions[0].size()
    for low, high in pairwise(bounds):
        part: list[tuple[int, Interval]] = []
        wanted = high - low
        while wanted:
            while left == 0:
                place += 1
                begin, left = regions[place].begin(), regions[place].size()
            taken = min(wanted, left, longest or wanted)
            part.append((place, Interval(begin, begin + taken)))
            begin, left, wanted = begin + taken, left - taken, wanted - taken
        parts.append(part)
    return parts


@frozen
class _Sequence:
    """Intervals one behind the other, and where each begins when their elements are counted through."""

    regions: list[Interval]
    first: list[int]

    @classmethod
    def of(cls, regions: list[Interval]) -> _Sequence:
        return cls(regions, list(accumulate((region.size() for region in regions), initial=0)))

    def part(self, begin: int, end: int) -> list[Interval]:
        """The elements with these places."""
        pieces = []
        for number in range(bisect_right(self.first, begin) - 1, bisect_left(self.first, end)):
            region, first = self.regions[number], self.first[number]
            low, high = max(begin - first, 0), min(end - first, region.size())
            if low < high:
                pieces.append(Interval(region.begin() + low, region.begin() + high))
        return pieces
