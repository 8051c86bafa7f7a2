"""Spreading tensors over tiles."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from math import prod
from typing import Any, overload

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_flag, check_graph, check_operands, check_own, check_tensor, shape_of, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.interval_lists import intervalSequenceNumElements
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.region_splitting import splitRegions
from pypoplar.target import Target
from pypoplar.tracebacks import public
from pypoplar.types import ElementType

MIN_BYTES_PER_TILE = 128  # below this a tile's share costs more in exchange than it saves in work
TileMapping = list[list[Interval]]


@overload
def calcLinearTileMapping(
    graph: Graph, shape: SequenceOf[int], minElementsPerTile: int, grainSize: int, offset: int = 0, ascendingOrder: bool = True
) -> TileMapping: ...
@overload
def calcLinearTileMapping(
    target: Target, shape: SequenceOf[int], minElementsPerTile: int, grainSize: int, offset: int = 0, ascendingOrder: bool = True
) -> TileMapping: ...
@overload
def calcLinearTileMapping(graph: Graph, t: Tensor, offset: int = 0, ascendingOrder: bool = True) -> TileMapping: ...
@overload
def calcLinearTileMapping(
    target: Target, shape: SequenceOf[int], elementType: ElementType, offset: int = 0, ascendingOrder: bool = True
) -> TileMapping: ...
@overloaded("poputil.calcLinearTileMapping")
def calcLinearTileMapping(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph | None = None,
    shape: SequenceOf[int] = (),
    minElementsPerTile: int = 0,
    grainSize: int = 0,
    offset: int = 0,
    ascendingOrder: bool = True,
    target: Target | None = None,
    t: Tensor | None = None,
    elementType: ElementType | None = None,
) -> TileMapping:
    """The mapping that spreads a tensor evenly over the tiles in order of its elements; one list of intervals per tile.

    Of a tensor, or a shape and an element type, it splits in grains of the type's vector width and gives each tile 128 bytes
    at least; `minElementsPerTile` and `grainSize` say so themselves. `offset` is the first tile used; with
    ``ascendingOrder=False`` it begins with the last tile but `offset` and goes down.
    """
    if target is None:
        assert graph is not None
        target = graph.getTarget()
    if t is not None:
        shape, elementType = t.shape(), t.elementType()
    if elementType is not None:
        return _by_type("poputil.calcLinearTileMapping", target, shape, elementType, offset, ascendingOrder)
    return _by_grain("poputil.calcLinearTileMapping", target, shape, minElementsPerTile, grainSize, offset, ascendingOrder)


def _by_type(
    call: str, target: Target, shape: Iterable[int], type: ElementType, offset: int = 0, ascending: bool = True
) -> TileMapping:
    least = -(-MIN_BYTES_PER_TILE // target.getTypeSize(type))
    return _by_grain(call, target, shape, least, target.getVectorWidth(type), offset, ascending)


def _by_grain(
    call: str,
    target: Target,
    shape: Iterable[int],
    minElementsPerTile: int,
    grainSize: int,
    offset: int = 0,
    ascendingOrder: bool = True,
) -> TileMapping:
    tiles = target.getNumTiles()
    whole_number(call, "minElementsPerTile", minElementsPerTile)
    whole_number(call, "grainSize", grainSize, 1)
    parts = splitRegions([Interval(0, prod(shape_of(call, shape)))], grainSize, tiles, minElementsPerTile)
    mapping: TileMapping = [[] for _ in range(tiles)]
    mapping[: len(parts)] = parts
    return moved(mapping, whole_number(call, "offset", offset), ascendingOrder)


def moved(mapping: TileMapping, offset: int, ascending: bool = True) -> TileMapping:
    """The mapping with what tile 0 holds on tile `offset`, and so on upwards; or on the last tile but `offset`, and downwards."""
    tiles = len(mapping)
    first = offset % tiles
    if not ascending:
        mapping = mapping[::-1]
        first = -first % tiles
    return mapping[tiles - first :] + mapping[: tiles - first]


@public
def calcLinearTileMappingAndNewOffset(graph: Graph, t: Tensor, offset: int = 0) -> tuple[TileMapping, int]:
    """`calcLinearTileMapping` of a tensor from tile `offset` on, and the tile behind the last one used, for the next tensor."""
    call = "poputil.calcLinearTileMappingAndNewOffset"
    check_graph(call, graph)
    check_tensor(call, t)
    mapping = _of_tensor(call, graph, t, 0, None, offset, True)
    return mapping, (offset + sum(map(bool, mapping))) % len(mapping)


@public
def chooseMappingOffset(numTiles: int, shape: Iterable[int], seed: int = 0x9E3779B9) -> int:
    """A tile from 0 to ``numTiles - 1``, always the same for a shape (and seed), for tensors of several shapes to begin apart.

    Which tile it is in PopLibs depends on the hash of the C++ library that it was built with.
    """
    tiles = whole_number("poputil.chooseMappingOffset", "numTiles", numTiles, 1)
    mask = 2**64 - 1
    offset = whole_number("poputil.chooseMappingOffset", "seed", seed) & mask
    for size in shape_of("poputil.chooseMappingOffset", shape):
        offset ^= (size + 0x9E3779B9 + (offset << 6) + (offset >> 2)) & mask
    return offset % tiles


@public
def transformTileIndex(tile: int, numTiles: int, offset: int, ascending: bool) -> int:
    """The place of a tile in the order that begins at `offset`, or at the last tile but `offset` and goes down; 0 for the first."""
    place, tiles, first = _in_order("poputil.transformTileIndex", tile, numTiles, offset, ascending)
    return (place - first if ascending else -1 - first - place) % tiles


@public
def invTransformTileIndex(tile: int, numTiles: int, offset: int, ascending: bool) -> int:
    """The opposite of `transformTileIndex`: the tile at a place of that order."""
    place, tiles, first = _in_order("poputil.invTransformTileIndex", tile, numTiles, offset, ascending)
    return (place + first if ascending else -1 - first - place) % tiles


def _in_order(call: str, tile: int, numTiles: int, offset: int, ascending: bool) -> tuple[int, int, int]:
    """The numbers that say where a tile is in an order of tiles, checked."""
    tiles, place = whole_number(call, "numTiles", numTiles, 1), whole_number(call, "tile", tile)
    if place >= tiles:
        raise PoplibsError(f"{call}: tile {place} is beyond the {tiles} tiles")
    check_flag(call, "ascending", ascending)
    return place, tiles, whole_number(call, "offset", offset)


@overload
def mapTensorLinearly(graph: Graph, t: Tensor, minElementsPerTile: int, grainSize: int) -> None: ...
@overload
def mapTensorLinearly(graph: Graph, t: Tensor) -> None: ...
@overloaded("poputil.mapTensorLinearly")
def mapTensorLinearly(graph: Graph, t: Tensor, minElementsPerTile: int = 0, grainSize: int | None = None) -> None:
    """Spread `t` evenly over all tiles in order of its elements, from tile 0 on.

    Without `minElementsPerTile` and `grainSize` a tile gets whole vectors (2 floats, 4 halves) and at least 128
    bytes, so that a small tensor stays on few tiles. Either both are given or neither.

    >>> from pypoplar import FLOAT, Graph, IPUModel, poputil
    >>> graph = Graph(IPUModel("tiny").createDevice())
    >>> x = graph.addVariable(FLOAT, [64])
    >>> poputil.mapTensorLinearly(graph, x, 16, 2)
    >>> [tile for tile, intervals in enumerate(graph.getTileMapping(x)) if intervals]
    [0, 1, 2, 3]
    """
    check_own("poputil.mapTensorLinearly", graph, t)
    graph.setTileMapping(t, _of_tensor("poputil.mapTensorLinearly", graph, t, minElementsPerTile, grainSize, 0, True))


@overload
def mapTensorLinearlyWithOffset(
    graph: Graph, t: Tensor, minElementsPerTile: int, grainSize: int, offset: int, ascendingOrder: bool = True
) -> None: ...
@overload
def mapTensorLinearlyWithOffset(graph: Graph, t: Tensor, offset: int = 0, ascendingOrder: bool = True) -> None: ...
@overloaded("poputil.mapTensorLinearlyWithOffset")
def mapTensorLinearlyWithOffset(
    graph: Graph, t: Tensor, minElementsPerTile: int = 0, grainSize: int | None = None, offset: int = 0, ascendingOrder: bool = True
) -> None:
    """`mapTensorLinearly` from tile `offset` on, or with ``ascendingOrder=False`` from the last tile but `offset` downwards."""
    call = "poputil.mapTensorLinearlyWithOffset"
    check_own(call, graph, t)
    graph.setTileMapping(t, _of_tensor(call, graph, t, minElementsPerTile, grainSize, offset, ascendingOrder))


def _of_tensor(call: str, graph: Graph, t: Tensor, least: int, grain: int | None, offset: int, ascending: bool) -> TileMapping:
    if grain is not None:
        return _by_grain(call, graph.getTarget(), t.shape(), least, grain, offset, ascending)
    return _by_type(call, graph.getTarget(), t.shape(), t.elementType(), offset, ascending)


@overload
def getTileImbalance(mapping: SequenceOf[SequenceOf[Any]], minElementsPerTile: int = 0, grainSize: int = 1) -> int: ...
@overload
def getTileImbalance(graph: Graph, t: Tensor, minElementsPerTile: int = 0, grainSize: int = 1) -> int: ...
@overloaded("poputil.getTileImbalance")
def getTileImbalance(
    mapping: SequenceOf[SequenceOf[Any]] = (),
    minElementsPerTile: int = 0,
    grainSize: int = 1,
    graph: Graph | None = None,
    t: Tensor | None = None,
) -> int:
    """How many elements the fullest tile has beyond an even share of at least `minElementsPerTile` and one grain.

    Of a tensor, or of a mapping, which has a list of intervals for each tile.
    """
    if graph is not None and t is not None:
        check_operands("poputil.getTileImbalance", graph, t)
        mapping = graph.getTileMapping(t)
    if not mapping:
        raise PoplibsError("poputil.getTileImbalance: the mapping has a list of intervals for each tile, got none")
    held = [intervalSequenceNumElements([regions]) for regions in mapping]
    least = whole_number("poputil.getTileImbalance", "minElementsPerTile", minElementsPerTile)
    even = max(-(-sum(held) // len(held)), least, whole_number("poputil.getTileImbalance", "grainSize", grainSize))
    return max(0, max(held) - even)
