"""Where a list of numbers repeats itself: stretches that occur several times, found by a suffix array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s

MOST_REFUSED = 200  # stretches, until no further ones are looked at


@frozen
class RepeatedStretch:
    """A stretch of a list that occurs several times, nowhere over itself."""

    starts: tuple[int, ...]
    length: int

    def worth(self, before: Sequence[float]) -> float:
        """What is saved if it stands once; `before` has the worth of all that is before each place of the list."""
        first = self.starts[0]
        return (len(self.starts) - 1) * (before[first + self.length] - before[first])


def repeats(
    labels: Int64s, before: Sequence[float], least: float, found: Callable[[RepeatedStretch], RepeatedStretch | None]
) -> Iterator[RepeatedStretch]:
    """Stretches that repeat, none over another, those that save most first.

    `before` has the worth of all labels before each place, and one more. A stretch is worth `least` at least; `found` may
    take back occurrences that differ in what labels do not tell, or give another stretch of the same worth.
    """
    labels = labels.copy()
    while (best := _best(labels, before, least, found)) is not None:
        yield best
        for start in best.starts:
            labels[start : start + best.length] = labels.max() + 1 + np.arange(best.length)


def _best(
    labels: Int64s, before: Sequence[float], least: float, found: Callable[[RepeatedStretch], RepeatedStretch | None]
) -> RepeatedStretch | None:
    """The stretch that saves most; of equal ones the first that is found."""
    best, most, refused = None, 0.0, 0
    candidates = sorted(_candidates(labels), key=lambda one: -one[0] * one[1])
    for length, count, positions in candidates:
        start = int(positions.min())
        if (count - 1) * (before[min(start + length, len(labels))] - before[start]) <= most:
            continue
        for repeat in _without_overlaps(positions, length):
            first = repeat.starts[0]
            if before[first + repeat.length] - before[first] < least or repeat.worth(before) <= most:
                continue
            kept = found(repeat) if refused < MOST_REFUSED else None
            refused += kept is None
            if kept is not None and kept.worth(before) > most:
                best, most = kept, kept.worth(before)
    return best


def _without_overlaps(positions: Int64s, length: int) -> Iterator[RepeatedStretch]:
    """Occurrences of a stretch, and of its beginning that is as long as the shortest way from one to the next, or as several."""
    ordered = np.sort(positions)
    period = min(length, int(np.diff(ordered).min()))
    for each in sorted({length, period, length // period * period}):
        starts = [int(ordered[0])]
        for start in ordered[1:].tolist():
            if start >= starts[-1] + each:
                starts.append(start)
        if len(starts) > 1:
            yield RepeatedStretch(tuple(starts), each)


def _candidates(labels: Int64s) -> Iterator[tuple[int, int, Int64s]]:
    """Length, number and places of all stretches that occur twice at least and cannot be longer."""
    order = _suffixes(labels)
    common = _common(labels, order)
    open_: list[tuple[int, int]] = []  # length, first place in the order
    for place, length in enumerate([*common, 0]):
        first = place
        while open_ and open_[-1][0] > length:
            longest, first = open_.pop()
            yield longest, place + 1 - first, order[first : place + 1]
        if length and (not open_ or open_[-1][0] < length):
            open_.append((length, first))


def _suffixes(labels: Int64s) -> Int64s:
    """The places of a list, sorted by what follows from there on."""
    rank = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    size, known = len(labels), 1
    while True:
        following = np.zeros(size, np.int64)
        following[: max(size - known, 0)] = rank[known:] + 1
        key = rank * (size + 1) + following
        order = np.argsort(key, kind="stable")
        ranked = key[order]
        rank[order] = np.cumsum(np.concatenate(([0], ranked[1:] != ranked[:-1])))
        known *= 2
        if known >= size or len(rank) == 0 or rank.max() == size - 1:
            return order


def _common(labels: Int64s, order: Int64s) -> list[int]:
    """How long each suffix and the next in their order are alike."""
    size, values = len(labels), labels.tolist()
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    after: dict[int, int] = dict(pairwise(order.tolist()))
    common, length = [0] * max(size - 1, 0), 0
    for start in range(size):  # from one suffix to that without its first label one is lost at most (Kasai)
        other = after.get(start)
        if other is None:
            length = 0
            continue
        while max(start, other) + length < size and values[start + length] == values[other + length]:
            length += 1
        common[int(place[start])] = length
        length = max(length - 1, 0)
    return common
