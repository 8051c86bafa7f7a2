"""The types of device code: promotion in arithmetic, joins of locals, conversions at stores, literals.

Register types are ``f32 f16 i32 u32 i64 u64 bool``. A literal is a `Weak` number until it meets a typed operand.
"""

from __future__ import annotations

import math

from attrs import field, frozen

from pypoplar.codelet.ir.terms import exactly
from pypoplar.codelet.ir.typed import Literal, Local, Span, SpanList
from pypoplar.codelet.language.record_layout import RecordLayout
from pypoplar.codelet.operations.registers import FLOATS, INTEGERS, half, single

NAMES = {
    "f32": "FLOAT", "f16": "HALF", "i32": "INT", "u32": "UNSIGNED_INT", "i64": "LONGLONG", "u64": "UNSIGNED_LONGLONG",
    "bool": "BOOL", "i8": "CHAR", "u8": "UNSIGNED_CHAR", "i16": "SHORT", "u16": "UNSIGNED_SHORT",
}  # fmt: skip
"""What users call the types."""

RANGES: dict[str, tuple[int, int]] = {
    f"{sign}{bits}": (-(2 ** (bits - 1)) if sign == "i" else 0, 2 ** (bits - (sign == "i")) - 1)
    for sign in "iu"
    for bits in (8, 16, 32, 64)
}
_LARGEST = {"f32": (2 - 2.0**-24) * 2.0**127, "f16": 65520.0}  # numbers from here on round to infinity


class Mixed(Exception):
    """Types that do not go together; the text says so and what to write."""


@frozen
class Weak:
    """A number whose type is still open: a literal, a frozen constant, or arithmetic on these."""

    value: int | float = field(eq=exactly)

    @property
    def alone(self) -> str:
        """Its type where nothing else decides."""
        return "i32" if isinstance(self.value, int) else "f32"


@frozen
class SpanView:
    """A vector in device code: a field, a row or a slice. `stable` spans are never bound anew, so their name may stand for them."""

    span: Span
    writable: bool
    origin: str  # how the user wrote it, for messages
    stable: bool = True
    is_table: bool = False
    depth: int = 0  # of the call whose scratch array it may be a piece of: what else there is lasts as long as compute does
    layout: RecordLayout | None = None  # of the records that it holds


@frozen
class RecordView:
    """One record in device code: a span of that one."""

    span: Span
    layout: RecordLayout
    writable: bool
    origin: str  # how the user wrote it, for messages
    stable: bool = True
    depth: int = 0  # as that of a `SpanView`


@frozen
class RowsView:
    """Rows in device code: a list field or a slice of one."""

    rows: SpanList
    writable: bool
    origin: str  # how the user wrote it, for messages
    stable: bool = True
    is_table: bool = False


@frozen
class VertexValue:
    """The vertex itself: ``self``."""


@frozen
class Text:
    """A string constant; only debug_print, check and print take one."""

    value: str


@frozen
class TupleValue:
    """Several values: the right side of ``a, b = b, a``, or what a helper function returns."""

    values: tuple[Value, ...]


View = SpanView | RowsView | RecordView
Value = Weak | Local | Literal | View | VertexValue | Text | TupleValue
Number = Weak | Local | Literal


def promote(left: str, right: str) -> str:
    """The type of arithmetic between two typed operands."""
    if left == right:
        return left
    pair = {left, right}
    if "bool" in pair:
        other = NAMES[(pair - {"bool"}).pop()]
        raise Mixed(f"a BOOL does not mix with {_article(other)}: write int(...) around the BOOL")
    if pair == {"f32", "f16"}:
        return "f32"
    if "f16" in pair:
        other = NAMES[(pair - {"f16"}).pop()]
        raise Mixed(f"HALF does not mix with {other}: write HALF(...) or float(...) around the {other}")
    if "f32" in pair:
        other = (pair - {"f32"}).pop()
        if other in ("i64", "u64"):
            raise Mixed(f"FLOAT does not mix with {NAMES[other]}: write float(...) around the {NAMES[other]}")
        return "f32"
    return next(type for type in ("u64", "i64", "u32") if type in pair)  # C++'s conversions: the wider, then the unsigned


def join(left: str, right: str) -> str:
    """The type of a local that is assigned both."""
    if left == right:
        return left
    if {left, right} in ({"i32", "f32"}, {"f16", "f32"}):
        return "f32"
    raise Mixed(
        f"it is {_article(NAMES[left])} elsewhere and {_article(NAMES[right])} here: "
        f"write {NAMES[left]}(...) here, or {NAMES[right]}(...) where it is first assigned"
    )


def weak_with(weak: Weak, type: str) -> str:
    """The type of arithmetic between a literal and a typed operand: the operand's, if the literal can take it."""
    if type == "bool":
        raise Mixed(f"a BOOL does not mix with the number {weak.value}: write int(...) around the BOOL, or True or False")
    if isinstance(weak.value, float) and type in INTEGERS:
        return promote(type, "f32")
    return type


def common_type(values: list[Number]) -> str:
    """The type in which several operands meet."""
    typed = [value.type for value in values if not isinstance(value, Weak)]
    weak = [value for value in values if isinstance(value, Weak)]
    if not typed:
        return "f32" if any(number.alone == "f32" for number in weak) else "i32"
    type = typed[0]
    for other in typed[1:]:
        type = promote(type, other)
    for number in weak:
        type = weak_with(number, type)
    return type


def literal(value: int | float, type: str) -> Literal:
    """The literal as an operand, in the register of `type` (a register or memory type); `Mixed` if `type` does not hold it."""
    if type == "bool":
        raise Mixed(f"expected a BOOL, got the number {value}: write True or False")
    if type in RANGES:
        if isinstance(value, float):
            raise Mixed(f"{value} is a float and {NAMES[type]} is an integer type: write int({value})")
        low, high = RANGES[type]
        if not low <= value <= high:
            wider = next((other for other in ("u32", "i64", "u64") if RANGES[other][0] <= value <= RANGES[other][1]), None)
            hint = f"; {NAMES[wider]}({value}) would hold it" if type == "i32" and wider else ""
            raise Mixed(f"{value} is out of the range of {NAMES[type]}, {low} to {high}{hint}")
        return Literal(value, register_of(type))
    if isinstance(value, float) and not math.isfinite(value):
        return Literal(value, register_of(type))
    if abs(value) >= _LARGEST[type]:
        largest = "65504" if type == "f16" else "3.4028235e+38"
        raise Mixed(f"{value} is out of the range of {NAMES[type]}, whose largest number is {largest}")
    return Literal(rounded(float(value), type), type)


def rounded(value: float, type: str) -> float:
    """The nearest number of a floating-point type."""
    return single(value) if type == "f32" else half(value)


def conversion(source: str, target: str) -> str | None:
    """The operation that converts a register type to another, None if there is nothing to do."""
    return None if source == target else f"{target}_from_{source}"


def check_store(source: str, target: str, what: str) -> None:
    """Raise `Mixed` unless a value of register type `source` may be stored to `what`, of memory type `target`, as it is."""
    name = NAMES[target]
    if source == target:
        return
    if source == "bool":
        raise Mixed(f"{what} is {_article(name)}, the value a BOOL: write {'float' if target in FLOATS else 'int'}(...)")
    if target == "bool":
        raise Mixed(f"{what} is a BOOL, the value {_article(NAMES[source])}: write bool(...) or a comparison")
    if source in FLOATS and target in RANGES:
        raise Mixed(f"{what} is {_article(name)}, the value a {NAMES[source]}: write int(...), which truncates")
    if source in RANGES and target in FLOATS and (target == "f16" or source in ("i64", "u64")):
        raise Mixed(f"{what} is a {name}, the value {_article(NAMES[source])}: write {name if target == 'f16' else 'float'}(...)")


def register_of(memory: str) -> str:
    """The register type in which a memory type is loaded."""
    return "i32" if memory in ("i8", "u8", "i16", "u16") else memory


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
