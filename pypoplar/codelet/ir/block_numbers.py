"""Blocks by number: what is counted where an engine records which lines its vertices spend their slots on.

A block is what one `Price` pays for: the statements from it to the next one, or to where control goes apart. Blocks are numbered in
the order of the text. A loop whose rounds are paid for together has two more, before those in its body: `RoundsPrice.width` rounds,
and a round that is left over. An operation on vectors is a block of one slot, which runs as often as the operation has slots.
Executions times prices are the slots of a vertex, to the slot.

The interpreter counts every block where it runs (`numbered`). Machine code does not: of blocks that always run together it counts
one, and one that runs in each round of a loop it counts as the loop begins (`counted`). A vertex that faults leaves counts that
say nothing: its run fails, and what failed runs have counted is forgotten.
"""

from __future__ import annotations

from typing import cast

from attrs import define, evolve, field, frozen

from pypoplar.codelet.ir.typed import (
    ApplyToVectors,
    Block,
    Break,
    Continue,
    For,
    IfElse,
    Leave,
    Once,
    Price,
    PricedCodelet,
    Return,
    Special,
    Statement,
    Straight,
    TypedCodelet,
    While,
)
from pypoplar.codelet.operations.tile_readings import reading
from pypoplar.interface.layout import NOTHING

TOGETHER = 2  # blocks of a loop whose rounds are paid for together: several rounds, and one that is left over


@frozen
class CountedCodelet:
    """A codelet whose prices have a number only where their block is counted, for itself and for others.

    `counts_with` has, by number, the block that is counted for it: it runs as often.
    """

    codelet: PricedCodelet
    counts_with: tuple[int, ...]

    @property
    def counted(self) -> tuple[int, ...]:
        """The blocks that are counted."""
        return tuple(sorted(set(self.counts_with)))


def numbered(codelet: PricedCodelet) -> PricedCodelet:
    """The codelet with a number in each price."""
    return evolve(codelet, body=_Numbers().block(codelet.body))


def counted_codelet(codelet: PricedCodelet) -> CountedCodelet:
    """The codelet as machine code counts it."""
    leaders = _Leaders()
    body = leaders.block(numbered(codelet).body, NOTHING)
    return CountedCodelet(evolve(codelet, body=body), tuple(leader for _, leader in sorted(leaders.counts_with.items())))


def most_blocks(codelet: TypedCodelet) -> int:
    """At most how many blocks a codelet has, whatever its prices are; it need not have any."""
    return _most(codelet.body)


def _most(block: Block) -> int:
    most = 1  # what is left at the end
    for statement in block:
        match statement:
            case Special(name=name):
                most += reading(name).ends_run
            case IfElse(then=then, orelse=orelse):
                most += 1 + _most(then) + _most(orelse)
            case While(head=head, body=body):
                most += 1 + _most(head) + _most(body)
            case For(body=body):
                most += 1 + TOGETHER + _most(body)
            case Once(body=body):
                most += 1 + _most(body)
            case ApplyToVectors():
                most += 2
            case Price():
                most += 1
            case Leave() | Break() | Continue() | Return():
                most += 1
            case _:
                continue
    return most


@define
class _Numbers:
    """Gives numbers, in the order of the text."""

    free: int = 0

    def take(self, count: int) -> int:
        number, self.free = self.free, self.free + count
        return number

    def block(self, block: Block) -> Block:
        return tuple(map(self.statement, block))

    def statement(self, statement: Statement) -> Statement:
        match statement:
            case Price():
                return evolve(statement, block=self.take(1))
            case IfElse(then=then, orelse=orelse):
                then = self.block(then)
                return evolve(statement, then=then, orelse=self.block(orelse))
            case While(head=head, body=body):
                head = self.block(head)
                return evolve(statement, head=head, body=self.block(body))
            case For(body=body, price=price):
                price = None if price is None else evolve(price, block=self.take(TOGETHER))
                return evolve(statement, price=price, body=self.block(body))
            case Once(body=body):
                return evolve(statement, body=self.block(body))
            case ApplyToVectors():
                return evolve(statement, block=self.take(1))
            case _:
                return statement


# What is counted for several blocks


@define
class _Leaders:
    """Goes through numbered blocks and leaves a number only in prices that are counted."""

    counts_with: dict[int, int] = field(factory=dict)

    def block(self, block: Block, leader: int) -> Block:
        """`leader` is a block that runs whenever this one begins; `NOTHING` if none is counted that does."""
        statements: list[Statement] = []
        for statement in block:
            if isinstance(statement, Price):
                is_first = leader == NOTHING
                leader = statement.block if is_first else leader
                self.counts_with[statement.block] = leader
                statements.append(statement if is_first else evolve(statement, block=NOTHING))
                continue
            statements.append(self.structured(statement, leader))
            if _exits((statement,)):
                leader = NOTHING
        return tuple(statements)

    def structured(self, statement: Statement, leader: int) -> Statement:
        match statement:
            case IfElse(then=then, orelse=orelse):
                return evolve(statement, then=self.block(then, NOTHING), orelse=self.block(orelse, NOTHING))
            case While(head=head, body=body):
                return evolve(statement, head=self.block(head, NOTHING), body=self.block(body, NOTHING))
            case For():
                return self.loop(statement)
            case Once(body=body):
                return evolve(statement, body=self.block(body, leader))
            case ApplyToVectors(block=block):
                self.counts_with[block] = block
                return statement
            case _:
                return statement

    def loop(self, loop: For) -> For:
        if loop.price is not None:
            self.counts_with |= {number: number for number in range(loop.price.block, loop.price.block + TOGETHER)}
        first = NOTHING if _exits(loop.body) - {Continue} else _first(loop.body)
        return evolve(loop, rounds_of=first, body=self.block(loop.body, first))


def _first(block: Block) -> int:
    """The first block that runs whenever this one does; `NOTHING` if it has none."""
    for statement in block:
        if isinstance(statement, Price):
            return statement.block
        if isinstance(statement, Once):
            inner = _first(statement.body)
            if inner != NOTHING:
                return inner
        if _exits((statement,)):
            return NOTHING
    return NOTHING


def _exits(block: Block) -> frozenset[type]:
    """The statements by which control may leave a block before its end, but for faults."""
    exits: frozenset[type] = frozenset()
    for statement in block:
        if isinstance(statement, Straight | Price | ApplyToVectors):
            continue
        match statement:
            case Leave() | Break() | Continue() | Return():
                exits |= {type(statement)}
            case IfElse(then=then, orelse=orelse):
                exits |= _exits(then) | _exits(orelse)
            case Once(body=body):
                exits |= _exits(body) - {Leave}
            case For(body=body):
                exits |= _exits(body) - {Break, Continue}
            case While(head=head, body=body):
                exits |= _exits((*head, *body)) - {Break, Continue}
            case _:
                raise AssertionError(f"no statement of a priced codelet: {cast(object, statement)}")
    return exits
