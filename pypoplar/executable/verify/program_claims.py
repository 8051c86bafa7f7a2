"""Claims about the control program: every row can be executed, and no path leaves the program.

The rows are divided into blocks: one begins at every entry and at every row that is called, and goes up to the next. Jumps stay in
their block; the block of an entry ends with END, that of a function with RETURN, and neither has the other's. A row of a function
is thus only reached by a call, and there is somewhere to return to. Calls form no cycle and nest at most `call_depth` deep.
"""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import AnyArray as Array
from pypoplar.errors import FileLoadError
from pypoplar.executable.executable import Executable
from pypoplar.executable.verify.claims import LARGEST, claim, claim_number, claim_range
from pypoplar.executable.verify.host_claims import INTERNAL, TO_DEVICE, TO_HOST, chunk_bytes
from pypoplar.executable.verify.move_claims import ListEnds
from pypoplar.executable.verify.tree_claims import verify_tree
from pypoplar.interface.fault_codes import FloatingPoint
from pypoplar.interface.layout import NOTHING, mask
from pypoplar.interface.opcodes import (
    OPERAND_COLUMNS,
    OPERANDS,
    ROW_WORDS,
    BranchOperand,
    CallbackOperand,
    CallOperand,
    ClockOperand,
    ComputeOperand,
    ElapsedOperand,
    FloatingPointOperand,
    JumpOperand,
    MoveOperand,
    Opcode,
    Operand,
    ProgramRow,
    RepeatEndOperand,
    RepeatOperand,
    ServiceOperand,
    StampOperand,
    StreamOperand,
    SyncOperand,
    UnlessEqualOperand,
)
from pypoplar.interface.service_kinds import ServiceKind

LIST, STEP, MAYBE_STEP, COMPUTE, COUNTER, TIMES, ROW, ADDRESS, SIZE, STREAM, SERVICE, CLOCK, MASK = (
    "move list", "step", "step or -1", "compute", "counter", "times", "row", "address", "size", "stream", "service", "clock",
    "mask",
)  # fmt: skip
KINDS: dict[Opcode, dict[Operand, str]] = {
    Opcode.END: {},
    Opcode.MOVE: {MoveOperand.LIST: LIST, MoveOperand.STEP: STEP},
    Opcode.COMPUTE: {
        ComputeOperand.COMPUTE: COMPUTE,
        ComputeOperand.BEFORE: MAYBE_STEP,
        ComputeOperand.STEP: STEP,
        ComputeOperand.AFTER: MAYBE_STEP,
    },
    Opcode.REPEAT: {RepeatOperand.COUNTER: COUNTER, RepeatOperand.TIMES: TIMES, RepeatOperand.AFTER: ROW},
    Opcode.REPEAT_END: {RepeatEndOperand.COUNTER: COUNTER, RepeatEndOperand.BODY: ROW},
    Opcode.JUMP: {JumpOperand.ROW: ROW},
    Opcode.BRANCH: {BranchOperand.ADDRESS: ADDRESS, BranchOperand.BYTES: SIZE, BranchOperand.ROW: ROW},
    Opcode.UNLESS_EQUAL: {UnlessEqualOperand.ADDRESS: ADDRESS, UnlessEqualOperand.BYTES: SIZE, UnlessEqualOperand.ROW: ROW},
    Opcode.CALL: {CallOperand.ROW: ROW},
    Opcode.RETURN: {},
    Opcode.STREAM_IN: {StreamOperand.STREAM: STREAM, StreamOperand.LIST: LIST, StreamOperand.STEP: STEP},
    Opcode.STREAM_OUT: {StreamOperand.STREAM: STREAM, StreamOperand.LIST: LIST, StreamOperand.STEP: STEP},
    Opcode.SERVICE: {ServiceOperand.SERVICE: SERVICE},
    Opcode.CALLBACK: {CallbackOperand.STREAM: STREAM, CallbackOperand.SERVICE: SERVICE},
    Opcode.STAMP: {StampOperand.CLOCK: CLOCK},
    Opcode.ELAPSED: {ElapsedOperand.CLOCK: CLOCK, ElapsedOperand.ADDRESS: ADDRESS},
    Opcode.CLOCK: {ClockOperand.ADDRESS: ADDRESS},
    Opcode.FLOATING_POINT: {FloatingPointOperand.MASK: MASK},
    Opcode.SYNC: {SyncOperand.STEP: STEP},
}
"""What the operands of every operation name; any number is a value to compare with (`UnlessEqualOperand.VALUE`)."""
CLOCK_BYTES = 8


def verify_program(executable: Executable, ends: ListEnds) -> None:
    """Check the program of an executable whose other parts have been checked; `ends` says how far its move lists reach."""
    program = executable.program
    claim(
        program.ndim == 2 and program.shape[1] == ROW_WORDS,
        f"program has the shape {list(program.shape)}: expected rows of {ROW_WORDS}",
    )
    rows = _Rows(executable, ends)
    rows.verify_operands()
    rows.verify_memory()
    rows.verify_streams()
    rows.verify_computes()
    rows.verify_services()
    blocks = _blocks(executable, rows)
    blocks.verify_jumps()
    blocks.verify_uses(executable)
    verify_tree(executable)


@frozen(eq=False)
class _Rows:
    """The rows of the program."""

    executable: Executable
    ends: ListEnds
    code: Array = field(init=False)

    @code.default
    def _codes(self) -> Array:
        return self.executable.program[:, ProgramRow.OPERATION]

    def of(self, *codes: int) -> Array:
        """The numbers of the rows with these operations."""
        return np.flatnonzero(np.isin(self.code, codes))

    def operand(self, rows: Array, operand: Operand) -> Array:
        """An operand of rows."""
        values: Array = self.executable.program[rows, operand]
        return values

    def claim(self, rows: Array, holds: Array, text: str) -> None:
        """That something holds for each of some rows."""
        if not holds.all():
            row = int(rows[np.flatnonzero(~holds)[0]])
            shown = " ".join(str(int(one)) for one in self.executable.program[row, OPERAND_COLUMNS])
            raise FileLoadError(f"row {row} of the program, {Opcode(self.code[row]).name} {shown}: {text}")

    def verify_operands(self) -> None:
        """Every operand names something that is there."""
        one = self.executable
        claim_range("the operations of the program: row", self.code, min(Opcode), max(Opcode) + 1)
        for name, value in (("counters", one.counters), ("clocks", one.clocks)):
            claim_number(name, value, 0, len(one.program) + 1)
        bounds = {
            LIST: (0, len(self.ends.source)),
            STEP: (0, len(one.steps)),
            MAYBE_STEP: (-1, len(one.steps)),
            COMPUTE: (0, len(one.computes.result)),
            COUNTER: (0, one.counters),
            TIMES: (0, (1 << 63) - 1),
            ROW: (0, len(one.program)),
            ADDRESS: (0, LARGEST),
            SIZE: (1, CLOCK_BYTES + 1),
            STREAM: (0, len(one.streams)),
            SERVICE: (0, len(one.services)),
            CLOCK: (0, one.clocks),
            MASK: (0, mask(FloatingPoint) + 1),
        }
        for code in np.unique(self.code):
            rows = self.of(int(code))
            operands = OPERANDS[Opcode(code)]
            for operand, kind in KINDS[Opcode(code)].items():
                low, high = bounds[kind]
                values = self.operand(rows, operand)
                self.claim(rows, (values >= low) & (values < high), f"operand {operands.index(operand)} is no {kind}")

    def verify_memory(self) -> None:
        """Values that branches read and clocks that are stored lie in memory; so does all that is moved within it."""
        memory = int(self.executable.tile_base[-1])
        reads: tuple[tuple[Opcode, Operand, Operand], ...] = (
            (Opcode.BRANCH, BranchOperand.ADDRESS, BranchOperand.BYTES),
            (Opcode.UNLESS_EQUAL, UnlessEqualOperand.ADDRESS, UnlessEqualOperand.BYTES),
        )
        for operation, place, width in reads:
            rows = self.of(operation)
            address, size = self.operand(rows, place), self.operand(rows, width)
            self.claim(rows, np.isin(size, (1, 2, 4, 8)), "no value has that many bytes")
            self.claim(rows, (address + size <= memory) & (address % np.minimum(size, 4) == 0), "the value is not in memory")
        stores: tuple[tuple[Opcode, Operand], ...] = (
            (Opcode.ELAPSED, ElapsedOperand.ADDRESS),
            (Opcode.CLOCK, ClockOperand.ADDRESS),
        )
        for operation, place in stores:
            rows = self.of(operation)
            address = self.operand(rows, place)
            self.claim(rows, (address + CLOCK_BYTES <= memory) & (address % 4 == 0), "the clock's place is not in memory")
        rows = self.of(Opcode.MOVE)
        lists = self.operand(rows, MoveOperand.LIST)
        self.claim(rows, np.maximum(self.ends.source, self.ends.target)[lists] <= memory, "the list reaches beyond the memory")

    def verify_streams(self) -> None:
        """What is moved for a stream is its whole chunk on the host's side, read or written as its kind allows."""
        memory, chunk = int(self.executable.tile_base[-1]), chunk_bytes(self.executable)
        kinds = np.array([one.kind for one in self.executable.streams], object)
        for code, kind, host, device in (
            (Opcode.STREAM_IN, TO_DEVICE, self.ends.source, self.ends.target),
            (Opcode.STREAM_OUT, TO_HOST, self.ends.target, self.ends.source),
        ):
            rows = self.of(code)
            stream, lists = self.operand(rows, StreamOperand.STREAM), self.operand(rows, StreamOperand.LIST)
            self.claim(rows, np.isin(kinds[stream], (kind, INTERNAL)), "the stream has the other direction")
            self.claim(rows, host[lists] == chunk[stream], "the list does not end with the stream's chunk")
            self.claim(rows, device[lists] <= memory, "the list reaches beyond the memory")

    def verify_computes(self) -> None:
        """The step that takes the account of a compute set is the compute set's own."""
        one = self.executable
        rows = self.of(Opcode.COMPUTE)
        compute = np.array([step.compute for step in one.steps], np.int64)
        own = compute[self.operand(rows, ComputeOperand.STEP)] == self.operand(rows, ComputeOperand.COMPUTE)
        self.claim(rows, own, "the step is not the compute set's")
        lists = one.computes.moves.ravel()
        used = lists[lists >= 0]
        memory, reach = int(one.tile_base[-1]), np.maximum(self.ends.source, self.ends.target)
        claim_range("the move lists of compute sets: end", reach[used], 0, memory + 1)

    def verify_services(self) -> None:
        """A callback is served for its own stream; no other operation serves one."""
        services = self.executable.services
        stream = np.array([one["stream"] if one["kind"] == ServiceKind.CALLBACK else NOTHING for one in services], np.int64)
        rows = self.of(Opcode.SERVICE)
        self.claim(rows, stream[self.operand(rows, ServiceOperand.SERVICE)] == NOTHING, "the service is a callback's")
        rows = self.of(Opcode.CALLBACK)
        own = stream[self.operand(rows, CallbackOperand.SERVICE)] == self.operand(rows, CallbackOperand.STREAM)
        self.claim(rows, own, "the service is not the callback of the stream")


@frozen(eq=False)
class _Blocks:
    """The program in blocks, as the module's text says."""

    rows: _Rows
    start: Array  # int64: first row of each block
    block: Array  # int64 [rows]
    function: Array  # bool [blocks]
    caller: Array  # int64 [calls]: blocks
    callee: Array  # int64 [calls]

    def verify_jumps(self) -> None:
        """Jumps stay in their block, and no block runs into the next."""
        rows = self.rows
        for operation, kinds in KINDS.items():
            for operand, kind in kinds.items():
                if kind == ROW and operation != Opcode.CALL:
                    jumps = rows.of(operation)
                    inside = self.block[rows.operand(jumps, operand)] == self.block[jumps]
                    rows.claim(jumps, inside, "the jump leaves its program or function")
        function = self.function[self.block]
        here = rows.of(Opcode.END)
        rows.claim(here, ~function[here], "a function does not end the program")
        here = rows.of(Opcode.RETURN)
        rows.claim(here, function[here], "nothing has called what returns here")
        last = np.append(self.start, len(self.block))[1:] - 1
        rows.claim(last, np.isin(rows.code[last], (Opcode.END, Opcode.RETURN)), "the program or function does not end here")

    def depth(self, most: int) -> Array:
        """How deep the calls of each block nest; `FileLoadError` if deeper than `most`, or without end."""
        depth = np.zeros(len(self.start), np.int64)
        for _ in range(most + 1):
            deeper = depth.copy()
            np.maximum.at(deeper, self.caller, depth[self.callee] + 1)
            if (deeper == depth).all():
                return depth
            depth = deeper
        raise FileLoadError(f"calls nest deeper than call_depth, which is {most}")

    def verify_uses(self, executable: Executable) -> None:
        """Programs say which of the user's streams they need; handles need none."""
        claim_number("call_depth", executable.call_depth, 0, len(self.start) + 1)
        order = np.argsort(self.depth(executable.call_depth)[self.caller], kind="stable")
        used: list[set[int]] = [set() for _ in self.start]
        rows = self.rows.of(Opcode.STREAM_IN, Opcode.STREAM_OUT)
        for row, stream in zip(rows, self.rows.operand(rows, StreamOperand.STREAM), strict=True):
            if executable.streams[stream].kind != INTERNAL:
                used[self.block[row]].add(int(stream))
        for call in order:  # the innermost calls first
            used[self.caller[call]] |= used[self.callee[call]]
        for number, (entry, streams) in enumerate(zip(executable.entries, executable.entry_streams, strict=True)):
            for stream in streams:
                claim_number(f"entry_streams[{number}]", stream, 0, len(executable.streams))
            claim(used[self.block[entry]] <= set(streams), f"entry_streams[{number}] leaves out streams that the program uses")
        for handle in (*executable.writes.values(), *executable.reads.values()):
            claim(
                not used[self.block[handle.entry]], f"row {handle.entry} of the program, of a handle, needs a stream of the user's"
            )


def _blocks(executable: Executable, rows: _Rows) -> _Blocks:
    size = len(rows.code)
    handles = [one.entry for one in (*executable.writes.values(), *executable.reads.values())]
    claim(executable.entries.shape == (len(executable.entry_streams),), "entries and entry_streams are not of one length")
    entries = np.concatenate((executable.entries, np.array(handles, np.int64)))
    claim_range("entries, with those of handles", entries, 0, size)
    calls = rows.of(Opcode.CALL)
    called = rows.operand(calls, CallOperand.ROW)
    start = np.unique(np.concatenate((entries, called)))
    claim(len(start) == 0 if size == 0 else len(start) > 0 and start[0] == 0, "row 0 of the program is not the start of anything")
    function = np.isin(start, called)
    claim(not np.isin(start[function], entries).any(), "a function is also a program's entry")
    block = np.searchsorted(start, np.arange(size), side="right") - 1
    return _Blocks(rows, start, block, function, block[calls], block[called])
