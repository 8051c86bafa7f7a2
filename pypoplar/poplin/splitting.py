"""Splitting a dimension into parts."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from functools import lru_cache
from itertools import groupby, pairwise

from attrs import frozen

from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.cycles import ceiling

SHARE = 8  # elements of a stretch that is shared out among tiles, at least: whole words


@frozen
class EqualParts:
    """Parts of a dimension that follow each other and are of one size."""

    first: int  # number of the first part
    count: int
    begin: int
    size: int

    @property
    def last(self) -> int:
        """Number of the last part."""
        return self.first + self.count - 1

    @property
    def numbers(self) -> range:
        """The numbers of what belongs to them."""
        return range(self.first, self.first + self.count)

    def of(self, tensor: Tensor, dimension: int) -> Tensor:
        """What the parts are of a tensor, together."""
        if self.count * self.size == tensor.dim(dimension):
            return tensor  # a slice of a scattered tensor takes as long as it has elements
        return tensor.slice(self.begin, self.begin + self.count * self.size, dimension)


def bounds(size: int, parts: int, grain: int = 1) -> list[int]:
    """Where the `parts` of `size` elements begin, and the end: nearly equal parts of whole grains, the larger ones first."""
    return [*_bounds(size, parts, grain)]


@lru_cache(1 << 12)  # a search for a plan asks for the same ones again and again
def _bounds(size: int, parts: int, grain: int) -> tuple[int, ...]:
    few, larger = divmod(ceiling(size, grain), parts)
    return *((part * few + min(part, larger)) * grain for part in range(parts)), size


def share_bounds(size: int, tiles: int) -> list[int]:
    """Which of the elements of a stretch each of several tiles has: where their shares begin, and the end."""
    return bounds(size, min(tiles, ceiling(size, SHARE)), SHARE)


def equal_parts(cuts: SequenceOf[int], number: int = 0) -> list[EqualParts]:
    """Parts by their bounds, those of one size together; the first one has a number."""
    found, first = [], 0
    for size, group in groupby(end - begin for begin, end in pairwise(cuts)):
        count = len(list(group))
        found.append(EqualParts(number + first, count, cuts[first], size))
        first += count
    return found


def largest(size: int, parts: int, grain: int = 1) -> int:
    """Elements of the largest part."""
    return min(size, ceiling(ceiling(size, grain), parts) * grain)
