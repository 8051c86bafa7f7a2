"""Which index checks of an innermost loop can be made once, before it.

`plan_loop` looks at a ``For`` without inner loops and finds the accesses whose index is linear in the loop's variable, with
everything else fixed while the loop runs. Such an index takes its extremes in the first and the last round, so two comparisons
before the loop stand for all of its checks. The plan has the work to do before the loop (`setup`, in order; some of it are checks)
and the body with the proven accesses marked. Where a check of the setup fails, the engine runs the loop as it was written, with a
check at each access, so that a fault is exact.

Device integers wrap at 32 bits while the checks are done in 64. That is sound: an index built from sums and products of 32-bit
values is, modulo 2**32, its exact value, and if the exact value lies in the span then it is the register's value.
"""

from __future__ import annotations

from typing import TypeVar, Union, assert_never, cast

from attrs import evolve, frozen

from pypoplar.codelet.ir.proven_accesses import Linear, PlannedBlock, PlannedStatement, ProvenLoad, ProvenStore, Rebind
from pypoplar.codelet.ir.typed import (
    Apply,
    ApplyToVectors,
    Block,
    Break,
    Breakpoint,
    Check,
    Continue,
    DebugPrint,
    For,
    IfElse,
    Leave,
    Length,
    Literal,
    Load,
    Local,
    Member,
    Once,
    Operand,
    Price,
    Return,
    Row,
    Scratch,
    Slice,
    Span,
    SpanList,
    Special,
    Statement,
    Store,
    ViewAs,
    While,
)
from pypoplar.codelet.ir.walk import assigned, walk
from pypoplar.codelet.operations.registers import FLOATS
from pypoplar.codelet.operations.table import typed_operation
from pypoplar.codelet.operations.tile_readings import reading

Value = TypeVar("Value")

NARROW = ("i32", "u32")


@frozen
class InRange:
    """Setup: every iteration's index must lie in the span, or the loop runs as written."""

    span: Span
    index: Linear


@frozen
class BindRow:
    """Setup: the row at a fixed index must exist, or the loop runs as written; binds `target` to it."""

    target: Span
    rows: SpanList
    index: Linear


Setup = Union[Apply, Length, Load, InRange, BindRow]


@frozen
class LoopPlan:
    """What to do instead of a loop with checks.

    `straight` says that the body runs straight through, without branches and faults; its `Price` statements are gone then, and
    `price` is that of a round.
    """

    setup: tuple[Setup, ...]
    body: PlannedBlock
    straight: bool
    price: Price

    @property
    def has_checks(self) -> bool:
        return any(isinstance(step, InRange | BindRow) for step in self.setup)


def never_faults(statement: Apply) -> bool:
    """Whether an operation cannot be an error, at least with these arguments."""
    fault = typed_operation(statement.operation).fault
    if fault is None:
        return True
    last = statement.arguments[-1]
    return isinstance(last, Literal) and not fault(int(last.value))


class _Analysis:
    """Goes through a loop's body once, in order, and writes the plan."""

    def __init__(self, loop: For, stored: frozenset[str]) -> None:
        self.loop = loop
        self.stored = stored
        self.changing = assigned(loop.body) | {loop.variable.name}
        self.linear: dict[str, Linear] = {loop.variable.name: Linear(1)}
        self.copies: dict[str, Local] = {}  # a local of the body that is fixed -> the local that the setup computes
        self.spans: dict[str, Span] = {}  # a span bound in the body -> the span that the setup binds
        self.setup: list[Setup] = []
        self.checked: set[InRange] = set()
        self.bound: dict[tuple[str, Linear], Span] = {}

    # What an operand is

    def value(self, operand: Operand) -> Linear | None:
        """The operand as a linear function of the loop's variable, if it is one."""
        if operand.type not in NARROW:
            return None
        if isinstance(operand, Literal):
            return Linear(constant=int(operand.value))
        if operand.name in self.linear:
            return self.linear[operand.name]
        return None if operand.name in self.changing else Linear(terms=((operand, 1),))

    def fixed(self, operand: Operand) -> Operand | None:
        """The operand as it can be read before the loop, if it can."""
        if isinstance(operand, Literal) or operand.name not in self.changing:
            return operand
        return self.copies.get(operand.name)

    def span(self, span: Span) -> Span | None:
        if span.name in self.spans:
            return self.spans[span.name]
        return None if span.name in self.changing else span

    def forget(self, names: set[str]) -> None:
        for name in names:
            self.linear.pop(name, None)
            self.copies.pop(name, None)
            self.spans.pop(name, None)

    # Statements

    def block(self, block: Block) -> PlannedBlock:
        return tuple(planned for statement in block for planned in self.statement(statement))

    def inner(self, block: Block) -> Block:
        """A block within a statement. It has planned statements too, which the type of the typed form's statements does not say."""
        return cast(Block, self.block(block))

    def statement(self, statement: Statement) -> PlannedBlock:  # noqa: C901, PLR0912 - an arm for each statement
        match statement:
            case Apply():
                self.apply(statement)
            case Length(target=target, span=span):
                known = self.span(span) if isinstance(span, Span) else None if span.name in self.changing else span
                self.fix(target, evolve(statement, span=known) if known is not None else None)
            case Load(target=target, span=span, checked=False):
                self.fix(target, statement if span.name not in self.stored else None)
            case Load(target=target, span=span, index=index, where=where):
                proven = self.prove(span, index)
                self.forget({target.name})
                if proven is not None:
                    return (ProvenLoad(target, proven.span, proven.index, where),)
            case Store(span=span, index=index, value=value, where=where, checked=checked):
                proven = self.prove(span, index) if checked else None
                if proven is not None:
                    return (ProvenStore(proven.span, proven.index, value, where),)
            case Row():
                return self.row(statement)
            case Slice() | Member() | ViewAs() | Scratch() | Special():
                self.forget({statement.target.name})
            case IfElse():
                return (self.branch(statement),)
            case Once(body=body):
                planned = Once(self.inner(body))
                self.forget(assigned(body))
                return (planned,)
            case For() | While() | ApplyToVectors():
                raise AssertionError("only innermost loops are planned")
            case Leave() | Break() | Continue() | Return() | Price() | Check() | DebugPrint() | Breakpoint():
                pass
            case _:
                assert_never(statement)
        return (statement,)

    def apply(self, statement: Apply) -> None:
        result = _linear_result(statement, [self.value(operand) for operand in statement.arguments])
        arguments = [self.fixed(operand) for operand in statement.arguments]
        self.forget({statement.target.name})
        known = [argument for argument in arguments if argument is not None]
        if len(known) == len(arguments) and statement.target.type in NARROW and never_faults(statement):
            self.fix(statement.target, evolve(statement, arguments=tuple(known)))
        if result is not None and result.is_small:
            self.linear[statement.target.name] = result

    def fix(self, target: Local, statement: Apply | Length | Load | None) -> None:
        """Note that `statement`, which gives a target of the body its value, can be done before the loop."""
        self.forget({target.name})
        if statement is None or target.type not in NARROW:
            return
        copy = Local(f"{target.name}~{len(self.setup)}", target.type)
        self.setup.append(evolve(statement, target=copy))
        self.copies[target.name] = copy
        self.linear[target.name] = Linear(terms=((copy, 1),))

    def prove(self, span: Span, index: Operand) -> InRange | None:
        known, value = self.span(span), self.value(index)
        if known is None or value is None or not value.is_small:
            return None
        check = InRange(known, value)
        if check not in self.checked:
            self.checked.add(check)
            self.setup.append(check)
        return check

    def row(self, statement: Row) -> PlannedBlock:
        value = self.value(statement.index)
        target = statement.target
        self.forget({target.name})
        if value is None or value.scale or not value.is_small or statement.rows.name in self.changing:
            return (statement,)
        key = (statement.rows.name, value)
        if key not in self.bound:
            self.bound[key] = Span(f"{target.name}~{len(self.setup)}", target.element)
            self.setup.append(BindRow(self.bound[key], statement.rows, value))
        self.spans[target.name] = self.bound[key]
        return (Rebind(target, self.bound[key]),)

    def branch(self, statement: IfElse) -> IfElse:
        before = self.linear.copy(), self.copies.copy(), self.spans.copy()
        then = self.inner(statement.then)
        after_then = self.linear, self.copies, self.spans
        self.linear, self.copies, self.spans = before
        orelse = self.inner(statement.orelse)
        self.linear = _common(self.linear, after_then[0])
        self.copies = _common(self.copies, after_then[1])
        self.spans = _common(self.spans, after_then[2])
        return evolve(statement, then=then, orelse=orelse)


def _common(first: dict[str, Value], second: dict[str, Value]) -> dict[str, Value]:
    return {key: value for key, value in first.items() if second.get(key) == value}


def _linear_result(statement: Apply, values: list[Linear | None]) -> Linear | None:
    """The result of an operation on linear values, where it is linear again."""
    name, _, type = statement.operation.rpartition("_")
    first = values[0]
    if first is None or statement.target.type not in NARROW:
        return None
    if name == "copy" or statement.operation in ("i32_from_u32", "u32_from_i32", "i32_from_i32", "u32_from_u32"):
        return first
    if type not in NARROW:
        return None
    if name == "neg":
        return first.times(-1)
    second = values[1] if len(values) == 2 else None
    return None if second is None else _linear_pair(name, first, second)


def _linear_pair(name: str, first: Linear, second: Linear) -> Linear | None:
    match name:
        case "add":
            return first.plus(second)
        case "sub":
            return first.plus(second, -1)
        case "mul" if not second.scale and not second.terms:
            return first.times(second.constant)
        case "mul" if not first.scale and not first.terms:
            return second.times(first.constant)
        case "shift_left" if not second.scale and not second.terms and 0 <= second.constant < 32:
            return first.times(1 << second.constant)
    return None


def _needed(setup: list[Setup]) -> tuple[Setup, ...]:
    """The setup without values that no check uses."""
    wanted: set[str] = set()
    kept: list[Setup] = []
    for step in reversed(setup):
        match step:
            case InRange(index=index) | BindRow(index=index):
                wanted |= {local.name for local, _ in index.terms}
            case Apply(target=target) | Length(target=target) | Load(target=target) if target.name not in wanted:
                continue
            case Apply(arguments=arguments):
                wanted |= {operand.name for operand in arguments if isinstance(operand, Local)}
            case Length() | Load():
                pass
            case _:
                assert_never(step)
        kept.append(step)
    return tuple(reversed(kept))


def is_straight(block: PlannedBlock, *, floats_fault: bool = False) -> bool:
    """Whether a block runs from its first to its last statement, always."""
    return all(_goes_on(statement, floats_fault) for statement in block)


def _goes_on(statement: PlannedStatement, floats_fault: bool) -> bool:
    if isinstance(statement, Apply):
        return never_faults(statement) and not (floats_fault and statement.target.type in FLOATS)
    if isinstance(statement, Load | Store):
        return not statement.checked
    return isinstance(statement, Length | Scratch | Price | DebugPrint | Special | Breakpoint | ProvenLoad | ProvenStore | Rebind)


def plan_loop(loop: For, stored: frozenset[str], *, floats_fault: bool = False) -> LoopPlan | None:
    """How to run a loop with its checks before it, or None where nothing can be gained.

    `stored` names the fields that the codelet stores to; `floats_fault` says that floating-point exceptions are faults.
    """
    if loop.variable.type not in NARROW or any(isinstance(inner, For | While) for inner in walk(loop.body)):
        return None
    if any(operand.type not in NARROW for operand in (loop.start, loop.stop, loop.step)):
        return None
    analysis = _Analysis(loop, stored)
    body = analysis.block(loop.body)
    setup = _needed(analysis.setup)
    straight = is_straight(body, floats_fault=floats_fault)
    price = Price(0)
    if straight:
        # A cycle counter in the body must see the slots so far.
        if any(isinstance(statement, Special) and reading(statement.name).ends_run for statement in body):
            straight = False
        else:
            price = Price.total(statement for statement in body if isinstance(statement, Price))
            body = tuple(statement for statement in body if not isinstance(statement, Price))
    if not setup and not straight:
        return None
    return LoopPlan(setup, body, straight, price)
