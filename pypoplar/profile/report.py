"""What a program needs and what its runs cost, under the names of libpva where libpva has one.

A `Report` is plain data: `compilation` is known once an executable is made, `execution` once it has run. Names in camelCase are
libpva's, names in snake_case are ours. Cycles are tile cycles, sizes bytes. Arrays hold one number per tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from attrs import field, frozen

Array = np.ndarray[Any, np.dtype[Any]]


@frozen
class Version:
    """A release. `string` is the whole of it: ``"0.1.0"``."""

    string: str


@frozen
class ReportTarget:
    """The machine that the program was compiled for."""

    architecture: str
    numIPUs: int
    tilesPerIpu: int
    bytesPerTile: int
    clockFrequency: float  # Hz
    numWorkerContexts: int = 6
    numReplicas: int = 1

    @property
    def numTiles(self) -> int:
        """Tiles of all IPUs together."""
        return self.numIPUs * self.tilesPerIpu

    @property
    def bytesPerIPU(self) -> int:
        return self.tilesPerIpu * self.bytesPerTile

    @property
    def totalMemory(self) -> int:
        """Memory of all tiles of all IPUs."""
        return self.numIPUs * self.bytesPerIPU


@frozen
class ReportGraph:
    """How large the graph is, as far as its programs use it."""

    numVertices: int
    numEdges: int
    numVars: int
    numComputeSets: int


@frozen
class Total:
    """`total`, as libpva writes sums: ``report.execution.totalCycles.total``."""

    total: int


@frozen
class TotalMemory:
    """Bytes of a tile with and without what alignment leaves empty."""

    includingGaps: int
    excludingGaps: int


@frozen
class TileMemoryReport:
    """One tile's memory: ``report.compilation.tiles[3].memory.category["variables"]``."""

    total: TotalMemory
    category: Mapping[str, int]


@frozen
class Tile:
    number: int
    memory: TileMemoryReport


@frozen(eq=False)
class MemoryByTile:
    """The memory of all tiles. A category is a name in snake_case, such as ``"exchange_buffers"``, with one number per tile."""

    categories: Mapping[str, Array]  # int64 [tiles] each
    gaps: Array  # int64 [tiles]: bytes that alignment leaves empty
    vertex_data: Mapping[str, int] = field(factory=dict)  # by category over all tiles: "internal_vertex_state", "edge_pointers"...
    vertex_data_by_type: Mapping[str, int] = field(factory=dict)  # by vertex type over all tiles

    def excluding_gaps(self) -> Array:
        """Bytes in use on each tile."""
        made: Array = np.zeros(len(self.gaps), np.int64)
        for one in self.categories.values():
            made = made + one
        return made

    def including_gaps(self) -> Array:
        """Bytes on each tile from the first in use to the last."""
        made: Array = self.excluding_gaps() + self.gaps
        return made


@frozen(eq=False)
class Tiles(Sequence[Tile]):
    """The tiles of the target, made when asked for."""

    memory: MemoryByTile

    def __len__(self) -> int:
        return len(self.memory.gaps)

    @overload
    def __getitem__(self, number: int) -> Tile: ...
    @overload
    def __getitem__(self, number: slice) -> list[Tile]: ...
    def __getitem__(self, number: int | slice) -> Tile | list[Tile]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        tile = range(len(self))[number]
        category = {name: int(one[tile]) for name, one in self.memory.categories.items()}
        used = sum(category.values())
        return Tile(tile, TileMemoryReport(TotalMemory(used + int(self.memory.gaps[tile]), used), category))

    def __iter__(self) -> Iterator[Tile]:
        return (self[one] for one in range(len(self)))


@frozen(eq=False)
class Compilation:
    """What the compiler made of the graph and its programs."""

    target: ReportTarget
    graph: ReportGraph
    memory: MemoryByTile

    @property
    def tiles(self) -> Tiles:
        return Tiles(self.memory)


def no_tiles() -> Array:
    """The array of a step in which no tile takes part."""
    return np.zeros(0, np.int64)


def share(values: Array) -> float:
    """Mean over maximum, the balance of `values`: 1 where all are equal, 0 where there is nothing to balance."""
    most = int(values.max()) if len(values) else 0
    return float(values.mean()) / most if most else 0.0


@frozen(eq=False, kw_only=True)
class Step:
    """A static step of the program with what all its executions cost together.

    `type` is a program type of libpva: ``OnTileExecute``, ``DoExchange``, ``StreamCopy``, ``Sync``. An array is empty where the
    step has no such part. `cyclesByTile` counts a tile's compute cycles with idle worker threads, `activeCyclesByTile` without.
    """

    name: str
    type: str
    executions: int
    depth: int = 0  # how deep in Repeat, If, Switch and Call the step stands
    sync_cycles: int = 0
    exchange_cycles: int = 0
    compute_cycles: int = 0
    host_exchange_cycles: int = 0
    cyclesByTile: Array = field(factory=no_tiles)
    activeCyclesByTile: Array = field(factory=no_tiles)
    exchange_cycles_by_tile: Array = field(factory=no_tiles)
    bytesSentByTile: Array = field(factory=no_tiles)
    bytesReceivedByTile: Array = field(factory=no_tiles)
    host_bytes: int = 0

    @property
    def cycles(self) -> int:
        """All cycles of the step: sync, exchange, compute, host."""
        return self.sync_cycles + self.exchange_cycles + self.compute_cycles + self.host_exchange_cycles

    @property
    def activeTiles(self) -> int:
        """Tiles that compute, or in an exchange those that send or receive."""
        if self.type == "OnTileExecute" or not len(self.bytesSentByTile):
            return int(np.count_nonzero(self.cyclesByTile))
        return int(np.count_nonzero(self.bytesSentByTile + self.bytesReceivedByTile))

    @property
    def tileBalance(self) -> float:
        """Mean over maximum of the tiles' compute cycles, or in an exchange of the bytes that they send and receive; 0 to 1."""
        return share(self._load())

    @property
    def activeTileBalance(self) -> float:
        """As `tileBalance`, over the active tiles only."""
        load = self._load()
        return share(load[load > 0])

    def _load(self) -> Array:
        if len(self.cyclesByTile):
            return self.cyclesByTile
        return self.bytesSentByTile + self.bytesReceivedByTile


@frozen
class VertexTypeCycles:
    """The vertices of one type: how many are in the program, and the cycles of all their executions, idle threads left out."""

    instances: int
    cycles: int


@frozen
class TileAverage:
    """Cycles of the mean tile over the whole run."""

    compute_including_idle: float
    compute_excluding_idle: float
    exchange: float
    global_exchange: float
    host_exchange: float
    sync: float


@frozen(eq=False)
class Execution:
    """What the runs since the engine was loaded, or its profile reset, cost."""

    steps: tuple[Step, ...]
    cycles_by_vertex_type: Mapping[str, VertexTypeCycles]
    programs: tuple[str, ...] = ()  # names of what has run, in order
    tiles: int = 0

    @property
    def totalCycles(self) -> Total:
        """Cycles of the machine from start to end of all runs."""
        return Total(sum(one.cycles for one in self.steps))

    @property
    def tile_average(self) -> TileAverage:
        """Where the time of the mean tile went."""

        def mean(total: float) -> float:
            return total / self.tiles if self.tiles else 0.0

        def tile_sum(name: str) -> float:
            return float(sum(int(getattr(one, name).sum()) for one in self.steps))

        return TileAverage(
            compute_including_idle=mean(tile_sum("cyclesByTile")),
            compute_excluding_idle=mean(tile_sum("activeCyclesByTile")),
            exchange=mean(tile_sum("exchange_cycles_by_tile")),
            global_exchange=0.0,
            host_exchange=float(sum(one.host_exchange_cycles for one in self.steps)),
            sync=float(sum(one.sync_cycles for one in self.steps)),
        )


@frozen(eq=False)
class Report:
    """Everything that is known of a program. `execution` is None until the program has run."""

    compilation: Compilation
    execution: Execution | None
    poplarVersion: Version
