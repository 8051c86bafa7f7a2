"""Which fields a codelet stores to whatever happens: those of its outputs that define their elements.

Poplar takes an Output for written in full. Here an element of an Output that the vertex leaves alone keeps its value, so that is
believed only of a field to which every way through the codelet stores: of a vector, by an index, row or slice that moves with a
loop or is the worker's number. How far the loop goes is not looked at: it is taken to be entered, and to go over the elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.typed import (
    Apply,
    Block,
    Break,
    Continue,
    For,
    If,
    Leave,
    Local,
    Once,
    Operand,
    Return,
    Row,
    Slice,
    Store,
    TypedCodelet,
    While,
)
from pypoplar.compiler.plan import Array

Names = frozenset[str]
NOTHING: Names = frozenset()
NO_FIELD = ""


def defined_fields(codelets: Sequence[Codelet]) -> Array:
    """bool, in the order of `FieldTable`: every way through the codelet stores to the field."""
    found: list[bool] = []
    for one in codelets:
        stored = stored_fields(one.typed)
        found.extend(field.name in stored for field in one.typed.fields)
    return np.array(found, bool)


def stored_fields(codelet: TypedCodelet) -> Names:
    """The names of the fields that a codelet stores to on every way through it."""
    scalars = frozenset(one.name for one in codelet.fields if one.form == "scalar")
    moving = set() if codelet.worker is None else {codelet.worker.name}
    return _Walk(scalars, moving).stored(codelet.body)[0] - {NO_FIELD}


@define(eq=False)
class _Walk:
    """A walk through the body of a codelet, in order."""

    scalars: Names
    moving: set[str]  # locals that follow a loop's variable or the worker's number
    fields: dict[str, str] = field(factory=dict)  # of which field a row or slice is; of none if it does not move

    def stored(self, block: Block) -> tuple[Names, bool]:
        """The fields that a block stores to on every way through it, and whether a way may leave it before its end."""
        done = NOTHING
        for one in block:
            leaves = False
            if isinstance(one, Store):
                name = self.fields.get(one.span.name, one.span.name)
                done |= {name} if name in self.scalars or self._moves(one.index) else NOTHING
            elif isinstance(one, Apply):
                change = self.moving.add if any(map(self._moves, one.arguments)) else self.moving.discard
                change(one.target.name)
            elif isinstance(one, Row | Slice):
                self._bind(one)
            elif isinstance(one, If):
                then, leaves_then = self.stored(one.then)
                otherwise, leaves_otherwise = self.stored(one.orelse)
                done |= then & otherwise
                leaves = leaves_then or leaves_otherwise
            elif isinstance(one, For | While):
                inner, leaves = self._of_loop(one)
                done |= NOTHING if leaves else inner  # rounds that end early leave elements out
                leaves = leaves and _returns(one.body)
            elif isinstance(one, Once):
                inner, leaves = self.stored(one.body)
                done |= inner
                leaves = leaves and _returns(one.body)
            elif isinstance(one, Return | Leave | Break | Continue):
                leaves = True
            if leaves:
                return done, True
        return done, False

    def _of_loop(self, loop: For | While) -> tuple[Names, bool]:
        if isinstance(loop, While):
            return self.stored(loop.head + loop.body)
        self.moving.add(loop.variable.name)
        return self.stored(loop.body)

    def _moves(self, operand: Operand) -> bool:
        return isinstance(operand, Local) and operand.name in self.moving

    def _bind(self, one: Row | Slice) -> None:
        whole, bounds = (one.rows, (one.index,)) if isinstance(one, Row) else (one.span, (one.begin, one.end))
        of = self.fields.get(whole.name, whole.name) if any(map(self._moves, bounds)) else NO_FIELD
        self.fields[one.target.name] = of if self.fields.get(one.target.name, of) == of else NO_FIELD


def _returns(block: Block) -> bool:
    """Whether a block may end the vertex."""
    for one in block:
        inner = [getattr(one, name, ()) for name in ("then", "orelse", "head", "body")]
        if isinstance(one, Return) or any(_returns(each) for each in inner):
            return True
    return False
