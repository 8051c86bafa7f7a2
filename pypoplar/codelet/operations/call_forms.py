"""How device code can call an operation: with operators, with Python's functions, with those of `math` and of `pypoplar.ipu`."""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping
from types import BuiltinFunctionType

from pypoplar.codelet.operations.tile_readings import reading_called
from pypoplar.spelling import nearest

COMPARISONS = ("<", "<=", "==", "!=")  # > and >= are these with their operands exchanged
OPERATORS: Mapping[str, int] = dict.fromkeys(("-x", "~x", "not x"), 1) | dict.fromkeys(
    ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", *COMPARISONS), 2
)
"""Operators, and how many operands each has."""

OPERANDS: Mapping[str, int] = {**OPERATORS, "abs": 1, "round": 1, "min": 2, "max": 2}
"""Forms whose operands have one type: what the translator makes of them says how many there are."""

LANGUAGE = ("bool", "breakpoint", "float", "int", "len", "print", "range")
"""Python's functions to which the language gives a meaning of its own; no operation can be called so."""

_MATHS = [name for name, value in vars(math).items() if isinstance(value, BuiltinFunctionType)]
_TAKEN = (*LANGUAGE, "ipu.bit_cast", "ipu.check", "ipu.debug_print", "ipu.worker_range")


def never_called(call: str) -> str | None:
    """Why device code never calls an operation so, or None if it can."""
    if call in _TAKEN or reading_called(call) is not None:
        return f"{call} has another meaning in device code"
    if call in OPERANDS:
        return None
    module, dot, function = call.partition(".")
    if not dot and call.isidentifier() and callable(getattr(builtins, call, None)):
        return None
    if module == "ipu" and function.isidentifier():
        return None
    if module == "math":
        return None if function in _MATHS else f"Python has no function math.{function}{nearest(function, _MATHS)}"
    return f"device code cannot be written with {call!r}: a call is an operator, Python's, math's or ipu's function"
