"""What `Engine.load` writes into tile memory: constants, initial values of variables and of plain fields."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import AnyArray, Bools, Bytes, Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.compiler.exchange.host_copies import host_pieces
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.compiler.memory.vertex_state import VertexState
from pypoplar.executable.memory_image import Image
from pypoplar.graph.frozen import ElementRuns, FrozenGraph


@define(eq=False)
class _ImageParts:
    tile: list[Int64s] = field(factory=list)
    offset: list[Int64s] = field(factory=list)
    bytes: list[Int64s] = field(factory=list)
    data: list[AnyArray] = field(factory=list)

    def add(self, tile: Int64s, offset: Int64s, size: Int64s, data: AnyArray) -> None:
        self.tile.append(np.asarray(tile, np.int64))
        self.offset.append(np.asarray(offset, np.int64))
        self.bytes.append(np.asarray(size, np.int64))
        self.data.append(data)

    def finish(self) -> Image:
        def joined(parts: list[Int64s]) -> Int64s:
            return np.concatenate(parts) if parts else np.zeros(0, np.int64)

        return Image(joined(self.tile), joined(self.offset), joined(self.bytes), self._bytes_of_data())

    def _bytes_of_data(self) -> Bytes:
        """The bytes of all data; what stands for many equal values is written out here, once."""
        whole, end = np.empty(sum(data.nbytes for data in self.data), np.uint8), 0
        for data in self.data:
            part = whole[end : end + data.nbytes]
            part.view(data.dtype).reshape(data.shape)[...] = data
            end += data.nbytes
        return whole


def make_image(graph: FrozenGraph, homes: Homes, state: VertexState, used: Bools) -> Image:
    """Later writes win: constants, then initial values in the order in which they were set, then plain fields."""
    parts = _ImageParts()
    placed = np.zeros(len(graph.variables.names), bool)
    placed[homes.variable] = True
    for number, values in graph.variables.constants.items():
        if placed[number]:
            _add_values(parts, homes, _whole(graph, number), values)
    for runs, values in graph.variables.initial:
        variable = np.searchsorted(graph.variables.first, runs.start, side="right") - 1
        if len(variable) and placed[variable].all():
            _add_values(parts, homes, runs, values)
    _add_state(parts, graph, state, used)
    return parts.finish()


def make_state_image(graph: FrozenGraph, state: VertexState, used: Bools) -> Image:
    """The plain fields alone, of a program that is priced and never run."""
    parts = _ImageParts()
    _add_state(parts, graph, state, used)
    return parts.finish()


def _add_state(parts: _ImageParts, graph: FrozenGraph, state: VertexState, used: Bools) -> None:
    _add_scalars(parts, graph, state, used)
    for (vertex, number), (offset, length) in state.vectors.items():
        values = graph.state.vectors[vertex, number]
        if length:
            parts.add(np.array([graph.vertices.tile[vertex]], np.int64), np.array([offset]), np.array([values.nbytes]), values)


def _whole(graph: FrozenGraph, variable: int) -> ElementRuns:
    first = graph.variables.first
    step = np.ones(1, np.int64)
    return ElementRuns(first[variable : variable + 1], first[variable + 1 : variable + 2] - first[variable : variable + 1], step)


def _add_values(parts: _ImageParts, homes: Homes, runs: ElementRuns, values: AnyArray) -> None:
    pieces = host_pieces(homes, runs)
    parts.add(pieces.tile, pieces.offset, pieces.bytes, values)


def _add_scalars(parts: _ImageParts, graph: FrozenGraph, state: VertexState, used: Bools) -> None:
    """Scalar plain fields, all those of one width at once."""
    given = graph.state
    if len(given.vertex) == 0:
        return
    most = max(len(codelet.fields) for codelet in graph.codelets)
    widths = np.zeros((len(graph.codelets), most), np.int64)
    for number, codelet in enumerate(graph.codelets):
        widths[number, : len(codelet.fields)] = [field.type.size for field in codelet.fields]
    codelet_of = graph.vertices.codelet[given.vertex]
    width = widths[codelet_of, given.field]
    tile = np.maximum(graph.vertices.tile[given.vertex], 0)
    offset = state.vertex_offset[given.vertex] + state.field_offset[codelet_of, given.field]
    raw = given.bits.astype("<u8").view(np.uint8).reshape(-1, 8)
    for size in distinct(width):
        row = used[given.vertex] & (width == size)
        parts.add(tile[row], offset[row], np.full(int(row.sum()), size), raw[row][:, : int(size)])
