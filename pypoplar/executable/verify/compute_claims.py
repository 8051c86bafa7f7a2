"""Claims about the tables of compute sets: groups, schedules, and every address and length that a vertex is given.

A vertex reaches its own tile's memory and nothing else, as on the machine.
"""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.interval_algebra import keys, meets, union
from pypoplar.codelet.codelet import Codelet
from pypoplar.executable.claims import LARGEST
from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.executable import Executable
from pypoplar.executable.verify.named_checks import (
    check,
    check_each,
    check_least,
    check_limit,
    check_most,
    check_range,
    check_running,
    check_shape,
)
from pypoplar.executable.vertex_rows import ListedRows, VertexRows, rows_by_codelet
from pypoplar.interface.driver_records import PHASES
from pypoplar.interface.edge_rows import FieldWords, RowEntry, edge_row, entry_words
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.vertex_kinds import VertexKind

MOST_PRICES = 1 << 40  # of a group: one for each vertex and worker


def verify_computes(executable: Executable, moves: int) -> None:
    """Check the compute tables of an executable with `moves` moves, whose `tile_bytes` have been checked."""
    computes = executable.computes
    _verify_shapes(computes)
    _verify_buffers(executable)
    _verify_groups(executable)
    _verify_tiles(executable)
    check_range("computes.moves", computes.moves.ravel(), -1, moves)
    _verify_results(executable)
    check_range("computes.vertex", computes.vertex, 0, len(executable.vertex_names.location))
    check_range("computes.estimate", computes.estimate, -1, LARGEST)
    check_range("computes.flops", computes.flops, -1, LARGEST)
    check_range("computes.cost", computes.cost, 0, LARGEST)
    _verify_edges(executable)


def _verify_shapes(computes: Computes) -> None:
    sets, groups = len(computes.result_tile), len(computes.group_codelet)
    active, vertices = len(computes.active_tile), len(computes.vertex)
    check_shape("computes.moves", computes.moves, sets, PHASES)
    for names, size in (
        (("result_tile", "result_offset"), sets),
        (("active_tile", "cost"), active),
        (("group_codelet", "group_row", "group_count", "group_position", "group_kind"), groups),
        (("vertex", "list_order"), vertices),
        (("estimate",), vertices if len(computes.estimate) else 0),
        (("flops",), vertices if len(computes.flops) else 0),
        (("words",), len(computes.words)),
    ):
        for name in names:
            check_shape(f"computes.{name}", getattr(computes, name), size)
    check_running("computes.first_active", computes.first_active, sets, active)
    check_running("computes.first_group", computes.first_group, active, groups, 1, "is an active tile without vertices")
    check_shape("computes.first_vertex", computes.first_vertex, sets + 1)


def _verify_results(executable: Executable) -> None:
    """Where the AND of what compute returned goes."""
    computes = executable.computes
    check_range("computes.result_tile", computes.result_tile, -1, len(executable.tile_bytes))
    used = computes.result_tile != NOTHING
    size = np.where(used, executable.tile_bytes[computes.result_tile], 1)
    offset, text = computes.result_offset, "reaches beyond the tile"
    check_least("computes.result_offset least", offset, 0, text, "computes.result_offset")
    check_most("computes.result_offset most", offset, size - 1, text, "computes.result_offset")


def _verify_buffers(executable: Executable) -> None:
    computes = executable.computes
    buffers = computes.buffer_tile.size
    check_shape("computes.buffer_tile", computes.buffer_tile, buffers)
    check_running("computes.first_buffer", computes.first_buffer, len(computes.result_tile), buffers)
    check_range("computes.buffer_tile", computes.buffer_tile, 0, len(executable.tile_bytes))
    check_shape("computes.buffer_bytes", computes.buffer_bytes, buffers)
    check_range("computes.buffer_bytes", computes.buffer_bytes, 0, LARGEST)


def _verify_groups(executable: Executable) -> None:
    computes, codelets = executable.computes, executable.codelets
    vertices = len(computes.vertex)
    check_range("computes.group_codelet", computes.group_codelet, 0, len(codelets))
    kind = np.array([VertexKind.of(codelet.kind) for codelet in codelets], np.int64)
    own_kind = computes.group_kind == kind[computes.group_codelet]
    check_each("computes.group_kind", own_kind, "is not the codelet's kind")
    check_least("computes.group_count", computes.group_count, 1)
    workers = executable.target.getNumWorkerContexts()
    largest = int(computes.group_count.max(initial=0)) * workers
    check_limit("computes workers", largest, MOST_PRICES - 1, f"{workers} workers are too many for the groups of vertices")
    whole = sum(computes.group_count.tolist())
    check("computes.vertex", whole == vertices, "computes.vertex has another length than the groups together")
    before = np.cumsum(computes.group_count) - computes.group_count
    check_each("computes.group_position", computes.group_position == before, "does not follow the group before")
    check_range("computes.group_row", computes.group_row, 0, len(computes.words) + 1)
    touches = executable.touches is not None
    words = np.array([edge_row(codelet.fields, record_touches=touches).words for codelet in codelets], np.int64)
    check_shape("computes.codelet_words", computes.codelet_words, len(codelets))
    check_each("computes.codelet_words", computes.codelet_words == words, "is not the size of the codelet's edge rows")
    row_end, text = (
        computes.group_row + computes.group_count * words[computes.group_codelet],
        "leaves no room for the group's edge rows",
    )
    check_most("computes.group_row end", row_end, len(computes.words), text, "computes.group_row")


def _verify_tiles(executable: Executable) -> None:
    """Active tiles have vertices, are in order within their compute set, and schedule each vertex once."""
    computes = executable.computes
    tiles, vertices = len(executable.tile_bytes), len(computes.vertex)
    check_range("computes.active_tile", computes.active_tile, 0, tiles)
    opens = np.zeros(len(computes.active_tile) + 1, bool)
    opens[computes.first_active] = True
    before, text = np.where(opens[1:-1], -1, computes.active_tile[:-1]), "is not followed by a higher one in its compute set"
    check_least("computes.active_tile order", computes.active_tile[1:], before + 1, text, "computes.active_tile")
    position = np.append(computes.group_position, vertices)
    first = position[computes.first_group]  # of each active tile
    own_first = computes.first_vertex == first[computes.first_active]
    check_each("computes.first_vertex", own_first, "is not the first of its tiles")
    count = np.diff(first)
    order, text = computes.list_order, "is not on the tile"
    check_least("computes.list_order least", order, 0, text, "computes.list_order")
    check_most("computes.list_order most", order, np.repeat(count, count) - 1, text, "computes.list_order")
    scheduled = np.zeros(vertices, bool)
    scheduled[computes.list_order + np.repeat(first[:-1], count)] = True
    check_each("computes.list_order whole", scheduled, "leaves out a vertex of the tile", "computes.list_order")


def _verify_edges(executable: Executable) -> None:
    """All places and lengths in the edge rows, field by field, for all vertices of a codelet at once."""
    edges = _Edges(executable)
    touched = executable.touches is not None
    for rows in rows_by_codelet(executable.codelets, executable.computes, record_touches=touched):
        reach = executable.tile_bytes[rows.tile]
        for number, words in enumerate(rows.layout.fields):
            edges.verify(rows.codelet, number, words, rows.first_word, reach)
        for pair in rows.codelet.distinct:
            edges.verify_apart(rows, pair, int(reach.max()) + 1)


class _Edges:
    """The edge rows while they are checked; see `pypoplar.interface.edge_rows` for the words of a field."""

    def __init__(self, executable: Executable) -> None:
        table = executable.computes.row_table
        self.words = executable.computes.words
        self.touched = executable.touches is not None
        width = entry_words(record_touches=self.touched)
        rows = table.ndim == 1 and len(table) % width == 0
        check("computes.row_table", rows, f"computes.row_table is not made of rows of {width}")
        self.row_table = table.reshape(-1, width)
        self.rows_used = 0
        self.marks = executable.touch_bytes

    def verify(self, codelet: Codelet, number: int, words: FieldWords, row: Int64s, reach: Int64s) -> None:
        """One field of many vertices, whose edge rows begin at `row` and whose tiles' memories have `reach` bytes."""
        field, form = codelet.fields[number], (codelet.fields[number].type.size, codelet.alignments[number])
        name = f"field {field.name!r} of {codelet.name}"
        start = self.words[row + words.start]
        extent = self.words[row + words.extent] if words.extent != NOTHING else None
        if field.form == "list":
            assert extent is not None
            self._list(name, form, start, extent, reach)
            return
        length = _verify_span("field", name, start, extent, form, reach)
        check_each("field records", length % field.unit == 0, "holds no whole number of records", f"the memory of {name}: vertex")
        if words.touch != NOTHING:
            self._marks("field", name, self.words[row + words.touch], length)

    def verify_apart(self, rows: VertexRows, pair: tuple[int, int], span: int) -> None:
        """Two fields of each vertex have no byte in common; `span` is larger than the memory of any tile."""
        begin, end = self._stretches(rows, pair[0], span)
        meeting = meets(begin, end, *union(*self._stretches(rows, pair[1], span)))
        apart = np.ones(len(rows.first_word), bool)
        apart[begin[meeting] // span] = False
        first, second = (f"field {rows.codelet.fields[position].name!r}" for position in pair)
        check_each("field apart", apart, f"is not apart from {second}", f"the memory of {first} of {rows.codelet.name}: vertex")

    def _stretches(self, rows: VertexRows, number: int, span: int) -> tuple[Int64s, Int64s]:
        """Where a vector, or each row of a list, begins and ends: ``vertex * span + place``."""
        field, words = rows.codelet.fields[number], rows.layout.fields[number]
        start, length = self.words[rows.first_word + words.start], self.words[rows.first_word + words.extent]
        vertex = np.arange(len(start))
        if field.form == "list":
            listed = ListedRows.of(start, length)
            row = self.row_table[listed.entry]
            vertex, start, length = listed.owner, row[:, RowEntry.ADDRESS], row[:, RowEntry.LENGTH]
        begin = keys(vertex, start, span)
        return begin, begin + length * field.type.size

    def _list(self, name: str, form: tuple[int, int], first: Int64s, count: Int64s, reach: Int64s) -> None:
        entries = len(self.row_table)
        check_range("list first", first, 0, entries + 1, f"the first row of {name}: vertex")
        check_least("list rows", count, 0, where=f"the number of rows of {name}: vertex")
        check_most("list end", first + count, entries, "has rows that are not there", f"the rows of {name}: vertex")
        self.rows_used += sum(count.tolist())
        check_limit("list shared", self.rows_used, entries, f"rows of {name} are shared")
        listed = ListedRows.of(first, count)
        rows = self.row_table[listed.entry]
        address, length = rows[:, RowEntry.ADDRESS], rows[:, RowEntry.LENGTH]
        _verify_span("row", f"a row of {name}", address, length, form, reach[listed.owner])
        if self.touched:
            self._marks("row", f"a row of {name}", rows[:, RowEntry.TOUCH], length)

    def _marks(self, form: str, name: str, place: Int64s, length: Int64s) -> None:
        """Where touched elements are marked, a byte for each."""
        check_range(f"{form} marks", place, 0, self.marks + 1, f"the marks of {name}: place")
        check_most(f"{form} marks end", place + length, self.marks, "reaches beyond the marks", f"the marks of {name}: vertex")


def _verify_span(what: str, name: str, address: Int64s, length: Int64s | None, form: tuple[int, int], reach: Int64s) -> Int64s:
    """Elements of a size and an alignment in the memory of the vertex's tile, `reach` bytes, aligned as native code expects it.

    Returns how many: one where there is no `length`.
    """
    size, alignment = form
    check_range(f"{what} address", address, 0, LARGEST, f"the address of {name}: vertex")
    if length is None:
        length = np.ones(len(address), np.int64)
    else:
        check_range(f"{what} length", length, 0, LARGEST // 8, f"the length of {name}: vertex")
    where = f"the memory of {name}: vertex"
    check_most(f"{what} end", address + length * size, reach, "reaches beyond its tile", where)
    check_each(f"{what} alignment", (address % alignment == 0) | (length == 0), "is not aligned", where)
    return length
