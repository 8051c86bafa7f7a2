"""Conflicts of owners, against all pairs of keys."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.arrays.interval_conflicts import KeyAccesses, nearest_conflicts


@st.composite
def touched(draw):
    """By owner, which of a few keys it reads (1) and writes (2), in stretches."""
    keys = draw(st.integers(1, 12))
    rows = draw(st.lists(st.lists(st.sampled_from([0, 0, 1, 2]), min_size=keys, max_size=keys), max_size=8))
    return np.array(rows, int).reshape(-1, keys)


def accesses_of(rows, order):
    entries = []
    for owner, row in enumerate(rows):
        cuts = [0, *(np.flatnonzero(np.diff(row)) + 1), len(row)]
        entries += [(owner, begin, end, row[begin] == 2) for begin, end in pairwise(cuts) if row[begin]]
    entries = [entries[place] for place in order if place < len(entries)]
    owner, begin, end, writes = zip(*entries, strict=True) if entries else ((), (), (), ())
    return KeyAccesses(np.array(owner, np.int64), np.array(begin, np.int64), np.array(end, np.int64), np.array(writes, bool))


def conflict(one, other):
    return bool(((one > 0) & (other > 0) & ((one == 2) | (other == 2))).any())


@given(touched(), st.permutations(range(64)))
def test_every_pair_conflicts_and_every_conflict_has_a_pair_within_it(rows, order):
    earlier, later = nearest_conflicts(accesses_of(rows, order))
    pairs = set(zip(earlier.tolist(), later.tolist(), strict=True))
    for one, other in pairs:
        assert one < other
        assert conflict(rows[one], rows[other])
    for other in range(len(rows)):
        for one in range(other):
            if conflict(rows[one], rows[other]):
                assert any(one <= first and last <= other for first, last in pairs)


def every(count, begin, end, writes):
    """KeyAccesses of owners 0 to `count`, one each."""
    return KeyAccesses(np.arange(count), np.full(count, begin), np.full(count, end), np.full(count, writes))


def test_owners_that_only_read_do_not_conflict():
    earlier, later = nearest_conflicts(every(1000, 0, 8, False))
    assert len(earlier) == len(later) == 0


def test_owners_that_write_the_same_conflict_each_with_the_next():
    earlier, later = nearest_conflicts(every(1000, 0, 8, True))
    assert sorted(zip(earlier.tolist(), later.tolist(), strict=True)) == [(one, one + 1) for one in range(999)]


def test_intervals_that_only_touch_do_not_conflict():
    accesses = KeyAccesses(np.arange(100), np.arange(100) * 4, np.arange(100) * 4 + 4, np.ones(100, bool))
    assert len(nearest_conflicts(accesses)[0]) == 0


def test_wide_reads_over_many_narrow_writes_give_few_pairs():
    """Which would be a million where each was compared with each."""
    count = 1000
    narrow = KeyAccesses(np.arange(count), np.arange(count), np.arange(count) + 1, np.ones(count, bool))
    wide = every(count, 0, count, False)
    accesses = KeyAccesses(
        np.concatenate((narrow.owner, count + wide.owner)),
        np.concatenate((narrow.begin, wide.begin)),
        np.concatenate((narrow.end, wide.end)),
        np.concatenate((narrow.writes, wide.writes)),
    )
    earlier, later = nearest_conflicts(accesses)
    assert count <= len(earlier) <= 8 * count
    assert (count - 1, count) in zip(earlier.tolist(), later.tolist(), strict=True)
