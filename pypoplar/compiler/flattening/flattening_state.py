"""The control program while it is made: rows, steps, and everything that rows refer to. It knows no kind of program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from pypoplar.codelet.ir.terms import line_text
from pypoplar.compiler.control.copy_runs import CopyKind
from pypoplar.compiler.exchange.host_copies import host_pieces
from pypoplar.compiler.exchange.merged_copies import MergedCopies
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.compiler.flattening.compute_phases import Phases, PhaseTable
from pypoplar.compiler.flattening.move_tables import CountedMoves, MoveLists
from pypoplar.compiler.flattening.occurrence import Occurrence, refusal
from pypoplar.compiler.flattening.places import Places, TilePlaces
from pypoplar.compiler.flattening.planned_copies import PlannedCopies, PlannedCopy
from pypoplar.compiler.flattening.remote_places import RemotePlaces
from pypoplar.compiler.flattening.tree_builder import TreeBuilder
from pypoplar.errors import ControlProgramError
from pypoplar.executable.exchange_account import Exchange, ExchangeShare, NamedExchange, joined_by_pairs
from pypoplar.executable.host_plans import HostTensor, StreamPlan
from pypoplar.executable.steps import StaticStep
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.host_links import DataStream, Function, HostConnections, HostFunction, RemoteBuffer
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import (
    CLOCK_BYTES,
    BranchOperand,
    CallOperand,
    JumpOperand,
    Opcode,
    Operands,
    ServiceOperand,
    StreamOperand,
    program_row,
)
from pypoplar.interface.service_kinds import ServiceKind, service_of
from pypoplar.program.base import Effects, Program
from pypoplar.program.copying import Copy
from pypoplar.target import Target
from pypoplar.types import BOOL

HANDLE_STEP = 0  # host reads and writes by handle are not part of any program: they share a step that costs nothing


@frozen(eq=False)
class PendingCall:
    """A call of a function whose rows may not be there yet."""

    row: int
    node: int  # of the program tree
    function: Function


@define(eq=False)
class Flattening:
    """What the rules of the kinds of programs add to."""

    graph: FrozenGraph
    target: Target
    homes: Homes
    places: TilePlaces
    phases: PhaseTable
    merged: Sequence[MergedCopies]  # the steps of all copies
    host: HostConnections
    replicas: int = 1
    rows: list[list[int]] = field(factory=list)
    steps: list[StaticStep] = field(factory=list)
    exchanges: list[NamedExchange] = field(factory=list)
    services: list[dict[str, Any]] = field(factory=list)
    streams: list[StreamPlan] = field(factory=list)
    tree: TreeBuilder = field(factory=TreeBuilder)
    counters: int = 0
    clocks: int = 0
    depth: int = 0  # of the loops and branches around
    sets_exceptions: bool = False  # whether the program lets some floating-point results stop it
    used_streams: set[int] = field(factory=set)  # the user's, by the program or function that is flattened
    pending_calls: list[PendingCall] = field(factory=list)  # of that program or function
    occurrence: Occurrence | None = None  # the program that is flattened; None for what belongs to none
    row_owners: list[Program | None] = field(factory=list)  # by row, the program whose rule has appended it
    service_owners: list[Program] = field(factory=list)  # the same by service
    _copies: PlannedCopies = field(init=False)
    _copies_at: dict[int, MergedCopies] = field(init=False)  # by the positions of copies, those that are one step with them
    _step_of: dict[MergedCopies, int] = field(factory=dict)  # of those that are flattened
    _written: dict[int, tuple[Tensor, int]] = field(factory=dict)  # by `id`: what the host writes, and the move that brings it
    _stream_numbers: dict[str, int] = field(factory=dict)
    _remote_numbers: dict[str, int] = field(init=False)
    remotes: RemotePlaces = field(factory=RemotePlaces)

    @property
    def moves(self) -> MoveLists:
        """What is moved."""
        return self.phases.moves

    def __attrs_post_init__(self) -> None:
        between_tensors = [step for step in self.merged if step.kind is CopyKind.TENSORS]
        self._copies = PlannedCopies(self.graph, self.target, self.homes, between_tensors)
        self._copies_at = {placed.position: step for step in self.merged for placed in step.copies}
        self._remote_numbers = {name: number for number, name in enumerate(self.host.remote_buffers)}
        nothing = np.zeros(0, np.int64)
        self.steps.append(StaticStep("host handle", "handle", 0, nothing))

    def refusal(self, text: str) -> ControlProgramError:
        """The error for a rule that does what `text` says."""
        return ControlProgramError(text) if self.occurrence is None else refusal(self.occurrence.program, text)

    # Programs

    def begin(self, program: Program, effects: Effects, position: int) -> Occurrence:
        """A program whose rule is followed from now on, until `end`."""
        self.occurrence = Occurrence(program, effects, position, self.next_row())
        return self.occurrence

    def end(self, occurrence: Occurrence) -> None:
        """`ControlProgramError` unless a rule has done what its program says of itself, and its rows go on where they may."""
        occurrence.finish(self.rows)
        self.occurrence = None

    # Rows and steps

    def row(self, operation: Opcode, operands: Mapping[Operands, int]) -> int:
        """Append a row of the program; returns its number."""
        try:
            self.rows.append(program_row(operation, operands))
        except (TypeError, ValueError) as error:
            raise self.refusal(f"appends what is no row: {error}") from None
        if self.occurrence is None:
            self.row_owners.append(None)
        else:
            self.row_owners.append(self.occurrence.program)
            self.occurrence.rows.append(len(self.rows) - 1)
        return len(self.rows) - 1

    def next_row(self) -> int:
        """The number of the row that is appended next."""
        return len(self.rows)

    def step(self, step: StaticStep, detail: str = "") -> int:
        if self.occurrence is not None:
            step = evolve(step, made_at=line_text(self.occurrence.program.location))
        self.steps.append(step)
        self.tree.step(len(self.steps) - 1, detail or (self.exchanges[step.exchange].phase if step.exchange != NOTHING else ""))
        return len(self.steps) - 1

    def exchange(self, name: str, phase: str, account: Exchange, shares: tuple[ExchangeShare, ...] = ()) -> int:
        together = isinstance(self.moves, CountedMoves)
        if together:
            account = evolve(account, messages=joined_by_pairs(account.messages))
            shares = tuple(evolve(share, messages=joined_by_pairs(share.messages)) for share in shares)
        self.exchanges.append(NamedExchange(name, phase, account, self.graph.variables.names, shares, together))
        return len(self.exchanges) - 1

    # What programs read and write

    def read(self, tensor: Tensor) -> None:
        """Claim that the program that is flattened says that it reads a tensor; what belongs to no program may read all."""
        if self.occurrence is not None:
            self.occurrence.read(tensor)

    def write(self, tensor: Tensor) -> None:
        """The same of a tensor that is written, all of it."""
        if self.occurrence is not None:
            self.occurrence.write(tensor)

    def value_place(self, tensor: Tensor) -> tuple[int, int]:
        """The tile of a one-element tensor that is read, and its offset in the tile's memory."""
        self.read(tensor)
        return self._place(tensor, tensor.elementType().size)

    def clock_place(self, tensor: Tensor) -> tuple[int, int]:
        """The same for a tensor to which cycles are stored: two unsigned ints."""
        self.write(tensor)
        return self._place(tensor, CLOCK_BYTES)

    def _place(self, tensor: Tensor, size: int) -> tuple[int, int]:
        """Tile and offset of a tensor of `size` bytes that lie together."""
        runs, width = tensor.runs(), tensor.elementType().size
        if runs.count.tolist() != [size // width] or (runs.count[0] > 1 and runs.step[0] != 1):
            raise self.refusal(f"needs {size} bytes in one piece, got {tensor._described()}")
        element = int(runs.start[0])
        home = int(np.searchsorted(self.homes.begin, element, side="right")) - 1
        if element + size // width > self.homes.end[home]:
            raise self.refusal(f"needs {size} bytes in one piece, got {tensor._described()}, which is on several tiles")
        offset = self.homes.offset[home] + (element - self.homes.begin[home]) * self.homes.width[home]
        return int(self.homes.tile[home]), int(offset)

    # Copies

    def planned_copy(self, copy: Copy) -> PlannedCopy:
        """What a copy between tensors moves, together with those that are one step with it, and what that costs."""
        assert isinstance(copy.source, Tensor)
        assert isinstance(copy.destination, Tensor)
        self.read(copy.source)
        self.write(copy.destination)
        return self._copies.plan_of(self.merged_copies(copy))

    def merged_copies(self, copy: Copy) -> MergedCopies:
        """All copies that are one step with a copy. One that is not the program that is flattened itself is a step of its own."""
        if self.occurrence is not None and self.occurrence.program is copy:
            return self._copies_at[self.occurrence.position]
        return MergedCopies.alone(copy)

    def copy_step(self, copies: MergedCopies, make: Callable[[], int]) -> int:
        """The step of copies: made where the first of them is flattened, joined by the others."""
        if copies not in self._step_of:
            self._step_of[copies] = make()
        else:
            self.tree.join(self._step_of[copies])
        return self._step_of[copies]

    # Compute sets and functions

    def execute(self, compute_set: ComputeSet, result: Tensor | None) -> Phases:
        """The phases of a compute set, whose `result` takes the AND of what its vertices return."""
        if self.occurrence is not None:
            self.occurrence.execute(compute_set)
        if result is not None:
            self.write(result)
        return self.phases.of(compute_set.getId(), None if result is None else self._place(result, BOOL.size))

    def call(self, function: Function) -> None:
        """Append the call of a function of the graph; where it starts is filled in later."""
        row = self.row(Opcode.CALL, {CallOperand.ROW: NOTHING})
        if self.occurrence is not None:
            self.occurrence.call(function, row)
        self.pending_calls.append(PendingCall(row, self.tree.current, function))

    # Streams

    def internal_stream(self, tensor_type: Any, elements: int) -> int:
        self.streams.append(StreamPlan(f"internal {len(self.streams)}", "internal", tensor_type.__name__, elements))
        return len(self.streams) - 1

    def add_stream(self, stream: DataStream) -> int:
        """The number of a user's stream."""
        name = self.handle(stream)
        if name not in self._stream_numbers:
            self._stream_numbers[name] = len(self.streams)
            self.streams.append(StreamPlan(name, stream.direction, stream.elementType().__name__, stream.numElements()))
        return self._stream_numbers[name]

    def remote_number(self, buffer: RemoteBuffer) -> int:
        """The number of a remote buffer."""
        return self._remote_numbers[self.handle(buffer)]

    def handle(self, link: DataStream | RemoteBuffer | HostFunction) -> str:
        """The name of what connects the graph with its host; `ControlProgramError` for what is of another graph."""
        if not self.host.has(link):
            raise self.refusal(f"uses {link!r} of another graph: an Engine's programs are of its own graph")
        return link.handle()

    def _host_move(self, tensor: Tensor, *, inward: bool) -> int:
        if isinstance(self.moves, CountedMoves):
            return self.moves.add_unseen()
        written = None if inward else self._written.get(id(tensor))
        back = None if written is None else self.moves.add_back(written[1])
        if back is not None:
            return back
        pieces = host_pieces(self.homes, tensor.runs())
        host, device = Places.on_host(pieces.position), self.places.on_tiles(pieces.tile, pieces.offset)
        move = self.moves.add_host(host, device, pieces.bytes, pieces.tile, inward=inward)
        if inward:
            self._written[id(tensor)] = tensor, move
        return move

    def transfer(self, stream: int, tensor: Tensor, *, inward: bool, step: int = HANDLE_STEP) -> None:
        """Move a chunk of a stream to a tensor, or a tensor to it."""
        if inward:
            self.write(tensor)
        else:
            self.read(tensor)
        self._check_chunk(stream, tensor)
        move = self._host_move(tensor, inward=inward)
        operands = {StreamOperand.STREAM: stream, StreamOperand.MOVE: move, StreamOperand.STEP: step}
        self.row(Opcode.STREAM_IN if inward else Opcode.STREAM_OUT, operands)

    def _check_chunk(self, stream: int, tensor: Tensor) -> None:
        if not 0 <= stream < len(self.streams):
            raise self.refusal(f"moves {tensor._described()} over stream {stream}: expected 0 to {len(self.streams) - 1}")
        plan = self.streams[stream]
        if (plan.type, plan.elements) != (tensor.elementType().__name__, tensor.numElements()):
            raise self.refusal(f"moves {tensor._described()} over a stream of {plan.type} [{plan.elements}]")

    def service(self, kind: str, **details: Any) -> int:
        try:
            self.services.append(service_of(ServiceKind(kind), **details))
        except ValueError as error:
            raise self.refusal(f"asks for what is no service: {error}") from None
        assert self.occurrence is not None
        self.service_owners.append(self.occurrence.program)
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
        entry = self.next_row()
        stream = self.internal_stream(tensor.elementType(), tensor.numElements())
        self.transfer(stream, tensor, inward=inward)
        self.row(Opcode.END, {})
        return HostTensor(tensor.elementType().__name__, tuple(tensor.shape()), stream, entry)

    def branch(self, predicate: Tensor) -> int:
        """A branch that is taken if the predicate is false; where to is filled in later."""
        tile, offset = self.value_place(predicate)
        operands = {
            BranchOperand.TILE: tile,
            BranchOperand.OFFSET: offset,
            BranchOperand.BYTES: predicate.elementType().size,
            BranchOperand.ROW: NOTHING,
        }
        return self.row(Opcode.BRANCH, operands)

    def jump(self, row: int = NOTHING) -> int:
        """A jump; one to NOTHING is filled in later."""
        return self.row(Opcode.JUMP, {JumpOperand.ROW: row})
