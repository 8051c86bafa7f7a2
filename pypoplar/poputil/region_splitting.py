"""Splitting work, given as intervals of a flattened tensor, into even parts of whole grains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pypoplar.arrays.intervals import Interval, bounds_of
from pypoplar.braces import INTERVALS, ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.target import Target
from pypoplar.tracebacks import public


@public
def splitRegions(
    regions: Sequence[Interval],
    grainSize: int,
    maxPartitions: int,
    minElementsPerPartition: int = 0,
    maxElementsPerPartition: int | None = None,
    maxElementsPerRegion: int | None = None,
) -> list[list[Interval]]:
    """Split `regions`, taken one after another, into at most `maxPartitions` parts of nearly equal size.

    Every part but the last has a multiple of `grainSize` elements. With `minElementsPerPartition` there are fewer
    parts, so that each has that many; `maxElementsPerPartition` may give more than `maxPartitions`. No interval of
    the result is longer than `maxElementsPerRegion`. No elements give no parts.
    """
    intervals = [Interval(*bounds_of(region, "a region")) for region in ordered(regions, "regions", INTERVALS)]
    for given in (grainSize, maxPartitions, minElementsPerPartition):
        if not hasattr(given, "__index__"):
            raise PoplarTypeError(f"splitRegions takes whole numbers, got {given!r}")
    if grainSize < 1 or maxPartitions < 1:
        raise PoplibsError(f"splitRegions needs a grain and a number of parts of at least 1, got {grainSize} and {maxPartitions}")
    total = sum(interval.size() for interval in intervals)
    if total == 0:
        return []
    grains = -(-total // grainSize)
    largest = -(-grains // maxPartitions)
    if maxElementsPerPartition is not None:
        largest = min(largest, max(1, maxElementsPerPartition // grainSize))
    if minElementsPerPartition:
        parts = max(1, grains // -(-minElementsPerPartition // grainSize))
        largest = max(largest, -(-grains // parts))
    parts = -(-grains // largest)
    bounds = [min(total, part * grains // parts * grainSize) for part in range(parts)] + [total]
    longest = None if maxElementsPerRegion is None else max(grainSize, maxElementsPerRegion // grainSize * grainSize)
    return _cut(intervals, bounds, longest)


@public
def splitRegionsBetweenWorkers(
    target: Target,
    regions: Sequence[Interval],
    grainSize: int,
    minElementsPerPartition: int = 0,
    maxElementsPerPartition: int | None = None,
    maxElementsPerRegion: int | None = None,
) -> list[list[Interval]]:
    """`splitRegions` into one part per worker of a tile of `target`."""
    workers = target.getNumWorkerContexts()
    return splitRegions(regions, grainSize, workers, minElementsPerPartition, maxElementsPerPartition, maxElementsPerRegion)


def _cut(regions: Sequence[Interval], bounds: Sequence[int], longest: int | None) -> list[list[Interval]]:
    """The pieces of `regions` between successive positions of `bounds`, none longer than `longest`."""
    parts: list[list[Interval]] = []
    place = iter(regions)
    region = next(place)
    begin, left = region.begin(), region.size()
    for low, high in pairwise(bounds):
        part: list[Interval] = []
        wanted = high - low
        while wanted:
            while left == 0:
                region = next(place)
                begin, left = region.begin(), region.size()
            taken = min(wanted, left, longest or wanted)
            part.append(Interval(begin, begin + taken))
            begin, left, wanted = begin + taken, left - taken, wanted - taken
        parts.append(part)
    return parts
