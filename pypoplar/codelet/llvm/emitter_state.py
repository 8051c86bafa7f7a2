"""What is known while a codelet's native code is written: of its function, and of a vertex that runs.

A local is a stack slot, of which LLVM makes registers. The value of a scalar field is kept in a local as well, next to its place in
memory: reads take the local, writes go to both. A fault records itself and goes to the vertex's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen
from llvmlite import ir

from pypoplar.codelet.ir.block_numbers import counted_codelet
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.loop_limits import is_even, short_locals
from pypoplar.codelet.ir.proven_accesses import AccessLine, PlannedStatement
from pypoplar.codelet.ir.span_roots import changing_fields, loaded_scalars
from pypoplar.codelet.ir.typed import (
    Apply,
    Check,
    For,
    Length,
    Literal,
    Load,
    Local,
    Member,
    Operand,
    Price,
    PricedCodelet,
    Row,
    Slice,
    Span,
    SpanList,
    TypedArray,
    TypedTable,
    ViewAs,
)
from pypoplar.codelet.llvm import halves
from pypoplar.codelet.llvm.alias_scopes import AliasScopes, alias_scopes
from pypoplar.codelet.llvm.arithmetic import REGISTER_FORMS
from pypoplar.codelet.llvm.memory_forms import BYTE, WORD, constant, load_volatile, widened, word
from pypoplar.codelet.operations.table import typed_operation
from pypoplar.interface.context_words import CallArgument, Context, Work
from pypoplar.interface.edge_rows import EdgeRow, edge_row
from pypoplar.interface.fault_codes import NO_FAULT, FaultCode
from pypoplar.interface.layout import WORD_BYTES

COUNTED = (Work.FLOPS, Work.BYTES, Work.BOUND)
"""Work that has counters of its own, in the order of a price's."""


@frozen
class Place:
    """A span in native code; ``i64`` values or, for spans that are bound as the code runs, the stack slots that hold them.

    `touch` is the address of the span's touch bytes, where touches are recorded; `given` says whether it is an Input's.
    """

    address: Any
    length: Any
    touch: Any = None
    given: Any = None


@frozen(eq=False)
class ForRounds:
    """A ``for`` that is about to run: start, step and number of rounds, each ``i64``."""

    start: Any
    step: Any
    count: Any


@define(eq=False)
class Lines:
    """The proven accesses of a running loop: where each line begins."""

    rounds: ForRounds
    round: Any = None  # i64, counts from 0
    bases: dict[AccessLine, Any] = field(factory=dict)


@frozen(eq=False)
class LoopBlocks:
    """Where ``break`` and ``continue`` go."""

    after: Any
    following: Any


_ALIGNMENT = 16  # of what vector instructions load


@frozen(eq=False)
class LaidTable:
    """A constant table among the code; a row of it has `columns` elements, one of one dimension has none."""

    place: Place
    columns: int | None


@frozen(eq=False)
class LaidArray:
    """A scratch array on the stack: where it is, and how many bytes."""

    place: Place
    bytes: Any  # a pointer to them
    size: int


@frozen(eq=False)
class CodeletFunction:
    """The function that is written, and what all vertices of a group have in common."""

    codelet: PricedCodelet
    checks: Checks
    builder: Any  # stands where the next instruction is written
    allocations: Any  # a builder in the function's first block
    arguments: Sequence[Any]  # by `CallArgument`
    layout: EdgeRow
    changing: frozenset[str]  # fields that the code may change
    kept: frozenset[str]  # scalar fields whose values are kept in locals
    scopes: AliasScopes
    short: frozenset[str]  # see `short_locals`
    record_fault: Any
    tables: Mapping[str, LaidTable]
    arrays: Mapping[str, LaidArray]
    counts_with: tuple[int, ...]  # by number of a block, the one that is counted for it; empty where none are counted

    @classmethod
    def begin(cls, function: Any, codelet: PricedCodelet, checks: Checks) -> CodeletFunction:
        """Begin to write an LLVM function that has no block yet."""
        counts_with: tuple[int, ...] = ()
        if checks.blocks:
            numbers = counted_codelet(codelet)
            codelet, counts_with = numbers.codelet, numbers.counts_with
        allocations = ir.IRBuilder(function.append_basic_block("entry"))
        builder = ir.IRBuilder(function.append_basic_block("start"))
        scopes = AliasScopes({}, {}) if checks.touches else alias_scopes(function.module, codelet)
        return cls(
            codelet=codelet,
            checks=checks,
            builder=builder,
            allocations=allocations,
            arguments=function.args,
            layout=edge_row(codelet.fields, record_touches=checks.touches),
            changing=changing_fields(codelet),
            kept=_kept_scalars(codelet) if checks.keeps_scalars else frozenset(),
            scopes=scopes,
            short=short_locals(codelet),
            record_fault=_fault_recorder(function.module),
            tables={table.name: _lay(function.module, table) for table in codelet.tables},
            arrays={array.name: _reserve(allocations, array) for array in codelet.arrays},
            counts_with=counts_with,
        )

    def load_context(self, number: Context) -> Any:
        return load_context(self.builder, self.arguments[CallArgument.CONTEXT], number)

    def store_context(self, number: Context, value: Any) -> None:
        self.builder.store(value, context_pointer(self.builder, self.arguments[CallArgument.CONTEXT], number), align=8)

    def block_counters(self) -> dict[int, Any]:
        """New stack slots for the executions of the blocks that are counted."""
        return {block: self.allocate(WORD) for block in sorted(set(self.counts_with))}

    def allocate(self, form: Any) -> Any:
        """A stack slot; all are made in the function's first block, so that none is made twice."""
        return self.allocations.alloca(form)


@frozen(eq=False)
class Unjudged:
    """A round that has begun and is yet to be judged by the cycle limit: its loop's line, and the counters at its beginning."""

    where: int
    counts: tuple[Any, ...]


Emit = Callable[["EmitterState", PlannedStatement], None]


@define(eq=False)
class EmitterState:
    """One vertex while it runs, or one round of a loop of it: values of native code."""

    function: CodeletFunction
    emit: Emit  # writes a statement for this state
    number: Any  # i64, the vertex's row in its group
    end: Any  # the block that ends the vertex
    failed: Any  # the block that a fault goes to
    slots: Any  # stack slot, i64
    result: Any  # stack slot, i8: what compute returned so far
    fields: dict[str, Place]
    work: Mapping[Work, Any] = field(factory=dict)  # stack slots, i64, of what is `COUNTED`, where it is
    blocks: Mapping[int, Any] = field(factory=dict)  # the same of executions of blocks, by number
    locals: dict[str, Any] = field(factory=dict)  # stack slots
    spans: dict[str, Place] = field(factory=dict)  # of stack slots
    scalars: dict[str, Any] = field(factory=dict)  # stack slots of scalar fields' values
    lines: Lines | None = None  # while a loop without checks is written
    loops: list[LoopBlocks] = field(factory=list)  # the loops around the statement that is written, the innermost last
    leaves: list[Any] = field(factory=list)  # the blocks that `Leave` goes to, the innermost last
    unjudged: Unjudged | None = None  # the round whose judgement waits until something would be left behind
    judged: bool = False  # whether a loop around has been judged for all that its rounds may spend
    as_written: bool = False  # whether this is the version of a loop in which nothing is done beforehand
    holds_back: bool = False  # whether scalar fields are written to memory later, all at once
    otherwise: Any = None  # where a fault goes instead, while code is only tried out
    lanes: int = 1  # states whose values a local holds
    worker: Any = None  # i64, of a MultiVertex

    @property
    def builder(self) -> Any:
        return self.function.builder

    @property
    def checks(self) -> Checks:
        return self.function.checks

    def emit_block(self, block: Iterable[PlannedStatement]) -> None:
        """Write statements in order; what follows one that leaves the block is never reached."""
        for statement in block:
            if self.builder.block.is_terminated:
                return
            if self.unjudged is not None and not self._leaves_nothing(statement):
                self.judge()
            self.emit(self, statement)

    def _leaves_nothing(self, statement: PlannedStatement) -> bool:
        """Whether a statement may go before the judgement of its round: it sets locals, faults, or is a loop that sees to it."""
        if isinstance(statement, For):
            return is_even(statement)
        if isinstance(statement, Apply):
            return not self.rounds_at_random(statement)  # the generator goes on
        return isinstance(statement, Length | Row | Slice | Member | ViewAs | Price | Check) or (
            isinstance(statement, Load) and not self.checks.touches
        )

    def rounds_at_random(self, statement: Apply) -> bool:
        """Whether an operation asks the worker's generator how to round."""
        return self.checks.stochastic and typed_operation(statement.operation).rounds_to_half

    # Where to go

    def go(self, block: Any) -> None:
        """Go to a block, unless the code has gone elsewhere already."""
        if not self.builder.block.is_terminated:
            self.builder.branch(block)

    def require(self, condition: Any, otherwise: Any) -> None:
        """Go on if a condition holds, else go to a block."""
        going = self.builder.append_basic_block()
        self.builder.cbranch(condition, going, otherwise).set_weights([1 << 20, 1])
        self.builder.position_at_end(going)

    def fault_unless(self, fine: Any, code: int | Any, where: int, value: Any, bound: Any) -> None:
        """Go on if a condition holds, else stop the vertex."""
        if self.otherwise is not None:
            self.require(fine, self.otherwise)
            return
        builder, function = self.builder, self.function
        going, failing = builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(fine, going, failing).set_weights([1 << 20, 1])
        builder.position_at_end(failing)
        told = [word(code) if isinstance(code, int) else code, word(where), value, bound]
        if self.unjudged is not None:
            told = self._judged_before(self.unjudged, told)
        for counter in self.blocks.values():  # what a vertex that faults has counted is forgotten
            builder.store(ir.Constant(WORD, ir.Undefined), counter)
        builder.call(function.record_fault, [function.arguments[CallArgument.CONTEXT], self.number, *told])
        builder.branch(self.failed)
        builder.position_at_end(going)

    def limit(self) -> Any:
        """The cycle limit in slots, read anew: another thread may write to it."""
        limit = Context.SUPERVISOR_LIMIT if self.function.codelet.kind == "supervisor" else Context.CYCLE_LIMIT
        pointer = context_pointer(self.builder, self.function.arguments[CallArgument.CONTEXT], limit)
        return load_volatile(self.builder, pointer)

    # The cycle limit

    def begin_round(self, where: int) -> None:
        """A round begins that is to be judged; the judgement is made as late as nobody can tell, often together with another."""
        self.unjudged = Unjudged(where, tuple(self.builder.load(counter) for counter in self.counters))

    def judge(self) -> None:
        """Judge the round that has begun, if it has not been."""
        if self.unjudged is not None:
            spent, limit = self.unjudged.counts[0], self.limit()
            fine = self.builder.icmp_signed("<=", spent, limit)
            self.fault_unless(fine, FaultCode.CYCLE_LIMIT, self.unjudged.where, spent, limit)
            self.unjudged = None

    def _judged_before(self, unjudged: Unjudged, told: list[Any]) -> list[Any]:
        """The fault of a round that is to be judged, if it has one, in the place of the fault `told`."""
        builder, limit = self.builder, self.limit()
        late = builder.icmp_signed(">", unjudged.counts[0], limit)
        for counter, count in zip(self.counters, unjudged.counts, strict=True):
            builder.store(builder.select(late, count, builder.load(counter)), counter)
        of_limit = [word(FaultCode.CYCLE_LIMIT), word(unjudged.where), unjudged.counts[0], limit]
        return [builder.select(late, own, other) for own, other in zip(of_limit, told, strict=True)]

    def check_index(self, index: Any, length: Any, code: int, where: int) -> None:
        self.fault_unless(self.builder.icmp_unsigned("<", index, length), code, where, index, length)

    # Locals and spans

    def slot(self, local: Local) -> Any:
        """The stack slot of a local."""
        if local.name not in self.locals:
            form = REGISTER_FORMS[local.type]
            if self.lanes > 1:
                form = ir.VectorType(form, self.lanes)
            slot = self.locals[local.name] = self.function.allocate(form)
            self.function.allocations.store(halves.constant(form, 0), slot)
        return self.locals[local.name]

    def value(self, operand: Operand) -> Any:
        if isinstance(operand, Local):
            return self.builder.load(self.slot(operand))
        value = constant(operand)
        return ir.Constant(ir.VectorType(value.type, self.lanes), [value] * self.lanes) if self.lanes > 1 else value

    def assign(self, local: Local, value: Any) -> None:
        self.builder.store(value, self.slot(local))

    def index(self, operand: Operand) -> Any:
        """An integer operand as an ``i64``."""
        if isinstance(operand, Literal):
            return word(int(operand.value))
        return widened(self.builder, self.value(operand), operand.type)

    def place(self, span: Span | SpanList) -> Place:
        """Where a span is."""
        if span.name in self.fields:
            return self.fields[span.name]
        if span.name in self.function.tables:
            return self.function.tables[span.name].place
        held = self.spans[span.name]
        address, length = self.builder.load(held.address), self.builder.load(held.length)
        if not self.checks.touches:
            return Place(address, length)
        return Place(address, length, self.builder.load(held.touch), self.builder.load(held.given))

    def bind(self, span: Span | SpanList, place: Place) -> None:
        if span.name not in self.spans:
            self.spans[span.name] = Place(*(self.function.allocate(WORD) for _ in range(4)))
        held = self.spans[span.name]
        self.builder.store(place.address, held.address)
        self.builder.store(place.length, held.length)
        if self.checks.touches:
            self.builder.store(word(0) if place.touch is None else place.touch, held.touch)
            self.builder.store(word(0) if place.given is None else place.given, held.given)

    # Counters

    @property
    def counters(self) -> tuple[Any, ...]:
        """Stack slots of slots, and of work where it is counted."""
        return (self.slots, *self.work.values())

    def begin_counting(self) -> None:
        for counter in self.counters:
            self.builder.store(word(0), counter)

    def begin_blocks(self) -> None:
        """A vertex, or a worker of one, begins to run: none of its blocks has."""
        for counter in self.blocks.values():
            self.builder.store(word(0), counter)

    def count_block(self, block: int, times: Any = None) -> None:
        """A block runs once, or `times` times; one without a number is not counted here."""
        if block in self.blocks:
            self.add_to(self.blocks[block], word(1) if times is None else times)

    def spend(self, price: Price, times: Any = None) -> None:
        """Add the price of a block that runs once, or `times` times (an ``i64``)."""
        for counter, amount in zip(self.counters, (price.slots, price.flops, price.bytes, price.bound), strict=False):
            if amount:
                self.add_to(counter, word(amount) if times is None else self.builder.mul(times, word(amount)))

    def add_to(self, counter: Any, amount: Any) -> None:
        self.builder.store(self.builder.add(self.builder.load(counter), amount), counter)

    def counting_anew(self, **changes: Any) -> EmitterState:
        """This state with changes and with counters of its own, that are 0."""
        allocate = self.function.allocate
        work = {column: allocate(WORD) for column in self.work}
        blocks = {block: allocate(WORD) for block in self.blocks}
        state = evolve(self, slots=allocate(WORD), work=work, blocks=blocks, **changes)
        state.begin_counting()
        state.begin_blocks()
        return state


def _kept_scalars(codelet: PricedCodelet) -> frozenset[str]:
    """Scalar fields that only stores to them change."""
    return loaded_scalars(codelet).difference(*codelet.in_place)


def _lay(module: Any, table: TypedTable) -> LaidTable:
    """Put a table into the module of a codelet's code, once."""
    name = f"table.{table.name}"
    variable = module.globals.get(name)
    if variable is None:
        content = ir.Constant(ir.ArrayType(ir.IntType(8), len(table.data)), bytearray(table.data))
        variable = ir.GlobalVariable(module, content.type, name)
        variable.linkage, variable.global_constant, variable.align, variable.initializer = "private", True, _ALIGNMENT, content
    return LaidTable(Place(variable.ptrtoint(WORD), word(table.shape[0])), table.shape[1] if len(table.shape) == 2 else None)


def _reserve(allocations: Any, array: TypedArray) -> LaidArray:
    """Take memory of the stack for a scratch array."""
    form = ir.ArrayType(BYTE, array.bytes)
    reserved = allocations.alloca(form)
    reserved.align = _ALIGNMENT
    place = Place(allocations.ptrtoint(reserved, WORD), word(array.length))
    return LaidArray(place, allocations.bitcast(reserved, BYTE.as_pointer()), array.bytes)


def context_pointer(builder: Any, context: Any, number: Context) -> Any:
    return builder.inttoptr(builder.add(context, word(WORD_BYTES * number)), WORD.as_pointer())


def load_context(builder: Any, context: Any, number: Context) -> Any:
    return builder.load(context_pointer(builder, context, number), align=8)


def _fault_recorder(module: Any) -> Any:
    """``record_fault(context, number, code, where, value, bound)``: writes down the group's first fault; made once."""
    name = "record_fault"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD] * 6), name)
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
