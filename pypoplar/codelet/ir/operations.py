"""The operations of device code: one scalar function per operation and type, shared by both engines.

`SIGNATURES` names them all, with the register types of their arguments and result. Native code holds the instructions of an
operation (`pypoplar.codelet.llvm.arithmetic`) inline; `FUNCTIONS[name]` is the same instructions as a function to call from Python,
made on first use, which takes and gives plain Python numbers: ``FUNCTIONS["add_i32"](2**31 - 1, 1) == -(2**31)``.

What they mean: FLOAT is float32 with one rounding per operation. HALF values are float32 values that are halves, and every
operation rounds to half once. Integers wrap at their width. ``//`` floors and ``%`` takes the divisor's sign, for floats as well.
Transcendental functions are the host's float64 functions rounded once to the type. A function whose operands would be an
error (`FAULTS`) gives some value and must not be relied upon: ask `FAULTS` first.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from pypoplar.interface.fault_codes import NO_FAULT, FaultCode, FloatingPoint

FLOATS = ("f32", "f16")
INTEGERS = ("i32", "u32", "i64", "u64")
NUMBERS = FLOATS + INTEGERS
REGISTERS = (*NUMBERS, "bool")
WIDTH = {"i32": 32, "u32": 32, "i64": 64, "u64": 64}

_UNARY_MATH = (
    "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "erf", "erfc", "floor", "ceil", "trunc", "round", "fabs", "sigmoid",
)  # fmt: skip
_BINARY_MATH = ("atan2", "fmod", "hypot", "pow", "copysign")


def _signatures() -> dict[str, tuple[tuple[str, ...], str]]:
    found: dict[str, tuple[tuple[str, ...], str]] = {}

    def add(names: str, types: tuple[str, ...], arguments: int, result: str = "") -> None:
        for name in names.split():
            for one in types:
                found[f"{name}_{one}"] = ((one,) * arguments, result or one)

    add("copy", REGISTERS, 1)
    add("neg abs", NUMBERS, 1)
    add("add sub mul min max floordiv mod power", NUMBERS, 2)
    add("div", FLOATS, 2)
    add("and or xor", (*INTEGERS, "bool"), 2)
    add("shift_left shift_right", INTEGERS, 2)
    add("invert popcount clz", INTEGERS, 1)
    add("not", ("bool",), 1)
    add("less less_equal equal not_equal", REGISTERS, 2, "bool")
    add("wrap_i8 wrap_u8 wrap_i16 wrap_u16", ("i32",), 1)
    add(" ".join(_UNARY_MATH), FLOATS, 1)
    add(" ".join(_BINARY_MATH), FLOATS, 2)
    add("isnan isinf isfinite", FLOATS, 1, "bool")
    for source in REGISTERS:
        for target in REGISTERS:
            found[f"{target}_from_{source}"] = ((source,), target)
    for narrow in ("wrap_i8", "wrap_u8", "wrap_i16", "wrap_u16"):
        found[narrow] = found.pop(f"{narrow}_i32")
    return found


SIGNATURES: Mapping[str, tuple[tuple[str, ...], str]] = _signatures()


@frozen
class Fault:
    """When an operation on integers is an error: a test of its last argument, and the fault's code.

    A fault's value is the last argument, its bound the width for a shift and else 0.
    """

    code: FaultCode
    bound: int
    test: Callable[[int], bool]

    def __call__(self, *arguments: int) -> int:
        """The fault's code, or `NO_FAULT`."""
        return self.code if self.test(arguments[-1]) else NO_FAULT


def _outside(width: int, amount: int) -> bool:
    return not 0 <= amount < width


def _faults() -> dict[str, Fault]:
    found: dict[str, Fault] = {}
    for one in INTEGERS:
        width = WIDTH[one]
        for name in ("floordiv", "mod"):
            found[f"{name}_{one}"] = Fault(FaultCode.ZERO_DIVISION, 0, lambda divisor: divisor == 0)
        for name in ("shift_left", "shift_right"):
            found[f"{name}_{one}"] = Fault(FaultCode.SHIFT_WIDTH, width, functools.partial(_outside, width))
        if one in ("i32", "i64"):
            found[f"power_{one}"] = Fault(FaultCode.NEGATIVE_POWER, 0, lambda exponent: exponent < 0)
    return found


FAULTS: Mapping[str, Fault] = _faults()

# Where a float function has a pole: an infinite result there is a division by zero. Which argument, and its value.
POLES: Mapping[str, tuple[int, float]] = {
    "div": (1, 0.0), "floordiv": (1, 0.0), "power": (0, 0.0), "pow": (0, 0.0), "rsqrt": (0, 0.0), "log": (0, 0.0),
    "log2": (0, 0.0), "log10": (0, 0.0), "log1p": (0, -1.0),
}  # fmt: skip


def floating_fault(name: str, mask: int, result: float, *arguments: float) -> int:
    """The code of the floating-point exception that an operation raised, or 0; `mask` says which ones are faults.

    Invalid: NaN from operands that are not NaN. Division by zero: infinity from finite operands at a pole. Overflow: infinity
    from finite operands elsewhere. Only for operations whose result is a float.
    """
    if math.isnan(result):
        raised, code = FloatingPoint.INVALID, FaultCode.INVALID if not any(map(math.isnan, arguments)) else NO_FAULT
    elif math.isinf(result) and all(map(math.isfinite, arguments)):
        argument, point = POLES.get(name.rpartition("_")[0], (0, math.nan))
        if arguments[argument] == point:
            raised, code = FloatingPoint.DIVISION_BY_ZERO, FaultCode.DIVISION_BY_ZERO
        else:
            raised, code = FloatingPoint.OVERFLOW, FaultCode.OVERFLOW
    else:
        return NO_FAULT
    return code if mask & raised else NO_FAULT


_C_TYPES: dict[str, Any] = {
    "f32": ctypes.c_float, "f16": ctypes.c_float, "i32": ctypes.c_int32, "u32": ctypes.c_uint32, "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64, "bool": ctypes.c_bool,
}  # fmt: skip


class Functions(Mapping[str, Callable[..., Any]]):
    """The operations as Python functions, each compiled when it is first asked for; a call takes about a third of a microsecond."""

    def __init__(self) -> None:
        self._made: dict[str, Callable[..., Any]] = {}
        self._code: list[object] = []  # keeps the machine instructions alive

    def __getitem__(self, name: str) -> Callable[..., Any]:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(name)
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(SIGNATURES)

    def __len__(self) -> int:
        return len(SIGNATURES)

    def _make(self, name: str) -> Callable[..., Any]:
        arguments, result = SIGNATURES[name]
        from pypoplar.codelet.llvm import arithmetic, machine

        code = machine.load(machine.compile_text(arithmetic.module_of(name)))
        self._code.append(code)
        prototype = ctypes.PYFUNCTYPE(_C_TYPES[result], *(_C_TYPES[one] for one in arguments))
        function: Callable[..., Any] = prototype(code.address(name))
        return function


FUNCTIONS: Mapping[str, Callable[..., Any]] = Functions()


def __getattr__(name: str) -> Callable[..., Any]:
    """``operations.add_f32`` is ``FUNCTIONS["add_f32"]``."""
    if name in SIGNATURES:
        return FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
