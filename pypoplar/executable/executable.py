"""The executable: everything an engine needs, as arrays and plain values.

It is saved as one ``.npz`` file: the arrays as they are, everything else as one JSON text. Nothing in it is pickled, and loading
it runs no Python of the file's: codelets go through the translator, all numbers are checked before the driver uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import field, frozen

from pypoplar.codelet.language.codelet import Codelet
from pypoplar.compiler.exchange.plan import Exchange
from pypoplar.executable.program_tree import ProgramTree
from pypoplar.options import EngineOptions
from pypoplar.target import Target

Array = np.ndarray[Any, np.dtype[Any]]


def _nothing() -> Array:
    return np.zeros(0, np.int64)


@frozen(eq=False)
class Moves:
    """Lists of memory moves, each sorted by `tile`.

    A record moves `count` pieces of `bytes`. Piece i comes from ``source + i * source_step``, or where `source_list` is not -1 from
    ``source + places[source_list + i] * bytes``; the same goes for the target. At most one side has a list.
    """

    first: Array  # int64 [lists + 1]
    source: Array  # int64, byte address
    target: Array  # int64, byte address
    bytes: Array  # int64, of one piece
    count: Array  # int64, pieces
    source_step: Array  # int64
    target_step: Array  # int64
    source_list: Array  # int64
    target_list: Array  # int64
    places: Array  # uint32
    tile: Array  # int64: the tile whose thread does the move

    def source_of(self, record: int, piece: int) -> int:
        """Where a piece comes from."""
        return self._place(self.source, self.source_step, self.source_list, record, piece)

    def target_of(self, record: int, piece: int) -> int:
        """Where a piece goes."""
        return self._place(self.target, self.target_step, self.target_list, record, piece)

    def _place(self, base: Array, step: Array, listed: Array, record: int, piece: int) -> int:
        if listed[record] < 0:
            return int(base[record] + piece * step[record])
        return int(base[record]) + int(self.places[listed[record] + piece]) * int(self.bytes[record])


@frozen(eq=False)
class Computes:
    """Compute sets, laid out for the driver. A group is a run of vertices of one codelet on one tile."""

    first_active: Array  # int64 [computes + 1]: the compute's entries in the next two
    active_tile: Array  # int64
    first_group: Array  # int64 [active tiles + 1]
    group_codelet: Array  # int64
    group_row: Array  # int64: first word of the group's edge rows in `words`
    group_count: Array  # int64
    group_position: Array  # int64: where the group's vertices begin in `vertex`
    group_kind: Array  # int64: 0 vertex, 1 MultiVertex, 2 SupervisorVertex
    first_vertex: Array  # int64 [computes + 1]
    vertex: Array  # int64: graph vertex numbers
    list_order: Array  # int64: for tiles with several groups, positions within the tile in the order of adding
    estimate: Array  # int64: worker cycles given by the user or an estimator, -1 where derived from the code
    flops: Array  # int64: floating-point operations given with it, -1 where the code counts them; empty if none are given
    words: Array  # int64: edge rows
    row_table: Array  # int64: pairs (address, length) of the rows of list fields
    moves: Array  # int64 [computes, 5]: move lists exchange before, fan-out of it, gather, scatter, exchange after; -1 for none
    result: Array  # int64 [computes]: address of the BOOL that takes the AND of compute's results, -1 for none
    codelet_words: Array  # int64 [codelets]: words of an edge row
    cost: Array  # int64 [active tiles]: a guess at the host's work, to divide tiles among threads
    first_buffer: Array  # int64 [computes + 1]: the compute's entries in the next two, which are only reported
    buffer_tile: Array  # int64: tiles that need some of their exchange buffer
    buffer_bytes: Array  # int64: how much of it


@frozen(eq=False)
class Image:
    """What `Engine.load` writes over the uninitialised memory."""

    address: Array  # int64
    bytes: Array  # int64
    data: Array  # uint8, the pieces end to end


@frozen(eq=False)
class Step:
    """A static step of the program, as the report names it; loops run it many times.

    `kind` is ``"exchange"``, ``"compute"``, ``"copy"``, ``"stream"``, ``"sync"``, or ``"handle"`` for host reads and writes by
    handle, which belong to no program.
    """

    name: str
    kind: str
    sync_cycles: int
    exchange_cycles: Array  # int64 [tiles] or empty: known when the program is compiled
    compute: int = -1  # index into Computes
    exchange: int = -1  # index into Executable.exchanges
    host_bytes: int = 0
    host_cycles: int = 0
    depth: int = 0  # of Repeat, If, Switch and Call around it
    rearrange_cycles: Array = field(factory=_nothing)  # int64 [tiles] or empty: copies on the tile before or after the exchange
    global_exchange_cycles: int = 0  # between IPUs, the same for all tiles

    @property
    def moving_cycles(self) -> Array:
        """Cycles by tile of the exchange within the IPUs and of the copies on the tile; empty where nothing moves."""
        return self.exchange_cycles + self.rearrange_cycles if len(self.rearrange_cycles) else self.exchange_cycles

    @property
    def fixed_cycles(self) -> int:
        """Cycles of one execution but for its vertices."""
        moving = self.moving_cycles
        slowest = int(moving.max()) if len(moving) else 0
        return self.sync_cycles + slowest + self.global_exchange_cycles + self.host_cycles


@frozen(eq=False, repr=False)
class NamedExchange:
    """One exchange of the program, open to inspection in `Executable.exchanges`."""

    name: str
    phase: str  # "before" or "after" a compute set, or "copy"
    account: Exchange
    variables: tuple[str, ...]

    def __repr__(self) -> str:
        rows = self.account.messages
        return f"<exchange {self.phase} {self.name!r}: {len(rows)} messages, {int(rows['bytes'].sum()):,} bytes>"

    @property
    def messages(self) -> Array:
        """Structured array: source, destination, bytes, variable (its name); a multicast has one row per receiver."""
        rows = self.account.messages
        width = max([len(name) for name in self.variables], default=1)
        named = np.empty(
            len(rows), [("source", np.int32), ("destination", np.int32), ("bytes", np.int64), ("variable", f"<U{max(width, 1)}")]
        )
        for column in ("source", "destination", "bytes"):
            named[column] = rows[column]
        named["variable"] = np.array(self.variables or ("",), dtype=f"<U{max(width, 1)}")[rows["variable"]] if len(rows) else ""
        return named

    @property
    def bytes_sent(self) -> Array:
        """Bytes that each tile sends; a multicast counts once."""
        return self.account.bytes_sent

    @property
    def bytes_received(self) -> Array:
        """Bytes that each tile receives."""
        return self.account.bytes_received


@frozen(eq=False)
class StreamPlan:
    """A host stream. Handles, prints and host functions use streams of their own (`kind` "internal"), which nobody connects."""

    name: str
    kind: str  # "to device", "to host" or "internal"
    type: str
    elements: int  # of one chunk


@frozen(eq=False)
class HostTensor:
    """A host handle: the internal stream that carries the tensor, and the program that copies it."""

    type: str
    shape: tuple[int, ...]
    stream: int
    entry: int


@frozen(eq=False)
class RemotePlan:
    name: str
    type: str
    elements: int
    repeats: int


@frozen(eq=False)
class TileMemory:
    """Bytes of each tile by category, as they count against the target's memory.

    Variables that share memory count as the memory that they share. `always_live` and `not_always_live` are the categories, without
    gaps, by whether their contents are needed from run to run: they add up to `total` without `gaps`.
    """

    variables: Array
    constants: Array
    exchange_buffers: Array
    vertex_state: Array
    edge_pointers: Array
    code: Array
    stack: Array
    gaps: Array  # left empty by alignment
    always_live: Array
    not_always_live: Array  # what is shared by variables that live only at times, and exchange buffers

    def total(self) -> Array:
        whole: Array = (
            self.variables
            + self.constants
            + self.exchange_buffers
            + self.vertex_state
            + self.edge_pointers
            + self.code
            + self.stack
            + self.gaps
        )
        return whole


@frozen(eq=False)
class Lives:
    """When variables live, in static steps (see `Executable.steps`), and how much each takes on each tile.

    A variable that lives only at times has a range of steps in every program and function in which it lives: variable v those from
    ``first_range[v]`` to ``first_range[v + 1]``, half-open, sorted. A range is empty where only the host uses the variable. Rows
    ``first[v]`` to ``first[v + 1]`` of `tile` and `bytes` are what it takes on its tiles, alignment not counted. There are neither
    ranges nor rows of variables that no program uses.
    """

    always: Array  # bool [variables]: constants, and variables whose values are needed from run to run
    first_range: Array  # int64 [variables + 1]
    range_begin: Array  # int64: the first step
    range_end: Array  # int64: the step after the last
    first: Array  # int64 [variables + 1]
    tile: Array  # int64
    bytes: Array  # int64

    @property
    def begin(self) -> Array:
        """int64 [variables]: the first step of all ranges, -1 for variables that are always live or not used."""
        return self._bound(self.range_begin, np.minimum)

    @property
    def end(self) -> Array:
        """int64 [variables]: the step after the last of all ranges, -1 for variables that are always live or not used."""
        return self._bound(self.range_end, np.maximum)

    def _bound(self, values: Array, choose: np.ufunc) -> Array:
        made = np.full(len(self.always), -1, np.int64)
        some = np.flatnonzero(np.diff(self.first_range))
        if len(some):
            made[some] = choose.reduceat(values, self.first_range[some])
        return made

    def live_bytes(self, steps: int, tile: int | None = None) -> Array:
        """int64 [steps]: bytes that live at each static step and not always, on one tile or on all together."""
        here = np.ones(len(self.tile), bool) if tile is None else self.tile == tile
        total = np.concatenate(([0], np.cumsum(np.where(here, self.bytes, 0))))
        size = np.repeat(total[self.first[1:]] - total[self.first[:-1]], np.diff(self.first_range))
        change = np.zeros(steps + 1, np.int64)
        np.add.at(change, self.range_begin, size)
        np.subtract.at(change, self.range_end, size)
        made: Array = np.cumsum(change)[:steps]
        return made


@frozen(eq=False)
class Counts:
    vertices: int
    edges: int
    variables: int
    compute_sets: int


@frozen(eq=False)
class VertexNames:
    """Where vertices of the graph come from, for messages: their tile and the user's line."""

    location: Array  # int64 [vertices]: index into `locations`
    tile: Array  # int64 [vertices]
    locations: tuple[tuple[str, int, str], ...]


@frozen(eq=False)
class Touches:
    """With `pypoplar.races = "elements"`: the edges of all computes, to judge which elements their vertices touched.

    A byte per element of every edge lies behind the tiles' memories, in the order of the edges: bit 0 it was read, bit 1 written.
    """

    first_edge: Array  # int64 [computes + 1]
    edge_vertex: Array  # int64
    edge_field: Array  # int64
    edge_address: Array  # int64: where the vertex finds the edge
    edge_width: Array  # int64, bytes of an element
    edge_touch: Array  # int64 [edges]: address of the edge's first byte
    first_run: Array  # int64 [edges + 1]
    run_start: Array  # int64, element ids; see pypoplar.graph.frozen
    run_count: Array  # int64
    run_step: Array  # int64
    home_begin: Array  # int64, element ids
    home_address: Array  # int64
    home_width: Array  # int64
    first_element: Array  # int64 [variables + 1]
    vertex_codelet: Array  # int64 [vertices]


@frozen(eq=False, repr=False)
class Executable:
    """A compiled program: what `compileGraph` returns and `Engine` runs."""

    target: Target
    options: EngineOptions
    codelets: tuple[Codelet, ...]
    tile_base: Array  # int64 [tiles + 1]: byte address of each tile's memory
    image: Image
    program: Array  # int64 [rows, 5], see pypoplar.interface.opcodes
    entries: Array  # int64: where each program of the engine starts
    entry_streams: tuple[tuple[int, ...], ...]  # the streams that each program uses
    counters: int  # Repeat counters
    call_depth: int
    clocks: int
    moves: Moves
    computes: Computes
    compute_names: tuple[str, ...]
    steps: tuple[Step, ...]
    tree: ProgramTree
    exchanges: list[NamedExchange]
    services: tuple[Mapping[str, Any], ...]
    streams: tuple[StreamPlan, ...]
    writes: Mapping[str, HostTensor]
    reads: Mapping[str, HostTensor]
    remotes: tuple[RemotePlan, ...]
    memory: TileMemory
    lives: Lives
    vertex_bytes: Array  # int64 [codelets]: state and pointers of all vertices of a codelet
    priced_by: Array  # int64 [codelets, 3]: vertices whose cycles setPerfEstimate, an estimator, the code decides
    counts: Counts
    vertex_names: VertexNames
    variable_names: tuple[str, ...]
    floating_point_checks: bool
    touch_bytes: int  # behind the tiles' memories
    touches: Touches | None

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"<Executable: {len(self.entries)} programs, {counts.vertices:,} vertices in {counts.compute_sets} compute sets, "
            f"for {self.target.getNumTiles():,} tiles>"
        )

    @property
    def memory_bytes(self) -> int:
        """Bytes of the simulated memory, all tiles and what lies behind them."""
        return int(self.tile_base[-1]) + self.touch_bytes

    @property
    def shares_memory(self) -> bool:
        """Whether any variables share memory on a tile."""
        return int(self.lives.bytes.sum()) > int(self.memory.variables.sum() + self.memory.constants.sum())

    @property
    def slot_limit(self) -> int:
        """The option `pypoplar.cycle_limit` in worker slots; 0 for no limit."""
        return -(-self.options.cycle_limit // self.target.getNumWorkerContexts())

    def save(self, path: Any) -> None:
        """Write the executable to one file that `Executable.load` reads, in this process or another."""
        from pypoplar.executable.executable_file import save

        save(self, path)

    @staticmethod
    def load(path: Any) -> Executable:
        """Read an executable that `save` wrote. `FileLoadError` if the file is damaged or not one of ours."""
        from pypoplar.executable.executable_file import load

        return load(path)
