"""Which numbers of the interface stand in saved executables, and a name for what they are at present."""

from __future__ import annotations

import hashlib
from enum import IntEnum

from pypoplar.interface.driver_records import Phase
from pypoplar.interface.edge_rows import ListField, RowEntry, ScalarField, TouchField, VectorField
from pypoplar.interface.fault_codes import FloatingPoint
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import OPERANDS, Opcode, ProgramRow
from pypoplar.interface.vertex_kinds import VertexKind

SAVED: tuple[type[IntEnum], ...] = (
    Opcode,
    ProgramRow,
    Phase,
    ScalarField,
    VectorField,
    ListField,
    TouchField,
    RowEntry,
    VertexKind,
    FloatingPoint,
)


def saved_layout() -> str:
    """A text that changes with every number that tables of saved executables are made of."""
    members = [f"NOTHING={NOTHING}"]
    members += [f"{kind.__name__}.{member.name}={int(member)}" for kind in SAVED for member in kind]
    members += [
        f"{operation.name}.{operand.name}={int(operand)}" for operation, operands in OPERANDS.items() for operand in operands
    ]
    return hashlib.sha256("\n".join(members).encode()).hexdigest()[:16]
