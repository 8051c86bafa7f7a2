"""The layout of variables in tile memories."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from passes_builder import Builder, all_used

from pypoplar.compiler.memory.placement import place_variables
from pypoplar.types import BOOL, FLOAT, HALF, LONGLONG

TYPES = [FLOAT, HALF, LONGLONG, BOOL]


@st.composite
def graphs(draw: Any) -> tuple[Builder, list[bool]]:
    builder = Builder(tiles=3)
    used = []
    for _ in range(draw(st.integers(0, 5))):
        size = draw(st.integers(0, 12))
        builder.variable(size, draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size)), type=draw(st.sampled_from(TYPES)))
        used.append(draw(st.booleans()))
    return builder, used


@given(graphs())
def test_mapped_elements_of_used_variables_have_one_home_each_and_others_none(made: tuple[Builder, list[bool]]) -> None:
    builder, used = made
    graph = builder.freeze()
    homes = place_variables(graph, np.array(used, bool))
    bytes_taken: list[set[int]] = [set() for _ in range(3)]
    found = {}
    for k in range(len(homes.begin)):
        for number in range(homes.begin[k], homes.end[k]):
            offset = int(homes.offset[k] + (number - homes.begin[k]) * homes.width[k])
            mine = set(range(offset, offset + int(homes.width[k])))
            assert not mine & bytes_taken[homes.tile[k]]
            bytes_taken[homes.tile[k]] |= mine
            found[number] = (int(homes.tile[k]), int(homes.variable[k]), int(homes.width[k]))
    expected = {}
    for variable, first in enumerate(builder.starts().tolist()):
        for number in range(first, first + builder.shapes[variable][0]):
            if used[variable] and builder.tile_of[number] >= 0:
                expected[number] = (builder.tile_of[number], variable, builder.types[variable].size)
    assert found == expected
    for tile in range(3):
        assert all(byte < homes.tile_bytes[tile] for byte in bytes_taken[tile])


@given(graphs())
def test_parts_begin_at_8_bytes_and_pieces_at_4_in_order(made: tuple[Builder, list[bool]]) -> None:
    builder, _ = made
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    assert (homes.offset % 4 == 0).all()
    assert (homes.tile_bytes % 8 == 0).all()
    assert (homes.begin[1:] >= homes.end[:-1]).all()
    for tile in range(3):
        here = homes.tile == tile
        assert (np.diff(homes.offset[here]) > 0).all()
        variable, offset = homes.variable[here], homes.offset[here]
        opens = np.concatenate(([True], np.diff(variable) != 0))[: len(variable)]
        assert (offset[opens] % 8 == 0).all()


def test_halves_of_two_intervals_never_share_a_word() -> None:
    builder = Builder(tiles=2)
    builder.variable(4, [0, 1, 0, 0], type=HALF)
    graph = builder.freeze()
    homes = place_variables(graph, all_used(graph))
    assert homes.offset.tolist() == [0, 0, 4]
    assert homes.tile_bytes.tolist() == [8, 8]
