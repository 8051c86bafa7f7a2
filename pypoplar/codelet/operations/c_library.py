"""The float64 functions of the host's C library: what the device calls a transcendental function, in both engines.

Python's `math` calls them too, and is quicker to call, but it raises where IEEE arithmetic gives an infinity or a NaN; and a few
functions it has written itself.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import math
import sys
from collections.abc import Callable

_OF_PYTHON = frozenset({"hypot"})  # `math` computes it otherwise, and differs in the last bit
Function = Callable[..., float]


@functools.cache
def _library() -> ctypes.CDLL:
    """The library that has the functions; as a rule the process has it, and looking for it would start other programs."""
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    process = ctypes.CDLL(None)
    return process if hasattr(process, "erfc") else ctypes.CDLL(ctypes.util.find_library("m"))


def address(name: str) -> int:
    """Where a function of the library is in this process."""
    try:
        place = ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value
    except AttributeError:
        raise LookupError(f"the host's C library has no function '{name}'") from None
    assert place is not None
    return place


def function(name: str, arguments: int) -> Function:
    """A function of the library, of so many float64 numbers, to be called from Python; it never raises."""
    return _guarded(name, arguments) if hasattr(math, name) and name not in _OF_PYTHON else _direct(name, arguments)


@functools.cache
def _direct(name: str, arguments: int) -> Function:
    """The function itself, found when it is first called."""
    prototype = ctypes.PYFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arguments)
    found: list[Function] = []

    def call(*operands: float) -> float:
        if not found:
            found.append(prototype(address(name)))
        return found[0](*operands)

    return call


def _guarded(name: str, arguments: int) -> Function:
    """Python's way to the function, and the function itself where that raises."""
    quick, itself = getattr(math, name), _direct(name, arguments)

    def of_one(a: float) -> float:
        try:
            return quick(a)  # type: ignore[no-any-return]
        except (ValueError, OverflowError):
            return itself(a)

    def of_two(a: float, b: float) -> float:
        try:
            return quick(a, b)  # type: ignore[no-any-return]
        except (ValueError, OverflowError):
            return itself(a, b)

    return of_one if arguments == 1 else of_two
