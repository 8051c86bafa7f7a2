"""Exchange buffers as the report has them: beside the variables, as what lives while a compute set is executed."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.executable.executable import Executable
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import ComputeOperand, Opcode, ProgramRow
from pypoplar.report.memory_report import LoweredVariables


def with_exchange_buffers(variables: LoweredVariables, executable: Executable) -> LoweredVariables:
    """The variables, and for each compute set that needs some of its tiles' exchange buffer an entry "exchange buffer of NAME".

    It lives from the exchange before the compute set to the one after it, each time that the program has the compute set.
    """
    computes = executable.computes
    sizes = np.diff(computes.first_buffer)
    needed = np.flatnonzero(sizes)
    compute, begin, end = _executions(executable)
    order = np.lexsort((begin, compute))
    order = order[np.isin(compute[order], needed)]
    compute, begin, end = compute[order], begin[order], end[order]
    first_life = np.append(np.searchsorted(compute, needed), len(compute))
    buffers = tuple(f"exchange buffer of {executable.steps[step].name}" for step in begin[first_life[:-1]].tolist())
    return LoweredVariables(
        names=variables.names + buffers,
        always=np.concatenate((variables.always, np.zeros(len(needed), bool))),
        first_life=np.concatenate((variables.first_life, variables.first_life[-1] + first_life[1:])),
        life_begin=np.concatenate((variables.life_begin, begin)),
        life_end=np.concatenate((variables.life_end, end)),
        first=np.concatenate((variables.first, variables.first[-1] + np.cumsum(sizes[needed]))),
        tile=np.concatenate((variables.tile, computes.buffer_tile)),
        bytes=np.concatenate((variables.bytes, computes.buffer_bytes)),
        offset=np.concatenate((variables.offset, _buffer_places(executable)[computes.buffer_tile])),
        span=np.concatenate((variables.span, computes.buffer_bytes)),
        made_at=variables.made_at + ("",) * len(buffers) if variables.made_at else (),
    )


def _buffer_places(executable: Executable) -> Int64s:
    """Where exchange buffers begin on each tile: behind variables, plain fields of vertices and what is left empty."""
    memory = executable.memory
    return memory.variables + memory.constants + memory.vertex_state + memory.gaps


def _executions(executable: Executable) -> tuple[Int64s, Int64s, Int64s]:
    """Where the program executes computes: the compute, its first static step, and the step after its last."""
    rows = executable.program[executable.program[:, ProgramRow.OPERATION] == Opcode.COMPUTE]
    before, step, after = (rows[:, column] for column in (ComputeOperand.BEFORE, ComputeOperand.STEP, ComputeOperand.AFTER))
    first, last = np.where(before != NOTHING, before, step), np.where(after != NOTHING, after, step)
    return rows[:, ComputeOperand.COMPUTE], first, last + 1
