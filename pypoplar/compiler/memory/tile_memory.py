"""What lies in each tile's memory, by category, and the check that it fits."""

from __future__ import annotations

from functools import partial

import numpy as np
from attrs import fields, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.arrays.interval_algebra import keys, union
from pypoplar.arrays.number_ranges import counted, tile_ranges
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cost.pricing import SCALAR, Pricing
from pypoplar.codelet.ir.kept_analyses import found_once
from pypoplar.codelet.ir.terms import line_texts
from pypoplar.codelet.ir.typed import Block, TypedCodelet
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.language.declaration import Field
from pypoplar.codelet.operations.table import revision
from pypoplar.compiler.exchange_plan import ComputePlan, Homes
from pypoplar.compiler.field_table import LIST, field_table
from pypoplar.compiler.liveness.live_ranges import bytes_by_tile
from pypoplar.compiler.liveness.liveness import Liveness
from pypoplar.compiler.memory.vertex_state import VertexState, place_buffers, scalar_layout
from pypoplar.compiler.wording import variable_made
from pypoplar.errors import GraphMemoryAllocationError
from pypoplar.executable.graph_facts import Counts
from pypoplar.executable.memory_use import TileMemory
from pypoplar.executable.variable_lives import Lives
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.options import EngineOptions
from pypoplar.target import Target

POINTER_BYTES = 4  # I: an edge pointer, a length, a row pointer: one 32-bit word each
VERTEX_POINTER_BYTES = 4  # I: the vertex itself, in the list of its worker
LARGEST = 3  # variables of a tile that the error names
ALIGNMENT = 8  # I: of a constant table or a scratch array, as of a vertex's state
ENTRY_INSTRUCTIONS = 8  # I: entry and exit of a codelet
FULLEST = 5  # groups of equal tiles that an error describes


def instruction_count(block: Block) -> int:
    """Statements of a block and of all blocks in it: about one instruction each, and one for the beginning of each straight run."""
    return sum(1 for _ in walk(block))


def measure_memory(
    graph: FrozenGraph,
    target: Target,
    options: EngineOptions,
    homes: Homes,
    state: VertexState,
    plans: list[ComputePlan],
    used: UsedVertices,
    always: Bools,
) -> TileMemory:
    """Bytes of every tile by category. `used` are the vertices that programs execute, `always` marks the variables always live."""
    tiles = graph.tiles
    constant = np.zeros(len(graph.variables.names), bool)
    constant[list(graph.variables.constants)] = True
    size = (homes.end - homes.begin) * homes.width
    held = always[homes.variable]

    def per_tile(tile: Int64s, weight: Int64s) -> Int64s:
        return np.bincount(tile, weights=weight, minlength=tiles).astype(np.int64)

    constants = per_tile(homes.tile, np.where(constant[homes.variable], size, 0))
    kept = per_tile(homes.tile, np.where(held & ~constant[homes.variable], size, 0))
    shared = _covered(homes, ~held)
    buffers = np.zeros(tiles, np.int64)
    for plan in plans:
        buffers = np.maximum(buffers, plan.buffer_bytes)
    vertices = used.number
    tile = graph.vertices.tile[vertices].astype(np.int64)
    busy = np.bincount(tile, minlength=tiles) > 0
    tables = _tables(graph, vertices, tile)
    tile_pointers, code = per_tile(tile, used.pointers), _code(graph, target, vertices, tile, tiles)
    workers, supervisor = _scratch(graph, vertices, tile)
    workers, supervisor = workers + options.worker_stack_bytes, supervisor + options.supervisor_stack_bytes
    stack = np.where(busy, target.getNumWorkerContexts() * workers + supervisor, 0)
    return TileMemory(
        variables=kept + shared,
        constants=constants,
        constant_tables=tables,
        exchange_buffers=buffers,
        vertex_state=state.tile_bytes,
        edge_pointers=tile_pointers,
        code=code,
        stack=stack,
        gaps=place_buffers(homes, state, plans) - state.tile_bytes - kept - shared - constants,
        always_live=kept + constants + tables + state.tile_bytes + tile_pointers + code + stack,
        not_always_live=shared + buffers,
    )


def _covered(homes: Homes, which: Bools) -> Int64s:
    """int64 [tiles]: bytes on which at least one of some homes lies."""
    tile, offset = homes.tile[which], homes.offset[which]
    span = int(homes.tile_bytes.max(initial=0)) + 1
    key = keys(tile, offset, span)
    begin, end = union(key, key + (homes.end - homes.begin)[which] * homes.width[which])
    return np.bincount(begin // span, end - begin, len(homes.tile_bytes)).astype(np.int64)


@frozen(eq=False)
class UsedVertices:
    """The vertices that programs execute."""

    number: Int64s
    pointers: Int64s  # bytes of pointers and lengths of each, with the rows of its lists

    @staticmethod
    def of(graph: FrozenGraph, used: Bools) -> UsedVertices:
        vertices = np.flatnonzero(used)
        return UsedVertices(vertices, vertex_pointers(graph, vertices))


def vertex_pointers(graph: FrozenGraph, vertices: Int64s) -> Int64s:
    """Bytes of pointers and lengths of each of these vertices, with the rows of its lists."""
    sizes = np.array([sum(map(_pointer_bytes, codelet.fields)) for codelet in graph.codelets], np.int64)
    sizes = -(-sizes // POINTER_BYTES) * POINTER_BYTES  # whole words
    own = sizes[graph.vertices.codelet[vertices]] + VERTEX_POINTER_BYTES if len(graph.codelets) else np.zeros(0, np.int64)
    fields = field_table(graph)
    edges = graph.edges
    if len(edges.vertex) == 0:
        return np.asarray(own)
    entries = fields.entries(graph.vertices.codelet[edges.vertex], edges.field)
    is_row = fields.form[entries] == LIST
    of_row = np.array([field.row_bytes or 2 * POINTER_BYTES for codelet in graph.codelets for field in codelet.fields], np.int64)
    rows = np.bincount(edges.vertex[is_row], of_row[entries[is_row]], minlength=len(graph.vertices.codelet)).astype(np.int64)
    whole: Int64s = own + -(-rows[vertices] // POINTER_BYTES) * POINTER_BYTES
    return whole


def _pointer_bytes(field: Field) -> int:
    """Bytes of the pointer of a field, and of its length."""
    if field.access == "state":
        return 0
    return field.pointer_bytes or POINTER_BYTES * (1 if field.form == "scalar" else 2)


def _tables(graph: FrozenGraph, vertices: Int64s, tile: Int64s) -> Int64s:
    """Every constant table that codelets on a tile read lies there once, equal ones together."""
    tiles: dict[tuple[str, bytes], Bools] = {}
    codelet = graph.vertices.codelet[vertices]
    for number, described in enumerate(graph.codelets):
        for table in described.typed.tables:
            holders = tiles.setdefault((table.element, table.data), np.zeros(graph.tiles, bool))
            holders[tile[codelet == number]] = True
    sizes = np.zeros(graph.tiles, np.int64)
    for (_, data), holders in tiles.items():
        sizes += np.where(holders, _aligned(len(data)), 0)
    return sizes


def _scratch(graph: FrozenGraph, vertices: Int64s, tile: Int64s) -> tuple[Int64s, Int64s]:
    """int64 [tiles] each: the most bytes of scratch arrays on a worker's stack, and on the supervisor's: a vertex at a time."""
    workers, supervisor = np.zeros(graph.tiles, np.int64), np.zeros(graph.tiles, np.int64)
    codelet = graph.vertices.codelet[vertices]
    for number, described in enumerate(graph.codelets):
        stack = supervisor if described.kind == "supervisor" else workers
        size = sum(_aligned(array.bytes) for array in described.typed.arrays)
        runs_on = tile[codelet == number]
        stack[runs_on] = np.maximum(stack[runs_on], size)
    return workers, supervisor


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _code(graph: FrozenGraph, target: Target, vertices: Int64s, tile: Int64s, tiles: int) -> Int64s:
    """Every codelet that a tile runs lies there once."""
    counts = _instruction_counts([codelet.typed for codelet in graph.codelets], Pricing(target, SCALAR))
    sizes = (np.array(counts, np.int64) + ENTRY_INSTRUCTIONS) * target.instruction_bytes
    if len(vertices) == 0:
        return np.zeros(tiles, np.int64)
    pairs = distinct(tile * len(sizes) + graph.vertices.codelet[vertices])
    return np.bincount(pairs // len(sizes), weights=sizes[pairs % len(sizes)], minlength=tiles).astype(np.int64)


def _instruction_counts(codelets: list[TypedCodelet], pricing: Pricing) -> list[int]:
    """The instructions of each codelet, which are counted once for all graphs and targets that have the same prices."""
    key = (instruction_count, pricing.key, revision())
    return [found_once(codelet, key, partial(_priced_count, codelet, pricing)) for codelet in codelets]


def _priced_count(codelet: TypedCodelet, pricing: Pricing) -> int:
    return instruction_count(pricing(codelet).body)


def state_bytes(codelets: tuple[Codelet, ...]) -> Int64s:
    """Bytes of a vertex's plain fields, by codelet."""
    return np.array([scalar_layout(codelet)[1] for codelet in codelets], np.int64)


def find_shortage(
    graph: FrozenGraph, target: Target, homes: Homes, liveness: Liveness, memory: TileMemory, counts: Counts
) -> GraphMemoryAllocationError | None:
    """The error if a tile holds more than its memory: the fullest tiles, equal ones in one line, and what is largest on them."""
    total, limit = memory.total(), target.getBytesPerTile()
    over = np.flatnonzero(total > limit)
    if len(over) == 0:
        return None
    groups = _equal_tiles(homes, memory, over[np.argsort(-total[over], kind="stable")])
    lines = [
        f"out of memory: {len(over)} of {graph.tiles} tiles hold more than the {limit:,} bytes of their memory; the fullest are",
        *(_tile_line(graph, homes, liveness, memory, tiles, limit) for tiles in groups[:FULLEST]),
    ]
    left = sum(map(len, groups[FULLEST:]))
    lines += [f"  and {counted(left, 'more tile')}"] if left else []
    lines += _lines_made(graph, homes, liveness, groups[:FULLEST])
    lines.append("The option pypoplar.run_out_of_memory runs the program all the same.")
    error = GraphMemoryAllocationError("\n".join(lines))
    names = graph.variables.names
    no_lives = np.zeros(len(names) + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)  # no steps are flattened yet
    lives = Lives(liveness.always, *no_lives, *bytes_by_tile(homes, len(names)))
    error.picture = (target, memory, counts, names, line_texts(graph.variables.locations), lives)
    return error


def _equal_tiles(homes: Homes, memory: TileMemory, tiles: Int64s) -> list[Int64s]:
    """These tiles, those that hold as much of the same variables and of each category together, in the order of the first ones."""
    categories = np.stack([getattr(memory, category.name) for category in fields(TileMemory)], 1)
    order = np.lexsort((homes.variable, homes.tile))
    variable, size = homes.variable[order], ((homes.end - homes.begin) * homes.width)[order]
    first = np.searchsorted(homes.tile[order], np.arange(len(memory.gaps) + 1))
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for tile in tiles.tolist():
        held = slice(first[tile], first[tile + 1])
        names, place = np.unique(variable[held], return_inverse=True)
        bytes = np.bincount(place, size[held], len(names))
        groups.setdefault((categories[tile].tobytes(), names.tobytes(), bytes.tobytes()), []).append(tile)
    return [np.array(group, np.int64) for group in groups.values()]


def _tile_line(graph: FrozenGraph, homes: Homes, liveness: Liveness, memory: TileMemory, tiles: Int64s, limit: int) -> str:
    """What lies on equal tiles when most of it is needed: variables that live at other times are only counted."""
    tile = int(tiles[0])
    total = int(memory.total()[tile])
    size = _sizes(homes, tile, len(liveness.always))
    absent = (size > 0) & ~_at_peak(liveness, size)
    largest, rest = np.split(_largest_first(size, absent), [LARGEST])
    users = {f"variable {graph.variables.names[variable]!r}": int(size[variable]) for variable in largest}
    if len(rest):
        users[counted(len(rest), "more variable")] = int(size[rest].sum())
    for name in ("constant_tables", "exchange_buffers", "vertex_state", "edge_pointers", "code", "stack"):
        users[name.replace("_", " ")] = int(getattr(memory, name)[tile])
    users["gaps"] = total - sum(users.values())
    parts = [f"{name} {bytes:,}" for name, bytes in sorted(users.items(), key=lambda user: -user[1]) if bytes]
    shared = f"; {counted(int(absent.sum()), 'variable')} more at other times" if absent.any() else ""
    each = "" if len(tiles) == 1 else " each"
    return f"  {tile_ranges(tiles)}: {total:,} bytes{each}, {total - limit:,} too many: {', '.join(parts)}{shared}"


def _sizes(homes: Homes, tile: int, variables: int) -> Int64s:
    """int64 [variables]: what each takes on a tile."""
    resident = homes.tile == tile
    size = np.bincount(homes.variable[resident], (homes.end - homes.begin)[resident] * homes.width[resident], variables)
    return size.astype(np.int64)


def _largest_first(size: Int64s, absent: Bools) -> Int64s:
    """The variables of a tile that are there at its peak."""
    held = np.flatnonzero(np.where(absent, 0, size))
    order: Int64s = held[np.argsort(-size[held], kind="stable")]
    return order


def _lines_made(graph: FrozenGraph, homes: Homes, liveness: Liveness, groups: list[Int64s]) -> list[str]:
    """Where the user's code made the variables that are named, each once."""
    named: dict[int, None] = {}
    for tiles in groups:
        size = _sizes(homes, int(tiles[0]), len(liveness.always))
        absent = (size > 0) & ~_at_peak(liveness, size)
        named.update(dict.fromkeys(_largest_first(size, absent)[:LARGEST].tolist()))
    return [f"  {variable_made(graph, variable)}" for variable in named]


def _at_peak(liveness: Liveness, size: Int64s) -> Bools:
    """bool [variables]: always live, or alive where those that live only at times are largest together."""
    lasting = np.repeat(size, np.diff(liveness.first))
    change = np.zeros(int(liveness.end.max(initial=0)) + 1, np.int64)
    np.add.at(change, liveness.begin, lasting)
    np.subtract.at(change, liveness.end, lasting)
    peak = int(np.argmax(np.cumsum(change)))
    alive = np.flatnonzero((liveness.begin <= peak) & (peak < liveness.end))
    held = liveness.always.copy()
    held[np.searchsorted(liveness.first, alive, "right") - 1] = True
    return held
