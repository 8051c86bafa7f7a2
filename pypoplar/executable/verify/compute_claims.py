"""Claims about the tables of compute sets: groups, schedules, and every address and length that a vertex is given.

A vertex reaches its own tile's memory and nothing else, as on the machine.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray as Array
from pypoplar.codelet.language.codelet import Codelet, Field
from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.executable import Executable
from pypoplar.executable.verify.claims import LARGEST, claim, claim_each, claim_range, claim_running, claim_shape
from pypoplar.interface.driver_records import PHASES
from pypoplar.interface.edge_rows import FieldWords, RowEntry, edge_row, entry_words
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.vertex_kinds import VertexKind

MOST_PRICES = 1 << 40  # of a group: one for each vertex and worker


def verify_computes(executable: Executable, lists: int) -> None:
    """Check the compute tables of an executable with `lists` move lists, whose `tile_base` has been checked."""
    computes = executable.computes
    _verify_shapes(computes)
    _verify_buffers(executable)
    _verify_groups(executable)
    _verify_tiles(executable)
    claim_range("computes.moves", computes.moves.ravel(), -1, lists)
    claim_range("computes.result", computes.result, -1, int(executable.tile_base[-1]))
    claim_range("computes.vertex", computes.vertex, 0, len(executable.vertex_names.location))
    claim_range("computes.estimate", computes.estimate, -1, LARGEST)
    claim_range("computes.flops", computes.flops, -1, LARGEST)
    claim_range("computes.cost", computes.cost, 0, LARGEST)
    _verify_edges(executable)


def _verify_shapes(computes: Computes) -> None:
    sets, groups = len(computes.result), len(computes.group_codelet)
    active, vertices = len(computes.active_tile), len(computes.vertex)
    claim_shape("computes.moves", computes.moves, sets, PHASES)
    for names, size in (
        (("result",), sets),
        (("active_tile", "cost"), active),
        (("group_codelet", "group_row", "group_count", "group_position", "group_kind"), groups),
        (("vertex", "list_order"), vertices),
        (("estimate",), vertices if len(computes.estimate) else 0),
        (("flops",), vertices if len(computes.flops) else 0),
        (("words",), len(computes.words)),
    ):
        for name in names:
            claim_shape(f"computes.{name}", getattr(computes, name), size)
    claim_running("computes.first_active", computes.first_active, sets, active)
    claim_running("computes.first_group", computes.first_group, active, groups)
    claim_running("computes.first_vertex", computes.first_vertex, sets, vertices)


def _verify_buffers(executable: Executable) -> None:
    computes = executable.computes
    claim_running("computes.first_buffer", computes.first_buffer, len(computes.result), computes.buffer_tile.size)
    claim_range("computes.buffer_tile", computes.buffer_tile, 0, len(executable.tile_base) - 1)
    claim_shape("computes.buffer_bytes", computes.buffer_bytes, computes.buffer_tile.size)
    claim_range("computes.buffer_bytes", computes.buffer_bytes, 0, LARGEST)


def _verify_groups(executable: Executable) -> None:
    computes, codelets = executable.computes, executable.codelets
    vertices = len(computes.vertex)
    claim_range("computes.group_codelet", computes.group_codelet, 0, len(codelets))
    kind = np.array([VertexKind.of(one.kind) for one in codelets], np.int64)
    claim_each("computes.group_kind", computes.group_kind == kind[computes.group_codelet], "is not the codelet's kind")
    claim_range("computes.group_count", computes.group_count, 1, vertices + 1)
    largest = int(computes.group_count.max(initial=0)) * executable.target.getNumWorkerContexts()
    claim(largest < MOST_PRICES, f"{executable.target.getNumWorkerContexts()} workers are too many for the groups of vertices")
    ends = np.cumsum(computes.group_count)
    claim_each(
        "computes.group_position", computes.group_position == ends - computes.group_count, "does not follow the group before"
    )
    claim(int(ends[-1]) == vertices if len(ends) else vertices == 0, "computes.vertex has another length than the groups together")
    claim_range("computes.group_row", computes.group_row, 0, len(computes.words) + 1)
    touches = executable.touches is not None
    words = np.array([edge_row(codelet.fields, record_touches=touches).words for codelet in codelets], np.int64)
    claim_shape("computes.codelet_words", computes.codelet_words, len(codelets))
    claim_each("computes.codelet_words", computes.codelet_words == words, "is not the size of the codelet's edge rows")
    row_end = computes.group_row + computes.group_count * words[computes.group_codelet]
    claim_each("computes.group_row", row_end <= len(computes.words), "leaves no room for the group's edge rows")


def _verify_tiles(executable: Executable) -> None:
    """Active tiles have vertices, are in order within their compute set, and schedule each vertex once."""
    computes = executable.computes
    tiles, vertices = len(executable.tile_base) - 1, len(computes.vertex)
    claim_range("computes.active_tile", computes.active_tile, 0, tiles)
    opens = np.zeros(len(computes.active_tile) + 1, bool)
    opens[computes.first_active] = True
    rises = computes.active_tile[1:] > computes.active_tile[:-1]
    claim_each("computes.active_tile", rises | opens[1:-1], "is not followed by a higher one in its compute set")
    claim_each("computes.first_group", computes.first_group[1:] > computes.first_group[:-1], "is an active tile without vertices")
    position = np.append(computes.group_position, vertices)
    first = position[computes.first_group]  # of each active tile
    claim_each("computes.first_vertex", computes.first_vertex == first[computes.first_active], "is not the first of its tiles")
    count = np.diff(first)
    claim_each(
        "computes.list_order", (computes.list_order >= 0) & (computes.list_order < np.repeat(count, count)), "is not on the tile"
    )
    scheduled = np.zeros(vertices, bool)
    scheduled[computes.list_order + np.repeat(first[:-1], count)] = True
    claim_each("computes.list_order", scheduled, "leaves out a vertex of the tile")


@frozen(eq=False)
class _Reach:
    """The memory that each of some vertices may touch."""

    begin: Array  # int64
    end: Array  # int64

    def of(self, which: Array) -> _Reach:
        return _Reach(self.begin[which], self.end[which])


def _verify_edges(executable: Executable) -> None:
    """All addresses and lengths in the edge rows, field by field, for all vertices of a codelet at once."""
    computes = executable.computes
    edges = _Edges(executable)
    first = np.append(computes.group_position, len(computes.vertex))[computes.first_group]
    tile = np.repeat(computes.active_tile, np.diff(first))
    reach = _Reach(executable.tile_base[tile], executable.tile_base[tile + 1])
    codelet = np.repeat(computes.group_codelet, computes.group_count)
    inside = np.arange(len(computes.vertex)) - np.repeat(computes.group_position, computes.group_count)
    row = np.repeat(computes.group_row, computes.group_count)
    for number in np.unique(codelet):
        one = executable.codelets[int(number)]
        here = np.flatnonzero(codelet == number)
        layout = edge_row(one.fields, record_touches=executable.touches is not None)
        start = row[here] + inside[here] * layout.words
        for field, words in zip(one.fields, layout.fields, strict=True):
            edges.verify(one, field, words, start, reach.of(here))


class _Edges:
    """The edge rows while they are checked; see `pypoplar.interface.edge_rows` for the words of a field."""

    def __init__(self, executable: Executable) -> None:
        table = executable.computes.row_table
        self.words = executable.computes.words
        self.touched = executable.touches is not None
        width = entry_words(record_touches=self.touched)
        claim(table.ndim == 1 and len(table) % width == 0, f"computes.row_table is not made of rows of {width}")
        self.row_table = table.reshape(-1, width)
        self.rows_used = 0
        self.marks = int(executable.tile_base[-1]), executable.memory_bytes

    def verify(self, codelet: Codelet, field: Field, words: FieldWords, row: Array, reach: _Reach) -> None:
        """One field of many vertices, whose edge rows begin at `row`."""
        name = f"field {field.name!r} of {codelet.name}"
        start = self.words[row + words.start]
        extent = self.words[row + words.extent] if words.extent != NOTHING else np.ones(len(row), np.int64)
        if field.form == "list":
            self._list(name, field, start, extent, reach)
            return
        _verify_span(name, start, extent, field.type.size, reach)
        if words.touch != NOTHING:
            self._marks(name, self.words[row + words.touch], extent)

    def _list(self, name: str, field: Field, first: Array, count: Array, reach: _Reach) -> None:
        entries = len(self.row_table)
        claim_range(f"the first row of {name}: vertex", first, 0, entries + 1)
        claim_range(f"the number of rows of {name}: vertex", count, 0, entries + 1)
        claim_each(f"the rows of {name}: vertex", first + count <= entries, "has rows that are not there")
        total = int(count.sum())
        self.rows_used += total
        claim(self.rows_used <= entries, f"rows of {name} are shared")
        inside = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
        rows = self.row_table[np.repeat(first, count) + inside]
        owner = np.repeat(np.arange(len(first)), count)
        address, length = rows[:, RowEntry.ADDRESS], rows[:, RowEntry.LENGTH]
        _verify_span(f"a row of {name}", address, length, field.type.size, reach.of(owner))
        if self.touched:
            self._marks(f"a row of {name}", rows[:, RowEntry.TOUCH], length)

    def _marks(self, name: str, place: Array, length: Array) -> None:
        """Where touched elements are marked, a byte for each."""
        begin, end = self.marks
        claim_range(f"the marks of {name}: place", place, begin, end + 1)
        claim_each(f"the marks of {name}: vertex", place + length <= end, "reaches beyond the memory")


def _verify_span(name: str, address: Array, length: Array, size: int, reach: _Reach) -> None:
    """Elements of `size` bytes in the memory of the vertex's tile, aligned as native code expects it."""
    claim_range(f"the address of {name}: vertex", address, 0, LARGEST)
    claim_range(f"the length of {name}: vertex", length, 0, LARGEST // 8)
    fine = (address >= reach.begin) & (address + length * size <= reach.end)
    claim_each(f"the memory of {name}: vertex", fine, "reaches beyond its tile")
    claim_each(f"the memory of {name}: vertex", (address % min(size, 4) == 0) | (length == 0), "is not aligned")
