"""Makes the report's picture of vertices by tile from the executable's tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.codelet.codelet import Codelet
from pypoplar.executable.executable import Executable
from pypoplar.executable.vertex_rows import ListedRows, VertexRows, rows_by_codelet
from pypoplar.interface.edge_rows import RowEntry, edge_row, entry_words
from pypoplar.report.execution import Step
from pypoplar.report.slowest_tile import critical_tile
from pypoplar.report.tile_vertices import FieldSizes, SizedVertices, VerticesByTile
from pypoplar.types import HALF

POINTER_BYTES = 4  # of an edge pointer, a length, the vertex in its worker's list


def precision(codelet: Codelet) -> str:
    """Of a codelet's elements: "half" if any are, else "float" if any are."""
    types = {field.type for field in codelet.fields}
    return "half" if HALF in types else "float" if any(type.dtype.kind == "f" for type in types) else ""


def elements(codelet: Codelet) -> tuple[str, ...]:
    """The types of a codelet's vectors and lists that are connected."""
    connected = (field.type for field in codelet.fields if field.access != "state" and field.form != "scalar")
    return tuple(dict.fromkeys(type.spelling for type in connected))


def make_vertices_by_tile(executable: Executable) -> VerticesByTile:
    """The vertices that programs execute, each once, with the bytes of their state and pointers."""
    computes, tiles = executable.computes, executable.target.getNumTiles()
    counts = np.zeros((len(executable.codelets), tiles), np.int64)
    sizes = np.zeros_like(counts)
    numbers = {codelet.name: number for number, codelet in enumerate(executable.codelets)}
    for rows in rows_by_codelet(executable.codelets, computes, record_touches=executable.touches is not None):
        number = numbers[rows.codelet.name]
        once = rows.chosen(np.unique(computes.vertex[rows.position], return_index=True)[1])  # a vertex may be in two computes
        pointers = _pointer_bytes(executable, once)
        state = (int(executable.vertex_bytes[number]) - int(pointers.sum())) // len(pointers)
        counts[number] = np.bincount(once.tile, minlength=tiles)
        sizes[number] = np.bincount(once.tile, pointers + state, tiles).astype(np.int64)
    tile, vertex_type = np.nonzero(counts.T)
    names = tuple(codelet.name for codelet in executable.codelets) if len(tile) else ()
    return VerticesByTile(names, tile, vertex_type, counts[vertex_type, tile], sizes[vertex_type, tile])


def _pointer_bytes(executable: Executable, rows: VertexRows) -> Int64s:
    """Of each vertex."""
    bytes: Int64s = np.full(len(rows.tile), POINTER_BYTES, np.int64)
    for described, words in zip(rows.codelet.fields, rows.layout.fields, strict=True):
        if described.access == "state":
            continue
        bytes += POINTER_BYTES * (1 if described.form == "scalar" else 2)
        if described.form == "list":
            bytes += 2 * POINTER_BYTES * executable.computes.words[rows.first_word + words.extent]
    return bytes


@frozen(eq=False)
class SizedVerticesTable:
    """Finds the vertices of tiles in compute sets."""

    executable: Executable
    known: dict[tuple[int, int], tuple[SizedVertices, ...]] = field(factory=dict)  # by compute and tile

    def of_slowest(self, steps: tuple[Step, ...]) -> Mapping[int, tuple[SizedVertices, ...]]:
        """By number of a step, the vertices of the tile that it waits for."""
        computes = {step.number: self.executable.steps[step.number].compute for step in steps}
        slowest = {step.number: critical_tile(step) for step in steps if computes[step.number] >= 0}
        return {number: self.of_tile(computes[number], tile) for number, tile in slowest.items() if tile >= 0}

    def of_tile(self, compute: int, tile: int) -> tuple[SizedVertices, ...]:
        """The vertices of a tile in a compute, by type."""
        if (compute, tile) not in self.known:
            self.known[compute, tile] = self._found(compute, tile)
        return self.known[compute, tile]

    def _found(self, compute: int, tile: int) -> tuple[SizedVertices, ...]:
        computes = self.executable.computes
        first, end = computes.first_active[compute : compute + 2].tolist()
        active = first + int(np.searchsorted(computes.active_tile[first:end], tile))
        if active == end or computes.active_tile[active] != tile:
            return ()
        groups = np.arange(*computes.first_group[active : active + 2])
        codelets = computes.group_codelet[groups]
        return tuple(self._of_codelet(int(number), groups[codelets == number]) for number in distinct(codelets))

    def _of_codelet(self, number: int, groups: Int64s) -> SizedVertices:
        computes, codelet = self.executable.computes, self.executable.codelets[number]
        layout = edge_row(codelet.fields, record_touches=self.executable.touches is not None)
        count = computes.group_count[groups]
        inside = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        words = np.repeat(computes.group_row[groups], count) + inside * layout.words
        sizes = []
        for described, place in zip(codelet.fields, layout.fields, strict=True):
            if described.access == "state" or described.form == "scalar":
                continue
            elements = computes.words[words + place.extent]
            if described.form == "list":
                elements = self._listed(computes.words[words + place.start], elements)
            sizes.append(FieldSizes(described.name, int(elements.min()), int(elements.max())))
        return SizedVertices(codelet.name, int(count.sum()), tuple(sizes))

    def _listed(self, first: Int64s, rows: Int64s) -> Int64s:
        """Elements of lists of which each has so many rows, from an entry of the row table on."""
        listed = ListedRows.of(first, rows)
        entry = entry_words(record_touches=self.executable.touches is not None)
        length = self.executable.computes.row_table[listed.entry * entry + RowEntry.LENGTH]
        return np.bincount(listed.owner, length, len(rows)).astype(np.int64)
