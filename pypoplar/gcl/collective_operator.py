"""What collectives make of the values of several replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from attrs import frozen

from pypoplar import popops
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence
from pypoplar.types import BOOL, FLOAT, HALF, INT, LONGLONG, UNSIGNED_INT, UNSIGNED_LONGLONG, ElementType


class CollectiveOperator(Enum):
    """How collectives combine the values of several replicas.

    Attributes
    ----------
    ADD:
        Their sum: FLOAT, HALF, INT and types of 64 bits.
    MEAN:
        Their mean: FLOAT and HALF.
    MUL:
        Their product: the types of ADD.
    MIN:
        The least: the types of ADD, and UNSIGNED_INT.
    MAX:
        The largest: the types of MIN.
    LOGICAL_AND:
        Whether all are true: BOOL.
    LOGICAL_OR:
        Whether any is true: BOOL.
    SQUARE_ADD:
        The sum of their squares: FLOAT, HALF and INT.
    LOCAL:
        The replica's own, so that nothing moves: every type.
    """

    ADD = "ADD"
    MEAN = "MEAN"
    MUL = "MUL"
    MIN = "MIN"
    MAX = "MAX"
    LOGICAL_AND = "LOGICAL_AND"
    LOGICAL_OR = "LOGICAL_OR"
    SQUARE_ADD = "SQUARE_ADD"
    LOCAL = "LOCAL"


Combine = Callable[[Graph, Tensor, Tensor, Sequence, str], object]
NUMBERS = (FLOAT, HALF, INT, LONGLONG, UNSIGNED_LONGLONG)


@frozen(eq=False)
class OperatorRow:
    """The types of an operator, and what changes a first value by a second one."""

    types: tuple[ElementType, ...]
    combine: Combine


ROWS: Mapping[CollectiveOperator, OperatorRow] = {
    CollectiveOperator.ADD: OperatorRow(NUMBERS, popops.addInPlace),
    CollectiveOperator.MEAN: OperatorRow((FLOAT, HALF), popops.addInPlace),
    CollectiveOperator.MUL: OperatorRow(NUMBERS, popops.mulInPlace),
    CollectiveOperator.MIN: OperatorRow((*NUMBERS, UNSIGNED_INT), popops.minInPlace),
    CollectiveOperator.MAX: OperatorRow((*NUMBERS, UNSIGNED_INT), popops.maxInPlace),
    CollectiveOperator.LOGICAL_AND: OperatorRow((BOOL,), popops.logicalAndInPlace),
    CollectiveOperator.LOGICAL_OR: OperatorRow((BOOL,), popops.logicalOrInPlace),
    CollectiveOperator.SQUARE_ADD: OperatorRow((FLOAT, HALF, INT), popops.addInPlace),
}
"""All but LOCAL, which combines nothing."""


def check_operator(call: str, op: object, *types: ElementType) -> CollectiveOperator:
    """The operator; `PoplibsError` for what is none, and for types that it does not have."""
    if not isinstance(op, CollectiveOperator):
        raise PoplibsError(f"{call}: an operator is a CollectiveOperator, got {op!r}")
    for type in types:
        if op is not CollectiveOperator.LOCAL and type not in ROWS[op].types:
            raise PoplibsError(f"{call}: {op.name} takes {', '.join(map(repr, ROWS[op].types))}, got {type!r}")
    return op
