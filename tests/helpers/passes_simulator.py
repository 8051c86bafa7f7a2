"""Tile memories in NumPy: does what a plan says, piece by piece, so that tests can look at what arrived."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypoplar.compiler.exchange_plan import Homes, Pieces

UNTOUCHED = 0xEE


def element(number: int, width: int) -> Any:
    """The bytes that stand for an element in the tests: its number, cut to its width."""
    return np.frombuffer((number % 256**width).to_bytes(width, "little"), np.uint8)


class Tiles:
    def __init__(self, homes: Homes, buffer_bytes: Any) -> None:
        self.homes = homes
        self.memory = [np.full(size, UNTOUCHED, np.uint8) for size in homes.tile_bytes]
        self.buffer = [np.full(size, UNTOUCHED, np.uint8) for size in buffer_bytes]
        for number in self.elements():
            self.at(number)[:] = element(number + 1, self.width(number))

    def elements(self) -> list[int]:
        return [number for begin, end in zip(self.homes.begin, self.homes.end, strict=True) for number in range(begin, end)]

    def home(self, number: int) -> int:
        return int(np.searchsorted(self.homes.begin, number, "right")) - 1

    def width(self, number: int) -> int:
        return int(self.homes.width[self.home(number)])

    def tile(self, number: int) -> int:
        return int(self.homes.tile[self.home(number)])

    def offset(self, number: int) -> int:
        home = self.home(number)
        return int(self.homes.offset[home] + (number - self.homes.begin[home]) * self.homes.width[home])

    def at(self, number: int) -> Any:
        return self.memory[self.tile(number)][self.offset(number) : self.offset(number) + self.width(number)]

    def place(self, tile: int, offset: int, size: int, in_buffer: bool) -> Any:
        memory = (self.buffer if in_buffer else self.memory)[tile]
        assert offset >= 0
        assert offset + size <= len(memory)
        return memory[offset : offset + size]

    def move(self, pieces: Pieces) -> None:
        """All pieces at once: everything is read before anything is written."""
        assert (np.diff(pieces.target_tile) >= 0).all(), "pieces must be sorted by target tile"
        read = [
            self.place(pieces.source_tile[k], pieces.source_offset[k], pieces.bytes[k], pieces.source_in_buffer[k]).copy()
            for k in range(len(pieces.bytes))
        ]
        for k, data in enumerate(read):
            assert len(data) > 0
            self.place(pieces.target_tile[k], pieces.target_offset[k], pieces.bytes[k], pieces.target_in_buffer[k])[:] = data
