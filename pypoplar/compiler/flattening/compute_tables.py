"""Flattens planned compute sets to the driver's tables: groups of equal vertices, edge rows, schedules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct, offsets
from pypoplar.compiler.exchange_plan import ComputePlan
from pypoplar.compiler.flattening.codelet_shapes import CodeletShapes
from pypoplar.compiler.flattening.places import TilePlaces
from pypoplar.compiler.flattening.touch_tables import TouchTables
from pypoplar.compiler.memory.vertex_state import VertexState
from pypoplar.executable.compute_sets import Computes
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.interface.driver_records import PHASES, Phase
from pypoplar.interface.edge_rows import RowEntry, entry_words
from pypoplar.interface.layout import NOTHING

VERTEX_COST = 12  # the host's work for a vertex, for each element that it touches 1; a unit is about a third of a nanosecond
TILE_COST = 12


@define(eq=False)
class ComputeTables:
    """The tables while they are edge_words, compute set by compute set."""

    graph: FrozenGraph
    shapes: CodeletShapes
    places: TilePlaces
    state: VertexState
    touches: TouchTables | None
    _parts: dict[str, list[Int64s]] = field(factory=dict)
    _sizes: dict[str, int] = field(factory=dict)

    def _append(self, name: str, values: Int64s) -> int:
        """Append to a table; returns where the values begin."""
        begin = self._sizes.get(name, 0)
        self._parts.setdefault(name, []).append(np.asarray(values, np.int64))
        self._sizes[name] = begin + len(values)
        return begin

    def add(self, plan: ComputePlan, moves: Mapping[Phase, int], result: tuple[int, int] | None) -> int:
        """Add a compute set; returns its number among the computes."""
        vertex_codelet = self.graph.vertices.codelet[plan.vertex].astype(np.int64)
        order = np.lexsort((vertex_codelet, plan.tile))
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        tile, codelet = plan.tile[order], vertex_codelet[order]
        opens = np.ones(len(order), bool)
        opens[1:] = (tile[1:] != tile[:-1]) | (codelet[1:] != codelet[:-1])
        group_first = np.flatnonzero(opens)
        tile_opens = np.ones(len(group_first), bool)
        tile_opens[1:] = tile[group_first][1:] != tile[group_first][:-1]
        active = np.flatnonzero(tile_opens)

        words = self.shapes.words[codelet]
        row_start = offsets(words)[:-1] + self._sizes.get("words", 0)
        self._append("words", self._edge_words(plan, position, codelet, words, plan.vertex[order]))
        vertices = self._append("vertex", plan.vertex[order])
        groups = self._append("group_codelet", codelet[group_first])
        self._append("group_row", row_start[group_first])
        self._append("group_count", np.diff(np.append(group_first, len(order))))
        self._append("group_position", group_first + vertices)
        self._append("group_kind", self.shapes.kind[codelet[group_first]])
        self._append("list_order", self._list_order(plan.tile, position))
        first_active = self._append("active_tile", tile[group_first[active]])
        self._append("first_group", active + groups)
        self._append("cost", self._cost(plan, active, group_first, position))
        lists = np.full(PHASES, NOTHING, np.int64)
        lists[list(moves)] = list(moves.values())
        self._append("moves", lists)
        result_tile, result_offset = result or (NOTHING, 0)
        self._append("result_tile", np.array([result_tile]))
        self._append("result_offset", np.array([result_offset]))
        self._append("first_active", np.array([first_active]))
        self._append("first_vertex", np.array([vertices]))
        buffered = np.flatnonzero(plan.buffer_bytes)
        self._append("first_buffer", np.array([self._append("buffer_tile", buffered)]))
        self._append("buffer_bytes", plan.buffer_bytes[buffered])
        return self._sizes["result_tile"] - 1

    def _edge_words(self, plan: ComputePlan, position: Int64s, codelet: Int64s, words: Int64s, vertex: Int64s) -> Int64s:
        """The edge rows of a compute set, in the order of `position`."""
        local_start = offsets(words)
        edge_words = np.zeros(int(local_start[-1]), np.int64)
        edge_vertex = position[plan.edge_position]
        edge_codelet = codelet[edge_vertex]
        start = local_start[edge_vertex]

        def words_of(places: Int64s) -> Int64s:
            """A word of every edge, NOTHING where the field has none."""
            inside = places[0][plan.edge_field] if len(places) == 1 else places[edge_codelet, plan.edge_field]
            return np.where(inside != NOTHING, start + inside, NOTHING)

        word, extent = words_of(self.shapes.start_word), words_of(self.shapes.extent_word)
        offset = plan.edge_offset
        if bool(plan.edge_in_buffer.any()):
            offset = np.where(plan.edge_in_buffer, self.places.buffer[plan.tile[plan.edge_position]], 0) + offset
        offset = np.where(plan.edge_length > 0, offset, 0)
        listed = self.shapes.is_list[edge_codelet, plan.edge_field]
        edge_words[word[~listed]] = offset[~listed]
        vectors = ~listed & (extent != NOTHING)
        edge_words[extent[vectors]] = plan.edge_length[vectors]
        columns = {RowEntry.ADDRESS: offset, RowEntry.LENGTH: plan.edge_length}
        if self.touches is not None:
            marks = self.touches.add(plan, offset)
            touch = words_of(self.shapes.touch_word)
            edge_words[touch[~listed]] = marks[~listed]
            columns[RowEntry.TOUCH] = marks
        rows = np.flatnonzero(listed)
        if len(rows):
            table = np.zeros((len(rows), entry_words(record_touches=self.touches is not None)), np.int64)
            for column, values in columns.items():
                table[:, column] = values[rows]
            entries = self._append("row_table", table.ravel()) // table.shape[1]
            opens = np.ones(len(rows), bool)
            opens[1:] = word[rows][1:] != word[rows][:-1]
            lists = np.flatnonzero(opens)
            edge_words[word[rows[lists]]] = entries + lists
            edge_words[extent[rows[lists]]] = np.diff(np.append(lists, len(rows)))
        self._state_words(edge_words, local_start[:-1], codelet, vertex)
        return edge_words

    def _state_words(self, edge_words: Int64s, start: Int64s, codelet: Int64s, vertex: Int64s) -> None:
        for number in distinct(codelet):
            for position in np.flatnonzero(self.shapes.state[number]):
                chosen = np.flatnonzero(codelet == number)
                word = start[chosen] + self.shapes.start_word[number, position]
                inside = self.shapes.extent_word[number, position]
                length = np.ones(len(chosen), np.int64)
                if inside == NOTHING:
                    offset = self.state.vertex_offset[vertex[chosen]] + self.state.field_offset[number, position]
                    edge_words[word] = offset
                else:
                    placed = [self.state.vectors.get((int(owner), int(position)), (0, 0)) for owner in vertex[chosen]]
                    offset, length = np.array(placed, np.int64).T
                    edge_words[word], edge_words[start[chosen] + inside] = offset, length
                if self.touches is not None:
                    edge_words[start[chosen] + self.shapes.touch_word[number, position]] = self.touches.add_state(length)

    @staticmethod
    def _list_order(tile: Int64s, position: Int64s) -> Int64s:
        """For each vertex in list order, its place among the tile's vertices as they are grouped."""
        opens = np.ones(len(tile), bool)
        opens[1:] = tile[1:] != tile[:-1]
        first = np.flatnonzero(opens)
        return position - first[np.cumsum(opens) - 1] if len(tile) else position

    @staticmethod
    def _cost(plan: ComputePlan, active: Int64s, group_first: Int64s, position: Int64s) -> Int64s:
        elements = np.bincount(position[plan.edge_position], weights=plan.edge_length, minlength=len(position))
        if len(active) == 0:
            return np.zeros(0, np.int64)
        whole: Int64s = np.add.reduceat(elements + VERTEX_COST, group_first[active]).astype(np.int64) + TILE_COST
        return whole

    def finish(self, estimate: Int64s, flops: Int64s) -> Computes:
        """All tables. `estimate` gives worker cycles by graph vertex, -1 where they are derived; empty if none is given.

        `flops` gives floating-point operations in the same way.
        """

        def whole(name: str, *end: int) -> Int64s:
            parts = self._parts.get(name, [])
            return np.ascontiguousarray(
                np.concatenate([*parts, np.array(end, np.int64)]) if parts or end else np.zeros(0), np.int64
            )

        vertex = whole("vertex")
        return Computes(
            first_active=whole("first_active", self._sizes.get("active_tile", 0)),
            active_tile=whole("active_tile"),
            first_group=whole("first_group", self._sizes.get("group_codelet", 0)),
            group_codelet=whole("group_codelet"),
            group_row=whole("group_row"),
            group_count=whole("group_count"),
            group_position=whole("group_position"),
            group_kind=whole("group_kind"),
            first_vertex=whole("first_vertex", self._sizes.get("vertex", 0)),
            vertex=vertex,
            first_buffer=whole("first_buffer", self._sizes.get("buffer_tile", 0)),
            buffer_tile=whole("buffer_tile"),
            buffer_bytes=whole("buffer_bytes"),
            list_order=whole("list_order"),
            estimate=estimate[vertex] if len(estimate) else estimate,
            flops=flops[vertex] if len(flops) else flops,
            words=whole("words"),
            row_table=whole("row_table"),
            moves=whole("moves").reshape(-1, PHASES),
            result_tile=whole("result_tile"),
            result_offset=whole("result_offset"),
            codelet_words=self.shapes.words,
            cost=whole("cost"),
        )
