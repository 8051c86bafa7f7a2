"""Which codelets round to halves, so that stochastic rounding changes what they do."""

from __future__ import annotations

from pypoplar.codelet.ir.typed import Apply, TypedCodelet
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.operations.table import typed_operation


def may_round_at_random(codelet: TypedCodelet) -> bool:
    """Whether some operation of a codelet rounds to a half, and may do so at random."""
    if codelet.always_nearest:
        return False
    applied = (statement.operation for statement in walk(codelet.body) if isinstance(statement, Apply))
    return any(typed_operation(name).rounds_to_half for name in applied)
