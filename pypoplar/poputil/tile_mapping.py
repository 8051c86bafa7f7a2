"""Spreading tensors over tiles."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, overload

from pypoplar.arrays.intervals import Interval
from pypoplar.braces import ordered
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_graph, check_tensor
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.region_splitting import splitRegions
from pypoplar.target import Target
from pypoplar.tracebacks import public
from pypoplar.types import ElementType

MIN_BYTES_PER_TILE = 128  # below this a tile's share costs more in exchange than it saves in work
TileMapping = list[list[Interval]]


@overload
def calcLinearTileMapping(machine: Graph, tensor: Tensor, offset: int = 0, ascendingOrder: bool = True) -> TileMapping: ...
@overload
def calcLinearTileMapping(
    machine: Target, shape: Iterable[int], elementType: ElementType, offset: int = 0, ascendingOrder: bool = True
) -> TileMapping: ...
@overload
def calcLinearTileMapping(
    machine: Graph | Target,
    shape: Iterable[int],
    minElementsPerTile: int,
    grainSize: int,
    offset: int = 0,
    ascendingOrder: bool = True,
) -> TileMapping: ...
@public
def calcLinearTileMapping(machine: Any, *arguments: Any, **keywords: Any) -> TileMapping:
    """The mapping that spreads a tensor evenly over the tiles in order of its elements; one list of intervals per tile.

    ``(graph, tensor)`` and ``(target, shape, elementType)`` split in grains of the type's vector width and give each
    tile 128 bytes at least; ``(graph or target, shape, minElementsPerTile, grainSize)`` says so itself. Then
    `offset`, the first tile used, and `ascendingOrder`: False begins with the last tile but `offset` and goes down.
    """
    target = machine.getTarget() if isinstance(machine, Graph) else machine
    given = list(arguments)
    of = keywords.pop("tensor") if "tensor" in keywords else keywords.pop("shape") if "shape" in keywords else given.pop(0)
    if isinstance(of, Tensor):
        return _by_type(target, of.shape(), of.elementType(), *given, **keywords)
    if "elementType" in keywords or (given and isinstance(given[0], ElementType)):
        return _by_type(target, of, *given, **keywords)
    return _by_grain(target, of, *given, **keywords)


def _by_type(
    target: Target, shape: Iterable[int], elementType: ElementType, offset: int = 0, ascendingOrder: bool = True
) -> TileMapping:
    least = -(-MIN_BYTES_PER_TILE // target.getTypeSize(elementType))
    return _by_grain(target, shape, least, target.getVectorWidth(elementType), offset, ascendingOrder)


def _by_grain(
    target: Target,
    shape: Iterable[int],
    minElementsPerTile: int,
    grainSize: int,
    offset: int = 0,
    ascendingOrder: bool = True,
) -> TileMapping:
    tiles = target.getNumTiles()
    parts = splitRegions([Interval(0, prod(ordered(shape, "a shape")))], grainSize, tiles, minElementsPerTile)
    mapping: TileMapping = [[] for _ in range(tiles)]
    first = offset if ascendingOrder else tiles - 1 - offset
    for place, part in enumerate(parts):
        mapping[(first + place if ascendingOrder else first - place) % tiles] = part
    return mapping


@overload
def mapTensorLinearly(graph: Graph, tensor: Tensor) -> None: ...
@overload
def mapTensorLinearly(graph: Graph, tensor: Tensor, minElementsPerTile: int, grainSize: int) -> None: ...
@public
def mapTensorLinearly(graph: Graph, tensor: Tensor, minElementsPerTile: int | None = None, grainSize: int | None = None) -> None:
    """Spread `tensor` evenly over all tiles in order of its elements, from tile 0 on.

    Without `minElementsPerTile` and `grainSize` a tile gets whole vectors (2 floats, 4 halves) and at least 128
    bytes, so that a small tensor stays on few tiles. Either both are given or neither.
    """
    if (minElementsPerTile is None) != (grainSize is None):
        raise PoplibsError("mapTensorLinearly takes minElementsPerTile and grainSize together")
    check_graph("poputil.mapTensorLinearly", graph)
    check_tensor("poputil.mapTensorLinearly", tensor)
    if minElementsPerTile is None or grainSize is None:
        graph.setTileMapping(tensor, calcLinearTileMapping(graph, tensor))
    else:
        graph.setTileMapping(tensor, calcLinearTileMapping(graph, tensor.shape(), minElementsPerTile, grainSize))


@overload
def mapTensorLinearlyWithOffset(graph: Graph, tensor: Tensor, offset: int, ascendingOrder: bool = True) -> None: ...
@overload
def mapTensorLinearlyWithOffset(
    graph: Graph, tensor: Tensor, minElementsPerTile: int, grainSize: int, offset: int, ascendingOrder: bool = True
) -> None: ...
@public
def mapTensorLinearlyWithOffset(graph: Graph, tensor: Tensor, *arguments: Any, **keywords: Any) -> None:
    """`mapTensorLinearly` from tile `offset` on, or with ``ascendingOrder=False`` from the last tile but `offset` downwards.

    ``(graph, tensor, offset[, ascendingOrder])`` or ``(graph, tensor, minElementsPerTile, grainSize, offset[, ascendingOrder])``.
    """
    check_graph("poputil.mapTensorLinearlyWithOffset", graph)
    check_tensor("poputil.mapTensorLinearlyWithOffset", tensor)
    plain = len(arguments) - (len(arguments) > 0 and isinstance(arguments[-1], bool))
    if plain + len(keywords.keys() - {"ascendingOrder"}) <= 1:
        graph.setTileMapping(tensor, calcLinearTileMapping(graph, tensor, *arguments, **keywords))
    else:
        graph.setTileMapping(tensor, calcLinearTileMapping(graph, tensor.shape(), *arguments, **keywords))


@public
def getTileImbalance(graph: Graph, tensor: Tensor, minElementsPerTile: int = 0, grainSize: int = 1) -> int:
    """How many elements the fullest tile has beyond an even share of at least `minElementsPerTile` and one grain."""
    held = [sum(region.size() for region in regions) for regions in graph.getTileMapping(tensor)]
    even = max(-(-sum(held) // len(held)), minElementsPerTile, grainSize)
    return max(0, max(held) - even)
