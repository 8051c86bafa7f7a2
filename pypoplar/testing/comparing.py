"""Equality to the bit, with a message that shows where the bits differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pypoplar.braces import ordered
from pypoplar.tracebacks import public

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SHOWN = 5


@public
def assert_same_bits(
    actual: ArrayLike, expected: ArrayLike, name: str = "array", of: tuple[str, str] = ("got", "expected"), nan_bits: bool = True
) -> None:
    """Fail unless both arrays have the same type, shape and bits: -0.0 is not 0.0.

    Parameters
    ----------
    actual:
        An array, or what NumPy makes one of.
    expected:
        What it is to be.
    name:
        What the arrays are, for the message.
    of:
        Where each comes from, for the message.
    nan_bits:
        Whether NaNs have to have the same bits too; IEEE arithmetic does not say which bits the NaN of an operation on two NaNs
        has.

    Raises
    ------
    AssertionError
        If they differ; the message shows the first places where they do.
    """
    __tracebackhide__ = True  # pytest ends in the line of the test
    for array, whose in zip((actual, expected), of, strict=True):
        ordered(array, f"{name} ({whose})", "[1.0, 2.0]")
    left, right = np.ascontiguousarray(actual), np.ascontiguousarray(expected)
    if left.dtype != right.dtype or np.shape(actual) != np.shape(expected):
        raise AssertionError(
            f"{name}: {of[0]} {left.dtype} {list(np.shape(actual))}, {of[1]} {right.dtype} {list(np.shape(expected))}"
        )
    differs = _bits(left) != _bits(right)
    if not nan_bits and np.issubdtype(left.dtype, np.floating):
        differs &= ~(np.isnan(left.reshape(-1)) & np.isnan(right.reshape(-1)))
    different = np.flatnonzero(differs)
    if not len(different):
        return
    shape = np.shape(actual)
    lines = [
        f"  {name}{_index(position, shape)}: {of[0]} {_shown(left, position)}, {of[1]} {_shown(right, position)}"
        for position in different[:SHOWN]
    ]
    more = [f"  and {len(different) - SHOWN} more"] if len(different) > SHOWN else []
    raise AssertionError("\n".join([f"{name} differs in {len(different)} of {left.size} elements:", *lines, *more]))


def _bits(array: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    return array.reshape(-1).view(f"u{array.dtype.itemsize}")


def _index(position: int, shape: tuple[int, ...]) -> str:
    return str([int(number) for number in np.unravel_index(position, shape)])


def _shown(array: np.ndarray[Any, np.dtype[Any]], position: int) -> str:
    bits = int(_bits(array)[position])
    return f"{array.reshape(-1)[position]} (0x{bits:0{2 * array.dtype.itemsize}x})"
