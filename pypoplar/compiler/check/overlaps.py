"""Which parties of a group touch the same elements with at least one of them writing: races, and fields that overlap.

Exact for any sets of intervals, without ever pairing party with party: a million parties may overlap in one element.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct, sorting_order
from pypoplar.arrays.interval_algebra import keys, meets, union

AT_ONCE = 1 << 22  # intervals


@frozen(eq=False)
class Claims:
    """Elements that parties touch. A party belongs to one group; only parties of one group can be in each other's way."""

    group: Int64s
    party: Int64s
    begin: Int64s  # element ids
    end: Int64s
    written: Bools


@frozen
class Overlap:
    """The first overlap (lowest group, lowest element), and how much there is of it in that group.

    `writer` writes ``[begin, end)``, `other` writes them as well if `both_write`, else reads them; of the parties that touch
    element `begin`, they are the lowest.
    """

    group: int
    begin: int
    end: int
    writer: int
    other: int
    both_write: bool
    parties: int  # of the group that overlap with another, one of the two writing
    elements: int  # of the group in which that is so


def find_overlap(claims: Claims, span: int) -> Overlap | None:
    """The first overlap among `claims`, or None. `span` is larger than any element id."""
    if disjoint(keys(claims.group, claims.begin, span), keys(claims.group, claims.end, span), claims.written):
        return None
    touched = _by_party(claims, np.ones(len(claims.begin), bool), span)
    written = _by_party(claims, claims.written, span)
    points, writers, touchers = _depths(written, touched)
    if len(points) == 0:
        return None
    contested = np.flatnonzero((writers >= 1) & (touchers >= 2))
    if len(contested) == 0:
        return None
    group = int(points[contested[0]]) // span
    contested = contested[points[contested] < (group + 1) * span]
    first = int(points[contested[0]])

    write_ends, touch_ends = _ends_at(written, first), _ends_at(touched, first)
    writer = min(write_ends)
    rivals = [party for party in write_ends if party != writer]
    other = min(rivals) if rivals else min(party for party in touch_ends if party != writer)
    end = min(write_ends[writer], write_ends[other] if rivals else touch_ends[other])

    zone_begin, zone_end = union(points[contested], points[contested + 1])
    party, begin, stop = touched
    involved = distinct(party[meets(begin, stop, zone_begin, zone_end)])
    return Overlap(
        group,
        first - group * span,
        end - group * span,
        writer,
        other,
        bool(rivals),
        len(involved),
        int((zone_end - zone_begin).sum()),
    )


def disjoint(begin: Int64s, end: Int64s, written: Bools) -> bool:
    """Whether no written interval shares a key with any other: what nearly all graphs are, and quick to see."""
    write_begin, write_end = begin[written], end[written]
    order = sorting_order(write_begin)
    if order is not None:
        write_begin, write_end = write_begin[order], write_end[order]
    if bool((write_begin[1:] < write_end[:-1]).any()):
        return False
    for first in range(0, len(begin), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        read = ~written[part]
        if bool(meets(begin[part][read], end[part][read], write_begin, write_end).any()):
            return False
    return True


def _by_party(claims: Claims, which: Bools, span: int) -> tuple[Int64s, Int64s, Int64s]:
    """Each party's elements once: (party, begin, end), begin and end as keys ``group * span + element``."""
    party = claims.party[which]
    numbers, dense = np.unique(party, return_inverse=True)
    group = np.zeros(len(numbers), np.int64)
    group[dense] = claims.group[which]
    begin, end = union(keys(dense, claims.begin[which], span), keys(dense, claims.end[which], span))
    owner = begin // span
    shift = (group[owner] - owner) * span
    return numbers[owner], begin + shift, end + shift


def _depths(written: tuple[Int64s, Int64s, Int64s], touched: tuple[Int64s, Int64s, Int64s]) -> tuple[Int64s, Int64s, Int64s]:
    """Cut at all bounds: the points, and how many parties write and touch what lies between a point and the next."""
    points = distinct(np.concatenate((touched[1], touched[2], written[1], written[2])))

    def depth(begin: Int64s, end: Int64s) -> Int64s:
        opened = np.bincount(np.searchsorted(points, begin), minlength=len(points))
        closed = np.bincount(np.searchsorted(points, end), minlength=len(points))
        open: Int64s = np.cumsum(opened - closed)
        return open

    return points, depth(*written[1:]), depth(*touched[1:])


def _ends_at(claims: tuple[Int64s, Int64s, Int64s], key: int) -> dict[int, int]:
    """The parties that hold `key`, and where each one's interval ends."""
    party, begin, end = claims
    at = np.flatnonzero((begin <= key) & (key < end))
    return {int(party[k]): int(end[k]) for k in at}
