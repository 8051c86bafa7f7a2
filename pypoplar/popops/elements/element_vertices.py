"""Vertices that work element by element: one on each tile that holds elements of the result, for its elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pypoplar.arrays.intervals import Interval
from pypoplar.codelet.language.fields import Vertex
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.poputil.arguments import check_writeable


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
    out = operands[written]
    check_writeable("popops", out)
    single = {name: operand.flatten() for name, operand in operands.items() if operand.numElements() == 1 != out.numElements()}
    names = [name for name in operands if name not in single and name != written]
    # In the order of memory a tile's elements are one piece, whatever the view of them.
    out, others = graph.reorderToSimplify(out, [operands[name] for name in names])
    views = {written: out, **dict(zip(names, others, strict=True))}
    mapping = graph.getTileMapping(out)
    cs = computeSet if isinstance(computeSet, ComputeSet) else graph.addComputeSet(computeSet)
    add_vertices_on_tiles(graph, cs, vertexType, views, mapping, edges={**single, **(edges or {})}, values=values)
    return cs


def add_vertices_on_tiles(
    graph: Graph,
    computeSet: ComputeSet,
    vertexType: str | type[Vertex],
    views: Mapping[str, Tensor],
    mapping: Sequence[Sequence[Interval]],
    *,
    edges: Mapping[str, Tensor] | None = None,
    values: Mapping[str, float | bool] | None = None,
    tile_field: str | None = None,
) -> None:
    """Add a MultiVertex of `vertexType` to each tile of a mapping: `views` are flat tensors of which it has the tile's regions.

    `edges` are connected to every vertex as they are, `values` are plain fields; `tile_field` is one that gets the tile's number.
    """
    shared: dict[str, object] = {**(edges or {}), **(values or {})}
    for alike in _alike(mapping):
        first, regions = alike[0]
        count = len(alike)
        if count == 1:
            fields = {name: concat(view.slices(regions)) for name, view in views.items()}
            place = {tile_field: first} if tile_field else {}
            vertex = graph.addVertex(computeSet, vertexType, {**fields, **shared, **place})
            graph.setTileMapping(vertex, first)
            continue
        begin, end = regions[0].begin(), alike[-1][1][0].end()
        rows = {name: view.slice(begin, end).reshape([count, regions[0].size()]) for name, view in views.items()}
        every = {name: operand.expand([0]).broadcast(count, 0) for name, operand in (edges or {}).items()}
        tiles = np.array([tile for tile, _ in alike])
        places = {tile_field: tiles} if tile_field else {}
        graph.add_vertices(computeSet, vertexType, {**rows, **every, **(values or {}), **places}, tiles)


def _alike(mapping: Sequence[Sequence[Interval]]) -> Iterator[list[tuple[int, Sequence[Interval]]]]:
    """The tiles that hold something, with their regions: those side by side that hold one piece each, of one size, together.

    Their pieces lie one behind the other, as those of a linear mapping do.
    """
    alike: list[tuple[int, Sequence[Interval]]] = []
    for tile, regions in enumerate(mapping):
        if not regions:
            continue
        if alike and not _continues(alike[-1][1], regions):
            yield alike
            alike = []
        alike.append((tile, regions))
    if alike:
        yield alike


def _continues(before: Sequence[Interval], regions: Sequence[Interval]) -> bool:
    """Whether both are single pieces of one size, the second right behind the first."""
    if len(before) != 1 or len(regions) != 1:
        return False
    return before[0].end() == regions[0].begin() and before[0].size() == regions[0].size()
