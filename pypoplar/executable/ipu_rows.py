"""At which rows of a control program which IPUs wait for each other, beside those of a step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import (
    STEPS,
    BranchOperand,
    CallOperand,
    ComputeOperand,
    JumpOperand,
    Opcode,
    Operand,
    ProgramRow,
    ServiceOperand,
    UnlessEqualOperand,
)
from pypoplar.interface.service_kinds import ServiceKind

if TYPE_CHECKING:
    from pypoplar.executable.executable import Executable

TIMELESS = {
    ServiceKind.ABORT, ServiceKind.CALLBACK, ServiceKind.ERROR, ServiceKind.JUDGE, ServiceKind.PRINTS, ServiceKind.REMOTE_READ,
    ServiceKind.REMOTE_WRITE, ServiceKind.SEED, ServiceKind.UNDEFINED,
}  # fmt: skip
"""Services for which no IPU waits: the machine knows nothing of them, or their time is that of a step beside them."""

OF_ALL = {Opcode.STAMP, Opcode.ELAPSED, Opcode.CLOCK, Opcode.END}
"""Operations that are about the time of the whole program."""

DECIDING: Mapping[int, tuple[Operand, Operand]] = {
    Opcode.BRANCH: (BranchOperand.TILE, BranchOperand.ROW),
    Opcode.UNLESS_EQUAL: (UnlessEqualOperand.TILE, UnlessEqualOperand.ROW),
}
"""Operations that decide what runs next, with the tile of the value and the row to which they go."""


def waiting_rows(executable: Executable, has: Bools) -> tuple[Int64s, Int64s]:
    """The IPUs that wait for each other at each row: where those of a row begin, [rows + 1], and the IPUs.

    ``has[step, ipu]`` says which IPUs have a share of a step. A branch is waited for by the IPUs that do what it decides, and it
    waits for them; a compute set with a result by the IPU that has the result.
    """
    rows = executable.program.tolist()
    used = _used(executable, rows, has)
    running = np.zeros((len(rows) + 1, has.shape[1]), np.int64)
    np.cumsum(used, 0, out=running[1:])
    tiles, computes = executable.target.getTilesPerIPU(), executable.computes
    waiting: list[Int64s] = []
    for number, row in enumerate(rows):
        operation = row[ProgramRow.OPERATION]
        ipus = np.zeros(has.shape[1], bool)
        if operation in DECIDING:
            begin, end = decided_rows(rows, number)
            ipus = running[end] > running[begin]
            ipus[row[DECIDING[operation][0]] // tiles] = True
        elif _concerns_all(executable, row):
            ipus[:] = True
        elif operation == Opcode.COMPUTE and computes.result_tile[row[ComputeOperand.COMPUTE]] != NOTHING:
            ipus = used[number].copy()
            ipus[computes.result_tile[row[ComputeOperand.COMPUTE]] // tiles] = True
        waiting.append(np.flatnonzero(ipus))
    return offsets([len(ipus) for ipus in waiting]), np.concatenate([np.zeros(0, np.int64), *waiting])


def decided_rows(rows: list[list[int]], number: int) -> tuple[int, int]:
    """The rows that a branch decides, from the first on and up to another: of an If both parts, of a loop its head and its body."""
    row = rows[number]
    end = row[DECIDING[row[ProgramRow.OPERATION]][1]]
    before = rows[end - 1]
    if before[ProgramRow.OPERATION] == Opcode.JUMP and before[JumpOperand.ROW] >= end:  # over the other part, or out of a loop
        end = before[JumpOperand.ROW]
    last = rows[end - 1]
    if last[ProgramRow.OPERATION] == Opcode.JUMP and last[JumpOperand.ROW] <= number:  # back to the head of a loop
        return last[JumpOperand.ROW], end
    return number + 1, end


def _concerns_all(executable: Executable, row: list[int]) -> bool:
    """Whether all IPUs wait for each other at a row."""
    operation = row[ProgramRow.OPERATION]
    if operation == Opcode.SERVICE:
        return executable.services[row[ServiceOperand.SERVICE]]["kind"] not in TIMELESS
    return operation in OF_ALL


def _used(executable: Executable, rows: list[list[int]], has: Bools) -> Bools:
    """bool [rows, IPUs]: which IPUs do something at a row, or in what it calls."""
    used = np.zeros((len(rows), has.shape[1]), bool)
    calls: list[tuple[int, int]] = []
    for number, row in enumerate(rows):
        operation = row[ProgramRow.OPERATION]
        for column in STEPS.get(operation, ()):
            if row[column] != NOTHING:
                used[number] |= has[row[column]]
        if operation in DECIDING:
            used[number, row[DECIDING[operation][0]] // executable.target.getTilesPerIPU()] = True
        elif operation == Opcode.CALL:
            calls.append((number, row[CallOperand.ROW]))
        elif _concerns_all(executable, row):
            used[number] = True
    _add_called(rows, calls, used)
    return used


def _add_called(rows: list[list[int]], calls: list[tuple[int, int]], used: Bools) -> None:
    """Add to each call, a row and the first one of its function, what the function uses: functions before those that call them."""
    ends = {begin: end_of(rows, begin, Opcode.RETURN) for _, begin in calls}
    callers = [number for number, _ in calls]
    within = {begin: calls[bisect_left(callers, begin) : bisect_left(callers, end)] for begin, end in ends.items()}
    inside: dict[int, Bools] = {}
    for begin in TopologicalSorter({begin: [called for _, called in own] for begin, own in within.items()}).static_order():
        for number, called in within[begin]:
            used[number] |= inside[called]
        inside[begin] = np.any(used[begin : ends[begin]], axis=0)
    for number, called in calls:
        used[number] |= inside[called]


def end_of(rows: Sequence[Sequence[int]], begin: int, last: Opcode) -> int:
    """The row that ends the program or function whose first row is `begin`: the first one that does `last`."""
    return next(row for row in range(begin, len(rows)) if rows[row][ProgramRow.OPERATION] == last)
