"""Going through blocks of the typed form: every statement, what statements read, and what they set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never, overload

from pypoplar.codelet.ir.proven_accesses import PlannedBlock, PlannedStatement, ProvenLoad, ProvenStore, Rebind
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
    Straight,
    ViewAs,
    While,
)


@overload
def walk(block: Block) -> Iterator[Statement]: ...
@overload
def walk(block: PlannedBlock) -> Iterator[PlannedStatement]: ...
def walk(block: PlannedBlock) -> Iterator[PlannedStatement]:
    """Every statement of a block, with those inside others."""
    for statement in block:
        yield statement
        for inner in inner_blocks(statement):
            yield from walk(inner)


def inner_blocks(statement: PlannedStatement) -> tuple[Block, ...]:
    if isinstance(statement, Straight):
        return ()
    match statement:
        case IfElse(then=then, orelse=orelse):
            return (then, orelse)
        case While(head=head, body=body):
            return (head, body)
        case For(body=body) | Once(body=body) | ApplyToVectors(loops=body):
            return (body,)
        case Leave() | Break() | Continue() | Return() | Price() | ProvenLoad() | ProvenStore() | Rebind():
            return ()
        case _:
            assert_never(statement)


def sets(statement: PlannedStatement) -> Local | Span | SpanList | None:
    """The local or bound span that a statement itself sets."""
    match statement:
        case Apply() | Load() | Length() | Special() | ProvenLoad() | Row() | Slice() | Member() | ViewAs() | Scratch() | Rebind():
            return statement.target
        case For(variable=variable):
            return variable
        case IfElse() | While() | ApplyToVectors() | Once() | Leave() | Break() | Continue() | Return() | Price():
            return None
        case Store() | Check() | DebugPrint() | Breakpoint() | ProvenStore():
            return None
        case _:
            assert_never(statement)


def assigned(block: PlannedBlock) -> set[str]:
    """Names of locals and spans that a block may assign."""
    return {target.name for statement in walk(block) if (target := sets(statement)) is not None}


def operands(statement: PlannedStatement) -> tuple[Operand | Span | SpanList, ...]:  # noqa: C901, PLR0911, PLR0912 - an arm for each statement
    """What a statement itself reads, without what statements in it read; a proven index is of what was read before."""
    match statement:
        case Apply(arguments=arguments) | DebugPrint(arguments=arguments):
            return arguments
        case Load(span=span, index=index) | Member(span=span, index=index):
            return (span, index)
        case Store(span=span, index=index, value=value):
            return (span, index, value)
        case ProvenLoad(span=span) | ViewAs(span=span) | Rebind(source=span):
            return (span,)
        case ProvenStore(span=span, value=value):
            return (span, value)
        case Length(span=piece):
            return (piece,)
        case Row(rows=rows, index=index):
            return (rows, index)
        case Slice(span=span, begin=begin, end=end):
            return (span, begin, end)
        case IfElse(condition=condition) | While(condition=condition) | Check(condition=condition):
            return (condition,)
        case For(start=start, stop=stop, step=step):
            return (start, stop, step)
        case ApplyToVectors(vectors=vectors, numbers=numbers):
            return (*vectors, *numbers)
        case Return(value=returned):
            return () if returned is None else (returned,)
        case Scratch() | Once() | Leave() | Break() | Continue() | Price() | Special() | Breakpoint():
            return ()
        case _:
            assert_never(statement)


def together(block: Sequence[PlannedStatement], number: int) -> Sequence[Any]:
    """The statements from a number on that are one instruction on a vector of the hardware; that statement alone if it is none."""
    first = block[number]
    key = getattr(first, "together", 0)
    end = number + 1
    while key and end < len(block) and getattr(block[end], "together", 0) == key:
        end += 1
    return block[number:end]


def reads(statement: PlannedStatement) -> set[str]:
    """Names of the locals and bound spans that a statement itself reads, without those of the statements in it."""
    return {operand.name for operand in operands(statement) if isinstance(operand, Local | Span | SpanList)}


def read_first(block: PlannedBlock) -> set[str]:
    """Names that a block may read before it has set them."""
    first: set[str] = set()
    known: set[str] = set()
    for statement in block:
        if isinstance(statement, While):  # its condition is read after its head
            first |= read_first((*statement.head, IfElse(statement.condition, statement.body, (), statement.where))) - known
            continue
        first |= reads(statement) - known
        inside = {statement.variable.name} if isinstance(statement, For) else set()
        for inner in inner_blocks(statement):
            first |= read_first(inner) - known - inside
        if not inner_blocks(statement):
            known |= assigned((statement,))
    return first
