"""Claims about the control program: every row can be executed, and no path leaves the program.

The rows are divided into blocks: one begins at every entry and at every row that is called, and goes up to the next. Jumps stay in
their block; the block of an entry ends with END, that of a function with RETURN, and neither has the other's. A row of a function
is thus only reached by a call, and there is somewhere to return to. Calls form no cycle and nest at most `call_depth` deep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct, opens
from pypoplar.executable.claims import LARGEST
from pypoplar.executable.cost_facts import COMPUTED, KNOWN_BY, ROUNDS, SHARE, CostFacts
from pypoplar.executable.executable import Executable
from pypoplar.executable.verify.host_claims import INTERNAL, TO_DEVICE, TO_HOST, chunk_bytes, handle_streams
from pypoplar.executable.verify.move_claims import MoveEnds
from pypoplar.executable.verify.named_checks import (
    check,
    check_each,
    check_least,
    check_limit,
    check_most,
    check_number,
    check_range,
)
from pypoplar.executable.verify.tree_claims import verify_tree
from pypoplar.interface.fault_codes import FloatingPoint
from pypoplar.interface.layout import NOTHING, mask
from pypoplar.interface.opcodes import (
    CLOCK_BYTES,
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

MOVE, STEP, MAYBE_STEP, COMPUTE, COUNTER, TIMES, ROW, TILE, OFFSET, SIZE, STREAM, OWN_STREAM, SERVICE, CLOCK, MASK = (
    "move", "step", "step or -1", "compute", "counter", "times", "row", "tile", "offset", "size", "stream", "stream of its own",
    "service", "clock", "mask",
)  # fmt: skip
KINDS: dict[Opcode, dict[Operand, str]] = {
    Opcode.END: {},
    Opcode.MOVE: {MoveOperand.MOVE: MOVE, MoveOperand.STEP: STEP},
    Opcode.COMPUTE: {
        ComputeOperand.COMPUTE: COMPUTE,
        ComputeOperand.BEFORE: MAYBE_STEP,
        ComputeOperand.STEP: STEP,
        ComputeOperand.AFTER: MAYBE_STEP,
    },
    Opcode.REPEAT: {RepeatOperand.COUNTER: COUNTER, RepeatOperand.TIMES: TIMES, RepeatOperand.AFTER: ROW},
    Opcode.REPEAT_END: {RepeatEndOperand.COUNTER: COUNTER, RepeatEndOperand.BODY: ROW},
    Opcode.JUMP: {JumpOperand.ROW: ROW},
    Opcode.BRANCH: {BranchOperand.TILE: TILE, BranchOperand.OFFSET: OFFSET, BranchOperand.BYTES: SIZE, BranchOperand.ROW: ROW},
    Opcode.UNLESS_EQUAL: {
        UnlessEqualOperand.TILE: TILE,
        UnlessEqualOperand.OFFSET: OFFSET,
        UnlessEqualOperand.BYTES: SIZE,
        UnlessEqualOperand.ROW: ROW,
    },
    Opcode.CALL: {CallOperand.ROW: ROW},
    Opcode.RETURN: {},
    Opcode.STREAM_IN: {StreamOperand.STREAM: STREAM, StreamOperand.MOVE: MOVE, StreamOperand.STEP: STEP},
    Opcode.STREAM_OUT: {StreamOperand.STREAM: STREAM, StreamOperand.MOVE: MOVE, StreamOperand.STEP: STEP},
    Opcode.SERVICE: {ServiceOperand.SERVICE: SERVICE},
    Opcode.CALLBACK: {CallbackOperand.STREAM: OWN_STREAM, CallbackOperand.SERVICE: SERVICE},
    Opcode.STAMP: {StampOperand.CLOCK: CLOCK},
    Opcode.ELAPSED: {ElapsedOperand.CLOCK: CLOCK, ElapsedOperand.TILE: TILE, ElapsedOperand.OFFSET: OFFSET},
    Opcode.CLOCK: {ClockOperand.TILE: TILE, ClockOperand.OFFSET: OFFSET},
    Opcode.FLOATING_POINT: {FloatingPointOperand.KEPT: MASK, FloatingPointOperand.SET: MASK},
    Opcode.SYNC: {SyncOperand.STEP: STEP},
}
"""What the operands of every operation name; any number is a value to compare with (`UnlessEqualOperand.VALUE`)."""
LEAST = {COMPUTE: 0, OWN_STREAM: 0}
"""What has no upper bound of its own: it is compared with what has one."""
SIZES = (1, 2, 4, 8)
NO_ROWS = np.zeros(0, np.int64)
RowName: TypeAlias = Callable[[int, str], str]
"""How messages call a row, by its number and its words."""


def _row_name(number: int, row: str) -> str:
    return f"row {number} of the program, {row}:"


def verify_program(executable: Executable, ends: MoveEnds, row_name: RowName = _row_name) -> None:
    """Check the program of an executable whose other parts have been checked; `ends` is of its moves."""
    program = executable.program
    shaped = program.ndim == 2 and program.shape[1] == ROW_WORDS
    check("program", shaped, f"program has the shape {list(program.shape)}: expected rows of {ROW_WORDS}")
    rows = _Rows(executable, ends, row_name)
    rows.verify_operands()
    rows.verify_memory()
    rows.verify_streams()
    rows.verify_computes()
    rows.verify_services()
    blocks = _blocks(executable, rows)
    blocks.verify_jumps()
    blocks.verify_uses(executable)
    verify_tree(executable)
    if executable.cost is not None:
        rows.verify_decisions(executable.cost)


@frozen(eq=False)
class _Rows:
    """The rows of the program."""

    executable: Executable
    ends: MoveEnds
    row_name: RowName
    code: Int64s = field(init=False)
    by_code: Mapping[int, Int64s] = field(init=False)  # the numbers of the rows with an operation, of those that there are

    @code.default
    def _codes(self) -> Int64s:
        return self.executable.program[:, ProgramRow.OPERATION]

    @by_code.default
    def _rows_by_code(self) -> Mapping[int, Int64s]:
        rows = np.argsort(self.code, kind="stable")
        first = np.flatnonzero(opens(self.code[rows]))
        return dict(zip(self.code[rows[first]].tolist(), np.split(rows, first[1:]), strict=True)) if len(rows) else {}

    def of(self, *codes: int) -> Int64s:
        """The numbers of the rows with these operations."""
        found = [self.by_code[code] for code in codes if code in self.by_code]
        return found[0] if len(found) == 1 else np.sort(np.concatenate((*found, NO_ROWS)))

    def operand(self, rows: Int64s, operand: Operand) -> Int64s:
        """An operand of rows."""
        values: Int64s = self.executable.program[rows, operand]
        return values

    def named(self, rows: Int64s) -> Callable[[int], str]:
        """How messages call the entries of something that is said of some rows."""

        def name(entry: int) -> str:
            row = int(rows[entry])
            shown = " ".join(str(int(operand)) for operand in self.executable.program[row, OPERAND_COLUMNS])
            return self.row_name(row, f"{Opcode(self.code[row]).name} {shown}")

        return name

    def verify_operands(self) -> None:
        """Every operand names something that is there."""
        executable = self.executable
        check_range("program operations", self.code, min(Opcode), max(Opcode) + 1, "the operations of the program: row")
        for name, value in (("counters", executable.counters), ("clocks", executable.clocks)):
            check_number(name, value, 0, len(executable.program) + 1)
        bounds = {
            MOVE: (0, len(self.ends.lists)),
            STEP: (0, len(executable.steps)),
            MAYBE_STEP: (-1, len(executable.steps)),
            COUNTER: (0, executable.counters),
            TIMES: (0, (1 << 63) - 1),
            ROW: (0, len(executable.program)),
            TILE: (0, len(executable.tile_bytes)),
            OFFSET: (0, LARGEST),
            STREAM: (0, len(executable.streams)),
            SERVICE: (0, len(executable.services)),
            CLOCK: (0, executable.clocks),
            MASK: (0, mask(FloatingPoint) + 1),
        }
        for code in distinct(self.code):
            rows = self.of(int(code))
            operands = OPERANDS[Opcode(code)]
            for operand, kind in KINDS[Opcode(code)].items():
                name, text = f"program {Opcode(code).name} {operand.name}", f"operand {operands.index(operand)} is no {kind}"
                values = self.operand(rows, operand)
                if kind in bounds:
                    check_range(name, values, *bounds[kind], self.named(rows), text)
                elif kind in LEAST:
                    check_least(name, values, LEAST[kind], text, self.named(rows))
                else:
                    check_each(name, np.isin(values, SIZES), "no value has that many bytes", self.named(rows))

    def verify_memory(self) -> None:
        """Values that branches read and clocks that are stored lie in their tiles' memories; a plain move is none of a stream."""
        reads: tuple[tuple[Opcode, Operand, Operand, Operand], ...] = (
            (Opcode.BRANCH, BranchOperand.TILE, BranchOperand.OFFSET, BranchOperand.BYTES),
            (Opcode.UNLESS_EQUAL, UnlessEqualOperand.TILE, UnlessEqualOperand.OFFSET, UnlessEqualOperand.BYTES),
        )
        for operation, tile, offset, width in reads:
            size = self.operand(self.of(operation), width)
            self._verify_place(operation, tile, offset, size, "the value is not in the tile's memory")
        stores: tuple[tuple[Opcode, Operand, Operand], ...] = (
            (Opcode.ELAPSED, ElapsedOperand.TILE, ElapsedOperand.OFFSET),
            (Opcode.CLOCK, ClockOperand.TILE, ClockOperand.OFFSET),
        )
        for operation, tile, offset in stores:
            size = np.full(len(self.of(operation)), CLOCK_BYTES)
            self._verify_place(operation, tile, offset, size, "the clock's place is not in the tile's memory")
        rows = self.of(Opcode.MOVE)
        on_ipus = ~self._names_host()[self.operand(rows, MoveOperand.MOVE)]
        check_each("program MOVE host", on_ipus, "the move is one of a stream", self.named(rows))

    def _verify_place(self, operation: Opcode, tile: Operand, offset: Operand, size: Int64s, text: str) -> None:
        """Values of so many bytes lie in their tiles' memories, aligned as native code expects it."""
        rows = self.of(operation)
        begin, reach = self.operand(rows, offset), self.executable.tile_bytes[self.operand(rows, tile)]
        check_most(f"program {operation.name} end", begin + size, reach, text, self.named(rows))
        check_each(f"program {operation.name} alignment", begin % np.minimum(size, 4) == 0, text, self.named(rows))

    def _names_host(self) -> Bools:
        """bool [moves]: whether any list of a move has the host on one side."""
        touches: Bools = self.ends.from_host + self.ends.to_host > 0
        return touches

    def verify_streams(self) -> None:
        """What is moved for a stream is its whole chunk on the host's side, read or written as its kind allows."""
        chunk, ends = chunk_bytes(self.executable), self.ends
        kinds = np.array([stream.kind for stream in self.executable.streams], object)
        for code, kind, host_lists, host_end in (
            (Opcode.STREAM_IN, TO_DEVICE, ends.from_host, ends.source_end),
            (Opcode.STREAM_OUT, TO_HOST, ends.to_host, ends.target_end),
        ):
            rows = self.of(code)
            where, stream, moves = (
                self.named(rows),
                self.operand(rows, StreamOperand.STREAM),
                self.operand(rows, StreamOperand.MOVE),
            )
            direction = np.isin(kinds[stream], (kind, INTERNAL))
            check_each(f"program {code.name} kind", direction, "the stream has the other direction", where)
            if self.executable.cost is not None:  # it moves nothing
                continue
            whole, text = host_lists[moves] == ends.lists[moves], "not all of the move is with the host, in this direction"
            check_each(f"program {code.name} lists", whole, text, where)
            text = "the move does not end with the stream's chunk"
            check_most(f"program {code.name} end", host_end[moves], chunk[stream], text, where)
            check_least(f"program {code.name} chunk", host_end[moves], chunk[stream], text, where)

    def verify_computes(self) -> None:
        """The step that takes the account of a compute set is the compute set's own. What has exchange buffers is executed."""
        executable = self.executable
        rows = self.of(Opcode.COMPUTE)
        compute = np.array([step.compute for step in executable.steps], np.int64)
        own = compute[self.operand(rows, ComputeOperand.STEP)] == self.operand(rows, ComputeOperand.COMPUTE)
        check_each("program COMPUTE own step", own, "the step is not the compute set's", self.named(rows))
        buffers = np.diff(executable.computes.first_buffer)
        executed = np.isin(np.arange(len(buffers)), self.operand(rows, ComputeOperand.COMPUTE))
        text = "has exchange buffers, and no row of the program executes it"
        check_each("computes.first_buffer executed", executed | (buffers == 0), text, "computes.first_buffer")
        moves = executable.computes.moves.ravel()
        on_ipus = (moves == NOTHING) | ~np.append(self._names_host(), False)[moves]
        check_each("computes.moves host", on_ipus, "is a move of a stream", "computes.moves")

    def verify_decisions(self, cost: CostFacts) -> None:
        """There is one for each row at which data decide, and no other; each says what it may."""
        deciding = self.of(Opcode.BRANCH, Opcode.UNLESS_EQUAL).tolist()
        wrong = "" if [decision.row for decision in cost.decisions] == deciding else "are not of the rows at which data decide"
        for number, decision in enumerate(cost.decisions):
            most = 1 if decision.known == SHARE else LARGEST
            if decision.known not in KNOWN_BY or not -LARGEST <= decision.number <= most:
                wrong = f"have {decision.number} as the {decision.known} of number {number}"
            if decision.known in (ROUNDS, SHARE) and decision.number < 0:
                wrong = f"have {decision.number} below 0 in number {number}"
            if not NOTHING <= decision.assumption < len(cost.assumptions):
                wrong = f"name assumption {decision.assumption} in number {number}: there are {len(cost.assumptions)}"
        rows, programs = cost.computing.reshape(-1, 2).T
        if cost.computing.ndim != 2 or not bool(((rows >= 0) & (rows < len(self.code)) & (programs >= 0)).all()):
            wrong = "compute at rows that are not there"
        if not len(cost.control) and (len(rows) or any(decision.known == COMPUTED for decision in cost.decisions)):
            wrong = "are computed, and there is nothing that computes them"
        check("cost.decisions", not wrong, f"cost.decisions {wrong}")

    def verify_services(self) -> None:
        """A callback is served for its own stream; no other operation serves one."""
        services = self.executable.services
        stream = np.array(
            [service["stream"] if service["kind"] == ServiceKind.CALLBACK else NOTHING for service in services], np.int64
        )
        rows = self.of(Opcode.SERVICE)
        plain = stream[self.operand(rows, ServiceOperand.SERVICE)] == NOTHING
        check_each("program SERVICE callback", plain, "the service is a callback's", self.named(rows))
        rows = self.of(Opcode.CALLBACK)
        own = stream[self.operand(rows, CallbackOperand.SERVICE)] == self.operand(rows, CallbackOperand.STREAM)
        check_each("program CALLBACK own stream", own, "the service is not the callback of the stream", self.named(rows))


@frozen(eq=False)
class _Blocks:
    """The program in blocks, as the module's text says."""

    rows: _Rows
    start: Int64s  # [blocks]: first row of each
    block: Int64s  # [rows]
    function: Bools  # [blocks]
    caller: Int64s  # [calls]: blocks
    callee: Int64s  # [calls]

    def verify_jumps(self) -> None:
        """Jumps stay in their block, and no block runs into the next."""
        rows = self.rows
        for operation, kinds in KINDS.items():
            for operand, kind in kinds.items():
                if kind == ROW and operation != Opcode.CALL:
                    jumps = rows.of(operation)
                    inside, text = (
                        self.block[rows.operand(jumps, operand)] == self.block[jumps],
                        "the jump leaves its program or function",
                    )
                    check_each(f"program {operation.name} leaves", inside, text, rows.named(jumps))
        function = self.function[self.block]
        ends = rows.of(Opcode.END)
        check_each("program END function", ~function[ends], "a function does not end the program", rows.named(ends))
        returns = rows.of(Opcode.RETURN)
        check_each("program RETURN function", function[returns], "nothing has called what returns here", rows.named(returns))
        last = np.append(self.start, len(self.block))[1:] - 1
        ended = np.isin(rows.code[last], (Opcode.END, Opcode.RETURN))
        check_each("program block end", ended, "the program or function does not end here", rows.named(last))

    def depth(self) -> Int64s:
        """How deep the calls of each block nest; more than there are blocks where they nest without end."""
        depth = np.zeros(len(self.start), np.int64)
        for _ in range(len(self.start) + 1):
            deeper = depth.copy()
            np.maximum.at(deeper, self.caller, depth[self.callee] + 1)
            if (deeper == depth).all():
                break
            depth = deeper
        return depth

    def verify_uses(self, executable: Executable) -> None:
        """Programs say which of the user's streams they need; handles need none, but their own, which has memory only meanwhile."""
        depth, most = self.depth(), executable.call_depth
        blocks = len(self.start)
        check_limit("call_depth", most, blocks, f"call_depth is {most}: expected at most {blocks}")
        check_limit("calls", int(depth.max(initial=0)), most, f"calls nest deeper than call_depth, which is {most}")
        order = np.argsort(depth[self.caller], kind="stable")
        used: list[set[int]] = [set() for _ in self.start]
        lent = handle_streams(executable)
        rows = self.rows.of(Opcode.STREAM_IN, Opcode.STREAM_OUT)
        for row, stream in zip(rows, self.rows.operand(rows, StreamOperand.STREAM), strict=True):
            if executable.streams[stream].kind != INTERNAL or stream in lent:
                used[self.block[row]].add(int(stream))
        for call in order:  # the innermost calls first
            used[self.caller[call]] |= used[self.callee[call]]
        needed = {
            (handle.entry, handle.stream): used[self.block[handle.entry]]
            for handle in (*executable.writes.values(), *executable.reads.values())
        }
        for (entry, own), streams in sorted(needed.items(), key=lambda item: item[1] <= lent):  # those of the user's first
            other = "the stream of another handle" if streams <= lent else "a stream of the user's"
            check("handles.entry", streams <= {own}, f"row {entry} of the program, of a handle, needs {other}")
        for number, (entry, streams) in enumerate(zip(executable.entries, executable.entry_streams, strict=True)):
            for stream in streams:
                check_number("entry_streams", stream, 0, len(executable.streams), f"entry_streams[{number}]")
            check("entries handles", not used[self.block[entry]] & lent, f"entries[{number}] uses the stream of a handle")
            told = used[self.block[entry]] <= set(streams)
            check("entry_streams told", told, f"entry_streams[{number}] leaves out streams that the program uses")


def _blocks(executable: Executable, rows: _Rows) -> _Blocks:
    size = len(rows.code)
    handles = [handle.entry for handle in (*executable.writes.values(), *executable.reads.values())]
    alike = executable.entries.shape == (len(executable.entry_streams),)
    check("entries", alike, "entries and entry_streams are not of one length")
    entries = np.concatenate((executable.entries, np.array(handles, np.int64)))
    check_range("entries", entries, 0, size, "entries, with those of handles")
    calls = rows.of(Opcode.CALL)
    called = rows.operand(calls, CallOperand.ROW)
    start = distinct(np.concatenate((entries, called)))
    first = int(start[0]) if len(start) else size
    check_limit("program begin", first, 0, "row 0 of the program is not the start of anything")
    function = np.isin(start, called)
    check("functions", not np.isin(start[function], entries).any(), "a function is also a program's entry")
    block = np.searchsorted(start, np.arange(size), side="right") - 1
    return _Blocks(rows, start, block, function, block[calls], block[called])
