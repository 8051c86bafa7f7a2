"""Instructions that load and store, and where spans lie.

A vertex's own words, its plain fields and the pointers and lengths of the others, are loaded from the vertex; a row of a list has a
pointer and a length of its own in memory. Stores of less than 32 bits are functions of software.
"""

from __future__ import annotations

from pypoplar.codelet.cost.addresses import Address, SpanValue
from pypoplar.codelet.cost.affine_index import AffineIndex
from pypoplar.codelet.cost.instructions import ALIASES, POINTER, Instruction, MemoryAccess, MemoryPlace, Pipe, Register
from pypoplar.codelet.cost.scalar_prices import NARROW, StatementPrices
from pypoplar.codelet.cost.selection import Selection, file_of, words_of
from pypoplar.codelet.ir.memory_types import REGISTERS_OF, SIZES
from pypoplar.codelet.ir.typed import (
    Length,
    Literal,
    Load,
    Member,
    Row,
    Scratch,
    Slice,
    Span,
    SpanList,
    Store,
    ViewAs,
)

VERTEX = "vertex"  # the base of a vertex's own words
ROW_BYTES = 8  # of a row's pointer and length
ANY_LENGTH = (1 << 32) - 1  # a length is unsigned
_MOST_LOADED = {"u8": 0xFF, "u16": 0xFFFF, "bool": 1}
_LOADS = {"i8": "lds8", "u8": "ldz8", "bool": "ldz8", "i16": "lds16", "u16": "ldz16", "f16": "ldb16"}


def load(selection: Selection, statement: Load) -> None:
    element = statement.span.element
    address, safe = address_of(selection, statement)
    access, type = MemoryAccess(ALIASES[element], address.place), REGISTERS_OF[element]
    name = _LOADS.get(element, "ld32")
    instruction = Instruction(name, Pipe.MAIN, statement.where, reads=address.reads, slots=words_of(type), access=access)
    register = selection.numbering.load(instruction, file_of(type), safe=safe, words=words_of(type))
    if instruction.result is register:
        address.serve(instruction)
    if element in _MOST_LOADED:
        selection.most[register] = _MOST_LOADED[element]
    selection.locals[statement.target.name] = register


def store(selection: Selection, statement: Store) -> None:
    element = statement.span.element
    type = REGISTERS_OF[element]
    known = selection.known(statement.value)
    value = selection.in_register(known, statement.where, file_of(type))
    address, _ = address_of(selection, statement)
    narrow = element in NARROW
    instruction = Instruction(
        f"call __st{8 * SIZES[element]}" if narrow else "st32", Pipe.MAIN, statement.where,
        reads=(*address.reads, *([] if value is None else [value])),
        slots=StatementPrices().narrow_store if narrow else words_of(type),
        access=MemoryAccess(ALIASES[element], address.place), stores=True, call=narrow, needed=True,
    )  # fmt: skip
    kept = known if isinstance(known, Register) and known.whole is not None and known.file is file_of(type) else value
    selection.numbering.store(instruction, kept if isinstance(known, Register) and not narrow else None)
    address.serve(instruction)


def address_of(selection: Selection, statement: Load | Store) -> tuple[Address, bool]:
    """Where an access goes, and whether it may be executed for nothing: a field's place is there in any case."""
    name = statement.span.name
    scalar = next((field for field in selection.codelet.fields if field.name == name and field.form == "scalar"), None)
    if scalar is not None and scalar.access == "state":
        return Address(MemoryPlace(VERTEX, name, 0), ()), True
    index = selection.index(statement.index)
    return selection.addresses.of(
        span_value(selection, statement.span), index, statement.span.size, statement.where
    ), scalar is not None


# Spans


def span_value(selection: Selection, span: Span | SpanList) -> SpanValue:
    """Where a bound span, a field or a constant table lies."""
    if span.name in selection.spans:
        return selection.spans[span.name]
    table = next((table for table in selection.codelet.tables if table.name == span.name), None)
    if table is None:
        return _field_value(selection, span.name)
    address = Instruction("setzi", Pipe.MAIN, 0)
    length = table.shape[0] if table.shape else 0
    return SpanValue(
        ("table", span.name),
        lambda where: selection.numbering.value(("table", span.name), address, Pipe.MAIN),
        AffineIndex(),
        lambda where: length,
    )


def _field_value(selection: Selection, name: str) -> SpanValue:
    def word(alias: str, where: int) -> Register:
        access = MemoryAccess(alias, MemoryPlace(VERTEX, (name, alias), 0))
        instruction = Instruction("ld32", Pipe.MAIN, where, access=access)
        return selection.numbering.load(instruction, Pipe.MAIN, safe=True)

    def length(where: int) -> Register:
        register = word("int", where)
        selection.most[register] = ANY_LENGTH
        return register

    base = ("field", name)
    selection.roots[base] = name
    return SpanValue(base, lambda where: word(POINTER, where), AffineIndex(), length)


def set_length(selection: Selection, statement: Length) -> None:
    length = span_value(selection, statement.span).length(statement.where)
    selection.locals[statement.target.name] = Literal(length, "i32") if isinstance(length, int) else length


def row(selection: Selection, statement: Row) -> None:
    index, rows = selection.index(statement.index), span_value(selection, statement.rows)
    table = next((table for table in selection.codelet.tables if table.name == statement.rows.name), None)
    if table is not None:
        width = table.shape[1]
        first = rows.first + index.times(width * SIZES[table.element])
        selection.spans[statement.target.name] = SpanValue(rows.base, rows.pointer, first, lambda where: width)
        return
    address = selection.addresses.of(rows, index, ROW_BYTES, statement.where)

    def word(offset: int, alias: str, where: int) -> Register:
        place = MemoryPlace(("rows", address.place.base), address.place.distance, address.place.offset + offset)
        instruction = Instruction("ld32", Pipe.MAIN, where, reads=address.reads, access=MemoryAccess(alias, place))
        register = selection.numbering.load(instruction, Pipe.MAIN, safe=False)
        if instruction.result is register:
            address.serve(instruction)
        return register

    def length(where: int) -> Register:
        register = word(SIZES["i32"], "int", where)
        selection.most[register] = ANY_LENGTH
        return register

    pointer = word(0, POINTER, statement.where)
    if rows.base in selection.roots:
        selection.roots[pointer] = selection.roots[rows.base]
    selection.spans[statement.target.name] = SpanValue(pointer, lambda where: pointer, AffineIndex(), length)


def slice_of(selection: Selection, statement: Slice) -> None:
    span = span_value(selection, statement.span)
    begin, end = selection.index(statement.begin), selection.index(statement.end)
    size = statement.span.size if isinstance(statement.span, Span) else ROW_BYTES
    elements = end - begin

    def length(where: int) -> Register | int:
        if not elements.terms:
            return elements.constant
        reads = tuple(register for register, _ in elements.in_order())
        key = ("sum", elements.terms, elements.constant)
        return selection.numbering.value(key, Instruction("sub", Pipe.MAIN, where, reads=reads), Pipe.MAIN)

    selection.spans[statement.target.name] = SpanValue(span.base, span.pointer, span.first + begin.times(size), length)


def member(selection: Selection, statement: Member) -> None:
    span, length = span_value(selection, statement.span), statement.length
    first = span.first + selection.index(statement.index).times(statement.span.size) + AffineIndex(constant=statement.offset)
    selection.spans[statement.target.name] = SpanValue(span.base, span.pointer, first, lambda where: length)


def view(selection: Selection, statement: ViewAs) -> None:
    span, size = span_value(selection, statement.span), statement.target.size

    def length(where: int) -> Register | int:
        whole = span.length(where)
        if isinstance(whole, int):
            return whole * statement.span.size // size
        shifts = size & (size - 1) == 0
        instruction = Instruction("shr" if shifts else "call __udivsi3", Pipe.MAIN, where, reads=(whole,), call=not shifts)
        return selection.numbering.value(("records", whole, size), instruction, Pipe.MAIN)

    selection.spans[statement.target.name] = SpanValue(span.base, span.pointer, span.first, length)


def scratch(selection: Selection, statement: Scratch) -> None:
    length = next(array.length for array in selection.codelet.arrays if array.name == statement.array)
    selection.spans[statement.target.name] = SpanValue(
        ("array", statement.array), lambda where: None, AffineIndex(), lambda where: length
    )
