"""Races between the workers of a MultiVertex, by what they really touched (`pypoplar.races = "elements"`).

That one worker touches what another writes is a fault of the vertex, found as it happens. Stores of two workers into one word are
found once the vertices have run.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import ragged
from pypoplar.codelet import device_wording as wording
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.ir.span_roots import store_locations
from pypoplar.engine.arena import Arena
from pypoplar.errors import AtomicStoreError
from pypoplar.executable.executable import Executable
from pypoplar.executable.vertex_rows import ListedRows, VertexRows, rows_by_codelet
from pypoplar.interface.edge_rows import WORKER_SHIFT, RowEntry, Touch, entry_words
from pypoplar.interface.layout import NOTHING
from pypoplar.presets import STORE_BYTES


@frozen(eq=False)
class MarkedPieces:
    """Where a field of some vertices lies, and where its marks do: for each vertex a piece, of a list field one for each row."""

    position: Int64s  # of the vertex in `Computes.vertex`
    row: Int64s  # of a list field, 0 of another
    address: Int64s  # bytes in the tile's memory
    length: Int64s  # elements
    mark: Int64s  # of the first element

    @staticmethod
    def of(executable: Executable, rows: VertexRows, field: int) -> MarkedPieces:
        """The pieces of field number `field` of the vertices of a codelet."""
        words, place = executable.computes.words, rows.layout.fields[field]
        start = words[rows.first_word + place.start]
        extent = words[rows.first_word + place.extent] if place.extent != NOTHING else np.ones(len(start), np.int64)
        if rows.codelet.fields[field].form != "list":
            return MarkedPieces(rows.position, np.zeros_like(start), start, extent, words[rows.first_word + place.touch])
        listed = ListedRows.of(start, extent)
        table = executable.computes.row_table.reshape(-1, entry_words(record_touches=True))[listed.entry]
        return MarkedPieces(
            rows.position[listed.owner],
            listed.entry - start[listed.owner],
            *(table[:, column] for column in (RowEntry.ADDRESS, RowEntry.LENGTH, RowEntry.TOUCH)),
        )


def _rows(executable: Executable) -> list[VertexRows]:
    """The vertices of every MultiVertex codelet."""
    if all(codelet.kind != "multi" for codelet in executable.codelets):
        return []
    every = rows_by_codelet(executable.codelets, executable.computes, record_touches=True)
    return [rows for rows in every if rows.codelet.kind == "multi"]


def worker_race(executable: Executable, vertex: int, place: int, marks: int) -> str:
    """What has happened at mark number `place` of a vertex: the mark there, and 256 times that of the worker that came after."""
    earlier, later = marks & 0xFF, marks >> 8
    name = _touched(executable, vertex, place, written=bool(later & Touch.WRITTEN))
    writes, written = bool(later & Touch.WRITTEN), bool(earlier & Touch.WRITTEN)
    return wording.worker_race(later >> WORKER_SHIFT, name, earlier >> WORKER_SHIFT, writes=writes, written=written)


def _touched(executable: Executable, vertex: int, place: int, *, written: bool) -> str:
    """``element 3 of field y``; of an Input and an Output that are one tensor the one that is written, or read."""
    names = []
    for rows in _rows(executable):
        own = np.flatnonzero(executable.computes.vertex[rows.position] == vertex)[:1]
        single = rows.chosen(own)
        for number, field in enumerate(rows.codelet.fields if len(own) else ()):
            pieces = MarkedPieces.of(executable, single, number)
            for piece in np.flatnonzero((pieces.mark <= place) & (place < pieces.mark + pieces.length)):
                name = field.place(int(pieces.row[piece]), int(place - pieces.mark[piece]))
                names.append(((field.access == "input") == written, name))
    return min(names)[1]


def judge_sub_words(executable: Executable, memory: Arena, compute: int, name: str) -> None:
    """After compute set number `compute` has run: `AtomicStoreError` if two workers of a vertex stored into one word."""
    first, last = executable.computes.first_vertex[compute : compute + 2]
    for rows in _rows(executable):
        own = np.flatnonzero((rows.position >= first) & (rows.position < last))
        if len(own):
            _judge_codelet(executable, memory, rows.chosen(own), name)


def _judge_codelet(executable: Executable, memory: Arena, rows: VertexRows, name: str) -> None:
    narrow = [
        number for number, field in enumerate(rows.codelet.fields) if field.type.size < STORE_BYTES and field.access != "input"
    ]
    if not narrow:
        return
    columns = [_stores(memory, MarkedPieces.of(executable, rows, number), number, rows.codelet) for number in narrow]
    position, word, worker, field, row, index = np.concatenate(columns, axis=1)
    order = np.lexsort((index, row, field, worker, word, position))
    position, word, worker = position[order], word[order], worker[order]
    torn = np.flatnonzero((position[1:] == position[:-1]) & (word[1:] == word[:-1]) & (worker[1:] != worker[:-1]))
    if len(torn) == 0:
        return
    vertex = int(executable.computes.vertex[position[torn[0]]])
    stores = []
    for entry in (torn[0], torn[0] + 1):
        number, in_row, element = (int(column[order[entry]]) for column in (field, row, index))
        described = rows.codelet.fields[number]
        stores.append(f"worker {worker[entry]} {described.place(in_row, element)}")
    codelet = rows.codelet.typed
    where = store_locations(codelet, rows.codelet.fields[int(field[order[torn[0]]])].name)[0]
    file, line, _ = executable.vertex_names.locations[int(executable.vertex_names.location[vertex])]
    raise AtomicStoreError(
        f"{wording.device_code(codelet, where, wording.shared_word(*stores))}\n"
        f"  vertex {vertex} on tile {int(executable.vertex_names.tile[vertex])} in compute set {name!r}, added at {file}:{line}; "
        f"{executable.compute_set_made(name)}"
    )


def _stores(memory: Arena, pieces: MarkedPieces, field: int, codelet: Codelet) -> Int64s:
    """int64 [6, elements]: vertex, word, worker, field, row and index of every element of a field that was written."""
    owner = np.repeat(np.arange(len(pieces.length)), pieces.length)
    place = ragged(pieces.mark, pieces.length)
    marks = memory.marks[place].astype(np.int64)
    written = np.flatnonzero(marks & Touch.WRITTEN)
    piece, index = owner[written], place[written] - pieces.mark[owner[written]]
    word = (pieces.address[piece] + index * codelet.fields[field].type.size) // STORE_BYTES
    columns = (pieces.position[piece], word, marks[written] >> WORKER_SHIFT, np.full(len(piece), field), pieces.row[piece], index)
    return np.stack(columns)
