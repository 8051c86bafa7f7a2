"""The compiler: strings its passes together, from a graph and programs to an executable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NoReturn

import attrs
import numpy as np

from pypoplar.arrays.dtypes import Bools, Bytes, Int64s
from pypoplar.arrays.freed_memory import give_back
from pypoplar.braces import ordered
from pypoplar.codelet.ir.terms import line_texts
from pypoplar.compiler.build_memory import BuildMemory
from pypoplar.compiler.check.certain_races import find_worker_races
from pypoplar.compiler.check.connected_regions import Regions, collect_regions
from pypoplar.compiler.check.connections import check_connections
from pypoplar.compiler.check.in_place import InPlaceEdges, find_in_place
from pypoplar.compiler.check.mappings import check_mappings
from pypoplar.compiler.check.races import find_races
from pypoplar.compiler.check.sub_words import find_sub_word_stores
from pypoplar.compiler.control.operation_tree import OperationTree
from pypoplar.compiler.control.program_walk import operation_tree
from pypoplar.compiler.control.usage import Usage, find_usage, used_variables
from pypoplar.compiler.exchange.compute_set_plan import plan_compute_set
from pypoplar.compiler.exchange.graph_index import Survey, survey_graph
from pypoplar.compiler.exchange.merged_copies import merge_copies
from pypoplar.compiler.exchange_plan import ComputePlan, Homes
from pypoplar.compiler.flattening.appended_rows import check_appended
from pypoplar.compiler.flattening.codelet_shapes import CodeletShapes
from pypoplar.compiler.flattening.compute_phases import PhaseCosts, PhaseTable, priced
from pypoplar.compiler.flattening.compute_tables import ComputeTables
from pypoplar.compiler.flattening.decisions import Assumed, Changes, ControlProgram, check_own_graph, find_decisions
from pypoplar.compiler.flattening.estimate_tables import count_priced_by, given_by_vertex
from pypoplar.compiler.flattening.flatten import check_kinds, flatten_programs
from pypoplar.compiler.flattening.flatten_replicas import make_replication
from pypoplar.compiler.flattening.flattening_state import Flattening
from pypoplar.compiler.flattening.load_image import make_image, make_state_image
from pypoplar.compiler.flattening.move_tables import CountedMoves, MoveLists
from pypoplar.compiler.flattening.places import TilePlaces
from pypoplar.compiler.flattening.touch_tables import TouchTables
from pypoplar.compiler.liveness.live_ranges import make_lives
from pypoplar.compiler.liveness.liveness import Liveness, find_liveness
from pypoplar.compiler.memory.aligned_edges import aligned_edges
from pypoplar.compiler.memory.memory_blocks import rounded_up
from pypoplar.compiler.memory.placement import place_variables
from pypoplar.compiler.memory.tile_memory import UsedVertices, find_shortage, measure_memory, state_bytes
from pypoplar.compiler.memory.vertex_state import VertexState, place_buffers, place_state
from pypoplar.errors import GraphMemoryAllocationError, InvalidOption, PoplarError, PoplarTypeError
from pypoplar.executable.cost_facts import CostFacts
from pypoplar.executable.executable import Executable
from pypoplar.executable.graph_facts import Counts, MadeAt, VertexNames
from pypoplar.executable.host_plans import RemotePlan
from pypoplar.executable.memory_image import Image
from pypoplar.executable.memory_layout import TILE_ALIGNMENT, MemoryLayout
from pypoplar.executable.memory_use import TileMemory
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.graph import Graph
from pypoplar.graph.host_links import HostConnections
from pypoplar.graph.tensor import Tensor
from pypoplar.interface.edge_rows import MOST_WORKERS
from pypoplar.interface.opcodes import ROW_WORDS
from pypoplar.options import EngineOptions, Options
from pypoplar.program.assumptions import Assumption
from pypoplar.program.base import Program, program_hint
from pypoplar.progress import asking
from pypoplar.target import Target

Progress = Callable[[int, int], None]
PASSES = 5  # that the progress callback counts


def compile_graph(
    graph: Graph,
    programs: Program | Iterable[Program],
    options: Options = None,
    progress: Progress | None = None,
    *,
    share_memory: bool = True,
    assumptions: Sequence[Assumption] | None = None,
    reads: Mapping[str, Tensor] | None = None,
) -> Executable:
    """Check a graph and compile it with its programs.

    `options` are engine options. `progress(done, total)` is called after every part of the work. Without `share_memory` every
    variable has its memory for itself, for tests. With `assumptions`, which may be none, the executable is to be priced and never
    run: it has no image, no moves, and messages by pair of tiles. With `reads` it has no host handles but reads of these tensors.
    Raises what `Engine` raises.
    """
    if not isinstance(graph, Graph):
        raise PoplarTypeError(f"expected a Graph or an Executable, got {type(graph).__name__}")
    graph = graph.getTopLevelGraph()  # of a virtual graph: all tiles count
    wanted = EngineOptions.parse(options)
    _check_workers(graph, wanted)
    if assumptions is not None and wanted.races == "elements":
        raise InvalidOption("pypoplar.races = 'elements' judges what vertices touch as they run: mode='cost' runs none of them")
    chosen = _program_list(programs)
    memory = BuildMemory(graph)
    try:
        with asking(wanted.progress):
            host = graph.host() if reads is None else graph.host().reading(reads)
            given = _Given(graph, host, chosen, wanted, assumptions)
            return _compile(given, progress or _no_progress, memory, share_memory=share_memory)
    except MemoryError as error:
        if isinstance(error, PoplarError):
            raise
        raise memory.shortage(error) from None


@attrs.frozen(eq=False)
class _Given:
    """What is compiled."""

    graph: Graph  # the whole
    host: HostConnections
    programs: list[Program]
    options: EngineOptions
    assumptions: Sequence[Assumption] | None


def _compile(given: _Given, tick: Progress, memory: BuildMemory, *, share_memory: bool) -> Executable:
    tick(0, PASSES)
    wanted = given.options
    checked = _check(given, tick, memory)
    rows = len(checked.frozen.edges.run_start)
    give_back(rows)
    placed = _place(checked, tick, memory, share_memory=share_memory)
    shortage = None if wanted.run_out_of_memory else placed.shortage()
    tick(4, PASSES)
    give_back(rows)
    flatten = partial(_flatten, placed, _flattening(placed))
    executable = flatten() if shortage is None else _refuse(shortage, flatten)
    del checked, placed, flatten
    give_back(rows)
    tick(PASSES, PASSES)
    return executable


@attrs.frozen(eq=False)
class _Checked:
    """A graph and programs that nothing is wrong with, and what has been found of them by now."""

    given: _Given
    frozen: FrozenGraph
    tree: OperationTree
    usage: Usage
    variables: Bools  # those that are used
    vertices: Bools  # those of the compute sets that are used
    in_place: InPlaceEdges
    liveness: Liveness
    assumed: Assumed | None  # of a program that is priced and never run

    @property
    def options(self) -> EngineOptions:
        return self.given.options

    @property
    def target(self) -> Target:
        """That of one replica."""
        return self.given.graph.replicas().tiles.target


@attrs.frozen(eq=False)
class _Placed:
    """Where all of a checked graph lies, and what the flattening needs to know besides."""

    checked: _Checked
    homes: Homes
    survey: Survey
    plans: dict[int, ComputePlan]  # by compute set
    costs: dict[int, PhaseCosts]  # likewise, of a program that is priced and never run
    state: VertexState
    used: UsedVertices
    memory: TileMemory
    counts: Counts

    def shortage(self) -> GraphMemoryAllocationError | None:
        """The error if a tile holds more than its memory."""
        checked = self.checked
        return find_shortage(checked.frozen, checked.target, self.homes, checked.liveness, self.memory, self.counts)


def _check(given: _Given, tick: Progress, memory: BuildMemory) -> _Checked:
    """Refuse what no engine could run."""
    graph, host, options = given.graph, given.host, given.options
    frozen = graph.freeze()
    rows = len(frozen.edges.run_start)
    give_back(rows)
    memory.made("frozen vertices", frozen.vertices)
    memory.made("frozen edges", frozen.edges)
    memory.made("estimates", frozen.estimates)  # here what an estimator raises comes before anything is built
    workers = graph.replicas().tiles.target.getNumWorkerContexts()
    handles = [*host.writes.values(), *host.reads.values()]
    tree = operation_tree(given.programs, graph)
    check_kinds(tree)
    usage = find_usage(tree, handles)
    variables = used_variables(frozen, usage)
    tick(1, PASSES)
    regions = collect_regions(frozen, usage.compute_sets)
    memory.made("regions of edges", regions)
    in_place = find_in_place(frozen, regions)
    check_connections(frozen, usage.compute_sets, regions, in_place)
    check_mappings(frozen, variables, regions.vertices)
    if options.races == "regions":
        find_races(frozen, usage.compute_sets, regions)
        find_worker_races(frozen, regions.vertices, in_place, workers)
    give_back(rows)
    liveness = find_liveness(frozen, workers, tree, usage, regions, handles, variables)
    memory.made("liveness", liveness)
    assumed = None if given.assumptions is None else _assumed(given, frozen, tree, regions)
    return _Checked(given, frozen, tree, usage, variables, regions.vertices, in_place, liveness, assumed)


def _assumed(given: _Given, frozen: FrozenGraph, tree: OperationTree, regions: Regions) -> Assumed:
    assumptions = tuple(given.assumptions or ())
    for assumption in assumptions:
        check_own_graph(assumption, given.graph)
    differing = given.graph.replicas().index
    return Assumed(assumptions, Changes.of(frozen, tree, regions, given.host.writes.values(), differing))


def _place(checked: _Checked, tick: Progress, made: BuildMemory, *, share_memory: bool) -> _Placed:
    """Find a place for everything, and plan the exchange."""
    frozen, options, vertices = checked.frozen, checked.options, checked.vertices
    tick(2, PASSES)
    sharing = checked.liveness if share_memory and options.uninitialised != "error" else None
    homes = place_variables(frozen, checked.variables, sharing, aligned_edges(frozen, vertices))
    survey = survey_graph(frozen, homes, checked.in_place, checked.target.getNumIPUs())
    made.made("homes of elements", homes)
    made.made("surveys of edges", survey)
    plans: dict[int, ComputePlan] = {}
    costs: dict[int, PhaseCosts] = {}
    nothing = np.zeros(frozen.tiles, np.int64)
    nothing.flags.writeable = False
    for number in checked.usage.compute_sets:
        plans[number] = plan_compute_set(frozen, homes, number, survey)
        if checked.assumed is not None:
            plans[number], costs[number] = priced(checked.target, plans[number], nothing)
        made.made("pieces of exchanges", plans[number])
    tick(3, PASSES)
    if options.races == "regions":
        find_sub_word_stores(frozen, list(plans.values()), homes)
    state = place_state(frozen, homes, vertices)
    made.made("states of vertices", state)
    used = UsedVertices.of(frozen, vertices)
    memory = measure_memory(frozen, checked.target, options, homes, state, list(plans.values()), used, checked.liveness.always)
    counts = _counts(frozen, vertices, len(checked.usage.compute_sets))
    return _Placed(checked, homes, survey, plans, costs, state, used, memory, counts)


def _flattening(placed: _Placed) -> Flattening:
    """What the rules of the kinds of programs add to, with nothing in it yet."""
    checked, homes, state = placed.checked, placed.homes, placed.state
    frozen, target = checked.frozen, checked.target
    buffer = place_buffers(homes, state, placed.plans.values())
    places = TilePlaces.of(_memory_layout(buffer, placed.memory, target.getNumIPUs()), buffer)
    marked = checked.options.races == "elements"
    shapes = CodeletShapes.of(frozen.codelets, record_touches=marked)
    tables = ComputeTables(frozen, shapes, places, state, TouchTables(frozen, homes, placed.survey) if marked else None)
    return Flattening(
        graph=frozen,
        target=target,
        homes=homes,
        places=places,
        phases=PhaseTable(
            frozen, target, places, placed.plans, tables, MoveLists() if checked.assumed is None else CountedMoves(), placed.costs
        ),
        merged=merge_copies(checked.tree, homes, checked.options),
        host=checked.given.host,
        replicas=checked.given.graph.replicas().count,
    )


def _refuse(shortage: GraphMemoryAllocationError, flatten: Callable[[], Executable]) -> NoReturn:
    """Raise the error of a program that does not fit, with the executable that it would be: the report is made of it."""
    with suppress(PoplarError, MemoryError):  # what else is wrong is told once the program fits
        shortage.executable = flatten()
    raise shortage


def _check_workers(graph: Graph, options: EngineOptions) -> None:
    workers = graph.getTarget().getNumWorkerContexts()
    if options.races == "elements" and workers > MOST_WORKERS:
        raise InvalidOption(f"pypoplar.races = 'elements' tells {MOST_WORKERS} workers of a tile apart, the target has {workers}")


def _no_progress(done: int, total: int) -> None:
    pass


def _program_list(programs: object) -> list[Program]:
    given: list[object] = [ordered(programs, "the programs of an Engine", "[a, b]")]
    if isinstance(programs, Iterable) and not isinstance(programs, Program):
        given = list(programs)
    chosen = [program for program in given if isinstance(program, Program)]
    for program in given:
        if not isinstance(program, Program):
            what = f"{type(program).__name__}{program_hint(program)}"
            raise PoplarTypeError(f"expected a program or a list of programs, got {what}")
    return chosen


def _memory_layout(buffer: Int64s, memory: TileMemory, ipus: int) -> MemoryLayout:
    """Give every tile the memory that it needs: variables and vertex state, which end at `buffer`, then the exchange buffer."""
    return MemoryLayout(rounded_up(buffer + memory.exchange_buffers, TILE_ALIGNMENT), ipus)


def _flatten(placed: _Placed, flattening: Flattening) -> Executable:
    checked, used = placed.checked, placed.used.number
    frozen, host, tables = flattening.graph, flattening.host, flattening.phases.tables
    for stream in host.streams.values():
        flattening.add_stream(stream)
    programs = flatten_programs(flattening, checked.tree)
    give_back(len(frozen.edges.run_start))
    writes = {name: flattening.add_handle(tensor, inward=True) for name, tensor in host.writes.items()}
    reads = {name: flattening.add_handle(tensor, inward=False) for name, tensor in host.reads.items()}
    by_codelet = np.bincount(frozen.vertices.codelet[used], placed.used.pointers, len(frozen.codelets)).astype(np.int64)
    counted = np.bincount(frozen.vertices.codelet[used], minlength=len(frozen.codelets))
    executable = Executable(
        target=flattening.target,
        options=checked.options,
        codelets=frozen.codelets,
        in_place=checked.in_place.fields(frozen),
        tile_bytes=flattening.places.layout.tile_bytes,
        image=_image(placed),
        program=np.array(flattening.rows, np.int64).reshape(-1, ROW_WORDS),
        entries=np.array(programs.entries, np.int64),
        entry_streams=programs.streams,
        counters=flattening.counters,
        call_depth=checked.usage.call_depth,
        clocks=flattening.clocks,
        moves=flattening.moves.finish(),
        computes=tables.finish(given_by_vertex(frozen, frozen.estimates.cycles), given_by_vertex(frozen, frozen.estimates.flops)),
        compute_names=frozen.compute_sets,
        tree=flattening.tree.finish(),
        steps=tuple(flattening.steps),
        exchanges=flattening.exchanges,
        services=tuple(flattening.services),
        streams=tuple(flattening.streams),
        writes=writes,
        reads=reads,
        remotes=_remotes(flattening),
        memory=placed.memory,
        lives=make_lives(checked.liveness, programs.marks, placed.homes),
        vertex_bytes=by_codelet + counted * (state_bytes(frozen.codelets) if len(frozen.codelets) else 0),
        priced_by=count_priced_by(frozen, used),
        counts=placed.counts,
        vertex_names=VertexNames(
            frozen.vertices.location.astype(np.int64),
            frozen.vertices.tile.astype(np.int64),
            tuple((location.file, location.line, location.function) for location in frozen.locations),
        ),
        variable_names=frozen.variables.names,
        made_at=MadeAt(line_texts(frozen.variables.locations), line_texts(frozen.compute_set_locations)),
        floating_point_checks=flattening.sets_exceptions or checked.options.floating_point_exceptions,
        touch_bytes=0 if tables.touches is None else tables.touches.size,
        touches=None if tables.touches is None else tables.touches.finish(),
        cost=_cost_facts(checked, flattening),
        replication=make_replication(flattening, checked.given.graph.replicas()),
    )
    check_appended(flattening, executable)
    return executable


def _cost_facts(checked: _Checked, flattening: Flattening) -> CostFacts | None:
    if checked.assumed is None:
        return None
    return find_decisions(flattening, checked.assumed, partial(_control_file, checked.given.graph))


def _control_file(graph: Graph, control: ControlProgram) -> Bytes:
    """The file of an executable that computes what decides in another one, operation by operation."""
    reads = {str(number): tensor for number, tensor in enumerate(control.reads)}
    options = EngineOptions(run_out_of_memory=True, merge_copies=False, progress="off")
    file = compile_graph(graph, control.programs, options, share_memory=False, reads=reads).serialize()
    assert file is not None
    return np.frombuffer(file, np.uint8)


def _image(placed: _Placed) -> Image:
    checked = placed.checked
    if checked.assumed is not None:
        return make_state_image(checked.frozen, placed.state, checked.vertices)
    return make_image(checked.frozen, placed.homes, placed.state, checked.vertices)


def _remotes(flattening: Flattening) -> tuple[RemotePlan, ...]:
    host = flattening.host
    flattening.remotes.check_capacity(flattening.target, flattening.replicas, host.remote_buffers.values())
    return tuple(
        RemotePlan(name, buffer.elementType().__name__, buffer.numElements(), buffer.getRepeats())
        for name, buffer in host.remote_buffers.items()
    )


def _counts(graph: FrozenGraph, vertices: Bools, compute_sets: int) -> Counts:
    return Counts(
        vertices=int(vertices.sum()),
        edges=int(vertices[graph.edges.vertex].sum()) if len(graph.edges.vertex) else 0,
        variables=len(graph.variables.names) - len(graph.variables.constants),
        compute_sets=compute_sets,
    )
