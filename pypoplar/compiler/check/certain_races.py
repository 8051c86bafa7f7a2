"""Races between the workers of a MultiVertex, as far as they are certain when the Engine is made: whatever the data.

What workers surely touch follows from their numbers, the sizes of the fields and the values of plain fields (see
`pypoplar.codelet.ir.certain_accesses`). Vertices that are alike in these are judged once.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s, UInt64s
from pypoplar.arrays.groups import offsets, opens, ragged, sums_between
from pypoplar.arrays.splitmix import splitmix64
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.device_wording import device_code, shared_word, worker_race
from pypoplar.codelet.ir.certain_accesses import Accesses, VertexShapes, certain_accesses
from pypoplar.codelet.ir.kept_analyses import kept
from pypoplar.codelet.ir.span_roots import stored_fields
from pypoplar.codelet.ir.typed import TypedCodelet
from pypoplar.codelet.language.declaration import Field
from pypoplar.compiler.check.in_place import InPlaceEdges
from pypoplar.compiler.field_table import field_table
from pypoplar.compiler.wording import and_others, compute_set_made, compute_set_name, vertex_location, vertex_name
from pypoplar.errors import AtomicStoreError, GraphCycleError
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.interface.layout import NOTHING
from pypoplar.presets import STORE_BYTES

MOST_SHAPES = 64  # of a codelet's vertices: more are not judged
_KEPT_SHAPES, _KEPT_BYTES = 64, 1 << 12  # of a codelet: vertices that are known to have no race, and what tells them
_FEW = 4096  # of which it takes no time to see which are alike


@frozen(eq=False)
class _VertexPieces:
    """The pieces of some vertices of a codelet."""

    shapes: VertexShapes
    field: Int64s  # [pieces]
    row: Int64s
    width: Int64s  # bytes of an element
    element: Int64s  # a number for its first element; an Input and an Output that are one tensor have the same
    word: Int64s  # a number for its first word

    def content(self) -> tuple[object, ...] | None:
        """What equal pieces have in common; None where it is much."""
        shapes = self.shapes
        columns = (
            *(shapes.first_piece, shapes.extent, shapes.length, shapes.numbers, shapes.known),
            *(self.field, self.row, self.width, self.element, self.word),
        )
        if sum(column.nbytes for column in columns) > _KEPT_BYTES:
            return None
        return tuple((column.shape, column.tobytes()) for column in columns)


def find_worker_races(graph: FrozenGraph, used: Bools, in_place: InPlaceEdges, workers: int) -> None:
    """Raise `GraphCycleError` if a worker of a vertex that is `used` surely writes what another one touches.

    `AtomicStoreError` if two of them surely store into one 32-bit word.
    """
    several = np.array([codelet.kind == "multi" for codelet in graph.codelets], bool)
    if workers < 2 or not several.any():
        return
    vertices = np.flatnonzero(used & several[graph.vertices.codelet])
    print_of = _fingerprints(graph, vertices, in_place)
    codelet = graph.vertices.codelet[vertices]
    for number in np.flatnonzero(np.bincount(codelet)).tolist():
        own = np.flatnonzero(codelet == number)
        chosen = own[_first_of_each(print_of[own])]
        race = _find_race(graph, number, vertices[chosen], in_place, workers)
        if race is not None:
            alike = vertices[own[print_of[own] == print_of[chosen[race.vertex]]]]
            raise race.error(_message(graph, race, alike))


# Which vertices are alike


def _fingerprints(graph: FrozenGraph, vertices: Int64s, in_place: InPlaceEdges) -> UInt64s:
    """uint64 per vertex; those of a codelet with equal ones have fields of the same sizes, and the same plain integers."""
    edges, state = graph.edges, graph.state
    whole = len(vertices) == len(graph.vertices.codelet)
    position = np.full(0 if whole else len(graph.vertices.codelet), NOTHING)
    position[vertices[: len(position)]] = np.arange(min(len(vertices), len(position)))
    prints = np.zeros(len(vertices), np.uint64)

    def add(vertex: Int64s, code: Int64s) -> None:
        """Mix in numbers of vertices, which may be any; the array of numbers is used up, for there may be millions."""
        if not whole:
            own = position[vertex]
            chosen = np.flatnonzero(own != NOTHING)
            vertex, code = own[chosen], code[chosen]
        np.add.at(prints, vertex, splitmix64(code.view(np.uint64)))

    code = sums_between(edges.first_run, edges.run_count)
    code <<= 36
    if edges.row.any():
        code ^= edges.row.astype(np.int64) << 12
    code ^= edges.field
    add(edges.vertex, code)
    settled = np.array([whether for codelet in graph.codelets for whether in _settled(codelet)], bool)
    if settled.any():
        tables = field_table(graph)
        plain = np.flatnonzero(settled[tables.entries(graph.vertices.codelet[state.vertex], state.field)])
        code = state.bits[plain].view(np.int64)
        code *= 4099
        code -= state.field[plain]
        add(state.vertex[plain], code)
    vectors = [(vertex, len(values) << 12 ^ field) for (vertex, field), values in state.vectors.items()]
    add(*np.array(vectors, np.int64).reshape(-1, 2).T.copy())
    given, target = (edges.row[edge] << 12 ^ edges.field[edge] for edge in (in_place.input, in_place.output))
    add(edges.vertex[in_place.input], given.astype(np.int64) << 32 ^ target)
    return prints


def _first_of_each(prints: UInt64s) -> Int64s:
    """The first vertex with each fingerprint, in their order, `MOST_SHAPES` at most; mostly many in a row have the same."""
    heads = np.flatnonzero(opens(prints))
    _, first = np.unique(prints[heads[:_FEW]], return_index=True)
    if len(first) < MOST_SHAPES and len(heads) > _FEW:
        _, first = np.unique(prints[heads], return_index=True)
    return heads[np.sort(first)[:MOST_SHAPES]]


def _settled(codelet: Codelet) -> list[bool]:
    """For each field whether it is a plain integer that the code leaves as it is."""
    if codelet.kind != "multi":
        return [False] * len(codelet.fields)
    stored = stored_fields(codelet.typed)
    return [
        field.access == "state" and field.form == "scalar" and not field.type.is_floating and field.name not in stored
        for field in codelet.fields
    ]


def _pieces(graph: FrozenGraph, codelet: Codelet, vertices: Int64s, in_place: InPlaceEdges) -> _VertexPieces:
    edges, state = graph.edges, graph.state
    first, last = (np.searchsorted(edges.vertex, vertices, side) for side in ("left", "right"))
    edge = ragged(first, last - first)
    owner = np.repeat(np.arange(len(vertices)), last - first)
    field, row = edges.field[edge].astype(np.int64), edges.row[edge].astype(np.int64)
    runs = edges.first_run[edge + 1] - edges.first_run[edge]
    length = sums_between(offsets(runs), edges.run_count[ragged(edges.first_run[edge], runs)])
    size = (len(vertices), len(codelet.fields))
    first_piece, extent = np.zeros(size, np.int64), np.zeros(size, np.int64)
    heads = np.flatnonzero(opens(owner, field))
    first_piece[owner[heads], field[heads]] = heads
    listed = np.array([described.form == "list" for described in codelet.fields], bool)
    np.add.at(extent, (owner, field), np.where(listed[field], 1, length))
    for number, described in enumerate(codelet.fields):
        if described.access == "state":
            first_piece[:, number] = np.arange(len(length), len(length) + len(vertices))
            vectors = [len(state.vectors.get((vertex, number), ())) for vertex in vertices.tolist()]
            extent[:, number] = vectors if described.form == "vector" else 1
            field, row = np.append(field, np.full(len(vertices), number)), np.append(row, np.zeros(len(vertices), np.int64))
            length = np.append(length, extent[:, number])
    width = np.array([described.type.size for described in codelet.fields], np.int64)[field]
    element = offsets(length)[:-1]
    ours = np.isin(in_place.input, edge)
    element[np.searchsorted(edge, in_place.input[ours])] = element[np.searchsorted(edge, in_place.output[ours])]
    numbers, known = _plain_values(graph, codelet, vertices)
    shapes = VertexShapes(first_piece, extent, length, numbers, known)
    return _VertexPieces(shapes, field, row, width, element, offsets(-(-length * width // STORE_BYTES))[:-1])


def _plain_values(graph: FrozenGraph, codelet: Codelet, vertices: Int64s) -> tuple[Int64s, Bools]:
    """int64 and bool [vertices, fields]: the values of plain integers that the code leaves as they are."""
    state = graph.state
    size = (len(vertices), len(codelet.fields))
    numbers, known = np.zeros(size, np.int64), np.zeros(size, bool)
    first, last = (np.searchsorted(state.vertex, vertices, side) for side in ("left", "right"))
    rows = ragged(first, last - first)
    rows = rows[np.array(_settled(codelet), bool)[state.field[rows]]]
    owner, field = np.searchsorted(vertices, state.vertex[rows]), state.field[rows]
    sign = np.array([_sign(described) for described in codelet.fields], np.int64)[field]
    numbers[owner, field] = (state.bits[rows].view(np.int64) ^ sign) - sign
    known[owner, field] = True
    return numbers, known


def _sign(field: Field) -> int:
    """The sign bit of a signed type, 0 of another."""
    return 1 << (8 * field.type.size - 1) if field.type.code in ("i8", "i16", "i32") else 0


# What their workers do


@frozen(eq=False)
class _Race:
    """A race that is certain."""

    error: type[GraphCycleError]
    vertex: int  # which of those that were looked at
    what: str
    codelet: TypedCodelet
    where: int  # the number of its location


def _find_race(graph: FrozenGraph, number: int, vertices: Int64s, in_place: InPlaceEdges, workers: int) -> _Race | None:
    codelet = graph.codelets[number]
    stored = stored_fields(codelet.typed)
    if not stored:
        return None
    names = [described.name for described in codelet.fields]
    pairs = [(names[given], names[target]) for owner, given, target in in_place.fields(graph).tolist() if owner == number]
    contended = stored | {given for given, target in pairs if target in stored}
    pieces = _pieces(graph, codelet, vertices, in_place)
    content = pieces.content()
    free = _race_free(codelet.typed)
    if (content, contended, workers) in free:
        return None
    accesses = certain_accesses(codelet.typed, pieces.shapes, workers, contended)
    race = _shared_element(codelet, pieces, accesses, workers) or _shared_word(codelet, pieces, accesses, workers)
    if race is None and content is not None:
        if len(free) >= _KEPT_SHAPES:
            free.clear()
        free.add((content, contended, workers))
    return race


@kept
def _race_free(codelet: TypedCodelet) -> set[tuple[object, frozenset[str], int]]:
    """Pieces of vertices of a codelet, fields that others may meet in, and numbers of workers of which it is known: no race."""
    return set()


def _shared_element(codelet: Codelet, pieces: _VertexPieces, accesses: Accesses, workers: int) -> _Race | None:
    """An element that a worker touches after another, at least one of them storing."""
    element = pieces.element[accesses.piece] + accesses.index
    group = _first_shared(element, accesses.lane, accesses.stored)
    if len(group) == 0:
        return None
    first = accesses.lane[group] == accesses.lane[group[0]]
    written = bool(accesses.stored[group[first]].any())
    later = group[~first & (accesses.stored[group] | written)]
    raced, earlier = int(later[0]), int(accesses.lane[group[0]]) % workers
    place = _place(codelet, pieces, accesses, raced)
    what = worker_race(int(accesses.lane[raced]) % workers, place, earlier, writes=bool(accesses.stored[raced]), written=written)
    return _Race(GraphCycleError, int(accesses.lane[raced]) // workers, what, codelet.typed, int(accesses.where[raced]))


def _shared_word(codelet: Codelet, pieces: _VertexPieces, accesses: Accesses, workers: int) -> _Race | None:
    """A word into which two workers store."""
    stores = accesses.chosen(accesses.stored & (pieces.width[accesses.piece] < STORE_BYTES))
    word = pieces.word[stores.piece] + stores.index * pieces.width[stores.piece] // STORE_BYTES
    group = _first_shared(word, stores.lane, stores.stored)
    if len(group) == 0:
        return None
    later = int(group[stores.lane[group] != stores.lane[group[0]]][0])
    named = [
        f"worker {int(stores.lane[store]) % workers} {_place(codelet, pieces, stores, store)}" for store in (int(group[0]), later)
    ]
    return _Race(AtomicStoreError, int(stores.lane[later]) // workers, shared_word(*named), codelet.typed, int(stores.where[later]))


def _first_shared(place: Int64s, lane: Int64s, stored: Bools) -> Int64s:
    """The accesses to the first place that several lanes touch, one of them storing: by lane, and in the order of the code."""
    order = np.lexsort((lane, place))
    place, lane = place[order], lane[order]
    first = np.flatnonzero(opens(place))
    if len(first) == 0:
        return first
    last = np.append(first[1:], len(place)) - 1
    shared = np.flatnonzero((lane[first] != lane[last]) & np.logical_or.reduceat(stored[order], first))
    return order[first[shared[0]] : last[shared[0]] + 1] if len(shared) else shared


def _place(codelet: Codelet, pieces: _VertexPieces, accesses: Accesses, access: int) -> str:
    piece = int(accesses.piece[access])
    return codelet.fields[int(pieces.field[piece])].place(int(pieces.row[piece]), int(accesses.index[access]))


def _message(graph: FrozenGraph, race: _Race, alike: Int64s) -> str:
    vertex = int(alike[0])
    return (
        f"{device_code(race.codelet, race.where, race.what)}\n  {vertex_name(graph, vertex)} in {compute_set_name(graph, vertex)}, "
        f"added at {vertex_location(graph, vertex)}{and_others(graph, alike.tolist())}; {compute_set_made(graph, vertex)}"
    )
