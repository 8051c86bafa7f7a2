"""The tiles that a graph sees: all of its target's, or those of a virtual graph, numbered from 0; and those of its replicas."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from attrs import define, evolve, field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.interval_algebra import keys, union
from pypoplar.arrays.intervals import Interval, bounds_of
from pypoplar.braces import INTERVALS, ordered
from pypoplar.errors import InvalidOption, InvalidTileMapping, MissingFeature, PoplarIndexError, PoplarTypeError
from pypoplar.graph.mapping import TileToTensorMapping
from pypoplar.graph.tensor import Tensor
from pypoplar.target import Target
from pypoplar.types import ElementType

CREATED = "createReplicatedGraph"


class Tiles:
    """Tile numbers as the user of a graph writes them, and as the whole target has them."""

    __slots__ = ("count", "numbers", "target")

    def __init__(self, target: Target, numbers: list[int] | None = None) -> None:
        self.target = target
        self.count = target.getNumTiles()
        self.numbers = numbers  # None: all, so both numberings agree

    def check(self, tile: Any, what: str) -> int:
        """The whole target's number for a tile; `InvalidTileMapping` with the number of tiles unless the graph has it."""
        try:
            number = operator.index(tile)
            if isinstance(tile, bool):
                raise TypeError
        except TypeError:
            raise PoplarTypeError(f"a tile is a whole number, got {tile!r} for {what}") from None
        if not 0 <= number < self.count:
            there = f"the graph's target has {self.count} tiles, 0 to {self.count - 1}"
            raise InvalidTileMapping(f"tile {number} for {what}: {there}{self._of_workers(number)}")
        return number if self.numbers is None else self.numbers[number]

    def _of_workers(self, number: int) -> str:
        """What to do where the number could be that of a worker: they are counted on from the last tile."""
        workers = self.target.getNumWorkerContexts()
        if number != self.count or workers < 2:
            return ""
        return f"; map to tiles, not to their workers: the vertices of a tile are shared out among its {workers} workers"

    def check_many(self, tiles: Any, count: int, what: str) -> Int64s:
        """`check` for an array of tiles, one for each of `count` things, or one tile for all."""
        given = np.asarray(ordered(tiles, f"the tiles of {what}"))
        if given.size == 0:
            given = given.astype(np.int64)  # of an empty list NumPy makes floats
        if given.dtype.kind not in "iu":
            raise PoplarTypeError(f"tiles are whole numbers, got {tiles!r} for {what}")
        if given.ndim == 0:
            given = np.full(count, given)
        if given.shape != (count,):
            raise InvalidTileMapping(f"{what} need {count} tiles, got an array of shape {list(given.shape)}")
        bad = np.flatnonzero((given < 0) | (given >= self.count))
        if len(bad):
            self.check(int(given[bad[0]]), f"number {bad[0]} of {what}")
        return given if self.numbers is None else np.array(self.numbers)[given]

    def local(self, tiles: Int64s) -> Int64s:
        """The graph's own numbers of the whole target's tiles; -1 for those it does not see."""
        if self.numbers is None:
            return tiles
        table = np.full(max(int(tiles.max(initial=0)), *self.numbers) + 1, -1)
        table[self.numbers] = np.arange(self.count)
        return table[tiles]

    def mapping_of(self, tensor: Tensor, begin: Int64s, end: Int64s, tile: Int64s, complete: bool) -> TileToTensorMapping:
        """The pieces of a flattened tensor on the whole target's tiles as users get them, see `Graph.getTileMapping`."""
        begin, end, tile = self.pieces_of_mapping(tensor, begin, end, tile, complete)
        intervals: list[list[Interval]] = [[] for _ in range(self.count)]
        for low, high, number in zip(begin.tolist(), end.tolist(), tile.tolist(), strict=True):
            intervals[number].append(Interval(low, high))
        return TileToTensorMapping(intervals, int((end - begin).sum()) == tensor.numElements())

    def pieces_of_mapping(
        self, tensor: Tensor, begin: Int64s, end: Int64s, tile: Int64s, complete: bool
    ) -> tuple[Int64s, Int64s, Int64s]:
        """The pieces of a flattened tensor on tiles that the graph sees, by its own numbers; these are all if it is `complete`."""
        tile = self.local(tile)
        seen = tile >= 0
        if not seen.all():
            begin, end, tile = begin[seen], end[seen], tile[seen]
        mapped = int((end - begin).sum())
        if complete and mapped != tensor.numElements():
            raise InvalidTileMapping(
                f"{tensor.numElements() - mapped} of {tensor.numElements()} elements of {tensor._described()} have no tile"
            )
        return begin, end, tile

    def chosen(self, first: Any, upper: Any) -> Tiles:
        """The tiles of a virtual graph, see `Graph.createVirtualGraph`."""
        per_ipu = self.target.getTilesPerIPU()
        ipus = self.target.getNumIPUs()
        target = None
        if isinstance(first, Iterable):
            chosen = [self._whole(tile) for tile in ordered(first, "the tiles of a virtual graph", "[4, 5, 9]")]
        elif upper is None:
            size = self._whole(first)
            if not 0 < size <= per_ipu:
                raise InvalidTileMapping(f"a virtual graph of {size} tiles on each IPU: the target has {per_ipu} tiles per IPU")
            chosen = [ipu * per_ipu + tile for ipu in range(ipus) for tile in range(size)]
            target = evolve(self.target, tiles_per_ipu=size)
        else:
            chosen = list(range(self._whole(first), self._whole(upper)))
        if not chosen or len(set(chosen)) != len(chosen):
            raise InvalidTileMapping(f"a virtual graph needs at least one tile and each only once, got {chosen[:20]}")
        numbers = [self.check(tile, "a virtual graph") for tile in chosen]
        return Tiles(target or evolve(self.target, num_ipus=1, tiles_per_ipu=len(chosen)), numbers)

    @staticmethod
    def _whole(tile: Any) -> int:
        if not hasattr(tile, "__index__"):
            raise PoplarTypeError(f"the tiles of a virtual graph are whole numbers, got {tile!r}; write [4, 5], or 4, 6")
        return operator.index(tile)

    def pieces(self, tensor: Tensor, mapping: Any) -> tuple[Int64s, Int64s, Int64s]:
        """A user's list of intervals per tile (or a dict from tile to intervals) as arrays (begin, end, the target's tile)."""
        described = tensor._described()  # once: of a scattered view it takes as long as the view has pieces
        ordered(mapping, f"a tile mapping of {described}", f"[{INTERVALS}]")
        if isinstance(mapping, Mapping):
            rows = list(mapping.items())
        elif isinstance(mapping, Iterable):
            rows = list(enumerate(mapping))
        else:
            raise PoplarTypeError(f"a tile mapping is a tile number or a list of intervals per tile, got {mapping!r}")
        bounds = array("q")
        for tile, intervals in rows:
            listed = intervals if intervals.__class__ is list else _listed(intervals, tile, described)
            number = self.check(tile, described) if listed else 0
            for interval in listed:
                if interval.__class__ is Interval:
                    bounds.extend((interval._begin, interval._end, number))
                else:
                    bounds.extend((*bounds_of(interval, f"an interval of tile {tile}"), number))
        begin, end, tiles = np.array(bounds, np.int64).reshape(-1, 3).T
        self.check_pieces(tensor, begin, end, tiles)
        return begin, end, tiles

    def check_pieces(self, tensor: Tensor, begin: Int64s, end: Int64s, tiles: Int64s) -> None:
        """`PoplarIndexError` for ranges beyond the tensor, `InvalidTileMapping` for elements on several of the target's tiles."""
        bad = np.flatnonzero((begin < 0) | (begin > end) | (end > tensor.numElements()))
        if len(bad):
            raise PoplarIndexError(
                f"interval [{begin[bad[0]]}:{end[bad[0]]}) for tile {tiles[bad[0]]} is out of range for {tensor._described()} "
                f"of {tensor.numElements()} elements"
            )
        self._check_apart(tensor, begin, end, tiles)

    def _check_apart(self, tensor: Tensor, begin: Int64s, end: Int64s, tiles: Int64s) -> None:
        """`InvalidTileMapping` if intervals of different tiles share elements."""
        filled = end > begin
        begin, end, tiles = begin[filled], end[filled], tiles[filled]
        order = np.argsort(begin, kind="stable")
        if not (begin[order[1:]] < end[order[:-1]]).any():
            return
        span = int(end.max()) + 1
        low, high = union(keys(tiles, begin, span), keys(tiles, end, span))
        tiles = low // span
        covered = np.column_stack((low - tiles * span, high - tiles * span, tiles))
        covered = covered[np.argsort(covered[:, 0], kind="stable")]
        bad = np.flatnonzero(covered[1:, 0] < covered[:-1, 1])
        if len(bad):
            first, second = covered[bad[0]].tolist(), covered[bad[0] + 1].tolist()
            tile, other = self.local(np.array([first[2], second[2]])).tolist()
            raise InvalidTileMapping(
                f"[{first[0]}:{first[1]}) for tile {tile} and [{second[0]}:{second[1]}) for tile {other} overlap in the mapping of "
                f"{tensor._described()}: an element is on one tile"
            )


def _listed(intervals: Any, tile: Any, described: str) -> Sequence[Any]:
    """The intervals of a tile in the mapping of what is `described`."""
    ordered(intervals, f"the intervals of tile {tile}", INTERVALS)
    if isinstance(intervals, str) or not isinstance(intervals, Iterable):
        raise PoplarTypeError(
            f"the intervals of tile {tile} in the mapping of {described} are a list of pairs (begin, end), got "
            f"{intervals!r}; write [[(0, 4)], [(4, 8)]] for tiles 0 and 1, or {{tile: [(0, 4)]}}"
        )
    return (intervals,) if isinstance(intervals, Interval) else tuple(intervals)


@define(eq=False)
class GraphReplicas:
    """What all views of a graph know of its replicas.

    The top-level graph is there `factor` times. `createReplicatedGraph` divides each of these again, `within` times; then all that
    there is belongs to the graph that it made.
    """

    tiles: Tiles  # of one replica
    factor: int = 1
    within: int = 1
    index: list[int] = field(factory=list)  # constants that hold the replica's number, by number
    parted: set[str] = field(factory=set)  # host writes that have values for each replica

    @property
    def count(self) -> int:
        """How many replicas there are in all."""
        return self.factor * self.within

    @staticmethod
    def of(target: Target, factor: object) -> GraphReplicas:
        """The replicas of a top-level graph on a device that has all their IPUs."""
        count = check_factor(factor, "the replication factor of a Graph")
        return GraphReplicas(Tiles(part_of(target, count, f"Graph(target, {count})")), count)


@frozen
class NonReplicatedTensor:
    """A tensor of all replicas, made by `Graph.getNonReplicatedTensor`: the replica's number is its first dimension.

    It is for `Graph.createHostWrite` and `Graph.createHostRead`.

    Attributes
    ----------
    tensor:
        The tensor of each replica.
    replicas:
        How many there are.
    """

    tensor: Tensor
    replicas: int

    def shape(self) -> tuple[int, ...]:
        """The number of replicas, and the shape of the tensor of each."""
        return (self.replicas, *self.tensor.shape())

    def rank(self) -> int:
        """One more than that of the tensor of each replica."""
        return 1 + self.tensor.rank()

    def numElements(self) -> int:
        """How many elements the tensors of all replicas have together."""
        return self.replicas * self.tensor.numElements()

    def elementType(self) -> ElementType:
        """The type of the elements, the same for all replicas."""
        return self.tensor.elementType()


class DividedTiles(Tiles):
    """The tiles of a graph that `createReplicatedGraph` has divided: nothing is mapped to them any more but through replicas."""

    __slots__ = ()

    def __init__(self, target: Target) -> None:
        self.target = target
        self.numbers = None

    @property
    def count(self) -> int:  # type: ignore[override]
        """Refuse to be counted: whoever asks is about to place something."""
        self._refuse("a tensor")

    def check(self, tile: Any, what: str) -> int:
        """Refuse to place something on a tile of the whole graph."""
        self._refuse(what)

    def check_many(self, tiles: Any, count: int, what: str) -> Int64s:
        """Refuse to place things on tiles of the whole graph."""
        self._refuse(what)

    @staticmethod
    def _refuse(what: str) -> NoReturn:
        raise MissingFeature(
            f"tile for {what}: the graph has been divided by {CREATED}, and pypoplar has nothing beside its replicas; "
            "build with the graph that it gave"
        )


def check_factor(factor: object, what: str) -> int:
    """A number of replicas; `PoplarTypeError` unless it is a whole number, `InvalidOption` for less than 1."""
    try:
        if isinstance(factor, bool):
            raise TypeError
        count = operator.index(factor)  # type: ignore[arg-type]
    except TypeError:
        raise PoplarTypeError(f"{what} is a whole number, got {factor!r}") from None
    if count < 1:
        raise InvalidOption(f"{what} is at least 1, got {count}")
    return count


def part_of(target: Target, count: int, what: str) -> Target:
    """The target of one of `count` replicas, of equal numbers of IPUs."""
    ipus = target.getNumIPUs()
    if count > ipus:
        raise InvalidOption(f"{what}: {count} replicas need {count} IPUs at least, the target has {ipus}")
    if ipus % count:
        raise InvalidOption(f"{what}: {ipus} IPUs cannot be divided into {count} replicas of equal size")
    return target if count == 1 else evolve(target, num_ipus=ipus // count)
