"""Spreading tensors over tiles."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from math import prod
from typing import overload

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_flag, check_graph, check_operands, check_own, check_tensor, shape_of, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.interval_lists import Region, intervalSequenceNumElements
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
    """The mapping that spreads a tensor evenly over the tiles in order of its elements.

    Of a tensor, or a shape and an element type, it splits in grains of the type's vector width (2 floats, 4 halves) and gives
    each tile 128 bytes at least.

    Parameters
    ----------
    shape:
        The shape, without a tensor.
    minElementsPerTile:
        How many elements a tile that is used gets at least.
    grainSize:
        Tiles get multiples of so many elements, 1 at least.
    offset:
        The first tile used.
    ascendingOrder:
        Whether tiles are used upwards from there; else from the last tile but `offset` downwards.
    target:
        The target that has the tiles, instead of the graph's.
    t:
        A tensor instead of shape, grain and least number.
    elementType:
        The type that says grain and least number, with a shape.

    Returns
    -------
    TileMapping
        A list of intervals for each tile.

    Raises
    ------
    PoplibsError
        For a grain below 1, and negative numbers.
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
    """The mapping that spreads a tensor evenly from a tile on, and where the next tensor may begin.

    Parameters
    ----------
    t:
        The tensor, whose element type says grain and least number as for `calcLinearTileMapping`.
    offset:
        The first tile used.

    Returns
    -------
    tuple[TileMapping, int]
        A list of intervals for each tile, and the tile behind the last one used.
    """
    call = "poputil.calcLinearTileMappingAndNewOffset"
    check_graph(call, graph)
    check_tensor(call, t)
    mapping = _of_tensor(call, graph, t, 0, None, offset, True)
    return mapping, (offset + sum(map(bool, mapping))) % len(mapping)


@public
def chooseMappingOffset(numTiles: int, shape: Iterable[int], seed: int = 0x9E3779B9) -> int:
    """A tile, always the same for a shape and seed, so that tensors of several shapes begin on different ones.

    Which tile it is in PopLibs depends on the hash of the C++ library that it was built with.

    Parameters
    ----------
    numTiles:
        How many tiles there are, 1 at least.
    shape:
        The shape that decides.
    seed:
        A number that decides as well.

    Returns
    -------
    int
        From 0 to ``numTiles - 1``.

    Notes
    -----
    Sizes are combined as by ``boost::hash_combine``.
    """
    tiles = whole_number("poputil.chooseMappingOffset", "numTiles", numTiles, 1)
    mask = 2**64 - 1
    offset = whole_number("poputil.chooseMappingOffset", "seed", seed) & mask
    for size in shape_of("poputil.chooseMappingOffset", shape):
        offset ^= (size + 0x9E3779B9 + (offset << 6) + (offset >> 2)) & mask
    return offset % tiles


@public
def transformTileIndex(tile: int, numTiles: int, offset: int, ascending: bool) -> int:
    """The place of a tile in an order of tiles that begins at an offset; 0 for the first.

    Parameters
    ----------
    tile:
        The tile, below `numTiles`.
    numTiles:
        How many tiles there are.
    offset:
        The tile that is first.
    ascending:
        Whether the order goes up; else it begins with the last tile but `offset`, and goes down.

    Returns
    -------
    int
        From 0 to ``numTiles - 1``.

    Raises
    ------
    PoplibsError
        For a tile beyond the others.
    """
    place, tiles, first = _in_order("poputil.transformTileIndex", tile, numTiles, offset, ascending)
    return (place - first if ascending else -1 - first - place) % tiles


@public
def invTransformTileIndex(tile: int, numTiles: int, offset: int, ascending: bool) -> int:
    """The tile at a place of the order of `transformTileIndex`, whose opposite it is.

    Parameters
    ----------
    tile:
        The place, below `numTiles`.
    numTiles:
        How many tiles there are.
    offset:
        The tile that is first.
    ascending:
        Whether the order goes up; else it begins with the last tile but `offset`, and goes down.

    Returns
    -------
    int
        From 0 to ``numTiles - 1``.

    Raises
    ------
    PoplibsError
        For a place beyond the others.
    """
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
    """Spread a tensor evenly over all tiles in order of its elements, from tile 0 on.

    Without the two numbers a tile gets whole vectors (2 floats, 4 halves) and at least 128 bytes, so that a small tensor stays
    on few tiles. Either both are given or neither.

    Parameters
    ----------
    t:
        The tensor that is mapped; a mapping that it has is replaced.
    minElementsPerTile:
        How many elements a tile that is used gets at least.
    grainSize:
        Tiles get multiples of so many elements, 1 at least.

    Raises
    ------
    PoplibsError
        For a grain below 1.

    Examples
    --------
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
    """`mapTensorLinearly` from another tile on, or downwards.

    Parameters
    ----------
    t:
        The tensor that is mapped; a mapping that it has is replaced.
    minElementsPerTile:
        How many elements a tile that is used gets at least.
    grainSize:
        Tiles get multiples of so many elements, 1 at least.
    offset:
        The first tile used.
    ascendingOrder:
        Whether tiles are used upwards from there; else from the last tile but `offset` downwards.

    Raises
    ------
    PoplibsError
        For a grain below 1.
    """
    call = "poputil.mapTensorLinearlyWithOffset"
    check_own(call, graph, t)
    graph.setTileMapping(t, _of_tensor(call, graph, t, minElementsPerTile, grainSize, offset, ascendingOrder))


def _of_tensor(call: str, graph: Graph, t: Tensor, least: int, grain: int | None, offset: int, ascending: bool) -> TileMapping:
    if grain is not None:
        return _by_grain(call, graph.getTarget(), t.shape(), least, grain, offset, ascending)
    return _by_type(call, graph.getTarget(), t.shape(), t.elementType(), offset, ascending)


@overload
def getTileImbalance(mapping: SequenceOf[SequenceOf[Region]], minElementsPerTile: int = 0, grainSize: int = 1) -> int: ...
@overload
def getTileImbalance(graph: Graph, t: Tensor, minElementsPerTile: int = 0, grainSize: int = 1) -> int: ...
@overloaded("poputil.getTileImbalance")
def getTileImbalance(
    mapping: SequenceOf[SequenceOf[Region]] = (),
    minElementsPerTile: int = 0,
    grainSize: int = 1,
    graph: Graph | None = None,
    t: Tensor | None = None,
) -> int:
    """How many elements the fullest tile has beyond an even share.

    Parameters
    ----------
    mapping:
        A list of intervals for each tile, without a tensor.
    minElementsPerTile:
        The share is that at least.
    grainSize:
        The share is that at least, too.
    t:
        A tensor with tiles, instead of a mapping.

    Returns
    -------
    int
        0 where the elements are spread evenly.

    Raises
    ------
    PoplibsError
        For an empty mapping.
    InvalidTileMapping
        If an element of `t` has no tile.
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
