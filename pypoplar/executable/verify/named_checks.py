"""The checks that the verifier is made of. Each has a name, and raises `FileLoadError` where an executable does not pass it.

The name says what is checked, whatever the number of the step or stream that a message names: tests go by it. Each check stands in
one place and is needed: for each there is a damaged executable that passes all the others, and that exceeds its bound, if there is
one, by one (``tests/executable/test_checks.py``).
"""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import AnyArray, Bools, Integers
from pypoplar.executable.claims import Where, claim, claim_each, claim_least, claim_most, claim_number, claim_range


def check(name: str, holds: bool, text: str) -> None:  # the names of checks are for tests
    """`text` is the whole message."""
    claim(holds, text)


def check_number(name: str, value: int, low: int, high: int, where: str = "") -> None:
    """``low <= value < high``; `where` is what messages call it, if not by the check's name."""
    claim_number(where or name, value, low, high)


def check_limit(name: str, value: int, most: int, text: str) -> None:
    """``value <= most``; `text` is the whole message."""
    claim(value <= most, text)


def check_range(name: str, values: Integers, low: int, high: int, where: Where = "", text: str = "") -> None:
    """``low <= value < high`` for every value; `text` says what the value at fault is, if not itself with its bounds."""
    claim_range(where or name, values, low, high, text)


def check_least(name: str, values: Integers, least: Integers | int, text: str = "", where: Where = "") -> None:
    """``value >= least`` for every value; `text` as for `check_range`."""
    claim_least(where or name, values, least, text)


def check_most(name: str, values: Integers, most: Integers | int, text: str = "", where: Where = "") -> None:
    """``value <= most`` for every value; `text` as for `check_range`."""
    claim_most(where or name, values, most, text)


def check_each(name: str, holds: Bools, text: str, where: Where = "") -> None:
    """Every entry of a bool array; `text` says what the one at fault is or should be."""
    claim_each(where or name, holds, text)


def check_shape(name: str, values: AnyArray, *shape: int, where: str = "") -> None:
    """The array has this shape."""
    claim(values.shape == shape, f"{where or name} has the shape {list(values.shape)}: expected {list(shape)}")


def check_running(name: str, values: Integers, parts: int | None, end: int, least: int = 0, text: str = "goes backwards") -> None:
    """``values[i]`` to ``values[i + 1]`` is part i: from 0 to `end`, at least so many in each; None for any number of parts."""
    if parts is None:
        check(f"{name} shape", values.ndim == 1 and len(values) > 0, f"{name} is empty")
    else:
        check_shape(name, values, parts + 1)
    ends = f"{name} goes from {values[0]} to {values[-1]}: expected 0 to {end}"
    check(f"{name} begin", bool(values[0] == 0), ends)
    check(f"{name} end", bool(values[-1] == end), ends)
    # A value beyond `end` is refused either way: the ones after it would have to be, too, and the last is not.
    before = np.minimum(values[:-1], end) + least if least else values[:-1]
    check_least(f"{name} rise", values[1:], before, text, name)
