"""The control program while it is made: rows, steps, and everything that rows refer to. It knows no kind of program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pypoplar.compiler.exchange.host_copies import host_pieces
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.compiler.lowering.compute_phases import PhaseTable
from pypoplar.compiler.lowering.move_tables import MoveLists
from pypoplar.compiler.lowering.places import Places, TilePlaces
from pypoplar.compiler.lowering.planned_copies import PlannedCopies
from pypoplar.compiler.lowering.tree_builder import TreeBuilder
from pypoplar.executable.exchange_account import NamedExchange
from pypoplar.executable.host_plans import HostTensor, StreamPlan
from pypoplar.executable.steps import StaticStep
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.host_links import DataStream, Function
from pypoplar.graph.tensor import Tensor
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import BranchOperand, JumpOperand, Opcode, Operands, ServiceOperand, StreamOperand, program_row
from pypoplar.interface.service_kinds import ServiceKind, service_of
from pypoplar.target import Target

HANDLE_STEP = 0  # host reads and writes by handle are not part of any program: they share a step that costs nothing


@frozen(eq=False)
class PendingCall:
    """A call of a function whose rows may not be there yet."""

    row: int
    node: int  # of the program tree
    function: Function


@define(eq=False)
class Lowering:
    """What the rules of the kinds of programs add to."""

    graph: FrozenGraph
    target: Target
    homes: Homes
    places: TilePlaces
    phases: PhaseTable
    copies: PlannedCopies
    remote_numbers: dict[str, int]
    rows: list[list[int]] = field(factory=list)
    steps: list[StaticStep] = field(factory=list)
    exchanges: list[NamedExchange] = field(factory=list)
    services: list[dict[str, Any]] = field(factory=list)
    streams: list[StreamPlan] = field(factory=list)
    tree: TreeBuilder = field(factory=TreeBuilder)
    counters: int = 0
    clocks: int = 0
    depth: int = 0  # of the loops and branches around
    sets_floating_point: bool = False  # whether the program says which floating-point results stop it
    used_streams: set[int] = field(factory=set)  # the user's, by the program or function that is lowered
    pending_calls: list[PendingCall] = field(factory=list)  # of that program or function
    _stream_numbers: dict[str, int] = field(factory=dict)

    @property
    def moves(self) -> MoveLists:
        """What is moved."""
        return self.phases.moves

    def __attrs_post_init__(self) -> None:
        nothing = np.zeros(0, np.int64)
        self.steps.append(StaticStep("host handle", "handle", 0, nothing))

    # Rows and steps

    def row(self, operation: Opcode, operands: Mapping[Operands, int]) -> int:
        """Append a row of the program; returns its number."""
        self.rows.append(program_row(operation, operands))
        return len(self.rows) - 1

    def next_row(self) -> int:
        """The number of the row that is appended next."""
        return len(self.rows)

    def step(self, step: StaticStep, detail: str = "") -> int:
        self.steps.append(step)
        self.tree.step(len(self.steps) - 1, self.exchanges[step.exchange].phase if step.exchange >= 0 else detail)
        return len(self.steps) - 1

    def exchange(self, name: str, phase: str, account: Any) -> int:
        self.exchanges.append(NamedExchange(name, phase, account, self.graph.variables.names))
        return len(self.exchanges) - 1

    def place(self, tensor: Tensor) -> tuple[int, int]:
        """The tile of a one-element tensor, and its offset in the tile's memory."""
        element = int(tensor.runs().start[0])
        home = int(np.searchsorted(self.homes.begin, element, side="right")) - 1
        offset = self.homes.offset[home] + (element - self.homes.begin[home]) * self.homes.width[home]
        return int(self.homes.tile[home]), int(offset)

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

    def _host_move(self, tensor: Tensor, *, inward: bool) -> int:
        pieces = host_pieces(self.homes, tensor.runs())
        host, device = Places.on_host(pieces.position), self.places.on_tiles(pieces.tile, pieces.offset)
        source, target = (host, device) if inward else (device, host)
        return self.moves.add(source, target, pieces.bytes, pieces.tile)

    def transfer(self, stream: int, tensor: Tensor, *, inward: bool, step: int = HANDLE_STEP) -> None:
        move = self._host_move(tensor, inward=inward)
        operands = {StreamOperand.STREAM: stream, StreamOperand.MOVE: move, StreamOperand.STEP: step}
        self.row(Opcode.STREAM_IN if inward else Opcode.STREAM_OUT, operands)

    def service(self, kind: str, **details: Any) -> int:
        self.services.append(service_of(ServiceKind(kind), **details))
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
        tile, offset = self.place(predicate)
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
