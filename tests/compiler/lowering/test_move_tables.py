"""Lists of moves, folded many at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.lowering.move_tables import MoveLists
from pypoplar.compiler.lowering.places import Places
from pypoplar.executable.move_lists import Moves

STEPS = st.sampled_from([4, 4, 4, 8, -4])


@st.composite
def columns(draw: Any) -> tuple[Places, Places, Int64s, Int64s]:
    """Pieces of one move: rows of equal steps, rows that are irregular on one side, and others."""
    source, target, sizes, tiles = [1000], [5000], [4], [0]
    for _ in range(draw(st.integers(0, 20))):
        source.append(source[-1] + draw(STEPS))
        target.append(target[-1] + draw(st.sampled_from([4, 4, 4, 12])))
        sizes.append(draw(st.sampled_from([4, 4, 4, 4, 8])))
        tiles.append(tiles[-1] + draw(st.sampled_from([0, 0, 0, 0, 0, 1])))
    ipus = draw(st.lists(st.integers(0, draw(st.integers(0, 1))), min_size=len(source), max_size=len(source)))
    one = np.zeros(len(source), np.int64)
    return Places(np.array(ipus), np.array(source)), Places(one, np.array(target)), np.array(sizes), np.array(tiles)


def described(moves: Moves, move: int) -> list[Any]:
    """All that the tables say of one move."""
    lists = []
    for entry in moves.lists_of(move):
        records = []
        for record in moves.records_of(entry):
            names = ("source", "target", "bytes", "count", "source_step", "target_step", "tile")
            row: list[Any] = [int(getattr(moves, name)[record]) for name in names]
            for side in ("source_list", "target_list"):
                first = int(getattr(moves, side)[record])
                row.append(moves.places[first : first + int(moves.count[record])].tolist() if first >= 0 else None)
            records.append(row)
        lists.append((int(moves.source_ipu[entry]), int(moves.target_ipu[entry]), records))
    return lists


@given(st.lists(columns(), min_size=1, max_size=5), st.sampled_from([1, 4, 1 << 16]))
def test_moves_that_are_folded_together_are_as_each_alone(every: list[tuple[Places, Places, Int64s, Int64s]], at_once: int) -> None:
    together = MoveLists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypoplar.compiler.lowering.move_tables.FOLDED_AT_ONCE", at_once)
        numbers = [together.add(*move) for move in every]
        moves = together.finish()
    for number, move in zip(numbers, every, strict=True):
        alone = MoveLists()
        only = alone.add(*move)
        assert described(moves, number) == described(alone.finish(), only)


def test_a_move_of_nothing_has_no_lists() -> None:
    nothing = np.zeros(0, np.int64)
    lists = MoveLists()
    number = lists.add(Places(nothing, nothing), Places(nothing, nothing), nothing, nothing)
    assert described(lists.finish(), number) == []
