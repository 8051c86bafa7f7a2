"""Lowers programs to the flat control program: one row an operation, loops and branches as jumps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pypoplar import program as kinds
from pypoplar.arrays.dtypes import Int64s
from pypoplar.codelet.ir.typed import DebugPrint
from pypoplar.codelet.ir.walk import walk
from pypoplar.compiler.exchange.copy_plan import plan_copy
from pypoplar.compiler.exchange.exchange_costs import (
    ExchangeCost,
    host_cycles,
    price_exchange,
    rearrange_cycles,
    sync_cycles,
    vertex_side_pieces,
)
from pypoplar.compiler.exchange.host_copies import host_pieces
from pypoplar.compiler.exchange.pieces import appended, turned
from pypoplar.compiler.exchange.plan import ComputePlan, Homes
from pypoplar.compiler.exchange.stream_order import stream_exchange
from pypoplar.compiler.liveness.control_flow import BlockName
from pypoplar.compiler.lowering import lower_services
from pypoplar.compiler.lowering.compute_tables import ComputeTables
from pypoplar.compiler.lowering.move_tables import MoveLists, TileAddresses
from pypoplar.errors import ControlProgramError
from pypoplar.executable.exchange_account import NamedExchange
from pypoplar.executable.host_plans import HostTensor, StreamPlan
from pypoplar.executable.program_tree import TreeBuilder, described
from pypoplar.executable.steps import Step
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.host_links import DataStream, Function, HostFunction, RemoteBuffer
from pypoplar.graph.tensor import Tensor
from pypoplar.interface.driver_records import Phase
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import (
    BranchOperand,
    CallbackOperand,
    CallOperand,
    ComputeOperand,
    JumpOperand,
    MoveOperand,
    Opcode,
    Operands,
    RepeatEndOperand,
    RepeatOperand,
    ServiceOperand,
    StreamOperand,
    UnlessEqualOperand,
    program_row,
)
from pypoplar.target import Target

HANDLE_STEP = 0  # host reads and writes by handle are not part of any program: they share a step that costs nothing


@frozen(eq=False)
class Phases:
    """A compute set as the steps of the program see it."""

    compute: int
    plan: ComputePlan
    before: ExchangeCost
    after: ExchangeCost
    copied_before: Int64s  # [tiles], cycles of copies on the tile
    copied_after: Int64s


@frozen(eq=False)
class LoweredFunction:
    """A function of the graph, as its calls see it."""

    start: int  # its first row
    streams: frozenset[int]  # that it uses
    node: int  # of the program tree


@define(eq=False)
class Lowering:
    """The control program while it is made, with everything that its rows refer to."""

    graph: FrozenGraph
    target: Target
    homes: Homes
    addresses: TileAddresses
    plans: dict[int, ComputePlan]
    tables: ComputeTables
    remote_numbers: dict[str, int]
    moves: MoveLists = field(factory=MoveLists)
    rows: list[list[int]] = field(factory=list)
    steps: list[Step] = field(factory=list)
    exchanges: list[NamedExchange] = field(factory=list)
    services: list[dict[str, Any]] = field(factory=list)
    streams: list[StreamPlan] = field(factory=list)
    tree: TreeBuilder = field(factory=TreeBuilder)
    marks: dict[BlockName, list[int]] = field(factory=dict)  # the first step of every position; see `control_flow`
    counters: int = 0
    clocks: int = 0
    _stream_numbers: dict[str, int] = field(factory=dict)
    _phases: dict[tuple[int, int], Phases] = field(factory=dict)
    _functions: dict[int, LoweredFunction] = field(factory=dict)  # by number
    _pending_calls: list[tuple[int, int, Function]] = field(factory=list)  # row and node of the program tree
    _block_marks: list[int] = field(factory=list)
    _programs: int = 0
    depth: int = 0
    _used_streams: set[int] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        nothing = np.zeros(0, np.int64)
        self.steps.append(Step("host handle", "handle", 0, nothing))

    # Rows and steps

    def row(self, operation: Opcode, operands: Mapping[Operands, int]) -> int:
        """Append a row of the program; returns its number."""
        self.rows.append(program_row(operation, operands))
        return len(self.rows) - 1

    def here(self) -> int:
        return len(self.rows)

    def step(self, step: Step, detail: str = "") -> int:
        self.steps.append(step)
        self.tree.step(len(self.steps) - 1, self.exchanges[step.exchange].phase if step.exchange >= 0 else detail)
        return len(self.steps) - 1

    def _exchange(self, name: str, phase: str, account: Any) -> int:
        self.exchanges.append(NamedExchange(name, phase, account, self.graph.variables.names))
        return len(self.exchanges) - 1

    def address(self, tensor: Tensor) -> int:
        """The address of a one-element tensor."""
        element = int(tensor.runs().start[0])
        home = int(np.searchsorted(self.homes.begin, element, side="right")) - 1
        offset = self.homes.offset[home] + (element - self.homes.begin[home]) * self.homes.width[home]
        return int(self.addresses.base[self.homes.tile[home]] + offset)

    # Streams

    def internal_stream(self, tensor_type: Any, elements: int) -> int:
        self.streams.append(StreamPlan(f"internal {len(self.streams)}", "internal", tensor_type.__name__, elements))
        return len(self.streams) - 1

    def add_stream(self, stream: DataStream) -> int:
        """The number of a user's stream."""
        name = stream.handle()
        if name not in self._stream_numbers:
            self._stream_numbers[name] = len(self.streams)
            self.streams.append(StreamPlan(name, stream.direction, stream.elementType().__name__, stream.numElements()))
        return self._stream_numbers[name]

    def _host_moves(self, tensor: Tensor, *, inward: bool) -> int:
        pieces = host_pieces(self.homes, self.addresses, tensor.runs())
        if inward:
            return self.moves.add(pieces.position, pieces.address, pieces.bytes, pieces.tile)
        return self.moves.add(pieces.address, pieces.position, pieces.bytes, pieces.tile)

    def transfer(self, stream: int, tensor: Tensor, *, inward: bool, step: int = HANDLE_STEP) -> None:
        moves = self._host_moves(tensor, inward=inward)
        operands = {StreamOperand.STREAM: stream, StreamOperand.LIST: moves, StreamOperand.STEP: step}
        self.row(Opcode.STREAM_IN if inward else Opcode.STREAM_OUT, operands)

    def service(self, kind: str, **details: Any) -> int:
        self.services.append({"kind": kind, **details})
        return len(self.services) - 1

    def serve(self, kind: str, **details: Any) -> None:
        """A row at which the engine does a service in Python."""
        self.row(Opcode.SERVICE, {ServiceOperand.SERVICE: self.service(kind, **details)})

    def fetch(self, tensor: Tensor, step: int = HANDLE_STEP) -> int:
        """Bring a tensor to a host buffer of its own; returns the internal stream."""
        stream = self.internal_stream(tensor.elementType(), tensor.numElements())
        self.transfer(stream, tensor, inward=False, step=step)
        return stream

    def add_handle(self, tensor: Tensor, *, inward: bool) -> HostTensor:
        """The small program that copies a tensor to or from the host by its handle."""
        entry = self.here()
        stream = self.internal_stream(tensor.elementType(), tensor.numElements())
        self.transfer(stream, tensor, inward=inward)
        self.row(Opcode.END, {})
        return HostTensor(tensor.elementType().__name__, tuple(tensor.shape()), stream, entry)

    # Programs

    def _open_block(self, name: BlockName) -> None:
        self._block_marks = self.marks[name] = []
        self.mark()

    def mark(self) -> None:
        """A position of the control flow begins here, or a block ends."""
        self._block_marks.append(len(self.steps))

    def add_program(self, one: kinds.Program) -> tuple[int, tuple[int, ...]]:
        """Lower one program of the engine; returns its first row and the streams that it uses."""
        entry = self.here()
        self._used_streams = set()
        self._open_block(("program", self._programs))
        self._programs += 1
        self.tree.open_root("Sequence")
        self.lower(one)
        self.tree.close()
        self.mark()
        self.row(Opcode.END, {})
        self._finish_functions()
        return entry, tuple(sorted(self._used_streams))

    def lower(self, one: kinds.Program) -> None:
        """Append the rows of a program."""
        if type(one) not in _LOWER:
            raise ControlProgramError(f"{one!r} is not a kind of program that an Engine can run")
        if not isinstance(one, kinds.Sequence):
            self.mark()
        words = described(one)
        if words is not None:
            self.tree.open(*words)
        _LOWER[type(one)](self, one)
        if words is not None:
            self.tree.close()

    def _inside(self, one: kinds.Program, role: str = "") -> None:
        """A part of a program; `role` names it where a program has several."""
        self.depth += 1
        if role:
            self.tree.open("Sequence", role)
        self.lower(one)
        if role:
            self.tree.close()
        self.depth -= 1

    def _sequence(self, one: kinds.Sequence) -> None:
        """The programs in order, those of sequences within it in their place, however deep."""
        open_ones = [self._parts(one)]
        while open_ones:
            for part in open_ones[-1]:
                if isinstance(part, kinds.Sequence):
                    open_ones.append(self._parts(part))
                    break
                self.lower(part)
            else:
                open_ones.pop()

    def _parts(self, one: kinds.Sequence) -> Iterator[kinds.Program]:
        if one.name:
            self.tree.open("Sequence", one.name)
        yield from one.programs
        if one.name:
            self.tree.close()

    def _execute(self, one: kinds.Execute) -> None:
        number = one.compute_set.getId()
        result = NOTHING if one.result is None else self.address(one.result)
        phases = self._phases_of(number, result)
        plan, name = phases.plan, self.graph.compute_sets[number]
        before = self._exchange(name, "before", plan.before)
        after = self._exchange(name, "after", plan.after)
        first = last = NOTHING
        if len(plan.before.messages) or phases.copied_before.any():
            first = self.step(self._moving(name, "exchange", 0, phases.before, phases.copied_before, before))
        sync = sync_cycles(self.target, between_ipus=phases.before.crosses)
        nothing = np.zeros(0, np.int64)
        middle = self.step(Step(name, "compute", sync, nothing, compute=phases.compute, depth=self.depth))
        if len(plan.after.messages) or phases.copied_after.any():
            after_sync = sync_cycles(self.target, between_ipus=phases.after.crosses) if len(plan.after.messages) else 0
            last = self.step(self._moving(name, "exchange", after_sync, phases.after, phases.copied_after, after))
        self.row(
            Opcode.COMPUTE,
            {
                ComputeOperand.COMPUTE: phases.compute,
                ComputeOperand.BEFORE: first,
                ComputeOperand.STEP: middle,
                ComputeOperand.AFTER: last,
            },
        )
        if self.tables.touches is not None:
            self.serve("judge", compute=phases.compute, name=name)
        if any(self._prints(int(one)) for one in np.unique(self.graph.vertices.codelet[plan.vertex])):
            self.serve("prints")

    def _moving(self, name: str, kind: str, sync: int, cost: ExchangeCost, copied: Int64s, exchange: int) -> Step:
        """A step that moves data between tiles and on them."""
        between = cost.global_cycles
        return Step(name, kind, sync, cost.cycles, -1, exchange, 0, 0, self.depth, copied, global_exchange_cycles=between)

    def _prints(self, codelet: int) -> bool:
        """Whether a codelet calls ``ipu.debug_print``."""
        typed = self.graph.codelets[codelet].typed
        return bool(typed.texts) and any(isinstance(one, DebugPrint) for one in walk(typed.body))

    def _phases_of(self, number: int, result: int) -> Phases:
        """The compute set's entry in the driver's tables, made when it is first executed."""
        if (number, result) not in self._phases:
            plan, tiles = self.plans[number], self.graph.tiles
            fetched, fanned_out = self.moves.add_exchange(plan.exchange_before, self.addresses)
            gathered = self.moves.add_pieces(appended(plan.gather, plan.preload), self.addresses)
            scattered, sent = self._write_back(plan)
            lists = {
                Phase.EXCHANGE_BEFORE: fetched,
                Phase.FAN_OUT: fanned_out,
                Phase.GATHER: gathered,
                Phase.SCATTER: scattered,
                Phase.EXCHANGE_AFTER: sent,
            }
            arriving = vertex_side_pieces(tiles, plan.exchange_before, plan.gather)
            departing = vertex_side_pieces(tiles, turned(plan.exchange_after), turned(plan.scatter))
            self._phases[number, result] = Phases(
                self.tables.add(plan, lists, result),
                plan,
                price_exchange(self.target, plan.before, plan.before_offset, arriving),
                price_exchange(self.target, plan.after, plan.after_offset, departing),
                rearrange_cycles(self.target, plan.copied_before, tiles),
                rearrange_cycles(self.target, plan.copied_after, tiles),
            )
        return self._phases[number, result]

    def _write_back(self, plan: ComputePlan) -> tuple[int, int]:
        """What is moved after a compute set; where touches are judged, the judge writes back what was written."""
        if self.tables.touches is not None:
            return NOTHING, NOTHING
        scatter = self.moves.add_pieces(plan.scatter, self.addresses)
        return scatter, self.moves.add_pieces(plan.exchange_after, self.addresses, by_source=True)

    def _copy(self, one: kinds.Copy) -> None:
        source, target = one.source, one.destination
        if isinstance(source, Tensor) and isinstance(target, Tensor):
            self._copy_tensor(one, source, target)
        elif isinstance(source, DataStream) and isinstance(target, Tensor):
            self._copy_in(one, source, target)
        elif isinstance(source, Tensor) and isinstance(target, DataStream):
            self._copy_out(one, source, target)
        elif isinstance(source, RemoteBuffer) and isinstance(target, Tensor):
            self._copy_remote(one, source, target, inward=True)
        elif isinstance(source, Tensor) and isinstance(target, RemoteBuffer):
            self._copy_remote(one, target, source, inward=False)

    def _copy_tensor(self, one: kinds.Copy, source: Tensor, target: Tensor) -> None:
        plan = plan_copy(self.graph, self.homes, source.runs(), target.runs())
        name = one.name or "Copy"
        exchange = self._exchange(name, "copy", plan.account)
        arrives = plan.pieces.source_tile != plan.pieces.target_tile
        placed = np.bincount(plan.pieces.target_tile[arrives], minlength=self.graph.tiles)
        cost = price_exchange(self.target, plan.account, plan.offset, placed)
        sync = sync_cycles(self.target, between_ipus=cost.crosses) if len(plan.account.messages) else 0
        copied = rearrange_cycles(self.target, plan.pieces, self.graph.tiles)
        step = self.step(self._moving(name, "copy", sync, cost, copied, exchange))
        moves = self.moves.add_pieces(plan.pieces, self.addresses)
        if moves != NOTHING:
            self.row(Opcode.MOVE, {MoveOperand.LIST: moves, MoveOperand.STEP: step})

    def _host_step(self, one: kinds.Copy, name: str, tensor: Tensor, *, inward: bool) -> int:
        """The step of a transfer: over the host's link, and between the stream's order and the tensor's places."""
        size = tensor.numElements() * tensor.elementType().size
        cycles = host_cycles(self.target, size, to_device=inward)
        order = None if one.optimise_memory else stream_exchange(self.graph.tiles, self.homes, tensor.runs(), inward=inward)
        if order is None:
            step = Step(name, "stream", 0, np.zeros(0, np.int64), -1, -1, size, cycles, self.depth)
        else:
            cost = price_exchange(self.target, order.account.exchange, order.account.offset, order.pieces)
            sync = sync_cycles(self.target, between_ipus=cost.crosses)
            copied, between = rearrange_cycles(self.target, order.local, self.graph.tiles), cost.global_cycles
            step = Step(name, "stream", sync, cost.cycles, -1, -1, size, cycles, self.depth, copied, between)
        return self.step(step, f"{size:,} bytes to the {'device' if inward else 'host'}")

    def _copy_in(self, one: kinds.Copy, stream: DataStream, tensor: Tensor) -> None:
        number = self.add_stream(stream)
        self._used_streams.add(number)
        self._serve_callback(number)
        self.transfer(number, tensor, inward=True, step=self._host_step(one, one.name or stream.handle(), tensor, inward=True))

    def _copy_out(self, one: kinds.Copy, tensor: Tensor, stream: DataStream) -> None:
        number = self.add_stream(stream)
        self._used_streams.add(number)
        self.transfer(number, tensor, inward=False, step=self._host_step(one, one.name or stream.handle(), tensor, inward=False))
        self._serve_callback(number)

    def _serve_callback(self, stream: int) -> None:
        service = self.service("callback", stream=stream)
        self.row(Opcode.CALLBACK, {CallbackOperand.STREAM: stream, CallbackOperand.SERVICE: service})

    def _copy_remote(self, one: kinds.Copy, buffer: RemoteBuffer, tensor: Tensor, *, inward: bool) -> None:
        offsets = NOTHING if one.offset is None else self.fetch(one.offset)
        step = self._host_step(one, one.name or buffer.handle(), tensor, inward=inward)
        stream = self.internal_stream(tensor.elementType(), tensor.numElements())
        details = {"buffer": self.remote_numbers[buffer.handle()], "stream": stream, "offsets": offsets}
        if inward:
            self.serve("remote_read", **details)
            self.transfer(stream, tensor, inward=True, step=step)
        else:
            self.transfer(stream, tensor, inward=False, step=step)
            self.serve("remote_write", **details)

    def _repeat(self, one: kinds.Repeat) -> None:
        counter = self.counters
        self.counters += 1
        times = {RepeatOperand.COUNTER: counter, RepeatOperand.TIMES: one.count, RepeatOperand.AFTER: NOTHING}
        start = self.row(Opcode.REPEAT, times)
        self._inside(one.body)
        self.row(Opcode.REPEAT_END, {RepeatEndOperand.COUNTER: counter, RepeatEndOperand.BODY: start + 1})
        self.rows[start][RepeatOperand.AFTER] = self.here()

    def branch(self, predicate: Tensor) -> int:
        """A branch that is taken if the predicate is false; where to is filled in later."""
        place, size = self.address(predicate), predicate.elementType().size
        operands = {BranchOperand.ADDRESS: place, BranchOperand.BYTES: size, BranchOperand.ROW: NOTHING}
        return self.row(Opcode.BRANCH, operands)

    def jump(self, row: int = NOTHING) -> int:
        """A jump; one to NOTHING is filled in later."""
        return self.row(Opcode.JUMP, {JumpOperand.ROW: row})

    def _repeat_while_true(self, one: kinds.RepeatWhileTrue) -> None:
        start = self.here()
        self._inside(one.condition, "condition")
        self.mark()
        leave = self.branch(one.predicate)
        self._inside(one.body, "body")
        self.jump(start)
        self.rows[leave][BranchOperand.ROW] = self.here()

    def _repeat_while_false(self, one: kinds.RepeatWhileFalse) -> None:
        start = self.here()
        self._inside(one.condition, "condition")
        self.mark()
        go_on = self.branch(one.predicate)
        leave = self.jump()
        self.rows[go_on][BranchOperand.ROW] = self.here()
        self._inside(one.body, "body")
        self.jump(start)
        self.rows[leave][JumpOperand.ROW] = self.here()

    def _if(self, one: kinds.If) -> None:
        otherwise = self.branch(one.predicate)
        self._inside(one.then, "then")
        done = self.jump()
        self.rows[otherwise][BranchOperand.ROW] = self.here()
        empty = isinstance(one.otherwise, kinds.Sequence) and not one.otherwise.programs
        self._inside(one.otherwise, "" if empty else "else")
        self.rows[done][JumpOperand.ROW] = self.here()

    def _switch(self, one: kinds.Switch) -> None:
        address, size = self.address(one.index), one.index.elementType().size
        ends = []
        for value, case in one.cases:
            signed = int(np.array(value).astype(np.int64).astype(np.int32)) if size == 4 else value
            comparison = {
                UnlessEqualOperand.ADDRESS: address,
                UnlessEqualOperand.BYTES: size,
                UnlessEqualOperand.VALUE: signed,
                UnlessEqualOperand.ROW: NOTHING,
            }
            other = self.row(Opcode.UNLESS_EQUAL, comparison)
            self._inside(case, f"case {value}")
            ends.append(self.jump())
            self.rows[other][UnlessEqualOperand.ROW] = self.here()
        if one.default is not None:
            self._inside(one.default, "default")
        for end in ends:
            self.rows[end][JumpOperand.ROW] = self.here()

    def _call(self, one: kinds.Call) -> None:
        if isinstance(one.function, HostFunction):
            lower_services.lower_call_host(self, one, one.function)
            return
        row = self.row(Opcode.CALL, {CallOperand.ROW: NOTHING})
        self._pending_calls.append((row, self.tree.current, one.function))

    def _finish_functions(self) -> None:
        """Lower the functions that are called, each once, and fill in where they start."""
        while self._pending_calls:
            row, node, function = self._pending_calls.pop()
            if function.number not in self._functions:
                self._lower_function(function)
            lowered = self._functions[function.number]
            self._used_streams |= lowered.streams
            self.rows[row][CallOperand.ROW] = lowered.start
            self.tree.adopt(node, lowered.node)

    def _lower_function(self, function: Function) -> None:
        """A function, and those that it calls: their streams are its streams too."""
        outer = self._used_streams, self._pending_calls
        self._used_streams, self._pending_calls = set(), []
        start, node = self.here(), self.tree.open_apart("Sequence", f"function {function.number}")
        self._open_block(("function", function.number))
        self.lower(kinds.function_program(function))
        self.tree.close()
        self.mark()
        self.row(Opcode.RETURN, {})
        self._finish_functions()
        self._functions[function.number] = LoweredFunction(start, frozenset(self._used_streams), node)
        self._used_streams, self._pending_calls = outer


_LOWER: dict[type, Callable[[Lowering, Any], None]] = {
    kinds.Sequence: Lowering._sequence,
    kinds.Execute: Lowering._execute,
    kinds.Copy: Lowering._copy,
    kinds.Repeat: Lowering._repeat,
    kinds.RepeatWhileTrue: Lowering._repeat_while_true,
    kinds.RepeatWhileFalse: Lowering._repeat_while_false,
    kinds.If: Lowering._if,
    kinds.Switch: Lowering._switch,
    kinds.Call: Lowering._call,
    kinds.PrintTensor: lower_services.lower_print,
    kinds.WriteUndef: lower_services.lower_write_undef,
    kinds.Sync: lower_services.lower_sync,
    kinds.Abort: lower_services.lower_abort,
    kinds.AbortOnCondition: lower_services.lower_abort_on_condition,
    kinds.ErrorProgram: lower_services.lower_error,
    kinds.CycleCount: lower_services.lower_cycle_count,
    kinds.CycleStamp: lower_services.lower_cycle_stamp,
    kinds.SetFloatingPointBehaviour: lower_services.lower_floating_point,
    kinds.SetStochasticRounding: lower_services.lower_stochastic_rounding,
    kinds.SetSeed: lower_services.lower_seed,
}
