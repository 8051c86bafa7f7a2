"""What native code holds for a vertex while it runs: its locals, spans and counters, and how to read and write them.

A local is a stack slot, of which LLVM makes registers. The value of a scalar field is kept in a local as well, next to its place in
memory: reads take the local, writes go to both. A fault records itself and goes to the vertex's end.
"""

from __future__ import annotations

from typing import Any

from attrs import define, field, frozen
from llvmlite import ir

from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.proven_accesses import Line
from pypoplar.codelet.ir.span_roots import loaded_scalars, stored_fields
from pypoplar.codelet.ir.typed import Literal, Local, Operand, Price, Span, SpanList, TypedCodelet
from pypoplar.codelet.llvm import halves
from pypoplar.codelet.llvm import memory_access as access
from pypoplar.codelet.llvm.arithmetic import REGISTER_FORMS
from pypoplar.codelet.llvm.memory_access import BOOL, BYTE, MARKED, WORD, Place, word
from pypoplar.codelet.operations.registers import half
from pypoplar.interface.context_words import CallArgument, Context
from pypoplar.interface.edge_rows import RowEntry, Touch, edge_row, entry_words
from pypoplar.interface.fault_codes import NO_FAULT, FaultCode
from pypoplar.interface.layout import NOTHING, WORD_BYTES


@frozen(eq=False)
class Rounds:
    """A ``for`` that is about to run: start, step and number of rounds, each ``i64``."""

    start: Any
    step: Any
    count: Any


@define(eq=False)
class Lines:
    """The proven accesses of a running loop: where each line begins."""

    rounds: Rounds
    round: Any = None  # i64, counts from 0
    bases: dict[Line, Any] = field(factory=dict)


@define(eq=False)
class Frame:
    """One vertex while it runs: values of native code."""

    number: Any  # i64, the vertex's row in its group
    end: Any  # the block that ends the vertex
    failed: Any  # the block that a fault goes to
    slots: Any  # stack slot, i64
    result: Any  # stack slot, i8: what compute returned so far
    fields: dict[str, Place]
    locals: dict[str, Any] = field(factory=dict)  # stack slots
    spans: dict[str, Place] = field(factory=dict)  # of stack slots
    scalars: dict[str, Any] = field(factory=dict)  # stack slots of scalar fields' values
    lines: Lines | None = None  # while the loop without checks is written
    holds_back: bool = False  # whether scalar fields are written to memory later, all at once
    otherwise: Any = None  # where a fault goes instead, while code is only tried out
    lanes: int = 1  # frames whose values a local holds
    work: tuple[Any, ...] = ()  # stack slots, i64: flops and bytes, where they are counted


class Writer:
    """Writes the reads and writes of one codelet's native code where `builder` stands."""

    def __init__(self, function: Any, codelet: TypedCodelet, checks: Checks) -> None:
        self.codelet = codelet
        self.checks = checks
        self.function = function
        arguments = function.args
        self.memory, self.rows = arguments[CallArgument.MEMORY], arguments[CallArgument.ROWS]
        self.row_table, self.count = arguments[CallArgument.ROW_TABLE], arguments[CallArgument.COUNT]
        self.slots, self.results = arguments[CallArgument.SLOTS], arguments[CallArgument.RESULTS]
        self.context = arguments[CallArgument.CONTEXT]
        self.entry = function.append_basic_block("entry")
        self.allocations = ir.IRBuilder(self.entry)
        self.builder = ir.IRBuilder(function.append_basic_block("start"))
        self.layout = edge_row(codelet.fields, record_touches=checks.touches)
        self.stored = stored_fields(codelet)
        self.kept = loaded_scalars(codelet) if checks.keeps_scalars else frozenset()
        self.scopes = access.Scopes(function.module, codelet, known_apart=not checks.touches)
        self.limit = self._cycle_limit()
        self.record_fault = _fault_recorder(function.module)

    def _cycle_limit(self) -> Any:
        given = self.load_context(Context.CYCLE_LIMIT)
        return self.builder.select(self.builder.icmp_signed("==", given, word(0)), word(2**63 - 1), given)

    # Words around the vertex

    def load_context(self, number: Context) -> Any:
        pointer = self.builder.inttoptr(self.builder.add(self.context, word(WORD_BYTES * number)), WORD.as_pointer())
        return self.builder.load(pointer, align=8)

    def store_context(self, number: Context, value: Any) -> None:
        pointer = self.builder.inttoptr(self.builder.add(self.context, word(WORD_BYTES * number)), WORD.as_pointer())
        self.builder.store(value, pointer, align=8)

    def allocate(self, form: Any) -> Any:
        """A stack slot; all are made in the function's first block, so that none is made twice."""
        return self.allocations.alloca(form)

    # Frames

    def begin(self, number: Any, end: Any, failed: Any = None) -> Frame:
        """The frame of the vertex with edge row `number` of the group; it ends at the block `end`, after a fault at `failed`."""
        builder = self.builder
        row = builder.add(self.rows, builder.mul(number, word(WORD_BYTES * self.layout.words)))

        def load(at: int) -> Any:
            return access.load_invariant(builder, builder.add(row, word(WORD_BYTES * at)))

        fields = {}
        for one, words in zip(self.codelet.fields, self.layout.fields, strict=True):
            start = load(words.start)
            count = load(words.extent) if words.extent != NOTHING else word(1)
            touch = builder.add(self.memory, load(words.touch)) if words.touch != NOTHING else None
            fields[one.name] = Place(start if one.form == "list" else builder.add(self.memory, start), count, touch)
        frame = Frame(number, end, failed or end, self.allocate(WORD), self.allocate(BYTE), fields, work=self.allocate_work())
        self.begin_counting(frame)
        builder.store(BYTE(1), frame.result)
        self.load_scalars(frame)
        return frame

    def allocate_work(self) -> tuple[Any, ...]:
        return (self.allocate(WORD), self.allocate(WORD)) if self.checks.flops else ()

    def begin_counting(self, frame: Frame) -> None:
        for one in (frame.slots, *frame.work):
            self.builder.store(word(0), one)

    def load_scalars(self, frame: Frame) -> None:
        """Take the values of the scalar fields into locals."""
        for one in self.codelet.fields:
            if one.form == "scalar" and one.name in self.kept:
                span = Span(one.name, one.element)
                value = self.load(span, self.element(frame, span, word(0)))
                frame.scalars.setdefault(one.name, self.allocate(value.type))
                self.builder.store(value, frame.scalars[one.name])

    # Locals and spans

    def local(self, frame: Frame, local: Local) -> Any:
        if local.name not in frame.locals:
            form = REGISTER_FORMS[local.type]
            if frame.lanes > 1:
                form = ir.VectorType(form, frame.lanes)
            slot = frame.locals[local.name] = self.allocate(form)
            self.allocations.store(halves.constant(form, 0), slot)
        return frame.locals[local.name]

    def value(self, frame: Frame, operand: Operand) -> Any:
        if isinstance(operand, Local):
            return self.builder.load(self.local(frame, operand))
        value = constant(operand)
        return ir.Constant(ir.VectorType(value.type, frame.lanes), [value] * frame.lanes) if frame.lanes > 1 else value

    def assign(self, frame: Frame, local: Local, value: Any) -> None:
        self.builder.store(value, self.local(frame, local))

    def index(self, frame: Frame, operand: Operand) -> Any:
        """An integer operand as an ``i64``."""
        if isinstance(operand, Literal):
            return word(int(operand.value))
        return access.widened(self.builder, self.value(frame, operand), operand.type)

    def place(self, frame: Frame, span: Span | SpanList) -> Place:
        """Where a span is."""
        if span.name in frame.fields:
            return frame.fields[span.name]
        held = frame.spans[span.name]
        touch = self.builder.load(held.touch) if self.checks.touches else None
        return Place(self.builder.load(held.address), self.builder.load(held.length), touch)

    def bind(self, frame: Frame, span: Span, place: Place) -> None:
        if span.name not in frame.spans:
            frame.spans[span.name] = Place(self.allocate(WORD), self.allocate(WORD), self.allocate(WORD))
        held = frame.spans[span.name]
        self.builder.store(place.address, held.address)
        self.builder.store(place.length, held.length)
        if self.checks.touches:
            self.builder.store(word(0) if place.touch is None else place.touch, held.touch)

    def bind_row(self, frame: Frame, target: Span, rows: SpanList, index: Any) -> None:
        """Bind a span to the row at an index that has been checked."""
        builder = self.builder
        size = WORD_BYTES * entry_words(record_touches=self.checks.touches)
        entry = builder.add(self.place(frame, rows).address, index)
        address = builder.add(self.row_table, builder.mul(entry, word(size)))

        def load(column: RowEntry) -> Any:
            return access.load_invariant(builder, builder.add(address, word(WORD_BYTES * column)))

        start, length = load(RowEntry.ADDRESS), load(RowEntry.LENGTH)
        touch = builder.add(self.memory, load(RowEntry.TOUCH)) if self.checks.touches else None
        self.bind(frame, target, Place(builder.add(self.memory, start), length, touch))

    # Memory

    def element(self, frame: Frame, span: Span, index: Any) -> Any:
        """Pointer to an element."""
        form = access.memory_form(span.element)
        base = self.builder.inttoptr(self.place(frame, span).address, form.as_pointer())
        return self.builder.gep(base, [index], inbounds=True, source_etype=form)

    def load(self, span: Span, pointer: Any) -> Any:
        value, load = access.load_element(self.builder, pointer, span.element)
        self.scopes.mark(load, span.name)
        return value

    def store(self, span: Span, pointer: Any, value: Any) -> None:
        made = access.to_memory(self.builder, value, span.element)
        store = self.builder.store(made, pointer, align=access.alignment(span.element))
        self.scopes.mark(store, span.name)

    def touch(self, frame: Frame, span: Span, index: Any, bit: Touch) -> None:
        """Note a read or a write of an element; state has no touch bytes."""
        if not self.checks.touches:
            return
        place = self.place(frame, span)
        if place.touch is None:
            return
        with self.builder.if_then(self.builder.icmp_unsigned("!=", place.touch, word(0))):
            pointer = self.builder.inttoptr(self.builder.add(place.touch, index), BYTE.as_pointer())
            self.builder.store(self.builder.or_(self.builder.load(pointer), BYTE(bit)), pointer)

    # Faults

    def fault(self, frame: Frame, code: int | Any, where: int, value: Any, bound: Any) -> None:
        """Stop the vertex here."""
        what = word(code) if isinstance(code, int) else code
        self.builder.call(self.record_fault, [self.context, frame.number, what, word(where), value, bound])
        self.builder.branch(frame.failed)

    def fault_unless(self, frame: Frame, fine: Any, code: int | Any, where: int, value: Any, bound: Any) -> None:
        """Go on if a condition holds, else stop the vertex."""
        if frame.otherwise is not None:
            self.require(fine, frame.otherwise)
            return
        going, failing = self.builder.append_basic_block(), self.builder.append_basic_block()
        self.builder.cbranch(fine, going, failing).set_weights([1 << 20, 1])
        self.builder.position_at_end(failing)
        self.fault(frame, code, where, value, bound)
        self.builder.position_at_end(going)

    def require(self, condition: Any, otherwise: Any) -> None:
        """Go on if a condition holds, else go to a block."""
        going = self.builder.append_basic_block()
        self.builder.cbranch(condition, going, otherwise).set_weights([1 << 20, 1])
        self.builder.position_at_end(going)

    def check_index(self, frame: Frame, index: Any, length: Any, code: int, where: int) -> None:
        self.fault_unless(frame, self.builder.icmp_unsigned("<", index, length), code, where, index, length)

    def check_written(self, frame: Frame, span: Span, pointer: Any, index: Any, where: int) -> None:
        """A read of memory that nothing has written is a fault."""
        if not self.checks.uninitialised or span.element not in MARKED:
            return
        form = ir.IntType(8 * SIZES[span.element])
        bits = self.builder.load(pointer, typ=form, align=access.alignment(span.element))
        fine = self.builder.icmp_unsigned("!=", bits, form(-1))
        self.fault_unless(frame, fine, FaultCode.UNINITIALISED, where, index, word(0))

    def spend(self, frame: Frame, price: Price, times: Any = None) -> None:
        """Add the price of a block that runs once, or `times` times (an ``i64``)."""
        for slot, amount in zip((frame.slots, *frame.work), (price.slots, price.flops, price.bytes), strict=False):
            if amount:
                self.add_to(slot, word(amount) if times is None else self.builder.mul(times, word(amount)))

    def add_to(self, slot: Any, amount: Any) -> None:
        self.builder.store(self.builder.add(self.builder.load(slot), amount), slot)


def constant(literal: Literal) -> Any:
    """A literal as a register. A half is rounded as the operations round."""
    form = REGISTER_FORMS[literal.type]
    if literal.type == "f16":
        return ir.Constant(form, half(literal.value))
    if literal.type == "f32":
        return ir.Constant(form, float(literal.value))
    if literal.type == "bool":
        return ir.Constant(BOOL, int(literal.value))
    # LLVM's text takes signed numbers of the type's width.
    width = form.width
    return ir.Constant(form, (int(literal.value) + (1 << (width - 1))) % (1 << width) - (1 << (width - 1)))


def _fault_recorder(module: Any) -> Any:
    """``record_fault(context, number, code, where, value, bound)``: writes down the group's first fault."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD] * 6), "record_fault")
    function.linkage = "internal"
    for attribute in ("noinline", "cold", "nounwind"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block())
    context, number, code, where, value, bound = function.args
    words = builder.inttoptr(context, WORD.as_pointer())
    known = builder.load(builder.gep(words, [word(Context.FAULT)], source_etype=WORD))
    places = (Context.FAULT, Context.FAULT_VERTEX, Context.FAULT_LOCATION, Context.FAULT_VALUE, Context.FAULT_BOUND)
    with builder.if_then(builder.icmp_signed("==", known, word(NO_FAULT))):
        for place, told in zip(places, (code, number, where, value, bound), strict=True):
            builder.store(told, builder.gep(words, [word(place)], source_etype=WORD))
    builder.ret_void()
    return function
