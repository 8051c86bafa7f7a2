"""Claims about an executable that comes from a file: one that does not hold is a `FileLoadError` that names what is wrong."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import AnyArray, Bools, Int64s
from pypoplar.errors import FileLoadError

LARGEST = 1 << 48
"""No size, address or count of bytes is as large: sums of a few never leave 64 bits."""


def claim(holds: bool, text: str) -> None:
    """Raise `FileLoadError` with `text` unless the claim holds."""
    if not holds:
        raise FileLoadError(text)


def claim_number(name: str, value: int, low: int, high: int) -> None:
    """``low <= value < high``."""
    if not low <= value < high:
        raise FileLoadError(f"{name} is {value}: expected {_bounds(low, high)}")


def claim_range(name: str, values: Int64s, low: int, high: int) -> None:
    """``low <= value < high`` for every value."""
    if values.size and (int(values.min()) < low or int(values.max()) >= high):
        wrong = int(np.flatnonzero((values < low) | (values >= high))[0])
        raise FileLoadError(f"{name}[{wrong}] is {int(values.flat[wrong])}: expected {_bounds(low, high)}")


def claim_each(name: str, holds: Bools, text: str) -> None:
    """Every entry of a bool array; `text` says what the entry at fault is or should be."""
    if not holds.all():
        raise FileLoadError(f"{name}[{int(np.flatnonzero(~holds)[0])}] {text}")


def claim_shape(name: str, values: AnyArray, *shape: int) -> None:
    if values.shape != shape:
        raise FileLoadError(f"{name} has the shape {list(values.shape)}: expected {list(shape)}")


def claim_running(name: str, values: Int64s, parts: int, end: int) -> None:
    """``values[i]`` to ``values[i + 1]`` is part i: from 0 to `end`, never backwards."""
    claim_shape(name, values, parts + 1)
    claim(values[0] == 0 and values[-1] == end, f"{name} goes from {values[0]} to {values[-1]}: expected 0 to {end}")
    claim_each(name, values[1:] >= values[:-1], "goes backwards")


def _bounds(low: int, high: int) -> str:
    return f"{low} to {high - 1}" if low < high - 1 else f"{low}" if low == high - 1 else "none, there is nothing to choose from"
