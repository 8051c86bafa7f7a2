"""What a program needs and what its runs cost, under the names of libpva where libpva has one.

A `Report` is plain data: `compilation` is known once an executable is made, `execution` once it has run. Names in camelCase are
libpva's, names in snake_case are ours. Cycles are tile cycles, sizes bytes. Arrays hold one number per tile.
"""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Int32s, Int64s
from pypoplar.arrays.number_ranges import counted
from pypoplar.notebook import ShownInNotebooks
from pypoplar.report.cost_basis import CostBasis
from pypoplar.report.execution import Execution
from pypoplar.report.failed_runs import FailedRun
from pypoplar.report.libpva_hints import missing
from pypoplar.report.memory_report import (
    Bytes,
    LivenessProgramStep,
    LoweredVariables,
    MemoryByTile,
    Tile,
    TileMemories,
    Variable,
    live_bytes,
)
from pypoplar.report.program_nodes import ComputeSet, Program

PROFILE_VERSION = 9
"""The version of profile files that this release writes; it reads older ones too: see docs/profile-file.md."""


@frozen
class Version:
    """A release, or a version of profile files, given by `Report.poplarVersion` and `Report.version`.

    Attributes
    ----------
    string:
        The whole of it: ``"0.1.0"``.
    """

    string: str

    @property
    def major(self) -> int:
        """The first number of the version; 0 without one."""
        return self._part(0)

    @property
    def minor(self) -> int:
        """The second number of the version; 0 without one."""
        return self._part(1)

    @property
    def point(self) -> int:
        """The third number of the version; 0 without one."""
        return self._part(2)

    def _part(self, number: int) -> int:
        parts = self.string.split(".")
        return int(parts[number]) if number < len(parts) and parts[number].isdigit() else 0


@frozen
class HostLink:
    """The link between the machine and its host, given by `ReportTarget.host_link`.

    Attributes
    ----------
    write_bytes_per_cycle:
        Bytes that go to the device in a cycle.
    read_bytes_per_cycle:
        Bytes that come from it in a cycle.
    sync_cycles:
        Cycles that each transfer takes besides.
    """

    write_bytes_per_cycle: float
    read_bytes_per_cycle: float
    sync_cycles: float


@frozen
class ReportTarget:
    """The machine that the program was compiled for, given by `Compilation.target`.

    Attributes
    ----------
    architecture:
        That of its chips: "ipu1", "ipu2" or "cpu".
    numIPUs:
        The number of IPUs, of one replica.
    tilesPerIpu:
        Tiles of each IPU.
    bytesPerTile:
        Memory of a tile, bytes.
    clockFrequency:
        That of the tiles, Hz.
    numWorkerContexts:
        Worker threads of a tile.
    numReplicas:
        How many replicas there are; all else is of one of them.
    system:
        The name of the preset: "bow".
    peak_flops_per_cycle:
        The roofline's ceilings: floating-point operations of a tile in a cycle, by name of the unit.
    memory_bytes_per_cycle:
        Bytes of its memory that a tile loads and stores in a cycle.
    timing:
        Whom cycles follow: "model", the vendor's IPU Model, or measurements of "hardware".
    link_bytes_per_cycle:
        Bytes that a link between two IPUs carries in a cycle, both ways together, half of them each way; 0 if not known.
    host_link:
        The link to the host; None if not known.
    link_topology:
        How links join the IPUs of a domain: "mesh", a ladder, or "torus", one whose ends are joined.
    link_domain_size:
        The number of IPUs that links join; messages to others go by gateways.
    gateway_bytes_per_cycle:
        Bytes that go between an IPU and its machine's gateway in a cycle, both ways together; 0 if not known.
    gateway_link_bytes_per_cycle:
        Bytes that a link between the gateways of two domains carries in a cycle, both ways together; 0 if not known.
    """

    architecture: str
    numIPUs: int
    tilesPerIpu: int
    bytesPerTile: int
    clockFrequency: float
    numWorkerContexts: int = 6
    numReplicas: int = 1
    system: str = ""
    peak_flops_per_cycle: Mapping[str, float] = field(factory=dict)
    memory_bytes_per_cycle: int = 0
    timing: str = "model"
    link_bytes_per_cycle: float = 0.0
    host_link: HostLink | None = None
    link_topology: str = "mesh"
    link_domain_size: int = 64
    gateway_bytes_per_cycle: float = 0.0
    gateway_link_bytes_per_cycle: float = 0.0

    @property
    def numTiles(self) -> int:
        """The number of tiles of all IPUs together."""
        return self.numIPUs * self.tilesPerIpu

    @property
    def bytesPerIPU(self) -> int:
        """The memory of all tiles of one IPU, in bytes."""
        return self.tilesPerIpu * self.bytesPerTile

    @property
    def totalMemory(self) -> int:
        """The memory of all tiles of all IPUs, in bytes."""
        return self.numIPUs * self.bytesPerIPU


@frozen
class ReportGraph:
    """How large the graph is, as far as its programs use it; given by `Compilation.graph`.

    Attributes
    ----------
    numVertices:
        Vertices.
    numEdges:
        Edges: connections of their fields to tensors.
    numVars:
        Variables.
    numComputeSets:
        Compute sets.
    """

    numVertices: int
    numEdges: int
    numVars: int
    numComputeSets: int


@frozen
class VertexType:
    """A vertex type: its vertices in the program, their memory, and what priced their cycles; given by `Compilation.vertex_types`.

    Attributes
    ----------
    name:
        The codelet's name.
    instances:
        How many vertices there are.
    memory:
        Bytes of their state and pointers.
    priced_by:
        How many vertices are priced by ``"estimate"`` (`Graph.setPerfEstimate`), ``"estimator"`` (of the codelet or its
        library) and ``"code"`` (the code as it ran).
    precision:
        Of its elements: "half" if any are, else "float" if any are; empty if none are, or it is not known.
    elements:
        Types of the elements of its connected vectors and lists, such as "float"; empty if it has none, or it is not known.
    """

    name: str
    instances: int
    memory: int
    priced_by: Mapping[str, int] = field(factory=dict)
    precision: str = ""
    elements: tuple[str, ...] = ()


@frozen(eq=False)
class ExchangeReport:
    """One exchange of the program, given by `Compilation.exchanges`: a row for each pair of tiles between which bytes go.

    Rows are sorted by source and destination. What a tile sends to several others at once (a multicast) counts for each of
    them.

    Attributes
    ----------
    name:
        The debug name of the compute set or copy.
    phase:
        "before" or "after" a compute set, "copy", "stream" where the order of a stream is not that of the tiles, or "replicas":
        what tiles receive then comes from the tiles of another replica.
    step:
        The number of the static step.
    source:
        int32 [rows] The tile that sends.
    destination:
        int32 [rows] The tile that receives.
    bytes:
        int64 [rows] How much.
    """

    name: str
    phase: str
    step: int
    source: Int32s
    destination: Int32s
    bytes: Int64s


@frozen
class IpuReport:
    """One IPU's tiles, given by `Compilation.ipus`; they keep the numbers that they have among those of all IPUs.

    Attributes
    ----------
    number:
        That of the IPU, from 0.
    tiles:
        Its tiles.
    """

    number: int
    tiles: Sequence[Tile]


@frozen
class InstrumentationSettings:
    """What was counted, given by `Report.instrumentationSettings`, in libpva's words.

    They are ``"Vertex"``, ``"Tile"``, ``"Ipu"``, ``"Device"`` and ``"Off"``.

    Attributes
    ----------
    computeInstrumentationLevel:
        Of compute cycles.
    externalExchangeInstrumentationLevel:
        Of exchanges with the host.
    """

    computeInstrumentationLevel: str
    externalExchangeInstrumentationLevel: str


@frozen(eq=False, repr=False)
class Compilation:
    """What the compiler made of the graph and its programs, given by `Report.compilation`.

    Attributes
    ----------
    target:
        The machine.
    graph:
        Numbers of vertices, edges, variables and compute sets.
    memory:
        The memory of all tiles as arrays; `tiles` has it tile by tile.
    programs:
        One tree for each program of the engine.
    step_programs:
        The program that each static step is, by its number.
    vertex_types:
        The vertex types, with their vertices and memory.
    loweredVariables:
        The variables, when they live and where they lie.
    exchanges:
        The exchanges of the program, with the bytes between each pair of tiles.
    options:
        Engine options that were set, as text.
    mode:
        "run", or "cost" of a program that is priced without running it.
    """

    target: ReportTarget
    graph: ReportGraph
    memory: MemoryByTile
    programs: tuple[Program, ...] = ()
    step_programs: tuple[Program, ...] = ()
    vertex_types: tuple[VertexType, ...] = ()
    loweredVariables: LoweredVariables = field(factory=LoweredVariables)
    exchanges: Sequence[ExchangeReport] = ()
    options: Mapping[str, str] = field(factory=dict)
    mode: str = "run"

    if not TYPE_CHECKING:
        __getattr__ = missing

    def __repr__(self) -> str:
        target, vertices = self.target, counted(self.graph.numVertices, "vertex", "vertices")
        return f"<Compilation for {counted(target.numTiles, 'tile')} of {target.system or target.architecture}, {vertices}>"

    @property
    def tiles(self) -> TileMemories:
        """The tiles of all IPUs, a sequence of `Tile`, made when asked for."""
        return TileMemories(self.memory)

    @property
    def ipus(self) -> tuple[IpuReport, ...]:
        """The IPUs, each with its `number` and its `tiles`, which keep their numbers."""
        tiles, per_ipu = self.tiles, self.target.tilesPerIpu
        return tuple(IpuReport(number, tiles[number * per_ipu : (number + 1) * per_ipu]) for number in range(self.target.numIPUs))

    @property
    def computeSets(self) -> tuple[ComputeSet, ...]:
        """The compute sets that the programs execute, in program order, each once."""
        compute_sets = {
            program.computeset.name: program.computeset for program in self.step_programs if program.computeset is not None
        }
        return tuple(compute_sets.values())

    @property
    def program_steps(self) -> Sequence[int]:
        """The numbers of the static steps that stand in a program; of all of them where the programs are not known.

        What no program has is the host's own reading and writing of tensors.
        """
        if not self.programs:
            return range(len(self.step_programs))
        return sorted({node.step for root in self.programs for node in root.nodes() if node.step >= 0})

    @property
    def livenessProgramSteps(self) -> Sequence[LivenessProgramStep]:
        """The static steps of the programs, in order, with what lives at each besides what is always live."""
        live_by_step = live_bytes(self.loweredVariables, len(self.step_programs)).tolist()
        return [
            LivenessProgramStep(self.step_programs[number], Bytes(live_by_step[number]), self.loweredVariables, number)
            for number in self.program_steps
        ]

    @property
    def alwaysLiveVariables(self) -> tuple[Variable, ...]:
        """The variables whose memory is never used for anything else, with their bytes on all tiles together."""
        return tuple(self.loweredVariables[int(number)] for number in np.flatnonzero(self.loweredVariables.always))

    def alwaysLiveVariablesForTile(self, tile: int) -> tuple[Variable, ...]:
        """The variables on a tile whose memory is never used for anything else.

        Parameters
        ----------
        tile:
            Its number among those of all IPUs.

        Returns
        -------
        tuple[Variable, ...]
            With their bytes on the tile.
        """
        return tuple(variable for variable in self.loweredVariables.forTile(tile) if variable.always_live)

    def by_ipu(self, values: Int64s) -> Int64s:
        """Values by tile as rows of IPUs.

        Parameters
        ----------
        values:
            One for each tile.

        Returns
        -------
        Int64s
            [numIPUs, tilesPerIpu], a view where NumPy can make one.
        """
        rows: Int64s = np.asarray(values).reshape(self.target.numIPUs, self.target.tilesPerIpu)
        return rows


@frozen(eq=False, repr=False)
class Report(ShownInNotebooks):
    """Everything that is known of a program, given by `Engine.getReport` and `openReport`.

    Attributes
    ----------
    compilation:
        What the compiler made of it.
    execution:
        What its runs cost; None until one has come to its end, which its type does not say: type checkers take it that one has.
    poplarVersion:
        The release of pypoplar that made the report.
    name:
        That of the engine, or of the file that the report was read from.
    created:
        When, as ISO 8601 writes it.
    failed_runs:
        The last runs that failed, which are in no figure of `execution`.
    cost:
        Of a program that is priced without running it, what that stands on; else None.
    """

    compilation: Compilation
    execution: Execution | Any  # or None; with Any, `getReport().execution.steps` needs no assert to please a type checker
    poplarVersion: Version
    name: str = ""
    created: str = ""
    failed_runs: tuple[FailedRun, ...] = ()
    cost: CostBasis | None = None

    def __attrs_post_init__(self) -> None:
        """Let compute sets know what they cost."""
        for step in self.execution.steps if self.execution is not None else ():
            if step.program is not None and step.program.computeset is not None:
                step.program.computeset.ran[step.number] = step.cyclesByTile

    if not TYPE_CHECKING:
        __getattr__ = missing

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        ran = "has not run" if self.execution is None else repr(self.execution)
        return f"<Report{name}: {self.compilation!r}, {ran}>"

    def open_page(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report's page, see `write_page`, and open it in the browser.

        Parameters
        ----------
        path:
            The HTML file; None: one in a new directory for temporary files.

        Returns
        -------
        Path
            Where the page is.

        Raises
        ------
        MissingFeature
            Without the extra "report" (plotly).
        OSError
            If the file cannot be written.
        """
        from pypoplar.report.page import write_page  # late: few reports are opened

        place = Path(path) if path is not None else Path(mkdtemp(prefix="pypoplar-"), "page.html")
        write_page(self, place)
        webbrowser.open(place.resolve().as_uri())
        return place

    @property
    def version(self) -> Version:
        """The version of the profile files that this release writes."""
        return Version(f"{PROFILE_VERSION}.0.0")

    @property
    def instrumentationSettings(self) -> InstrumentationSettings:
        """Cycles are counted by tile unless the options ask for something else; the model needs no instrumentation for it."""
        levels = ("computeInstrumentationLevel", "externalExchangeInstrumentationLevel")
        options = self.compilation.options
        return InstrumentationSettings(*(str(options.get(f"debug.{level}", "tile")).capitalize() for level in levels))
