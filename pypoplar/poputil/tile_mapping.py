"""Spreading tensors over tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, overload

from pypoplar.arrays.intervals import Interval
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.variables import check_shape
from pypoplar.poputil.arguments import check_graph, check_tensor, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.interval_lists import intervalSequenceNumElements
from pypoplar.poputil.region_splitting import splitRegions
from pypoplar.signatures import misfit
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
    if not isinstance(machine, Graph | Target):
        raise PoplarTypeError(f"calcLinearTileMapping: the first argument is a graph or a target, got {machine!r}")
    target = machine.getTarget() if isinstance(machine, Graph) else machine
    return _spread("calcLinearTileMapping", target, arguments, keywords)


def _spread(call: str, target: Target, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> TileMapping:
    """The mapping by what a call was given behind the graph; `PoplarTypeError` where that is none of its forms."""
    by_name = "tensor" in keywords or (arguments and isinstance(arguments[0], Tensor))
    several = len(arguments) + len(keywords.keys() - {"tensor", "shape", "ascendingOrder"})
    several -= len(arguments) > 0 and isinstance(arguments[-1], bool)
    if by_name and several <= 2:
        form: Callable[..., TileMapping] = _of_tensor
    elif "elementType" in keywords or (len(arguments) > 1 and isinstance(arguments[1], ElementType)):
        form = _of_type
    else:
        form = _of_tensor_by_grain if by_name else _by_grain
    wrong = misfit(form, "target", *arguments, **keywords)
    if wrong:
        raise PoplarTypeError(f"{call} does not take these arguments behind the graph: {_shown(arguments, keywords)}")
    return form(target, *arguments, **keywords)


def _shown(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    return ", ".join([*map(repr, arguments), *(f"{name}={value!r}" for name, value in keywords.items())]) or "none"


def _of_tensor(target: Target, tensor: Tensor, offset: int = 0, ascendingOrder: bool = True) -> TileMapping:
    return _of_type(target, tensor.shape(), tensor.elementType(), offset, ascendingOrder)


def _of_type(
    target: Target, shape: Iterable[int], elementType: ElementType, offset: int = 0, ascendingOrder: bool = True
) -> TileMapping:
    least = -(-MIN_BYTES_PER_TILE // target.getTypeSize(elementType))
    return _by_grain(target, shape, least, target.getVectorWidth(elementType), offset, ascendingOrder)


def _of_tensor_by_grain(
    target: Target, tensor: Tensor, minElementsPerTile: int, grainSize: int, offset: int = 0, ascendingOrder: bool = True
) -> TileMapping:
    return _by_grain(target, tensor.shape(), minElementsPerTile, grainSize, offset, ascendingOrder)


def _by_grain(
    target: Target,
    shape: Iterable[int],
    minElementsPerTile: int,
    grainSize: int,
    offset: int = 0,
    ascendingOrder: bool = True,
) -> TileMapping:
    tiles = target.getNumTiles()
    whole_number("a linear mapping", "minElementsPerTile", minElementsPerTile)
    whole_number("a linear mapping", "grainSize", grainSize, 1)
    parts = splitRegions([Interval(0, prod(check_shape(shape)))], grainSize, tiles, minElementsPerTile)
    mapping: TileMapping = [[] for _ in range(tiles)]
    mapping[: len(parts)] = parts
    return moved(mapping, whole_number("a linear mapping", "offset", offset), ascendingOrder)


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
    check_graph("calcLinearTileMappingAndNewOffset", graph)
    check_tensor("calcLinearTileMappingAndNewOffset", t)
    mapping = calcLinearTileMapping(graph, t, offset)
    return mapping, (offset + sum(map(bool, mapping))) % len(mapping)


@public
def chooseMappingOffset(numTiles: int, shape: Iterable[int], seed: int = 0x9E3779B9) -> int:
    """A tile from 0 to ``numTiles - 1``, always the same for a shape (and seed), for tensors of several shapes to begin apart.

    Which tile it is in PopLibs depends on the hash of the C++ library that it was built with.
    """
    tiles = whole_number("chooseMappingOffset", "numTiles", numTiles, 1)
    mask = 2**64 - 1
    offset = whole_number("chooseMappingOffset", "seed", seed) & mask
    for size in check_shape(shape):
        offset ^= (size + 0x9E3779B9 + (offset << 6) + (offset >> 2)) & mask
    return offset % tiles


@public
def transformTileIndex(tile: int, numTiles: int, offset: int, ascending: bool) -> int:
    """The place of a tile in the order that begins at `offset`, or at the last tile but `offset` and goes down; 0 for the first."""
    tiles = whole_number("transformTileIndex", "numTiles", numTiles, 1)
    return (tile - offset if ascending else -1 - offset - tile) % tiles


@public
def invTransformTileIndex(tile: int, numTiles: int, offset: int, ascending: bool) -> int:
    """The opposite of `transformTileIndex`: the tile at a place of that order."""
    tiles = whole_number("invTransformTileIndex", "numTiles", numTiles, 1)
    return (tile + offset if ascending else -1 - offset - tile) % tiles


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
def mapTensorLinearlyWithOffset(graph: Graph, tensor: Tensor, offset: int = 0, ascendingOrder: bool = True) -> None: ...
@overload
def mapTensorLinearlyWithOffset(
    graph: Graph, tensor: Tensor, minElementsPerTile: int, grainSize: int, offset: int, ascendingOrder: bool = True
) -> None: ...
@public
def mapTensorLinearlyWithOffset(graph: Graph, tensor: Tensor, *arguments: Any, **keywords: Any) -> None:
    """`mapTensorLinearly` from tile `offset` on, or with ``ascendingOrder=False`` from the last tile but `offset` downwards.

    ``(graph, tensor[, offset[, ascendingOrder]])`` or ``(graph, tensor, minElementsPerTile, grainSize, offset[, ascendingOrder])``.
    """
    check_graph("poputil.mapTensorLinearlyWithOffset", graph)
    check_tensor("poputil.mapTensorLinearlyWithOffset", tensor)
    mapping = _spread("poputil.mapTensorLinearlyWithOffset", graph.getTarget(), (tensor, *arguments), keywords)
    graph.setTileMapping(tensor, mapping)


@overload
def getTileImbalance(mapping: TileMapping, minElementsPerTile: int = 0, grainSize: int = 1, /) -> int: ...
@overload
def getTileImbalance(graph: Graph, tensor: Tensor, minElementsPerTile: int = 0, grainSize: int = 1) -> int: ...
@public
def getTileImbalance(graph: Any, *arguments: Any, **keywords: Any) -> int:
    """How many elements the fullest tile has beyond an even share of at least `minElementsPerTile` and one grain.

    ``(graph, tensor)`` or ``(mapping)``, the lists of intervals of all tiles; then `minElementsPerTile` and `grainSize`.
    """
    if isinstance(graph, Graph):
        return _imbalance_of_tensor(graph, *arguments, **keywords)
    if not isinstance(graph, list):
        raise PoplarTypeError(f"getTileImbalance: the first argument is a graph or a tile mapping, got {graph!r}")
    return _imbalance(graph, *arguments, **keywords)


def _imbalance_of_tensor(graph: Graph, tensor: Tensor, minElementsPerTile: int = 0, grainSize: int = 1) -> int:
    check_tensor("getTileImbalance", tensor)
    return _imbalance(graph.getTileMapping(tensor), minElementsPerTile, grainSize)


def _imbalance(mapping: TileMapping, minElementsPerTile: int = 0, grainSize: int = 1) -> int:
    if not mapping:
        raise PoplibsError("getTileImbalance: the mapping has a list of intervals for each tile, got none")
    held = [intervalSequenceNumElements([regions]) for regions in mapping]
    least = whole_number("getTileImbalance", "minElementsPerTile", minElementsPerTile)
    even = max(-(-sum(held) // len(held)), least, whole_number("getTileImbalance", "grainSize", grainSize))
    return max(0, max(held) - even)
