"""The float64 functions of the host's C library: what the device calls a transcendental function, in both engines.

Python calls them too, and is quicker to ask, but it raises where IEEE arithmetic gives an infinity or a NaN. `math.hypot` is
Python's own and differs in the last bit; the absolute value of a complex number is the C library's.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import math
import sys
from collections.abc import Callable, Mapping

from pypoplar.spelling import nearest

Function = Callable[..., float]

_OF_ONE = (
    "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 lgamma log log10 log1p log2 sin sinh tan tanh tgamma"
)
_OF_TWO = "atan2 fmod hypot pow remainder"
ARGUMENTS: Mapping[str, int] = dict.fromkeys(_OF_ONE.split(), 1) | dict.fromkeys(_OF_TWO.split(), 2)
"""The functions, and of how many numbers they are."""

_PYTHONS_OWN = ("lgamma", "remainder")  # of `math`, which computes them by itself
_THROUGH_PYTHON: Mapping[str, Function] = {"hypot": lambda a, b: abs(complex(a, b))}


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


def arguments_of(name: str) -> int:
    """Of how many numbers a function is; `LookupError` with the nearest name if it is none of `ARGUMENTS`."""
    if name in ARGUMENTS:
        return ARGUMENTS[name]
    raise LookupError(f"C has no function '{name}' of float64 numbers{nearest(name, ARGUMENTS)}")


def function(name: str) -> Function:
    """A function of the library, to be called from Python; it never raises."""
    arguments = arguments_of(name)
    itself = _direct(name, arguments)
    through_math = None if name in _PYTHONS_OWN else getattr(math, name, None)
    quick: Function | None = _THROUGH_PYTHON.get(name, through_math)
    return itself if quick is None else _guarded(quick, itself, arguments)


@functools.cache
def _direct(name: str, arguments: int) -> Function:
    """The function itself, found when it is first called."""
    prototype = ctypes.PYFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arguments)
    resolved: list[Function] = []

    def call(*operands: float) -> float:
        if not resolved:
            resolved.append(prototype(address(name)))
        return resolved[0](*operands)

    return call


def _guarded(quick: Function, itself: Function, arguments: int) -> Function:
    """Python's way to the function, and the function itself where that raises."""

    def of_one(a: float) -> float:
        try:
            return quick(a)
        except (ValueError, OverflowError):
            return itself(a)

    def of_two(a: float, b: float) -> float:
        try:
            return quick(a, b)
        except (ValueError, OverflowError):
            return itself(a, b)

    return of_one if arguments == 1 else of_two
