"""Places in shared memory: by a sweep, as Python and as machine code, by tables, and as a few lines of plain Python say it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from sweeping import both, swept_at_once

from pypoplar.compiler.liveness.liveness import Liveness
from pypoplar.compiler.memory.sharing import LifeRanges, placed_by_table, share
from pypoplar.compiler.memory.sharing_sweeps import place_parts

VARIABLES, COLUMNS = 6, 2
RANGE = st.just((0, 0)) | st.tuples(st.integers(0, 9), st.integers(1, 6)).map(lambda pair: (pair[0], sum(pair)))
LIVES = st.lists(st.tuples(*[RANGE] * COLUMNS), min_size=VARIABLES, max_size=VARIABLES)
PART = st.tuples(st.integers(0, VARIABLES - 1), st.integers(1, 6), st.sampled_from([8, 16, 32]))
TILES = st.lists(st.lists(PART, max_size=10), max_size=4)


def places(parts: list[tuple[int, int, int]], lives: list[Any]) -> list[int]:
    """The lowest multiple of its alignment for each part at which nothing lies that lives when it does."""
    taken: list[tuple[int, int, Any]] = []
    for variable, units, alignment in parts:
        life = {at for begin, end in lives[variable] for at in range(begin, end)}
        apart = [(begin, end) for begin, end, other in taken if life & other]
        size, offset = units * 8, 0
        while any(begin < offset + size and offset < end for begin, end in apart):
            offset += alignment
        taken.append((offset, offset + size, life))
    return [begin for begin, _, _ in taken]


@examples(300)
@given(TILES, LIVES)
def test_each_part_lies_as_low_as_those_that_live_at_its_time_let_it(
    tiles: list[list[tuple[int, int, int]]], lives: list[Any]
) -> None:
    expected = [offset for parts in tiles for offset in places(parts, lives)]
    variable, units, alignment = np.array([part for parts in tiles for part in parts], np.int64).reshape(-1, 3).T.copy()
    count = np.array([len(parts) for parts in tiles], np.int64)
    first = np.append(0, np.cumsum(count))
    begin, end = np.array(lives, np.int64).reshape(-1, COLUMNS, 2).transpose(2, 0, 1).copy()
    for place in both(place_parts):
        offset, behind = (np.full(len(variable), -99) for _ in range(2))
        given = (first, variable, units * 8, alignment, begin.ravel(), end.ravel(), COLUMNS)
        assert place(*given, offset, behind) == len(variable)
        assert offset.tolist() == expected
    if count.all() and len(count):
        assert placed_by_table(count, variable, units * 8, alignment, LifeRanges(begin, end)).tolist() == expected


def test_many_parts_lie_with_machine_code_where_they_lie_without() -> None:
    random = np.random.default_rng(7)
    variables, tiles = 150, 40
    begin = random.integers(0, 90, variables * 6)
    end = begin + random.integers(1, 5, len(begin))
    liveness = Liveness(np.zeros(variables, bool), np.arange(0, variables * 6 + 1, 6), begin, end)
    tile, variable = np.nonzero(random.random((tiles, variables)) < 0.6)
    alignment = random.choice([8, 16, 32], variables)[variable]
    size = random.integers(1, 40, len(tile)) * alignment
    twice = [np.concatenate([tile, tile + tiles]), *(np.tile(column, 2) for column in (variable, size, alignment))]
    plain = share(*twice, liveness)
    with swept_at_once(place_parts):
        swept = share(*twice, liveness)
    assert swept.tolist() == plain.tolist()
    assert len(np.unique(plain)) > 100
