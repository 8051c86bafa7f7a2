"""The executable: everything an engine needs, as arrays and plain values.

It is saved as one ``.npz`` file: the arrays as they are, everything else as one JSON text. Nothing in it is pickled, and loading
it runs no Python of the file's: codelets are source that an engine translates, all numbers are checked before the driver uses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, overload

from attrs import field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.ir.terms import Kind
from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.cost_facts import CostFacts
from pypoplar.executable.exchange_account import NamedExchange
from pypoplar.executable.graph_facts import Counts, MadeAt, VertexNames
from pypoplar.executable.host_plans import HostTensor, RemotePlan, StreamPlan
from pypoplar.executable.ipu_steps import IpuSteps, find_ipu_steps
from pypoplar.executable.memory_image import Image
from pypoplar.executable.memory_layout import MemoryLayout
from pypoplar.executable.memory_use import TileMemory
from pypoplar.executable.move_lists import Moves
from pypoplar.executable.program_tree import ProgramTree
from pypoplar.executable.replication import LEFT_OUT, Replication
from pypoplar.executable.steps import StaticStep
from pypoplar.executable.touched_edges import Touches
from pypoplar.executable.variable_lives import Lives
from pypoplar.interface.context_words import UNLIMITED
from pypoplar.interface.fault_codes import FloatingPoint
from pypoplar.interface.opcodes import FloatingPointOperand, Opcode, ProgramRow
from pypoplar.options import EngineOptions
from pypoplar.target import Target
from pypoplar.tracebacks import public

if TYPE_CHECKING:
    from pypoplar.executable.archive import Place

UNPACKED_LIMIT = 1 << 30
"""Bytes: what a file that is loaded may unpack to, unless its reader says otherwise."""


@public
@frozen(eq=False, repr=False)
class Executable:
    """A compiled program, made by `compileGraph` or `Executable.load`, for an `Engine` to run.

    Its attributes are what the compiler hands to the engine and to reports: `target`, `options`, `entries` (of its programs),
    `memory` and `image` (what lies where), `steps` and `tree` (what is done in which order); the others are told of where they
    are defined. They are not part of Poplar.
    """

    target: Target
    options: EngineOptions
    codelets: tuple[Codelet, ...]
    in_place: Int64s  # [pairs, 3]: codelet, and positions of an Input and an Output that are one tensor in some vertex
    tile_bytes: Int64s  # [tiles]: the memory that each is given in an engine, see `MemoryLayout`
    image: Image
    program: Int64s  # [rows, ROW_WORDS], see pypoplar.interface.opcodes
    entries: Int64s  # [programs]: the row where each program of the engine starts
    entry_streams: tuple[tuple[int, ...], ...]  # the user's streams that each program uses
    counters: int  # of Repeat
    call_depth: int  # the most calls that are open at once
    clocks: int  # of cycle counts
    moves: Moves
    computes: Computes
    compute_names: tuple[str, ...]  # of the graph's compute sets
    steps: tuple[StaticStep, ...]
    tree: ProgramTree
    exchanges: Sequence[NamedExchange]  # which files have unpacked when something is asked of them
    services: tuple[Mapping[str, Any], ...]  # see pypoplar.interface.service_kinds
    streams: tuple[StreamPlan, ...]
    writes: Mapping[str, HostTensor]
    reads: Mapping[str, HostTensor]
    remotes: tuple[RemotePlan, ...]
    memory: TileMemory
    lives: Lives
    vertex_bytes: Int64s  # [codelets]: state and pointers of all vertices of a codelet
    priced_by: Int64s  # [codelets, 3]: vertices whose cycles setPerfEstimate, an estimator, the code decides
    counts: Counts
    vertex_names: VertexNames
    variable_names: tuple[str, ...]
    made_at: MadeAt
    floating_point_checks: bool  # whether native code looks for floating-point exceptions
    touch_bytes: int  # that the marks of `Touches` take
    touches: Touches | None
    cost: CostFacts | None = None  # of one that is priced and never run
    replication: Replication | None = field(default=None, metadata={LEFT_OUT: True})  # of several replicas; all else is of one

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"<Executable: {len(self.entries)} programs, {counts.vertices:,} vertices in {counts.compute_sets} compute sets, "
            f"for {self.target.getNumTiles():,} tiles>"
        )

    @cached_property
    def ipu_steps(self) -> IpuSteps | None:
        """The steps by IPU, None for a target of one."""
        return find_ipu_steps(self)

    @property
    def mode(self) -> str:
        """What engines do with it: "run", or "cost" for one that is priced without running it."""
        return "run" if self.cost is None else "cost"

    @property
    def replicas(self) -> int:
        """How many replicas run the program."""
        return 1 if self.replication is None else self.replication.factor

    @property
    def layout(self) -> MemoryLayout:
        """Where the tiles' memories lie in those of the IPUs."""
        return MemoryLayout(self.tile_bytes, self.target.getNumIPUs())

    @property
    def shares_memory(self) -> bool:
        """Whether any variables share memory on a tile, at different times."""
        return int(self.lives.bytes.sum()) > int(self.memory.variables.sum() + self.memory.constants.sum())

    def compute_set_made(self, name: str) -> str:
        """Where a compute set was made, for messages.

        Parameters
        ----------
        name:
            That of the compute set.

        Returns
        -------
        str
            ``the compute set was made at model.py:20``.
        """
        lines = dict(zip(self.compute_names, self.made_at.compute_sets, strict=True))
        line = lines.get(name, "an unknown line")  # of a file, whose services may name any
        return f"the compute set was made at {line}"

    @property
    def may_round_at_random(self) -> bool:
        """Whether some program turns stochastic rounding on, see `setStochasticRounding`."""
        settings = self.program[self.program[:, ProgramRow.OPERATION] == Opcode.FLOATING_POINT]
        return bool((settings[:, FloatingPointOperand.SET] & FloatingPoint.STOCHASTIC).any())

    def slot_limit(self, kind: Kind) -> int:
        """The option ``pypoplar.cycle_limit`` in slots of a kind of vertex: a worker's are several cycles, a supervisor's one.

        Parameters
        ----------
        kind:
            That of a codelet: "supervisor" or another.

        Returns
        -------
        int
            Slots after which a vertex is stopped; for a limit of 0 more than there can be.
        """
        cycles = 1 if kind == "supervisor" else self.target.getNumWorkerContexts()
        slots = -(-self.options.cycle_limit // cycles)
        return min(slots, UNLIMITED) if slots else UNLIMITED

    def save(self, path: Place) -> None:
        """Write the executable to one file that `Executable.load` reads, in this process or another.

        Parameters
        ----------
        path:
            A path, whose file is replaced when it is whole, or a binary file that is open for writing.

        Raises
        ------
        PoplarTypeError
            If it is neither.
        """
        from pypoplar.executable.executable_file import save

        save(self, path)

    @staticmethod
    def load(path: Place, unpacked_limit: int = UNPACKED_LIMIT) -> Executable:
        """Read an executable that `save` wrote.

        Parameters
        ----------
        path:
            A path, or a binary file that is open for reading.
        unpacked_limit:
            Bytes that its content may take, 1 GiB by default: a small file may declare any amount. Give a higher limit for a
            large program of your own.

        Returns
        -------
        Executable
            As it was saved; an `Engine` translates its codelets again.

        Raises
        ------
        FileLoadError
            If there is no such file, if it is damaged or none of ours, or for more than `unpacked_limit` bytes.
        """
        from pypoplar.executable.executable_file import load

        return load(path, unpacked_limit)

    @overload
    def serialize(self) -> bytes: ...

    @overload
    def serialize(self, out: BinaryIO) -> None: ...

    def serialize(self, out: BinaryIO | None = None) -> bytes | None:
        """The content of the file that `save` writes.

        Parameters
        ----------
        out:
            A binary file that is open for writing; None: the bytes are returned.

        Returns
        -------
        bytes | None
            The bytes, if there is no `out`.
        """
        from pypoplar.executable.executable_file import serialize

        return serialize(self, out)

    @staticmethod
    def deserialize(source: bytes | BinaryIO, unpacked_limit: int = UNPACKED_LIMIT) -> Executable:
        """Read what `serialize` made, as `load` does.

        Parameters
        ----------
        source:
            The bytes, or a binary file that is open for reading.
        unpacked_limit:
            Bytes that its content may take, as for `load`.

        Returns
        -------
        Executable
            As it was serialized.

        Raises
        ------
        FileLoadError
            As from `load`.
        """
        from pypoplar.executable.executable_file import deserialize

        return deserialize(source, unpacked_limit)
