"""The control program: its operations, and where each has its operands.

A row is a `ProgramRow`; behind its first column come the operands, whose columns every operation names for itself. A place in
memory is a tile and an offset in its memory, rows count from the first of the program, and a step that is not there is `NOTHING`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import auto
from operator import index
from typing import Any, TypeVar

from pypoplar.interface.layout import Code, Layout

CLOCK_BYTES = 8  # of stored cycles: two unsigned ints, the low one first


class Opcode(Code):
    """What a row does."""

    END = auto()  # of the program
    MOVE = auto()  # between the tiles' memories
    COMPUTE = auto()  # a compute set, with the exchanges before and after it
    REPEAT = auto()  # the start of a loop
    REPEAT_END = auto()
    JUMP = auto()
    BRANCH = auto()  # go on if a value is not zero
    UNLESS_EQUAL = auto()  # go on if a value is the one named here
    CALL = auto()
    RETURN = auto()
    STREAM_IN = auto()  # a chunk of a stream; sources of the move are offsets in the chunk
    STREAM_OUT = auto()  # the same; targets of the move are offsets in the chunk
    SERVICE = auto()  # what the engine does in Python
    CALLBACK = auto()  # a service that is done if the stream is connected to a callback
    STAMP = auto()  # set a clock to the cycles so far
    ELAPSED = auto()  # store the cycles since a clock's stamp
    CLOCK = auto()  # store the cycles so far
    FLOATING_POINT = auto()  # choose the exceptions that stop the program, and how halves are rounded
    SYNC = auto()


class ProgramRow(Layout):
    """What every row begins with."""

    OPERATION = auto()


class Operand(Layout):
    """Columns of an operation's operands."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return Layout._generate_next_value_(name, start, count + len(ProgramRow), last_values)


Operands = TypeVar("Operands", bound=Operand)


class MoveOperand(Operand):
    """Of a row that moves a list of pieces."""

    MOVE = auto()
    STEP = auto()


class ComputeOperand(Operand):
    """Of a row that runs a compute set, with the exchanges before and after it."""

    COMPUTE = auto()
    BEFORE = auto()  # step of the exchange before, or NOTHING
    STEP = auto()
    AFTER = auto()  # step of the exchange after, or NOTHING


class RepeatOperand(Operand):
    """Of the begin of a loop with a count."""

    COUNTER = auto()
    TIMES = auto()
    AFTER = auto()  # the row to go to when there is nothing to repeat


class RepeatEndOperand(Operand):
    """Of the end of a loop with a count."""

    COUNTER = auto()
    BODY = auto()  # its first row


class JumpOperand(Operand):
    """Of a row that goes on elsewhere."""

    ROW = auto()


class BranchOperand(Operand):
    """Of a row that goes on elsewhere if a value in a tile's memory is zero."""

    TILE = auto()
    OFFSET = auto()
    BYTES = auto()
    ROW = auto()  # where to if the value is zero


class UnlessEqualOperand(Operand):
    """Of a row that goes on elsewhere if a value in a tile's memory is not the one that is named."""

    TILE = auto()
    OFFSET = auto()
    BYTES = auto()
    VALUE = auto()
    ROW = auto()  # where to if it differs


class CallOperand(Operand):
    """Of a call of a function."""

    ROW = auto()


class StreamOperand(Operand):
    """Of both directions."""

    STREAM = auto()
    MOVE = auto()
    STEP = auto()


class ServiceOperand(Operand):
    """Of a row for which the driver returns to Python."""

    SERVICE = auto()


class CallbackOperand(Operand):
    """Of a row that fetches or gives a chunk of a stream with a callback."""

    STREAM = auto()
    SERVICE = auto()


class StampOperand(Operand):
    """Of a row that notes the cycles so far."""

    CLOCK = auto()


class ElapsedOperand(Operand):
    """Of a row that writes the cycles since a stamp into a tile's memory."""

    CLOCK = auto()
    TILE = auto()
    OFFSET = auto()


class ClockOperand(Operand):
    """Of a row that writes the cycles so far into a tile's memory."""

    TILE = auto()
    OFFSET = auto()


class FloatingPointOperand(Operand):
    """Of a row that changes what floating-point exceptions do."""

    KEPT = auto()  # `FloatingPoint` bits that stay as they are
    SET = auto()  # those that are set; all others are cleared


class SyncOperand(Operand):
    """Of a row at which tiles wait for each other."""

    STEP = auto()


OPERANDS: Mapping[Opcode, tuple[Operand, ...]] = {
    Opcode.END: (),
    Opcode.MOVE: tuple(MoveOperand),
    Opcode.COMPUTE: tuple(ComputeOperand),
    Opcode.REPEAT: tuple(RepeatOperand),
    Opcode.REPEAT_END: tuple(RepeatEndOperand),
    Opcode.JUMP: tuple(JumpOperand),
    Opcode.BRANCH: tuple(BranchOperand),
    Opcode.UNLESS_EQUAL: tuple(UnlessEqualOperand),
    Opcode.CALL: tuple(CallOperand),
    Opcode.RETURN: (),
    Opcode.STREAM_IN: tuple(StreamOperand),
    Opcode.STREAM_OUT: tuple(StreamOperand),
    Opcode.SERVICE: tuple(ServiceOperand),
    Opcode.CALLBACK: tuple(CallbackOperand),
    Opcode.STAMP: tuple(StampOperand),
    Opcode.ELAPSED: tuple(ElapsedOperand),
    Opcode.CLOCK: tuple(ClockOperand),
    Opcode.FLOATING_POINT: tuple(FloatingPointOperand),
    Opcode.SYNC: tuple(SyncOperand),
}
STEPS: Mapping[int, tuple[Operand, ...]] = {
    Opcode.MOVE: (MoveOperand.STEP,),
    Opcode.STREAM_IN: (StreamOperand.STEP,),
    Opcode.STREAM_OUT: (StreamOperand.STEP,),
    Opcode.SYNC: (SyncOperand.STEP,),
    Opcode.COMPUTE: (ComputeOperand.BEFORE, ComputeOperand.STEP, ComputeOperand.AFTER),
}
"""The operands that are steps, of the operations that execute some, in the order in which they do."""
OPERAND_COLUMNS = sorted({int(column) for operands in OPERANDS.values() for column in operands})
ROW_WORDS = OPERAND_COLUMNS[-1] + 1
_IDENTITIES = {operation: frozenset(map(id, operands)) for operation, operands in OPERANDS.items()}  # numbers alone are ambiguous


def program_row(operation: Opcode, operands: Mapping[Operands, int]) -> list[int]:
    """A row of the program; `ValueError` unless all operands of the operation are given, and no others; they are whole numbers."""
    if frozenset(map(id, operands)) != _IDENTITIES.get(operation):
        if operation not in OPERANDS:
            raise ValueError(f"there is no operation {operation!r}")
        named = [f"{type(operand).__name__}.{operand.name}" for operand in operands]
        raise ValueError(f"{operation.name} has other operands than {', '.join(named) or 'none'}")
    row = [0] * ROW_WORDS
    row[ProgramRow.OPERATION] = operation
    for column, value in operands.items():
        row[column] = index(value)
    return row
