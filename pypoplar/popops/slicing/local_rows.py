"""Tensors whose slices are local: as they are, or as copies that are laid out so."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.slicing.slice_arguments import Extent
from pypoplar.popops.slicing.sliceable_layout import sliceable_tensor, start_tile
from pypoplar.program import Copy, Sequence


def with_local_rows(graph: Graph, t: Tensor, extent: Extent, prog: Sequence, name: str) -> Tensor:
    """`t` if its first and its last slice lie on the same tiles, else a copy of which all slices do."""
    sizes = [1 if dim in extent.dims else size for dim, size in enumerate(t.shape())]
    if t.numElements() == 0:
        return t
    first = t.slice([0] * t.rank(), sizes)
    last = t.slice([size - taken for size, taken in zip(t.shape(), sizes, strict=True)], t.shape())
    if graph.getTileMapping(first.flatten()) == graph.getTileMapping(last.flatten()):
        return t
    local = sliceable_tensor(graph, t.elementType(), extent, extent.best_order(), 0, start_tile(graph, extent.shape), name)
    prog.add(Copy(t, local))
    return local
