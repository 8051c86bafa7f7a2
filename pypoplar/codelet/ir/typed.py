"""The typed form of a codelet: what both engines run.

The translator turns a codelet's Python into this form once. It is a tree of statements in which every operation is a
typed call with simple operands (``add_f32(a, b)``), every memory access names its span and index, and every statement knows the
user's line. Short-circuit and conditional expressions, helper calls and iteration over vectors have become statements already, so
what is left has no hidden order and no hidden types. Before it runs, `pypoplar.codelet.cost.pricing` puts the prices of a target
before its straight runs. A word that nobody knows, for a type or a kind say, is refused by name where the form is made.

Register types: ``f32 f16 i32 u32 i64 u64 bool``. Memory types add ``i8 u8 i16 u16``; loading them gives an ``i32``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import cached_property
from typing import Any, Union

from attrs import Attribute, field, frozen

from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.terms import ACCESSES, FORMS, KINDS, Access, Form, Kind, Location, exactly
from pypoplar.codelet.operations.matrix_price import MatrixPrice
from pypoplar.codelet.operations.matrix_unit import VECTOR_OPERATIONS
from pypoplar.codelet.operations.registers import REGISTERS
from pypoplar.codelet.operations.tile_readings import READINGS
from pypoplar.interface.layout import NOTHING
from pypoplar.spelling import nearest


def _one_of(known: Collection[str]) -> Callable[[object, Attribute[str], str], None]:
    """A validator of a word."""

    def validate(instance: object, attribute: Attribute[str], word: str) -> None:
        if word not in known:
            what = f"{type(instance).__name__}.{attribute.name}"
            raise ValueError(f"{what} is {word!r}, expected one of {', '.join(known)}{nearest(word, known)}")

    return validate


def register_type() -> Any:
    return field(validator=_one_of(REGISTERS))


def memory_type() -> Any:
    return field(validator=_one_of(SIZES))


@frozen
class Local:
    """A local variable or temporary; a name has one type in the whole codelet."""

    name: str
    type: str = register_type()


@frozen
class Literal:
    """A constant operand: its value, and the type of the register that it would be in."""

    value: int | float | bool = field(eq=exactly)
    type: str = register_type()


Operand = Union[Local, Literal]


@frozen
class Span:
    """A contiguous piece of the tile's memory: a field, a row of a list field, or a slice of either.

    An index counts `unit` elements: 1, or the bytes of a record. In a field of records touches are recorded `by_byte`.
    """

    name: str
    element: str = memory_type()
    unit: int = 1
    by_byte: bool = False

    @property
    def size(self) -> int:
        """Bytes from an index to the next."""
        return SIZES[self.element] * self.unit

    @property
    def marks(self) -> int:
        """Touches that are recorded from an index to the next, where they are recorded."""
        return self.size if self.by_byte else 1


@frozen
class SpanList:
    """Rows, each a span of its own length: a ``VectorList`` field, or a slice of one."""

    name: str
    element: str = memory_type()


@frozen
class Apply:
    """``target = operation(*arguments)``; operation is a name of `pypoplar.codelet.operations.table`, such as ``add_f32``.

    Statements with one number `together`, other than 0, follow each other and are an instruction on a vector of the hardware, each
    for one of its elements, in their order; loads and stores have them in neighbouring places. Only their price knows of it.
    """

    target: Local
    operation: str
    arguments: tuple[Operand, ...]
    where: int
    together: int = 0


@frozen
class Load:
    """``target = span[index]``. An unchecked load is the value of a scalar field (index 0). `together` is as in `Apply`."""

    target: Local
    span: Span
    index: Operand
    where: int
    checked: bool = True
    together: int = 0


@frozen
class Store:
    """``span[index] = value``; `value` already has the register type of the span's element. `together` is as in `Apply`."""

    span: Span
    index: Operand
    value: Operand
    where: int
    checked: bool = True
    together: int = 0


@frozen
class Length:
    """``target = len(span)``, an ``i32``."""

    target: Local
    span: Span | SpanList
    where: int


@frozen
class Row:
    """``target = rows[index]``: binds the span `target`; index beyond the rows is an error."""

    target: Span
    rows: SpanList
    index: Operand
    where: int


@frozen
class Slice:
    """``target = span[begin:end]``, elements of a span or rows of a list; ``0 <= begin <= end <= len(span)`` or an error."""

    target: Span | SpanList
    span: Span | SpanList
    begin: Operand
    end: Operand
    where: int


@frozen
class Scratch:
    """``target = ipu.array(...)``: binds the span `target` to all of an array of the codelet, which holds unwritten memory then."""

    target: Span
    array: str
    where: int


@frozen
class Member:
    """``target``: what lies from byte `offset` of the record ``span[index]`` on, `length` long; the index is checked."""

    target: Span
    span: Span
    index: Operand
    offset: int
    length: int
    where: int


@frozen
class ViewAs:
    """``target``: the bytes of `span` as records; it begins at a multiple of `alignment` and holds whole records, or an error."""

    target: Span
    span: Span
    alignment: int
    where: int


@frozen
class IfElse:
    """One of two blocks, by a condition."""

    condition: Operand
    then: Block
    orelse: Block
    where: int


@frozen
class While:
    """Run `head`; while `condition` (set by head) is true run `body` and `head` again. Subject to the cycle limit."""

    head: Block
    condition: Operand
    body: Block
    where: int


@frozen
class RoundsPrice:
    """What the rounds of a loop cost together: so many `slots` for each `width` rounds, and `rest` for each that is left over.

    It is paid as the loop begins, whatever becomes of the rounds. A hardware loop on vectors of `width` elements costs so.
    """

    width: int
    slots: int
    rest: int
    bound: int = field(default=0, repr=False)  # of `width` rounds, see `Price`
    bound_of_rest: int = field(default=0, repr=False)
    block: int = field(
        default=NOTHING, repr=False
    )  # number of a block of `width` rounds, see `Price`; the next is of one left over

    def total(self, rounds: int) -> int:
        """The price of all rounds."""
        return rounds // self.width * self.slots + rounds % self.width * self.rest

    def total_bound(self, rounds: int) -> int:
        """The bound of all rounds."""
        return rounds // self.width * self.bound + rounds % self.width * self.bound_of_rest


@frozen
class WorkerShare:
    """That a loop's rounds are a worker's share of the indices below `count`, by pieces of `grain`: all workers take all."""

    worker: Operand
    count: Operand
    grain: int


@frozen
class For:
    """``for variable in range(start, stop, step)``; the operands are fixed when the loop starts; step 0 is an error.

    The variable keeps its last value after the loop, as in Python, and may be assigned in the body without effect on the count.
    With a `price`, the rounds cost that; the prices in the body have no slots then. Where blocks are counted, that of the number
    `rounds_of` runs in each round, which is added as the loop begins. `share` says whose rounds they are, if workers divide them.
    With an `end_kept` the user has the end in a local: nothing that the body stores can be meant by it.
    """

    variable: Local
    start: Operand
    stop: Operand
    step: Operand
    body: Block
    where: int
    price: RoundsPrice | None = None
    rounds_of: int = field(default=NOTHING, repr=False)
    share: WorkerShare | None = None
    end_kept: bool = False


@frozen
class Once:
    """A block that `Leave` leaves: the body of an inlined helper function. A `Leave` never stands inside a loop of its Once."""

    body: Block


@frozen
class Leave:
    """Go to the end of the innermost `Once`."""


@frozen
class Break:
    """The end of the loop around it."""


@frozen
class Continue:
    """The end of this round of the loop around it."""


@frozen
class Return:
    """End the vertex; `value` (bool) where compute returns one."""

    value: Operand | None
    where: int


@frozen
class Price:
    """The basic block that begins here costs `slots` worker issue slots, and is `flops` and `bytes` of work.

    The work is floating-point operations, and bytes of elements loaded and stored. `bound` are the slots that hand-written code
    could reach, at most `slots`; 0 where nobody has said. Work and bound are no part of the representation, which native code that
    does not count them is cached by. `block` is the block's number where its executions are counted
    (`pypoplar.codelet.ir.block_numbers`).
    """

    slots: int
    flops: int = field(default=0, repr=False)
    bytes: int = field(default=0, repr=False)
    bound: int = field(default=0, repr=False)
    block: int = field(default=NOTHING, repr=False)

    @staticmethod
    def total(prices: Iterable[Price]) -> Price:
        """The price of several blocks."""
        blocks = list(prices)
        return Price(*(sum(getattr(price, name) for price in blocks) for name in ("slots", "flops", "bytes", "bound")))


@frozen
class Check:
    """``ipu.check(condition, message)``: a false condition is an error; `message` indexes `TypedCodelet.texts`."""

    condition: Operand
    message: int
    where: int


@frozen
class DebugPrint:
    """``print`` or ``ipu.debug_print``. `text` indexes `TypedCodelet.texts`: with ``{}`` for each value, and its own newlines."""

    text: int
    arguments: tuple[Operand, ...]
    where: int


@frozen
class Special:
    """``target = name()``; the name is one of `pypoplar.codelet.operations.tile_readings`, such as ``cycle_count``."""

    target: Local
    name: str = field(validator=_one_of(READINGS))
    where: int


@frozen
class ApplyToVectors:
    """An operation on `vectors`, named in `pypoplar.codelet.operations.matrix_unit`; `numbers` are its counts and strides, ``i32``.

    `loops` are what it means, in typed form, if its operands are no error: the statement is what they are, but in its `price`,
    and in time. They touch what it touches, in that order, and cost nothing themselves.
    """

    operation: str = field(validator=_one_of(VECTOR_OPERATIONS))
    vectors: tuple[Span, ...]
    numbers: tuple[Operand, ...]
    loops: Block
    where: int
    price: MatrixPrice | None = None  # None before it is priced
    block: int = field(
        default=NOTHING, repr=False
    )  # number of a block of one slot, see `Price`; it runs as often as there are slots


@frozen
class Breakpoint:
    """``breakpoint()``: only mode="interpret" stops at it; the native engine passes over it."""

    where: int


Straight = Apply | Load | Store | Length | Row | Slice | Member | ViewAs | Scratch | Check | DebugPrint | Special | Breakpoint
"""Statements that go on to the next one, or stop the vertex."""

Binding = Row | Slice | Member | ViewAs | Scratch
"""Statements that bind a span, or rows, to a part of another one."""

Statement = Union[
    Apply, Load, Store, Length, Row, Slice, Member, ViewAs, Scratch, Check, DebugPrint, Special, Breakpoint,
    IfElse, While, For, ApplyToVectors, Once, Leave, Break, Continue, Return, Price,
]  # fmt: skip
Block = tuple[Statement, ...]


@frozen
class TypedField:
    """A field as both engines see it; `pypoplar.interface.edge_rows` has the words of an edge row."""

    name: str  # as in the graph, without the trailing underscore
    access: Access = field(validator=_one_of(ACCESSES))
    form: Form = field(validator=_one_of(FORMS))
    element: str = memory_type()
    unit: int = 1  # elements that an index counts: 1, or the bytes of a record
    alignment: int = 0  # bytes that a vector's, or each row's, begin is a multiple of, as the user demands; 0: an element's own


@frozen
class TypedTable:
    """A constant table: a span, or a list of rows of one length, that is only read. It lies in the code."""

    name: str
    element: str = memory_type()
    shape: tuple[int, ...] = ()
    data: bytes = b""  # as in memory, row by row


@frozen
class TypedArray:
    """A scratch array: memory of one worker while it runs a vertex, on its stack. `Scratch` gives it to a span."""

    name: str
    element: str = memory_type()
    length: int = 1

    @property
    def bytes(self) -> int:
        return self.length * SIZES[self.element]


@frozen
class TypedCodelet:
    """A codelet as it was translated. `worker` is the local that holds a MultiVertex's worker number."""

    name: str
    kind: Kind = field(validator=_one_of(KINDS))
    fields: tuple[TypedField, ...]
    body: Block
    returns: bool
    locations: tuple[Location, ...]
    texts: tuple[str, ...] = ()
    worker: Local | None = None
    helpers: tuple[str, ...] = field(default=())  # names of inlined helper functions, for people who read dumps
    tables: tuple[TypedTable, ...] = ()
    arrays: tuple[TypedArray, ...] = ()
    distinct: tuple[tuple[str, str], ...] = ()  # fields that never overlap, as the user demands
    writes_all: tuple[str, ...] = ()  # Outputs that every run writes in full, as the user promises
    always_nearest: bool = False  # halves are never rounded at random, as the user wants it
    overflow_is_undefined: bool = False  # of signed integers, in the user's language

    @property
    def wholes(self) -> tuple[str, ...]:
        """Names of the fields, tables and scratch arrays: what spans are pieces of."""
        wholes: tuple[TypedField | TypedTable | TypedArray, ...] = (*self.fields, *self.tables, *self.arrays)
        return tuple(whole.name for whole in wholes)

    @cached_property
    def analyses(self) -> dict[Hashable, Any]:
        """What `pypoplar.codelet.ir.kept_analyses` keeps; no part of the form, and not handed on to one that is made of it."""
        return {}


InPlace = tuple[tuple[str, str], ...]
"""Pairs of an Input and an Output, by name, that are one tensor in some vertex."""


@frozen
class PricedCodelet(TypedCodelet):
    """A codelet ready to run: with the prices of a target.

    What is written to the one of a pair that is `in_place` is read from the other.
    """

    in_place: InPlace = ()


def check_priced(codelet: TypedCodelet) -> None:
    """`TypeError` for a codelet without prices: an engine would run it as if it cost nothing."""
    if not isinstance(codelet, PricedCodelet):
        raise TypeError(f"codelet {codelet.name} has no prices yet: engines run what pypoplar.codelet.cost.pricing.priced gives")
