"""Vertices that slice or update a tensor at one offset: on each tile for the elements of a row that it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import gcd

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.popops.slicing.blocks import permuted
from pypoplar.popops.slicing.sliceable_layout import ATOM
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.region_splitting import splitRegionsBetweenWorkers
from pypoplar.poputil.vertex_templates import templateVertex


@frozen
class TileColumns:
    """Columns that tiles hold: of each tile `width`, from `begin` on those of the first, then those of the next.

    In the order of memory each tile's are `regions`, counted from its first column.
    """

    tiles: list[int]
    begin: int
    width: int
    regions: list[Interval]

    def of(self, columns: Tensor, chosen: Sequence[Interval]) -> Tensor:
        """``[tiles, rows, columns of the chosen regions]`` of ``[columns, rows]``."""
        count = len(self.tiles)
        part = columns.slice(self.begin, self.begin + count * self.width).reshape([count, self.width, columns.dim(1)])
        pieces = [part.slice(region.begin(), region.end(), 1) for region in chosen]
        return permuted(concat(pieces, dimension=1), [0, 2, 1])


def columns_of_tiles(graph: Graph, row: Tensor) -> Iterator[TileColumns]:
    """The columns of a row that each tile holds; tiles that hold as much in the same form, side by side, together."""
    begin, end, tile = graph.mapped_pieces(row)
    order = np.argsort(tile, kind="stable")
    begin, end, tile = begin[order], end[order], tile[order]
    first = np.flatnonzero(np.diff(tile, prepend=-1))  # the first piece of each tile
    count = np.diff(first, append=len(tile))
    alone = first[count == 1]
    size = end[alone] - begin[alone]
    other = np.flatnonzero((end[alone[:-1]] != begin[alone[1:]]) | (size[1:] != size[:-1])) + 1
    waiting = np.split(alone, other) if len(alone) else []
    for place, pieces in zip(first[count > 1].tolist(), count[count > 1].tolist(), strict=True):
        while len(waiting) > 1 and waiting[1][0] < place:  # all that are like the first are known
            yield _together(graph, row, begin, end, tile, waiting.pop(0))
        held = [
            Interval(*bounds)
            for bounds in zip(begin[place : place + pieces].tolist(), end[place : place + pieces].tolist(), strict=True)
        ]
        yield _by_itself(graph, row, int(tile[place]), held)
    for like in waiting:
        yield _together(graph, row, begin, end, tile, like)


def _by_itself(graph: Graph, row: Tensor, tile: int, held: list[Interval]) -> TileColumns:
    """A tile of several intervals."""
    regions = [region for piece in graph.getSortedContiguousRegions(row, held) for region in piece]
    first = min(region.begin() for region in regions)
    shifted = [Interval(region.begin() - first, region.end() - first) for region in regions]
    return TileColumns([tile], first, max(region.end() for region in shifted), shifted)


def _together(graph: Graph, row: Tensor, begin: Int64s, end: Int64s, tile: Int64s, alike: Int64s) -> TileColumns:
    """Tiles of one interval each; the regions are those of the first."""
    low, high = int(begin[alike[0]]), int(end[alike[0]])
    first = graph.getSortedContiguousRegions(row, [Interval(low, high)])
    regions = [Interval(region.begin() - low, region.end() - low) for piece in first for region in piece]
    return TileColumns(tile[alike].tolist(), low, high - low, regions)


def columns_along(graph: Graph, tensor: Tensor, dim: int, other: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors that differ in dimension `dim` as ``[columns, rows]``, whose rows go along it.

    The columns stand in the order in which the first row of the first tensor lies in memory.
    """
    last = [*(kept for kept in range(tensor.rank()) if kept != dim), dim]
    first, second = (permuted(view, last).reshape([-1, view.dim(dim)]) for view in (tensor, other))
    row = first.slice(0, 1, 1).flatten()
    if _lies_in_order(row):
        return first, second
    regions = [region for piece in graph.getSortedContiguousRegions(row, [Interval(0, row.numElements())]) for region in piece]
    if all(before.end() == after.begin() for before, after in pairwise(regions)):
        return first, second
    return concat(first.slices(regions)), concat(second.slices(regions))


def _lies_in_order(row: Tensor) -> bool:
    """Whether its runs are seen to follow each other in memory."""
    runs = row.runs()
    follows = runs.start[1:] > (runs.start + (runs.count - 1) * runs.step)[:-1]
    return bool((runs.step > 0).all()) and bool(follows.all())


def add_dynamic_vertices(graph: Graph, cs: ComputeSet, name: str, offset: Tensor, base: Tensor, sub: Tensor, remaps: bool) -> None:
    """Vertices ``name1D``, and ``name2D`` where a tile's columns of `base` are not one piece of memory.

    `base` and `sub` are ``[columns, rows]``, rows being what `offset` counts; columns are divided as the first row is mapped.
    """
    values = {"numBaseElements": base.dim(1), "numSubElements": sub.dim(1), "remapOutOfBoundIndices": remaps}
    type = base.elementType()
    written = _WholeWords(base if "Update" in name else sub)
    for columns in columns_of_tiles(graph, base.slice(0, 1, 1).flatten()):
        whole = columns.of(base, columns.regions)
        count, width = len(columns.tiles), whole.dim(2)
        edges = {"offset": offset.flatten().broadcast(count)}
        if len(columns.regions) == 1 and whole.slice(0, 1).flatten().isContiguous():
            fields = {"baseT": whole.flatten(1), "subT": columns.of(sub, columns.regions).flatten(1), "regionSize": width}
            if "Update" in name:
                fields["elementsPerWorker"] = share_of_row(graph, base, width)
            graph.add_vertices(cs, templateVertex(f"{name}1D", type), {**edges, **values, **fields}, columns.tiles)
            continue
        for regions in _of_workers(graph, columns.regions, written):
            lists = {"baseT": _rows(columns, base, regions), "subT": _rows(columns, sub, regions)}
            if isinstance(lists["baseT"], Tensor):
                graph.add_vertices(cs, templateVertex(f"{name}2D", type), {**edges, **values, **lists}, columns.tiles)
                continue
            for place, tile in enumerate(columns.tiles):
                own = {field: [row[place] for row in rows] for field, rows in lists.items()}
                vertex = graph.addVertex(cs, templateVertex(f"{name}2D", type), {"offset": offset.flatten()[0], **values, **own})
                graph.setTileMapping(vertex, tile)


def share_of_row(graph: Graph, base: Tensor, width: int) -> int:
    """Elements of a row that a worker updates: whole words, or all by one worker where rows are no whole words."""
    atom = max(ATOM // base.elementType().size, 1)
    return ceiling(ceiling(width, atom), graph.getTarget().getNumWorkerContexts()) * atom if width % atom == 0 else width


@frozen(slots=False)
class _WholeWords:
    """Whether rows of columns that are written can be cut, so that no two workers write into one word."""

    columns: Tensor  # [columns, rows]

    @cached_property
    def starts(self) -> bool:
        """Whether all its pieces of memory begin and end with a word."""
        atom = ATOM // self.columns.elementType().size
        rows = permuted(self.columns, [1, 0])
        bounds = [bound for region in rows.getVarRegions() for bound in region.interval]
        return not any(bound % atom for bound in (rows.dim(1), *bounds))

    def cuts(self, regions: list[Interval]) -> bool:
        """Whether it can be cut at the ends of regions of its columns."""
        atom = ATOM // self.columns.elementType().size
        return atom <= 1 or (self.starts and not any(bound % atom for region in regions for bound in region))


def _of_workers(graph: Graph, regions: list[Interval], written: _WholeWords) -> list[list[Interval]]:
    """The regions divided among workers, in whole vectors of 8 bytes; one worker has all where words cannot be kept apart."""
    if not written.cuts(regions):
        return [regions]
    type = written.columns.elementType()
    grain = max(graph.getTarget().getVectorWidth(type), 8 // type.size)
    return splitRegionsBetweenWorkers(graph.getTarget(), regions, grain, 2 * grain)


def _rows(held: TileColumns, columns: Tensor, regions: list[Interval]) -> Tensor | list[Tensor]:
    """Of each region all rows: ``[tiles, rows of lists, elements]``, or where lengths differ ``[tiles, elements]`` for each row."""
    width = gcd(*(region.size() for region in regions))
    if all(region.size() == width for region in regions):
        blocks = held.of(columns, regions).reshape([len(held.tiles), columns.dim(1), len(regions), width])
        return permuted(blocks, [0, 2, 1, 3]).reshape([len(held.tiles), len(regions) * columns.dim(1), width])
    each = [held.of(columns, [region]) for region in regions]
    return [block.slice(row, row + 1, 1).flatten(1) for block in each for row in range(columns.dim(1))]
