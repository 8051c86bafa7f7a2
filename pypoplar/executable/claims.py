"""Claims about a file: one that does not hold is a `FileLoadError` that names what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pypoplar.arrays.dtypes import Bools, Integers
from pypoplar.errors import FileLoadError

LARGEST = 1 << 48
"""No size, address or count of bytes is as large: sums of a few never leave 64 bits."""

Where = str | Callable[[int], str]
"""How messages call the entries of an array: by the array's name, or as a function says for each."""


def claim(holds: bool, text: str) -> None:
    """Raise `FileLoadError` with `text` unless the claim holds."""
    if not holds:
        raise FileLoadError(text)


def claim_number(name: str, value: int, low: int, high: int) -> None:
    """``low <= value < high``."""
    if not low <= value < high:
        raise FileLoadError(f"{name} is {value}: expected {_bounds(low, high)}")


def claim_range(where: Where, values: Integers, low: int, high: int, text: str = "") -> None:
    """``low <= value < high`` for every value; `text` says what the value at fault is, if not itself with its bounds."""
    if values.size and (int(values.min()) < low or int(values.max()) >= high):
        entry = int(np.flatnonzero((values < low) | (values >= high))[0])
        wrong = text or f"is {int(values.flat[entry])}: expected {_bounds(low, high)}"
        raise FileLoadError(f"{_entry(where, entry)} {wrong}")


def claim_each(where: Where, holds: Bools, text: str) -> None:
    """Every entry of a bool array; `text` says what the entry at fault is or should be."""
    if holds.size and not holds.all():  # most are empty, in small programs
        raise FileLoadError(f"{_entry(where, int(np.flatnonzero(~holds)[0]))} {text}")


def claim_least(where: Where, values: Integers, least: Integers | int, text: str = "") -> None:
    """``value >= least`` for every value; `text` as for `claim_range`."""
    _claim_one_bound(where, values >= least, values, text, least, "at least")


def claim_most(where: Where, values: Integers, most: Integers | int, text: str = "") -> None:
    """``value <= most`` for every value; `text` as for `claim_range`."""
    _claim_one_bound(where, values <= most, values, text, most, "at most")


def _claim_one_bound(where: Where, holds: Bools, values: Integers, text: str, bound: Integers | int, word: str) -> None:
    if holds.size and not holds.all():
        entry = int(np.flatnonzero(~holds)[0])
        expected = int(np.broadcast_to(bound, values.shape)[entry])
        raise FileLoadError(f"{_entry(where, entry)} {text or f'is {int(values[entry])}: expected {word} {expected}'}")


def _entry(where: Where, entry: int) -> str:
    return f"{where}[{entry}]" if isinstance(where, str) else where(entry)


def _bounds(low: int, high: int) -> str:
    return f"{low} to {high - 1}" if low < high - 1 else f"{low}" if low == high - 1 else "none, there is nothing to choose from"
