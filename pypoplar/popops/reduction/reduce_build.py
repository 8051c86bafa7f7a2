"""The vertices of a reduction: one after the other its compute sets, from what tiles hold to the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise, product

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets, ragged
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat, concat_slices
from pypoplar.popops.reduction.held_rows import views
from pypoplar.popops.reduction.local_plan import LocalPlan, ReduceTypes
from pypoplar.popops.reduction.partial_matrix import PartialMatrix, matrices_of
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams
from pypoplar.popops.reduction.reduce_plan import WORD, ReducePlan, Stage
from pypoplar.popops.reduction.tile_holdings import TileHoldings
from pypoplar.popops.reduction.work_split import WorkerPieces, output_share, place_share
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_on
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.types import ElementType

ColumnsOfTile = tuple[int, PartialMatrix, int, int]  # a tile, and columns of a matrix that a vertex of it reduces


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

    def local(self, holdings: TileHoldings, plan: LocalPlan) -> list[PartialMatrix]:
        """Reduce what each tile holds; what is left to be reduced."""
        cs = self.sets.at(0, "ReduceOnTile")
        if plan.pieces is not None:
            return self._split(cs, plan.pieces)
        done = holdings.of(np.flatnonzero(plan.complete))
        for alike in done.rows.alike(done.outputs, done.inner):
            outputs, inner = int(done.outputs[alike[0]]), int(done.inner[alike[0]])
            name, values = self._final_vertex(done.rows.type, outputs, inner, self.params.op)
            out = views(self.out, done.output[alike], done.end[alike])
            if not self.placed:
                place_on(self.graph, out, np.repeat(done.tile[alike], outputs))
            self._add(cs, name, done.rows.matrices(alike), out, done.tile[alike], {**values, **self._scale_of(len(alike))})
        left = holdings.of(np.flatnonzero(~plan.complete))
        if not len(left):
            return []
        places = offsets(left.outputs)
        partials = self._variable(plan.type, left.tile, places, "tile_data")
        name = self._vertex("Reduce", self.params.op, left.rows.type, plan.type)
        for alike in left.rows.alike(left.outputs, left.inner):
            outputs, inner = int(left.outputs[alike[0]]), int(left.inner[alike[0]])
            share = output_share(self.graph.getTarget(), outputs, inner, plan.type)
            out = views(partials, places[alike], places[alike + 1])
            self._add(cs, name, left.rows.matrices(alike), out, left.tile[alike], {"inner": inner, "share": share})
        return matrices_of(partials, places[:-1], left.output, left.outputs)

    def _split(self, cs: ComputeSet, pieces: WorkerPieces) -> list[PartialMatrix]:
        places = offsets(pieces.width * pieces.count)
        partials = self._variable(self.types.wide, pieces.tile, places, "tile_data")
        for alike in pieces.alike:
            inner, share, outputs = (int(column[alike[0]]) for column in (pieces.inner, pieces.share, pieces.outputs))
            form = "ReduceInParts" if outputs else "ReducePieces"
            name = self._vertex(form, self.params.op, pieces.rows.type, self.types.wide)
            values = {"inner": inner, "share": share} | ({"outputs": outputs} if outputs else {})
            out = views(partials, places[alike], places[alike + 1])
            self._add(cs, name, pieces.rows.matrices(alike), out, pieces.tile[alike], values)
        results = pieces.results
        return matrices_of(partials, results.place, results.output, results.width)

    def _add(
        self, cs: ComputeSet, name: str, partials: Sequence[Tensor], out: Tensor, tiles: Int64s, fields: Mapping[str, object]
    ) -> None:
        """Vertices that are alike but for their tiles and edges: a row of each matrix of `partials` and of `out` each."""
        self.graph.add_vertices(cs, name, {"partials": partials, "out": out, **fields}, tiles)

    def _variable(self, type: ElementType, tiles: Int64s, places: Int64s, name: str) -> Tensor:
        """A vector whose pieces between `places` are on their tiles."""
        variable = self.graph.addVariable(type, [int(places[-1])], below(self.debug, name))
        self.graph.place_pieces(variable, places[:-1], places[1:], tiles)
        return variable

    # -- across tiles -----------------------------------------------------------------------------------------------------------

    def across(
        self, number: int, matrices: Sequence[PartialMatrix], stage: Stage, operation: Operation, first: int
    ) -> list[PartialMatrix]:
        """Reduce columns of matrices in groups; the matrices of what is left."""
        most = max(matrix.partials for matrix in matrices)
        left = ceiling(most, stage.partials)
        waiting = [matrix.partials < most and matrix.partials <= left for matrix in matrices]
        vertices = sum(
            ceiling(matrix.partials, stage.partials) * ceiling(len(matrix.outputs), stage.width)
            for matrix, waits in zip(matrices, waiting, strict=True)
            if not waits
        )
        tiles = _Tiles(self.graph, first, vertices)
        cs = self.sets.at(number, f"ReduceStage{number}")
        return [
            matrix if waits else self._grouped(cs, matrix, stage, operation, tiles)
            for matrix, waits in zip(matrices, waiting, strict=True)
        ]

    def _grouped(self, cs: ComputeSet, matrix: PartialMatrix, stage: Stage, operation: Operation, tiles: _Tiles) -> PartialMatrix:
        type = self.types.wide if stage.splits else self.types.inter_tile
        values = []
        for begin, end, count in _equal_parts(matrix.partials, ceiling(matrix.partials, stage.partials)):
            rows = (end - begin) // count
            values.append(self._rows(cs, matrix.values.slice(begin, end, 1), rows, stage, operation, type, tiles))
        return PartialMatrix(matrix.outputs, concat(values, 1))

    def _rows(
        self, cs: ComputeSet, values: Tensor, rows: int, stage: Stage, operation: Operation, type: ElementType, tiles: _Tiles
    ) -> Tensor:
        """Groups of as many partial results each: a vertex for each group and `width` outputs."""
        outputs, groups = values.dim(0), values.dim(1) // rows
        share = place_share(self.graph.getTarget(), rows) if stage.splits else rows
        parts = ceiling(rows, share)
        result = self.graph.addVariable(type, [groups, parts, outputs], below(self.debug, "partials"))
        whole = outputs // stage.width * stage.width
        for low, high, width in ((0, whole, stage.width), (whole, outputs, outputs - whole)):
            if low == high:
                continue
            count = (high - low) // width
            edge = values.slice(low, high).reshape([count, width, groups, rows]).dimShuffle([2, 0, 3, 1])
            out = result.slice(low, high, 2).reshape([groups, parts, count, width]).dimShuffle([0, 2, 1, 3])
            out = out.reshape([groups * count, parts * width])
            own = tiles.take(groups * count)
            self._map_rows(out, own)
            fields: dict[str, object] = {"partials": edge.reshape([groups * count, 1, rows * width]), "out": out, "inner": width}
            if stage.splits:
                fields |= {"share": share, "outputs": width}
            else:
                fields["share"] = output_share(self.graph.getTarget(), width, width, type)
            form = "ReduceInParts" if stage.splits else "Reduce"
            self.graph.add_vertices(cs, self._vertex(form, operation, values.elementType(), type), fields, own)
        return result.dimShuffle([2, 0, 1]).reshape([outputs, groups * parts])

    def _map_rows(self, tensor: Tensor, tiles: Int64s) -> None:
        begin = np.arange(len(tiles)) * tensor.dim(1)
        self.graph.place_pieces(tensor.flatten(), begin, begin + tensor.dim(1), tiles)

    def final(self, number: int, matrices: Sequence[PartialMatrix], plan: ReducePlan, operation: Operation, first: int) -> None:
        """Reduce what is left to `out`. Where results are smaller than a word, each compute set has one vertex of a tile."""
        places = self._places_of_output(matrices) if plan.at_output else self._places_anywhere(matrices, plan.stages[-1], first)
        turn: Counter[int] = Counter()
        alike: dict[tuple[int, int, int], list[ColumnsOfTile]] = {}
        for place in places:
            tile, matrix, low, high = place
            alike.setdefault((number + turn[tile], id(matrix), high - low), []).append(place)
            turn[tile] += self.out.elementType().size < WORD
        for (stage, _, width), columns in alike.items():
            self._add_final(self.sets.at(stage, "ReduceFinalStage"), columns, width, operation)

    def _add_final(self, cs: ComputeSet, columns: Sequence[ColumnsOfTile], width: int, operation: Operation) -> None:
        """Vertices that give results, of so many columns of one matrix each."""
        count, matrix = len(columns), columns[0][1]
        tiles, low = np.array([(tile, low) for tile, _, low, _ in columns], np.int64).T
        rows = concat_slices(matrix.values, low, low + width).reshape([count, width, matrix.partials])
        output = matrix.outputs[ragged(low, np.full(count, width))]
        out = concat_slices(self.out, output, output + 1).reshape([count, width])
        if not self.placed:
            place_on(self.graph, out, np.repeat(tiles, width))
        edge = rows.dimShuffle([0, 2, 1]).reshape([count, 1, width * matrix.partials])
        name, values = self._final_vertex(edge.elementType(), width, width, operation)
        self.graph.add_vertices(cs, name, {"partials": edge, "out": out, **values, **self._scale_of(count)}, tiles)

    def _places_anywhere(self, matrices: Sequence[PartialMatrix], stage: Stage, first: int) -> list[ColumnsOfTile]:
        """The columns of each vertex, of outputs that follow each other where there are tiles for that."""
        columns = [(matrix, low, high) for matrix in matrices for low, high in _pairs(stage.column_bounds(len(matrix.outputs)))]
        in_row = [(matrix, low, high) for matrix, *bounds in columns for low, high in _in_row(matrix.outputs, *bounds)]
        chosen = in_row if len(in_row) <= self.graph.getTarget().getNumTiles() else columns
        tiles = _Tiles(self.graph, first, len(chosen)).take(len(chosen)).tolist()
        return [(tile, *column) for tile, column in zip(tiles, chosen, strict=True)]

    def _places_of_output(self, matrices: Sequence[PartialMatrix]) -> list[ColumnsOfTile]:
        """The columns whose outputs lie side by side on a tile."""
        columns = []
        for tile, regions in enumerate(self.graph.getTileMapping(self.out)):
            for region, matrix in product(regions, matrices):
                low, high = np.searchsorted(matrix.outputs, (region.begin(), region.end())).tolist()
                if low < high:
                    columns.append((tile, matrix, low, high))
        return columns

    def _scale_of(self, vertices: int) -> dict[str, Tensor]:
        """The edge of so many vertices to it, if there is one."""
        scale = self.params.scale
        return {} if scale is None else {"scale": scale.reshape([]).expand([0]).broadcast(vertices, 0)}

    def _final_vertex(self, source: ElementType, outputs: int, inner: int, operation: Operation) -> tuple[str, dict[str, int]]:
        """The type of a vertex that gives so many results, and its plain fields."""
        form = f"{'Scaled' if self.params.useScale else ''}Reduce{'Update' if self.params.update else ''}"
        share = output_share(self.graph.getTarget(), outputs, inner, self.out.elementType())
        return self._vertex(form, operation, source, self.out.elementType()), {"inner": inner, "share": share}


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


def _in_row(outputs: Int64s, low: int, high: int) -> list[tuple[int, int]]:
    """Columns [low, high), cut where an output is not the one before and one."""
    cuts = np.flatnonzero(np.diff(outputs[low:high]) != 1) + low + 1
    return list(pairwise([low, *cuts.tolist(), high]))


def _equal_parts(size: int, parts: int) -> list[tuple[int, int, int]]:
    """`size` rows in nearly equal groups: begin, end and number of those of the larger size, then of the smaller one."""
    large, smaller = size % parts, size // parts
    middle = large * (smaller + 1)
    return [(begin, end, count) for begin, end, count in ((0, middle, large), (middle, size, parts - large)) if count]
