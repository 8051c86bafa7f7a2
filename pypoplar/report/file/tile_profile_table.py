"""Numbers for what is there by tile or by pair of tiles: equal arrays are written once."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import Int64s, Integers
from pypoplar.report.execution import Step
from pypoplar.report.report import ExchangeReport

BY_TILE = {  # column of tile_profile_tile -> attribute of a step
    "cycles": "cyclesByTile",
    "active_cycles": "activeCyclesByTile",
    "exchange_cycles": "exchange_cycles_by_tile",
    "copy_cycles": "copy_cycles_by_tile",
    "bytes_sent": "bytesSentByTile",
    "bytes_received": "bytesReceivedByTile",
    "pieces": "pieces_by_tile",
}


class TileProfileTable:
    """Numbers what tiles do in steps. Where all executions of a step are alike, or could be, it is what they do in one."""

    def __init__(self, tiles: int) -> None:
        self.columns: list[str] = []  # by number: the columns that are known, with spaces between them
        self._tiles = tiles
        self._shared = SharedArrays()
        self._seen: dict[tuple[int, ...], tuple[int, int, list[Int64s]]] = {}  # keeps the arrays, so that no two have one id

    def add(self, step: Step) -> tuple[int | None, int, Mapping[str, Int64s] | None]:
        """The number of a step's profile, None if nothing is known by tile; how often it counts; the profile, if it is new."""
        arrays = {column: array for column, name in BY_TILE.items() if len(array := getattr(step, name))}
        if not arrays:
            return None, 1, None
        key = (step.executions, *(id(arrays.get(column)) for column in BY_TILE))
        if key in self._seen:
            return *self._seen[key][:2], None
        for column, array in arrays.items():
            if len(array) != self._tiles:
                raise ValueError(f"{step.name}: {column} has {len(array)} entries for {self._tiles} tiles")
        times, profile = _divided(arrays, step.executions)
        number = self._shared.number(" ".join(profile), *profile.values())
        self._seen[key] = (number, times, list(arrays.values()))
        if number < len(self.columns):
            return number, times, None
        self.columns.append(" ".join(profile))
        return number, times, profile

    def add_cycles(self, cycles: Int64s) -> tuple[int, bool]:
        """The number of the profile of tiles that computed for so many cycles, and whether it is new."""
        number = self._shared.number("cycles", cycles)
        new = number == len(self.columns)
        if new:
            self.columns.append("cycles")
        return number, new


def _divided(arrays: Mapping[str, Int64s], executions: int) -> tuple[int, Mapping[str, Int64s]]:
    """The arrays of one execution, if they are divisible by the number of executions, and how often they count."""
    if executions > 1 and not any((array % executions).any() for array in arrays.values()):
        return executions, {name: array // executions for name, array in arrays.items()}
    return 1, arrays


class MessageTable:
    """Numbers the lists of messages of exchanges."""

    def __init__(self) -> None:
        self._shared = SharedArrays()
        self._seen: dict[tuple[int, ...], tuple[int, tuple[Integers, ...]]] = {}
        self._count = 0

    def add(self, exchange: ExchangeReport) -> tuple[int, bool]:
        """The number of the exchange's list, and whether it is new."""
        arrays = (exchange.source, exchange.destination, exchange.bytes)
        key = tuple(map(id, arrays))
        if key in self._seen:
            return self._seen[key][0], False
        number = self._shared.number("", *arrays)
        self._seen[key] = (number, arrays)
        new = number == self._count
        self._count += new
        return number, new


class SharedArrays:
    """Numbers groups of arrays of integers, those of equal names and values with one number. It keeps digests, no arrays."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(self, name: str, *arrays: Integers) -> int:
        """The number of arrays by tile, the same for equal ones."""
        digest = blake2b(digest_size=16)
        for array in arrays:
            digest.update(np.ascontiguousarray(array, np.int64).data)
        key = (name, digest.digest(), *map(len, arrays))
        return self._numbers.setdefault(key, len(self._numbers))
