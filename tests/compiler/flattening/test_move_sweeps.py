"""Pieces as records: by a sweep, as Python and as machine code, and by NumPy; what they mean, by some lines of plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import fields
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from sweeping import both, swept_at_once

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.flattening.move_sweeps import NO_LIST, OF_SOURCES, OF_TARGETS, fold_rows, list_singles
from pypoplar.compiler.flattening.move_tables import Records, _recorded, fold, fold_by_rows
from pypoplar.executable.move_lists import LISTED_BYTES

NAMES = [column.name for column in fields(Records)]
STEPS = st.sampled_from([4, 4, 4, 4, 8, -4, 3, 0])
FAR = 1 << 35


@st.composite
def pieces(draw: Any) -> tuple[Int64s, ...]:
    """Rows of equal steps, rows that are irregular on one side only, and others; some far away."""
    rows: list[tuple[int, int, int, int]] = []
    source, target, tile = 400, 400, 0
    for _ in range(draw(st.integers(0, 6))):
        size, steady = draw(st.sampled_from([4, 4, 4, 2, 1, 3, 8])), draw(st.sampled_from(["source", "target", "both", "none"]))
        for _ in range(draw(st.integers(1, 9))):
            rows.append((source, target, size, tile))
            source += size if steady in ("source", "both") else draw(STEPS)
            target += size if steady in ("target", "both") else draw(STEPS)
        tile += draw(st.integers(0, 1))
        source += draw(st.sampled_from([0, 0, 8, FAR]))
    return tuple(np.array(rows, np.int64).reshape(-1, 4).T.copy())


def moved(records: Any) -> list[tuple[int, int, int, int]]:
    """The pieces that records mean, one by one."""
    found = []
    for row in range(len(records.source)):
        size, count, tile = (int(getattr(records, name)[row]) for name in ("bytes", "count", "tile"))
        ends = []
        for side in ("source", "target"):
            begin, step, named = (int(getattr(records, side + what)[row]) for what in ("", "_step", "_list"))
            ends.append([begin + (int(records.places[named + i]) * size if named >= 0 else i * step) for i in range(count)])
        found += [(*pair, size, tile) for pair in zip(*ends, strict=True)]
    return found


def listed(records: Records) -> list[list[int]]:
    return [getattr(records, name).tolist() for name in NAMES]


@examples(300)
@given(pieces())
def test_records_mean_the_pieces_in_their_order_and_are_the_same_by_every_way(given: tuple[Int64s, ...]) -> None:
    expected = fold_by_rows(*given)
    assert moved(expected) == list(zip(*(column.tolist() for column in given), strict=True))
    source, target, size, tile = given
    for folding, joining in zip(both(fold_rows), both(list_singles), strict=True):
        first, count, kind = (np.full(len(source), -99) for _ in range(3))
        rows = folding(*given, first, count)
        kind[:rows] = NO_LIST
        rows = joining(source, target, size, tile, LISTED_BYTES, OF_SOURCES, rows, first, count, kind)
        rows = joining(target, source, size, tile, LISTED_BYTES, OF_TARGETS, rows, first, count, kind)
        assert listed(_recorded(*given, first[:rows], count[:rows], kind[:rows])) == listed(expected)


def test_many_pieces_become_with_machine_code_what_they_become_without() -> None:
    random = np.random.default_rng(3)
    steady = np.repeat(random.random(900) < 0.7, 10)
    size = np.repeat(random.choice([1, 2, 4, 8], 900), 10)
    source = 4000 + np.cumsum(np.where(steady, size, random.integers(-2, 9, len(size)) * size))
    target = 4000 + np.cumsum(np.where(np.roll(steady, 35), size, random.integers(0, 9, len(size)) * size))
    given = (source, target, size, np.repeat(np.arange(90), 100))
    with swept_at_once(fold_rows, list_singles):
        swept = fold(*given)
    assert listed(swept) == listed(fold_by_rows(*given))
    assert [getattr(swept, name).dtype for name in NAMES] == [*[np.int64] * 9, np.uint32]
    assert (swept.source_list >= 0).any()
    assert (swept.target_list >= 0).any()
    assert (swept.source_step > 0).any()
