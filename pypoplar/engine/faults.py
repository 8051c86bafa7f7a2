"""How programs come back to the host; and what turns the fault of a vertex, or of the program itself, into an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.codelet.device_wording import device_code
from pypoplar.codelet.ir.typed import TypedCodelet
from pypoplar.codelet.operations.matrix_unit import MULTIPLY_ACCUMULATE
from pypoplar.engine.arena import Arena
from pypoplar.engine.worker_races import worker_race
from pypoplar.errors import (
    CodeletArithmeticError,
    CodeletIndexError,
    CodeletRuntimeError,
    CycleLimitError,
    GraphCycleError,
    PoplarError,
    PoplarRuntimeError,
    UninitialisedReadError,
)
from pypoplar.executable.executable import Executable
from pypoplar.interface.fault_codes import FaultCode
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import ProgramRow


@frozen
class Fault:
    """The first fault of a step, by the lowest vertex: codes, values and bounds as `FaultCode` says."""

    vertex: int
    code: int
    where: int
    value: int
    bound: int
    codelet: int
    step: int
    replica: int = 0


@frozen
class Stop:
    """A program has come to a service of the host's, or to its end: whole, or by a fault."""

    service: int = NOTHING
    fault: Fault | None = None

    @property
    def ends(self) -> bool:
        """Whether the program does not go on."""
        return self.service == NOTHING


KINDS: Mapping[FaultCode, type[PoplarError]] = {
    FaultCode.INDEX: CodeletIndexError,
    FaultCode.ZERO_DIVISION: CodeletArithmeticError,
    FaultCode.SHIFT_WIDTH: CodeletArithmeticError,
    FaultCode.NEGATIVE_POWER: CodeletArithmeticError,
    FaultCode.RANGE_STEP: CodeletArithmeticError,
    FaultCode.CHECK: CodeletRuntimeError,
    FaultCode.CYCLE_LIMIT: CycleLimitError,
    FaultCode.INVALID: CodeletArithmeticError,
    FaultCode.OVERFLOW: CodeletArithmeticError,
    FaultCode.DIVISION_BY_ZERO: CodeletArithmeticError,
    FaultCode.UNINITIALISED: UninitialisedReadError,
    FaultCode.SLICE_BOUNDS: CodeletIndexError,
    FaultCode.ROW_INDEX: CodeletIndexError,
    FaultCode.READ_AFTER_WRITE: CodeletRuntimeError,
    FaultCode.WORKER_RACE: GraphCycleError,
    FaultCode.VIEW_ALIGNMENT: CodeletRuntimeError,
    FaultCode.VIEW_SIZE: CodeletRuntimeError,
    FaultCode.UNWRITTEN: CodeletRuntimeError,
    FaultCode.VECTOR_COUNT: CodeletIndexError,
    FaultCode.VECTOR_ROWS: CodeletIndexError,
    FaultCode.VECTOR_EXTENT: CodeletIndexError,
}


def _what(fault: Fault, codelet: TypedCodelet, executable: Executable, memory: Arena) -> str:  # noqa: C901, PLR0911, PLR0912 - an arm for each code
    value, bound = fault.value, fault.bound
    match FaultCode(fault.code):
        case FaultCode.INDEX:
            return f"index {value} is out of range for a length of {bound}"
        case FaultCode.ZERO_DIVISION:
            return "integer division by zero"
        case FaultCode.SHIFT_WIDTH:
            return f"shift by {value} is outside the width of the type"
        case FaultCode.NEGATIVE_POWER:
            return f"integer power with the negative exponent {value}"
        case FaultCode.RANGE_STEP:
            return "the step of range() is zero"
        case FaultCode.CHECK:
            return f"check failed: {codelet.texts[value]}"
        case FaultCode.CYCLE_LIMIT:
            cycle_limit = executable.options.cycle_limit
            limit = f"the cycle limit of {cycle_limit} (option pypoplar.cycle_limit)" if cycle_limit else "cycles can be counted"
            if value > bound:
                return f"the vertex ran longer than {limit}"
            return f"with all rounds of this loop the vertex would run longer than {limit}"
        case FaultCode.INVALID:
            return "invalid floating-point operation (its result is NaN)"
        case FaultCode.OVERFLOW:
            return "floating-point overflow"
        case FaultCode.DIVISION_BY_ZERO:
            return "floating-point division by zero"
        case FaultCode.UNINITIALISED:
            return f"element {value} is read, but nothing has written it (option pypoplar.uninitialised)"
        case FaultCode.SLICE_BOUNDS:
            return f"a slice bound {value} is out of range for a length of {bound}"
        case FaultCode.ROW_INDEX:
            return f"row {value} is out of range for a list of {bound} rows"
        case FaultCode.READ_AFTER_WRITE:
            return (
                f"element {value} of an Input is read after the vertex has written it through the Output that is the same tensor: "
                "what it holds then is open; use one InOut field for both"
            )
        case FaultCode.WORKER_RACE:
            base = memory.marks_base - memory.tile_base[executable.vertex_names.tile[fault.vertex]]
            return worker_race(executable, fault.vertex, value - int(base), bound)
        case FaultCode.VIEW_ALIGNMENT:
            beyond = f"{value} byte{'s' * (value != 1)}"
            return (
                f"a view of bytes as records begins {beyond} behind a multiple of {bound}, where such a record may lie: cut the "
                f"bytes at multiples of {bound}"
            )
        case FaultCode.VIEW_SIZE:
            return f"a view of {value} bytes as records of {bound}: they are no whole number of records"
        case FaultCode.UNWRITTEN:
            row, element = divmod(bound, 1 << 32)
            of_row = f" of row {row}" if codelet.fields[value].form == "list" else ""
            name = codelet.fields[value].name
            return f"the codelet promises to write all of {name!r}, by writes_all, but has left out element {element}{of_row}"
        case FaultCode.VECTOR_COUNT:
            parameter = MULTIPLY_ACCUMULATE.numbers[bound]
            return f"{MULTIPLY_ACCUMULATE.call}: '{parameter}' is {value}, which is below 0"
        case FaultCode.VECTOR_ROWS:
            return (
                f"{MULTIPLY_ACCUMULATE.call}: the rows of 'out' would overlap: with a stride of {value} they are {bound} long, "
                f"write out_stride={bound} or more"
            )
        case FaultCode.VECTOR_EXTENT:
            vector, length = divmod(bound, 1 << 32)
            name = MULTIPLY_ACCUMULATE.vectors[vector]
            return f"{MULTIPLY_ACCUMULATE.call} goes to element {value} of '{name}', which has a length of {length}"
        case unknown:
            assert_never(unknown)


def fault_error(executable: Executable, memory: Arena, fault: Fault) -> PoplarError:
    """The error to raise for a fault: it names vertex, tile, replica, compute set, and the user's line."""
    codelet = executable.codelets[fault.codelet].typed
    names = executable.vertex_names
    file, line, _ = names.locations[int(names.location[fault.vertex])]
    what, compute_set = _what(fault, codelet, executable, memory), executable.steps[fault.step].name
    made = f"; {executable.compute_set_made(compute_set)}" if fault.code == FaultCode.WORKER_RACE else ""
    of_replica = f" of replica {fault.replica}" if executable.replicas > 1 else ""
    return KINDS[FaultCode(fault.code)](
        f"{device_code(codelet, fault.where, what)}\n"
        f"  vertex {fault.vertex} on tile {int(names.tile[fault.vertex])}{of_replica} in compute set "
        f"{compute_set!r}, added at {file}:{line}{made}"
    )


def unknown_operation(program: Int64s, row: int) -> PoplarRuntimeError:
    """The error to raise where the program has no operation that an engine knows."""
    operation = int(program[row, ProgramRow.OPERATION])
    return PoplarRuntimeError(f"row {row} of the program has the operation {operation}, which no engine knows")


def left_program(program: Int64s, row: int) -> PoplarRuntimeError:
    """The error to raise where the program goes on at a row that it does not have."""
    return PoplarRuntimeError(f"the program goes on at row {row}: it has the rows 0 to {len(program) - 1}")
