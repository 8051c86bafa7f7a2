"""The vertices of a reduction: one after the other its compute sets, from what tiles hold to the result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.popops.reduction.partial_matrix import PartialMatrix, matrices_of
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams
from pypoplar.popops.reduction.reduce_plan import Stage
from pypoplar.popops.reduction.regular_views import pieces_view
from pypoplar.popops.reduction.tile_holdings import Holding
from pypoplar.popops.reduction.work_split import output_share, place_share, worker_pieces
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.types import BOOL, FLOAT, HALF, UNSIGNED_INT, ElementType

WIDE: dict[ElementType, ElementType] = {HALF: FLOAT, BOOL: UNSIGNED_INT}  # workers write whole words only


@frozen
class ReduceTypes:
    """The types in which vertices combine, and in which partial results go from tile to tile."""

    in_vertex: ElementType
    inter_tile: ElementType

    @property
    def wide(self) -> ElementType:
        """That of partial results which several workers write side by side."""
        return WIDE.get(self.inter_tile, self.inter_tile)


@frozen(eq=False)
class ComputeSets:
    """The compute sets of a reduction, those that are there already first."""

    graph: Graph
    css: list[ComputeSet]
    debug: str

    def at(self, number: int, stage: str) -> ComputeSet:
        while number >= len(self.css):
            self.css.append(self.graph.addComputeSet(below(self.debug, stage)))
        return self.css[number]


@frozen(eq=False)
class ReduceBuilder:
    """Adds the vertices of one reduction. `out` is flat; unless it is `placed`, it is mapped like the vertices that write it."""

    graph: Graph
    sets: ComputeSets
    params: ReduceParams
    types: ReduceTypes
    out: Tensor
    placed: bool
    debug: str

    def _vertex(self, form: str, operation: Operation, source: ElementType, result: ElementType) -> str:
        return templateVertex(f"popops::{form}", operation.value, source, self.types.in_vertex, result)

    # -- on the tiles that hold what is reduced ---------------------------------------------------------------------------------

    def local(self, holdings: Sequence[Holding], total: int, splits: bool) -> list[PartialMatrix]:
        """Reduce what each tile holds; what is left to be reduced. What a tile holds all of goes to `out`, unless it `splits`."""
        cs = self.sets.at(0, "ReduceOnTile")
        if splits:
            return self._split(cs, holdings)
        result = self.types.inter_tile
        complete = [holding for holding in holdings if holding.places == total and self._written_alone(holding, holdings)]
        open_ = [holding for holding in holdings if holding not in complete]
        for holding in complete:
            self._final_vertex(cs, holding.tile, holding.rows, holding.inner, slice(holding.output, holding.end))
        if not open_:
            return []
        places = np.cumsum([0, *(holding.outputs for holding in open_)])
        partials = self._variable(result, int(places[-1]), [holding.tile for holding in open_], places, "tile_data")
        for holding, begin, end in zip(open_, places[:-1].tolist(), places[1:].tolist(), strict=True):
            name = self._vertex("Reduce", self.params.op, holding.rows[0].elementType(), result)
            share = output_share(self.graph.getTarget(), holding.outputs, holding.inner, result)
            fields = {"partials": list(holding.rows), "out": partials.slice(begin, end), "inner": holding.inner, "share": share}
            self.graph.setTileMapping(self.graph.addVertex(cs, name, fields), holding.tile)
        outputs = np.array([holding.output for holding in open_])
        return matrices_of(partials, places[:-1], outputs, np.diff(places))

    def _split(self, cs: ComputeSet, holdings: Sequence[Holding]) -> list[PartialMatrix]:
        pieces = list(worker_pieces(self.graph.getTarget(), holdings))
        places = np.cumsum([0, *(piece.size for piece in pieces)])
        partials = self._variable(self.types.wide, int(places[-1]), [piece.tile for piece in pieces], places, "tile_data")
        for piece, begin, end in zip(pieces, places[:-1].tolist(), places[1:].tolist(), strict=True):
            form = "ReducePieces" if piece.outputs is None else "ReduceInParts"
            name = self._vertex(form, self.params.op, piece.rows[0].elementType(), self.types.wide)
            fields = {"partials": list(piece.rows), "out": partials.slice(begin, end), "inner": piece.inner, "share": piece.share}
            if piece.outputs is not None:
                fields["outputs"] = piece.outputs
            self.graph.setTileMapping(self.graph.addVertex(cs, name, fields), piece.tile)
        place = np.concatenate([begin + piece.places for begin, piece in zip(places[:-1], pieces, strict=True)])
        output = np.concatenate([piece.first_outputs for piece in pieces])
        width = np.concatenate([piece.widths for piece in pieces])
        return matrices_of(partials, place, output, width)

    def _written_alone(self, holding: Holding, holdings: Sequence[Holding]) -> bool:
        """Whether no other vertex of the tile writes into a word of this one's outputs."""
        return self.out.elementType().size >= 4 or sum(other.tile == holding.tile for other in holdings) == 1

    def _variable(self, type: ElementType, size: int, tiles: Sequence[int], places: Int64s, name: str) -> Tensor:
        """A vector whose pieces between `places` are on their tiles."""
        variable = self.graph.addVariable(type, [size], below(self.debug, name))
        mapping: dict[int, list[Interval]] = {}
        for tile, begin, end in zip(tiles, places[:-1].tolist(), places[1:].tolist(), strict=True):
            mapping.setdefault(tile, []).append(Interval(begin, end))
        self.graph.setTileMapping(variable, mapping)
        return variable

    # -- across tiles -----------------------------------------------------------------------------------------------------------

    def across(
        self, number: int, matrices: Sequence[PartialMatrix], stage: Stage, operation: Operation, first: int
    ) -> list[PartialMatrix]:
        """Reduce columns of matrices in groups; the matrices of what is left."""
        left = max(ceiling(matrix.partials, stage.partials) for matrix in matrices)
        reduced = []
        for matrix in matrices:
            if matrix.partials <= left and matrix.partials < max(other.partials for other in matrices):
                reduced.append(matrix)
            else:
                reduced.append(self._grouped(self.sets.at(number, f"ReduceStage{number}"), matrix, stage, operation, first))
        return reduced

    def _grouped(self, cs: ComputeSet, matrix: PartialMatrix, stage: Stage, operation: Operation, start: int) -> PartialMatrix:
        groups = ceiling(matrix.partials, stage.partials)
        type = self.types.wide if stage.splits else self.types.inter_tile
        tiles = _Tiles(self.graph, start, groups * len(stage.column_bounds(len(matrix.outputs))[:-1]))
        values = []
        for begin, end, count in _equal_parts(matrix.partials, groups):
            rows = (end - begin) // count
            values.append(self._rows(cs, matrix.values.slice(begin, end), rows, stage, operation, type, tiles))
        return PartialMatrix(matrix.outputs, concat(values))

    def _rows(
        self, cs: ComputeSet, values: Tensor, rows: int, stage: Stage, operation: Operation, type: ElementType, tiles: _Tiles
    ) -> Tensor:
        """Groups of as many rows each."""
        groups, columns = values.dim(0) // rows, values.dim(1)
        share = place_share(self.graph.getTarget(), rows) if stage.splits else rows
        parts = ceiling(rows, share)
        result = self.graph.addVariable(type, [groups, parts, columns], below(self.debug, "partials"))
        for low, high in _pairs(stage.column_bounds(columns)):
            width = high - low
            edge = values.slice(low, high, 1).reshape([groups, rows * width])
            out = result.slice(low, high, 2).reshape([groups, parts * width])
            own = tiles.take(groups)
            self._map_rows(out, own)
            fields: dict[str, object] = {"partials": edge.expand([1]), "out": out, "inner": width}
            if stage.splits:
                fields |= {"share": share, "outputs": width}
            else:
                fields["share"] = output_share(self.graph.getTarget(), width, width, type)
            form = "ReduceInParts" if stage.splits else "Reduce"
            self.graph.add_vertices(cs, self._vertex(form, operation, values.elementType(), type), fields, own)
        return result.reshape([groups * parts, columns])

    def _map_rows(self, tensor: Tensor, tiles: Int64s) -> None:
        length = tensor.dim(1)
        mapping: dict[int, list[Interval]] = {}
        for row, tile in enumerate(tiles.tolist()):
            mapping.setdefault(tile, []).append(Interval(row * length, (row + 1) * length))
        self.graph.setTileMapping(tensor.flatten(), mapping)

    def final(self, number: int, matrices: Sequence[PartialMatrix], stage: Stage, operation: Operation, first: int) -> None:
        """Reduce what is left to `out`. Where results are smaller than a word, no two matrices share a tile in a compute set."""
        words = self.out.elementType().size >= 4
        tiles = self.graph.getTarget().getNumTiles()
        used = 0
        for matrix in matrices:
            bounds = stage.column_bounds(len(matrix.outputs))
            if used and not words and used + len(bounds) - 1 > tiles:
                number, used = number + 1, 0
            cs = self.sets.at(number, "ReduceFinalStage")
            for place, (low, high) in enumerate(_pairs(bounds)):
                tile = int(_Tiles(self.graph, first + used, len(bounds) - 1).number(place))
                row = matrix.values.slice(low, high, 1).flatten()
                outputs = matrix.outputs[low:high]
                self._final_vertex(cs, tile, (row,), high - low, outputs, operation)
            used += len(bounds) - 1

    def _final_vertex(
        self,
        cs: ComputeSet,
        tile: int,
        rows: Sequence[Tensor],
        inner: int,
        outputs: Int64s | slice,
        operation: Operation | None = None,
    ) -> None:
        op = self.params.op if operation is None else operation
        if isinstance(outputs, slice):
            out = self.out.slice(outputs.start, outputs.stop)
        else:
            out = pieces_view(self.out, outputs, np.ones(len(outputs), np.int64))
        if not self.placed:
            self.graph.setTileMapping(out, tile)
        form = f"{'Scaled' if self.params.useScale else ''}Reduce{'Update' if self.params.update else ''}"
        share = output_share(self.graph.getTarget(), out.numElements(), inner, out.elementType())
        fields: dict[str, object] = {"partials": list(rows), "out": out, "inner": inner, "share": share}
        if self.params.scale is not None:
            fields["scale"] = self.params.scale.reshape([])
        name = self._vertex(form, op, rows[0].elementType(), out.elementType())
        self.graph.setTileMapping(self.graph.addVertex(cs, name, fields), tile)


class _Tiles:
    """Tiles for so many vertices, spread evenly from a first one on."""

    def __init__(self, graph: Graph, start: int, count: int) -> None:
        self.tiles, self.start, self.count, self.taken = graph.getTarget().getNumTiles(), start, count, 0

    def number(self, place: int) -> int:
        return (self.start + (place * self.tiles // self.count if self.count <= self.tiles else place)) % self.tiles

    def take(self, count: int) -> Int64s:
        numbers = np.array([self.number(self.taken + place) for place in range(count)])
        self.taken += count
        return numbers


def _pairs(bounds: Sequence[int]) -> list[tuple[int, int]]:
    return [(low, high) for low, high in pairwise(bounds) if low < high]


def _equal_parts(size: int, parts: int) -> list[tuple[int, int, int]]:
    """`size` rows in nearly equal groups: begin, end and number of those of the larger size, then of the smaller one."""
    large, smaller = size % parts, size // parts
    middle = large * (smaller + 1)
    return [(begin, end, count) for begin, end, count in ((0, middle, large), (middle, size, parts - large)) if count]
