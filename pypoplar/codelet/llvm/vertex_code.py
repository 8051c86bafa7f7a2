"""Writes the statements of a codelet as LLVM instructions."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from pypoplar.codelet.ir.loop_checks import never_faults
from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.proven_accesses import PlannedBlock, PlannedStatement, ProvenLoad, ProvenStore, Rebind
from pypoplar.codelet.ir.typed import (
    Apply,
    Block,
    Break,
    Check,
    Continue,
    DebugPrint,
    For,
    If,
    Leave,
    Length,
    Load,
    Once,
    Price,
    Return,
    Row,
    Slice,
    Special,
    Store,
    While,
)
from pypoplar.codelet.llvm import arithmetic
from pypoplar.codelet.llvm import memory_access as access
from pypoplar.codelet.llvm.debug_and_random import debug_recorder, random_generator
from pypoplar.codelet.llvm.emitter_state import Frame
from pypoplar.codelet.llvm.loop_code import LoopCode
from pypoplar.codelet.llvm.memory_access import BYTE, INT, WORD, Place, word
from pypoplar.codelet.operations.registers import FLOATS
from pypoplar.codelet.operations.table import operation
from pypoplar.interface.context_words import Context
from pypoplar.interface.debug_records import RECORD_WORDS, VALUE_WORDS, Record, Value, ValueType
from pypoplar.interface.edge_rows import Touch
from pypoplar.interface.fault_codes import NO_FAULT, FaultCode


class VertexCode(LoopCode):
    """Statements, on top of loops. A block ends where something leaves it; what follows there is never reached."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.leaves: list[Any] = []  # where Leave goes

    def block(self, frame: Frame, block: PlannedBlock) -> None:
        for statement in block:
            if self.builder.block.is_terminated:
                return
            self.statement(frame, statement)

    def statement(self, frame: Frame, statement: PlannedStatement) -> None:
        match statement:
            case If():
                self.branch(frame, statement)
            case While():
                self.while_loop(frame, statement)
            case For():
                self.for_loop(frame, statement)
            case Once(body=body):
                self.once(frame, body)
            case Leave():
                self.builder.branch(self.leaves[-1])
            case Break():
                self.builder.branch(self.loops[-1][0])
            case Continue():
                self.builder.branch(self.loops[-1][1])
            case Return(value=value):
                if value is not None:
                    returned = self.builder.zext(self.value(frame, value), BYTE)
                    self.builder.store(self.builder.and_(self.builder.load(frame.result), returned), frame.result)
                self.builder.branch(frame.end)
            case _:
                self.simple(frame, statement)

    def branch(self, frame: Frame, statement: If) -> None:
        builder = self.builder
        then, orelse, after = (builder.append_basic_block(name) for name in ("if.then", "if.else", "if.end"))
        builder.cbranch(self.value(frame, statement.condition), then, orelse)
        for start, block in ((then, statement.then), (orelse, statement.orelse)):
            builder.position_at_end(start)
            self.block(frame, block)
            self.go(after)
        builder.position_at_end(after)

    def once(self, frame: Frame, body: Block) -> None:
        after = self.builder.append_basic_block("once.end")
        self.leaves.append(after)
        self.block(frame, body)
        self.leaves.pop()
        self.go(after)
        self.builder.position_at_end(after)

    # Statements without inner statements

    def simple(self, frame: Frame, statement: PlannedStatement) -> None:
        """A statement that goes on to the next one or faults."""
        match statement:
            case Apply():
                self.apply(frame, statement)
            case Load():
                self.read(frame, statement)
            case Store():
                self.write(frame, statement)
            case ProvenLoad(target=target, span=span, index=index):
                pointer = self.proven(frame, span, index, self.offset(frame, index))
                self.assign(frame, target, self.load(span, pointer))
            case ProvenStore(span=span, index=index, value=value):
                pointer = self.proven(frame, span, index, self.offset(frame, index))
                self.store(span, pointer, self.value(frame, value))
            case Length(target=target, span=span):
                self.assign(frame, target, self.builder.trunc(self.place(frame, span).length, INT))
            case Row(target=target, rows=rows, index=index, where=where):
                number = self.index(frame, index)
                self.check_index(frame, number, self.place(frame, rows).length, FaultCode.ROW_INDEX, where)
                self.bind_row(frame, target, rows, number)
            case Slice():
                self.slice(frame, statement)
            case Rebind(target=target, source=source):
                self.bind(frame, target, self.place(frame, source))
            case Price():
                self.spend(frame, statement)
            case Check(condition=condition, message=message, where=where):
                fine = self.value(frame, condition)
                self.fault_unless(frame, fine, FaultCode.CHECK, where, word(message), word(0))
            case DebugPrint():
                self.debug_print(frame, statement)
            case Special():
                self.special(frame, statement)

    def apply(self, frame: Frame, statement: Apply) -> None:
        builder, name = self.builder, statement.operation
        arguments = [self.value(frame, one) for one in statement.arguments]
        if not never_faults(statement):
            self.check_operands(frame, statement, arguments[-1])
        result = arithmetic.emit(builder, name, arguments)
        if self.checks.floating_point and statement.target.type in FLOATS:
            mask = self.load_context(Context.FLOATING_POINT)
            code = arithmetic.emit_floating_fault(builder, name, mask, result, arguments)
            fine = builder.icmp_signed("==", code, word(NO_FAULT))
            self.fault_unless(frame, fine, code, statement.where, word(0), word(0))
        self.assign(frame, statement.target, result)

    def check_operands(self, frame: Frame, statement: Apply, last: Any) -> None:
        """An integer operation whose last argument may make it an error."""
        builder, fault = self.builder, operation(statement.operation).fault
        assert fault is not None
        zero = ir.Constant(last.type, 0)
        match fault.code:
            case FaultCode.ZERO_DIVISION:
                fine = builder.icmp_signed("!=", last, zero)
            case FaultCode.SHIFT_WIDTH:
                fine = builder.icmp_unsigned("<", last, ir.Constant(last.type, fault.bound))
            case _:
                fine = builder.icmp_signed(">=", last, zero)
        value = access.widened(builder, last, statement.arguments[-1].type)
        self.fault_unless(frame, fine, fault.code, statement.where, value, word(fault.bound))

    def read(self, frame: Frame, statement: Load) -> None:
        span, target = statement.span, statement.target
        if not statement.checked and span.name in frame.scalars:
            self.assign(frame, target, self.builder.load(frame.scalars[span.name]))
            return
        index = self.index(frame, statement.index)
        if statement.checked:
            self.check_index(frame, index, self.place(frame, span).length, FaultCode.INDEX, statement.where)
        pointer = self.element(frame, span, index)
        self.touch(frame, span, index, Touch.READ)
        self.check_written(frame, span, pointer, index, statement.where)
        self.assign(frame, target, self.load(span, pointer))

    def write(self, frame: Frame, statement: Store) -> None:
        span = statement.span
        value = self.value(frame, statement.value)
        index = self.index(frame, statement.index)
        if statement.checked:
            self.check_index(frame, index, self.place(frame, span).length, FaultCode.INDEX, statement.where)
        self.touch(frame, span, index, Touch.WRITTEN)
        if not frame.holds_back:
            self.store(span, self.element(frame, span, index), value)
        elif span.name not in frame.scalars:
            frame.scalars[span.name] = self.allocate(value.type)
        if span.name in frame.scalars:
            self.builder.store(access.as_read_back(self.builder, value, span.element), frame.scalars[span.name])

    def slice(self, frame: Frame, statement: Slice) -> None:
        """``0 <= begin <= end <= len``; of two bounds that are wrong the end is the one that is named."""
        builder = self.builder
        place = self.place(frame, statement.span)
        begin, end = self.index(frame, statement.begin), self.index(frame, statement.end)
        code, where = FaultCode.SLICE_BOUNDS, statement.where
        self.fault_unless(frame, builder.icmp_unsigned("<=", end, place.length), code, where, end, place.length)
        self.fault_unless(frame, builder.icmp_unsigned("<=", begin, end), code, where, begin, end)
        offset = builder.mul(begin, word(SIZES[statement.span.element]))
        touch = None
        if place.touch is not None:
            none = builder.icmp_unsigned("==", place.touch, word(0))
            touch = builder.select(none, word(0), builder.add(place.touch, begin))
        self.bind(frame, statement.target, Place(builder.add(place.address, offset), builder.sub(end, begin), touch))

    def debug_print(self, frame: Frame, statement: DebugPrint) -> None:
        builder = self.builder
        count = len(statement.arguments)
        words: dict[int, Any] = {
            Record.VERTEX: frame.number,
            Record.LOCATION: word(statement.where),
            Record.TEXT: word(statement.text),
            Record.VALUES: word(count),
        }
        for position, one in enumerate(statement.arguments):
            value = self.value(frame, one)
            if one.type in FLOATS:
                value = builder.bitcast(builder.fpext(value, ir.DoubleType()), WORD)
            else:
                value = access.widened(builder, value, one.type)
            place = RECORD_WORDS + VALUE_WORDS * position
            words[place + Value.TYPE] = word(ValueType[one.type])
            words[place + Value.BITS] = value
        debug_recorder(self, words, RECORD_WORDS + VALUE_WORDS * count)

    def special(self, frame: Frame, statement: Special) -> None:
        builder = self.builder
        if statement.name == "cycle_count":
            # A worker issues a slot in turn with the others, the supervisor one a cycle.
            turn = word(1) if self.codelet.kind == "supervisor" else self.load_context(Context.WORKERS)
            spent = builder.mul(builder.load(frame.slots), turn)
            value = builder.trunc(builder.add(self.load_context(Context.CLOCK), spent), INT)
        else:
            value = builder.call(random_generator(builder.module), [self.load_context(Context.RANDOM)])
            if statement.name == "random_f32":
                upper = builder.uitofp(builder.lshr(value, INT(8)), ir.FloatType())
                value = builder.fmul(upper, ir.Constant(ir.FloatType(), 2.0**-24))
        self.assign(frame, statement.target, value)
