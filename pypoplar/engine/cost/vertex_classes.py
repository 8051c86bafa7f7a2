"""Vertices that take the same cycles: of one codelet, with fields of the same sizes and alignment, and equal plain fields."""

from __future__ import annotations

import numpy as np
from attrs import define, frozen

from pypoplar.arrays.dtypes import AnyArray, Bools, Bytes, Int64s
from pypoplar.arrays.equal_rows import first_equal
from pypoplar.arrays.groups import offsets
from pypoplar.codelet.language.declaration import Field
from pypoplar.executable.executable import Executable
from pypoplar.executable.vertex_rows import ListedRows, VertexRows, rows_by_codelet
from pypoplar.interface.edge_rows import FieldWords, RowEntry, entry_words
from pypoplar.interface.layout import NOTHING

ALIGNMENT = 8  # bytes: no element or record lies at multiples of more


@frozen(eq=False)
class VertexClasses:
    """Classes of the vertices of `Computes.vertex`. Each has one of its vertices as its example."""

    of_vertex: Int64s  # [vertices]: the number of its class, NOTHING of those that were not asked for
    example: Int64s  # [classes]: its position in `Computes.vertex`
    codelet: Int64s  # [classes]
    tile: Int64s  # [classes]: of the example
    first_word: Int64s  # [classes]: where the example's edge row begins in `Computes.words`


def find_classes(executable: Executable, wanted: Bools) -> VertexClasses:
    """The classes of the `wanted` vertices (bool per position in `Computes.vertex`)."""
    state = PlainFields.of(executable)
    of_vertex = np.full(len(wanted), NOTHING, np.int64)
    found: list[tuple[Int64s, Int64s, Int64s, Int64s]] = []
    numbers = {codelet.name: number for number, codelet in enumerate(executable.codelets)}
    count = 0
    for every in rows_by_codelet(executable.codelets, executable.computes, record_touches=False):
        rows = every.chosen(np.flatnonzero(wanted[every.position]))
        if len(rows.position) == 0:
            continue
        columns = _columns(executable, rows, state)
        entries = np.stack(columns, 1).ravel() if columns else np.zeros(0, np.int64)
        same = first_equal(np.arange(len(rows.position) + 1) * len(columns), entries)
        first, inverse = np.unique(same, return_inverse=True)
        of_vertex[rows.position] = count + inverse
        codelet = np.full(len(first), numbers[rows.codelet.name])
        found.append((rows.position[first], codelet, rows.tile[first], rows.first_word[first]))
        count += len(first)
    parts = zip(*found, strict=True) if found else [[np.zeros(0, np.int64)]] * 4
    return VertexClasses(of_vertex, *(np.concatenate(list(part)) for part in parts))


def _columns(executable: Executable, rows: VertexRows, state: PlainFields) -> list[Int64s]:
    """What decides the cycles of some vertices of a codelet, besides its code: numbers, each of every vertex."""
    columns: list[Int64s] = []
    words = executable.computes.words
    for described, place in zip(rows.codelet.fields, rows.layout.fields, strict=True):
        start = words[rows.first_word + place.start]
        if described.access == "state":
            columns += _of_state(described, rows, words, place, start, state)
            continue
        if described.form == "list":
            columns += [
                words[rows.first_word + place.extent],
                _equal_lists(executable, start, words[rows.first_word + place.extent]),
            ]
            continue
        columns.append(start % ALIGNMENT)
        if place.extent != NOTHING:
            columns.append(words[rows.first_word + place.extent])
    return columns


def _of_state(
    described: Field, rows: VertexRows, words: Int64s, place: FieldWords, start: Int64s, state: PlainFields
) -> list[Int64s]:
    """The value of a plain field, as one number for each vertex."""
    if place.extent == NOTHING:
        return [state.scalars(rows.tile, start, described.type.size)]
    length = words[rows.first_word + place.extent]
    contents = [
        state.bytes(*at).tobytes()
        for at in zip(rows.tile.tolist(), start.tolist(), (length * described.type.size).tolist(), strict=True)
    ]
    known: dict[bytes, int] = {}
    return [length, np.array([known.setdefault(content, len(known)) for content in contents], np.int64)]


def _equal_lists(executable: Executable, first: Int64s, count: Int64s) -> Int64s:
    """For each vertex the first one whose list has as many rows of the same lengths and alignment."""
    listed = ListedRows.of(first, count)
    table = executable.computes.row_table.reshape(-1, entry_words(record_touches=False))
    entries = table[listed.entry]
    return first_equal(offsets(count), entries[:, RowEntry.ADDRESS] % ALIGNMENT, entries[:, RowEntry.LENGTH])


@define(eq=False)
class PlainFields:
    """The plain fields of vertices by their places, from the image."""

    key: Int64s  # [pieces]: tile and offset, sorted
    begin: Int64s  # [pieces]: of the piece's bytes in `data`
    size: Int64s  # [pieces]
    data: Bytes

    @staticmethod
    def of(executable: Executable) -> PlainFields:
        """Those of an executable of mode "cost", whose image has nothing else."""
        image = executable.image
        key = image.tile * _SPAN + image.offset
        order = np.argsort(key, kind="stable")
        return PlainFields(key[order], offsets(image.bytes)[:-1][order], image.bytes[order], image.data)

    def scalars(self, tile: Int64s, offset: Int64s, width: int) -> Int64s:
        """Bits of scalar fields; -1 of one that has no value."""
        piece = self._pieces(tile, offset)
        values = np.full(len(tile), -1, np.int64)
        there = np.flatnonzero(piece != NOTHING)
        bytes = np.zeros((len(there), 8), np.uint8)
        bytes[:, :width] = self.data[self.begin[piece[there]][:, None] + np.arange(width)]
        values[there] = bytes.view(np.int64)[:, 0]
        return values

    def bytes(self, tile: int, offset: int, size: int) -> Bytes:
        """The bytes of a field of one vertex; 0xFF where it has no value."""
        piece = int(self._pieces(np.array([tile]), np.array([offset]))[0])
        if piece == NOTHING or size == 0:
            return np.full(size, 0xFF, np.uint8)
        begin = int(self.begin[piece])
        return self.data[begin : begin + size]

    def _pieces(self, tile: Int64s, offset: Int64s) -> AnyArray:
        """The number of the piece that begins at each place, or NOTHING; of several the last, which holds."""
        wanted = tile * _SPAN + offset
        place = np.searchsorted(self.key, wanted, side="right") - 1
        found = place >= 0
        found[found] = self.key[place[found]] == wanted[found]
        return np.where(found, place, NOTHING)


_SPAN = 1 << 32  # no tile has as many bytes
