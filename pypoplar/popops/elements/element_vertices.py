"""Vertices that work element by element: one on each tile that holds elements of the result, for its elements."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct, opens
from pypoplar.codelet.language.fields import Vertex
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat_slices
from pypoplar.popops.elements.repeated_operands import fields_of_repeated
from pypoplar.poputil.arguments import check_writeable
from pypoplar.poputil.placement.tiles_of_elements import TileRegions


@frozen(eq=False)
class ElementLayout:
    """Operands of element-wise vertices in the order of memory of the one that is written, and what tiles hold of that."""

    views: dict[str, Tensor]  # flat, with as many elements as the one that is written
    single: dict[str, Tensor]  # of one element, which every vertex reads
    regions: TileRegions

    @staticmethod
    def of(graph: Graph, written: str, operands: Mapping[str, Tensor]) -> ElementLayout:
        """That of operands that have as many elements as ``operands[written]``, in the same order, or a single one."""
        out = operands[written]
        check_writeable("popops", out)
        single = {name: operand.flatten() for name, operand in operands.items() if operand.numElements() == 1 != out.numElements()}
        names = [name for name in operands if name not in single and name != written]
        # In the order of memory a tile's elements are one piece, whatever the view of them.
        out, others = graph.reorderToSimplify(out, [operands[name] for name in names])
        return ElementLayout({written: out, **dict(zip(names, others, strict=True))}, single, TileRegions.of(graph, out))

    def add_vertices(self, graph: Graph, computeSet: ComputeSet, vertexType: str | type[Vertex], repeated: Collection[str]) -> None:
        """Add a MultiVertex to each tile that holds elements; of views that are `repeated` it gets each element once."""
        plain = {name: view for name, view in self.views.items() if name not in repeated}
        for tiles, begin, end in alike_tiles(self.regions):
            count = len(tiles)
            fields = {**_rows(plain, begin, end, count), **_on_each(self.single, count)}
            for name in repeated:
                fields |= fields_of_repeated(name, self.views[name], begin, end, count)
            graph.add_vertices(computeSet, vertexType, fields, tiles)


def add_element_vertices(
    graph: Graph,
    computeSet: ComputeSet | str,
    vertexType: str | type[Vertex],
    written: str,
    operands: Mapping[str, Tensor],
    *,
    edges: Mapping[str, Tensor] | None = None,
    values: Mapping[str, float | bool] | None = None,
) -> ComputeSet:
    """Add a MultiVertex of `vertexType` to each tile that holds elements of ``operands[written]``.

    Operands have as many elements as the one that is written, in the same order, or a single one, which every vertex
    reads. `edges` are connected to every vertex as they are, `values` are plain fields. A compute set that is named is made.
    """
    layout = ElementLayout.of(graph, written, operands)
    cs = computeSet if isinstance(computeSet, ComputeSet) else graph.addComputeSet(computeSet)
    every = {**layout.single, **(edges or {})}
    add_vertices_on_tiles(graph, cs, vertexType, layout.views, layout.regions, edges=every, values=values)
    return cs


def add_vertices_on_tiles(
    graph: Graph,
    computeSet: ComputeSet,
    vertexType: str | type[Vertex],
    views: Mapping[str, Tensor],
    regions: TileRegions,
    *,
    edges: Mapping[str, Tensor] | None = None,
    values: Mapping[str, float | bool] | None = None,
    tile_field: str | None = None,
) -> None:
    """Add a MultiVertex of `vertexType` to each tile that has regions: `views` are flat tensors of which it gets those.

    `edges` are connected to every vertex as they are, `values` are plain fields; `tile_field` is one that gets the tile's number.
    """
    for tiles, begin, end in alike_tiles(regions):
        count = len(tiles)
        places = {tile_field: tiles} if tile_field else {}
        fields = {**_rows(views, begin, end, count), **_on_each(edges or {}, count), **(values or {}), **places}
        graph.add_vertices(computeSet, vertexType, fields, tiles)


def _rows(views: Mapping[str, Tensor], begin: Int64s, end: Int64s, count: int) -> dict[str, object]:
    """A row of each view for each of `count` vertices: as many slices and elements for all."""
    return {name: concat_slices(view, begin, end).reshape([count, -1]) for name, view in views.items()}


def _on_each(edges: Mapping[str, Tensor], count: int) -> dict[str, object]:
    return {name: operand.expand([0]).broadcast(count, 0) for name, operand in edges.items()}


def alike_tiles(regions: TileRegions) -> Iterator[tuple[Int64s, Int64s, Int64s]]:
    """The tiles that hold something, those with as many elements together: tiles, and begins and ends of all their regions."""
    begin, end, tile = regions.begin, regions.end, regions.tile
    held = regions.elements()[tile]
    order = np.argsort(held, kind="stable")
    begin, end, tile = begin[order], end[order], tile[order]
    bounds = np.append(np.flatnonzero(opens(held[order])), len(tile))
    for first, last in pairwise(bounds.tolist()):
        yield distinct(tile[first:last]), begin[first:last], end[first:last]
