"""What expressions of C++ are in the walk: numbers as text of Python, places, pointers, vectors, rows, structs, lambdas."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any, Union

from attrs import evolve, frozen

from pypoplar.codelet.cpp_tree.cpp_types import BITS, CppType, register, wrapped

# How tightly Python's operators bind, from loose to tight.
CHOICE, OR, AND, NOT, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, SIGN, ATOM = range(13)
WEAK = ("int", "float")
ALONE = ("i32", "f32", "bool")
"""The types that Python's front end gives to literals alone."""


@frozen
class NumberText:
    """A number as an expression of Python.

    `type` is what it is in C++, `held` the register that Python's front end has it in, or ``int`` or ``float`` for a literal whose
    type is open. The two differ where an INT has the bits of an UNSIGNED_INT, and where arithmetic would convert it by itself.
    """

    text: str
    type: str
    held: str
    level: int = ATOM
    value: int | float | bool | None = None  # of a constant
    counts: bool = False  # whether it is certainly not below zero, and below 2**31
    named: bool = False  # whether it is the name of a local

    @property
    def weak(self) -> bool:
        return self.held in WEAK

    def at(self, level: int) -> str:
        """The text where something of a level stands."""
        return self.text if self.level >= level else f"({self.text})"


@frozen
class NumberPlace:
    """Where a number is kept: a local, a field, or an element of a vector."""

    text: str
    type: str
    held: str
    span: str | None = None  # of an element
    index: NumberText | None = None
    counts: bool = False
    is_local: bool = False
    field: str | None = None  # of the vertex
    view: tuple[NumberPlace, ...] = ()  # places of another type whose bytes this number has, or some of them
    part: int = 0  # which of the numbers that lie in them

    def read(self) -> NumberText:
        return NumberText(self.text, self.type, self.held, counts=self.counts or self.type in ("u8", "u16"), named=self.is_local)


@frozen
class Pointer:
    """A vector, and the index in it that is pointed at. Arrays are pointers to their first element."""

    span: str
    at: NumberText  # in elements of the vector
    to: CppType
    kept: str = ""  # the type of the vector's elements, where a cast has made it another than that of `to`

    @property
    def code(self) -> str:
        """The type of the vector's elements."""
        return self.kept or innermost(self.to).code


@frozen
class VectorName:
    """A vector with its elements."""

    text: str
    to: CppType
    field: str | None = None


@frozen
class Rows:
    """A list of rows."""

    text: str
    to: CppType


@frozen
class Struct:
    """A struct whose members are kept one by one."""

    members: Mapping[str, Any]
    type: CppType


@frozen
class VectorLanes:
    """A vector of the hardware: a number for each element, or a place."""

    parts: tuple[NumberText | NumberPlace, ...]
    type: CppType
    span: str = ""  # the array that has them, where an index chooses one at run time


@frozen
class Lambda:
    """A lambda; its body is written where it is called."""

    node: Any
    copies: tuple[tuple[int, Any], ...] = ()  # what it holds of its own, by the keys of their declarations


@frozen
class FunctionName:
    """A function that a pointer stands for, always the same."""

    node: Any


@frozen
class Itself:
    """The vertex: ``*this``."""


@frozen
class Broken:
    """What a declaration would be that has no form."""


Value = Union[Broken, NumberText, NumberPlace, Pointer, VectorName, Rows, Struct, VectorLanes, Lambda, FunctionName, Itself]


def innermost(type: CppType) -> CppType:
    """The type of the numbers in an array or a vector, and of anything else itself."""
    type = type.value
    while type.sort in ("array", "vector") and type.to is not None:
        type = type.to.value
    return type


def literal(value: int | float | bool, code: str) -> NumberText:
    """A constant as Python has it."""
    value = as_type(value, code)
    if isinstance(value, bool):
        return NumberText(str(value), code, "bool", value=value)
    if isinstance(value, int):
        level = SIGN if value < 0 else ATOM
        return NumberText(str(value), code, "int", level, value, counts=0 <= value < 2**31)
    if math.isfinite(value):
        return NumberText(_shortest(value, code), code, "float", SIGN if math.copysign(1.0, value) < 0 else ATOM, value)
    text = "math.nan" if math.isnan(value) else "math.inf" if value > 0 else "-math.inf"
    return NumberText(text, code, "float", SIGN, value)


def as_type(value: int | float | bool, code: str) -> int | float | bool:
    """A constant converted as C++ converts it."""
    if code == "bool":
        return bool(value)
    if code in BITS:
        if isinstance(value, float):
            value = int(value) if math.isfinite(value) else 0
        return wrapped(int(value), code)
    value = float(value)
    if code == "f64" or not math.isfinite(value):
        return value
    try:
        return float(struct.unpack("e" if code == "f16" else "f", struct.pack("e" if code == "f16" else "f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def is_exact(value: int | float | bool, code: str) -> bool:
    """Whether a floating-point type has a number as it is."""
    return as_type(value, code) == value or value != value


def _shortest(value: float, code: str) -> str:
    """The shortest text that is rounded to a number of a type."""
    if code != "f64":
        for digits in range(1, 18):
            text = f"{value:.{digits}g}"
            if as_type(float(text), code) == value:
                return repr(float(text))
    return repr(value)


def weak_in(code: NumberText, held: str) -> NumberText:
    """An integer literal as one that a register of 32 bits holds, with the same bits."""
    if code.held == "int" and held in ("i32", "u32") and not isinstance(code.value, bool) and isinstance(code.value, int):
        value = wrapped(code.value, held)
        return evolve(code, text=str(value), value=value, level=SIGN if value < 0 else ATOM)
    return code


def is_settled(code: NumberText) -> bool:
    """Whether the register has the number that C++ has."""
    return code.weak or code.held == register(code.type) or (code.counts and code.type in ("i32", "u32"))
