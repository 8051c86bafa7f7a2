"""How loops are held to the cycle limit, `pypoplar.cycle_limit`: what both engines judge them by.

A ``for`` is *even* if each of its rounds costs the same: its body branches nowhere. It is judged once, where it begins: if all its
rounds take the vertex beyond the limit, that is the fault, before the first of them. Any other loop is judged like a ``while``,
at the beginning of each round, by what has been spent so far. A loop without rounds is not judged.

The rest is for machine code, which need not look in every round to come to the same verdict: where the most that a round may cost
is known, one look serves for many rounds. It has to look now and then in any case, for a run may be stopped from outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from pypoplar.codelet.ir.loop_checks import InRange, LoopPlan
from pypoplar.codelet.ir.typed import (
    Apply,
    ApplyToVectors,
    Block,
    Break,
    Continue,
    For,
    IfElse,
    Leave,
    Length,
    Literal,
    Local,
    Once,
    Operand,
    Price,
    Return,
    Statement,
    Straight,
    TypedCodelet,
    While,
)
from pypoplar.codelet.ir.walk import sets, walk

STRETCH = 1 << 25  # slots that code may spend without a look at the limit: some tenths of a second
_LONGEST = 1 << 18  # about what a tile has room for, in words
_SUMS = ("copy_i32", "add_i32", "sub_i32", "min_i32", "max_i32")  # of what is short, they are
_PARTS = ("floordiv_i32", "mod_i32", "shift_right_i32")  # of what is short, by a literal, they are


def rounds_of(start: int, stop: int, step: int) -> int:
    """How often ``for i in range(start, stop, step)`` runs; `step` is not 0."""
    return max(0, -((start - stop) // step))


def is_even(loop: For) -> bool:
    """Whether each round of a loop costs the same. It may fault."""
    return all(map(_goes_on, loop.body))


def round_slots(loop: For) -> int:
    """What a round of an even loop counts as. One that costs nothing is a slot, for such a loop must end as well."""
    if loop.price is not None:
        return max(1, loop.price.rest)
    return max(1, Price.total(statement for statement in loop.body if isinstance(statement, Price)).slots)


def most_of_round(loop: For) -> int | None:
    """The most that a round counts as, if it is known and so little that several rounds may be judged together."""
    most = most_slots(loop.body)
    return max(1, most) if most is not None and most <= STRETCH else None


def most_slots(block: Block) -> int | None:
    """The most that a block may count as; None if it has loops whose rounds are not known."""
    most = 0
    for statement in block:
        slots = _most(statement)
        if slots is None:
            return None
        most += slots
    return most


def stretch(loop: For, most: int, short: frozenset[str], plan: LoopPlan | None = None) -> int | None:
    """After how many rounds, of at most `most` slots each, to look at the limit; None for a loop that ends before.

    `short` are the codelet's `short_locals`. Where a `plan` goes along a vector, the loop has no more rounds than that elements.
    """
    rounds = max(1, STRETCH // most)
    known = _literal_rounds(loop)
    along = plan is not None and any(isinstance(step, InRange) and step.index.scale for step in plan.setup)
    if known is None and (along or all(_is_short(bound, short) for bound in (loop.start, loop.stop))):
        known = 2 * _LONGEST
    return None if known is not None and known <= rounds else rounds


def short_locals(codelet: TypedCodelet) -> frozenset[str]:
    """Names of the locals that are never much larger than the length of a vector, of either sign."""
    settings: dict[str, list[Statement]] = {}
    for statement in walk(codelet.body):
        target = sets(statement)
        if isinstance(target, Local):
            settings.setdefault(target.name, []).append(statement)
    short = {codelet.worker.name} - set(settings) if codelet.worker is not None else set()
    while True:
        more = {name for name, of_name in settings.items() if name not in short and _all_short(of_name, frozenset(short))}
        if not more:
            return frozenset(short)
        short |= more


def _goes_on(statement: Statement) -> bool:
    return isinstance(statement, Straight | Price)


def _most(statement: Statement) -> int | None:
    if isinstance(statement, Straight):
        return 0
    match statement:
        case Price(slots=slots):
            return slots
        case IfElse(then=then, orelse=orelse):
            of_then, of_else = most_slots(then), most_slots(orelse)
            return None if of_then is None or of_else is None else max(of_then, of_else)
        case Once(body=body):
            return most_slots(body)
        case For(body=body):
            rounds = _literal_rounds(statement)
            if statement.price is not None:
                return None if rounds is None else statement.price.total(rounds)
            of_round = round_slots(statement) if is_even(statement) else most_slots(body)
            return None if rounds is None or of_round is None else rounds * of_round
        case While() | ApplyToVectors():
            return None
        case Leave() | Break() | Continue() | Return():
            return 0
        case _:
            assert_never(statement)


def _literal_rounds(loop: For) -> int | None:
    """The rounds of a loop whose bounds are literals."""
    start, stop, step = (int(bound.value) if isinstance(bound, Literal) else None for bound in (loop.start, loop.stop, loop.step))
    if start is None or stop is None or not step:
        return None
    return rounds_of(start, stop, step)


def _is_short(operand: Operand, short: frozenset[str]) -> bool:
    return abs(operand.value) <= _LONGEST if isinstance(operand, Literal) else operand.name in short


def _all_short(settings: Iterable[Statement], short: frozenset[str]) -> bool:
    """Whether statements set a local to what is short, where locals that are known to be so are."""
    return all(_sets_short(statement, short) for statement in settings)


def _sets_short(statement: Statement, short: frozenset[str]) -> bool:
    match statement:
        case Length():
            return True
        case For(start=start, stop=stop):
            return _is_short(start, short) and _is_short(stop, short)
        case Apply(operation=operation, arguments=arguments) if operation in _SUMS:
            return all(_is_short(argument, short) for argument in arguments)
        case Apply(operation=operation, arguments=(whole, part)) if operation in _PARTS:
            return _is_short(whole, short) and isinstance(part, Literal) and _is_short(part, short)
        case _:
            return False
