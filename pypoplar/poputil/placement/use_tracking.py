"""Mapping variables by use: elements go where they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import pairwise
from typing import overload

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct, opens, ragged
from pypoplar.arrays.interval_algebra import keys, touched_strands, union
from pypoplar.arrays.intervals import Interval
from pypoplar.arrays.splitmix import splitmix64
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import whole_variables
from pypoplar.poputil.arguments import check_flag, check_graph, check_own, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.region_splitting import splitRegions
from pypoplar.poputil.tile_mapping import invTransformTileIndex
from pypoplar.tracebacks import public

Uses = tuple[Int64s, Int64s, Int64s]  # elements [begin, end) of a variable, used by a tile: of equal length


class UseMapping(Enum):
    """How a tracker maps what several tiles use; Python has ``None_`` for PopLibs' ``None``.

    Attributes
    ----------
    OptimizeHaloRegions:
        What the tiles of both neighbouring regions use goes where the region before it goes.
    ConstrainMappingToUsedTiles:
        An element goes to a tile that uses it, whatever the grain.
    None_:
        Neither: a grain goes to tiles that use its first elements.
    """

    OptimizeHaloRegions = "OptimizeHaloRegions"
    ConstrainMappingToUsedTiles = "ConstrainMappingToUsedTiles"
    None_ = "None"


@frozen(eq=False)
class _Regions:
    """Disjoint regions of a variable in order, the tiles that use each given as the number of a set."""

    begin: Int64s
    end: Int64s
    users: Int64s
    sets: tuple[tuple[int, ...], ...]

    def joined(self) -> _Regions:
        """Regions that touch and have the same users as one."""
        first = np.flatnonzero(opens(self.users) | np.append(True, self.begin[1:] != self.end[:-1])[: len(self.begin)])
        return evolve(self, begin=self.begin[first], end=np.append(self.end[first[1:] - 1], self.end[-1:]), users=self.users[first])

    def in_grains(self, grain: int) -> _Regions:
        """The regions counted in grains; one that several share goes to the first."""
        high = (self.end - 1) // grain + 1
        low = np.maximum(self.begin // grain, np.append(0, high[:-1])[: len(high)])
        kept = low < high
        return evolve(self, begin=low[kept], end=high[kept], users=self.users[kept])

    def extended(self, size: int) -> _Regions:
        """Each region up to the next one, the first from 0 on, the last up to `size`."""
        return evolve(self, begin=np.append(0, self.begin[1:]), end=np.append(self.begin[1:], size))

    def without_halos(self) -> _Regions:
        """A region whose users are those of the neighbours on both sides, taken together, as if it had those of the one before."""
        users = self.users.copy()
        for place in range(1, len(users) - 1):
            before, halo, behind = (set(self.sets[number]) for number in self.users[place - 1 : place + 2])
            if len(before) + len(behind) == len(halo) and before <= halo and behind <= halo:
                users[place] = self.users[place - 1]
        return evolve(self, users=users).joined()


def _regions(uses: Uses) -> _Regions:
    """The regions that have the same users throughout."""
    begin, end, tile = uses
    bounds = distinct(np.concatenate((begin, end)))
    low, high = np.searchsorted(bounds, begin), np.searchsorted(bounds, end)
    mark = splitmix64(tile.astype(np.uint64))  # a set of tiles is known by the sum of its marks
    sums, counts = np.zeros(len(bounds), np.uint64), np.zeros(len(bounds), np.int64)
    for place, sign in ((low, 1), (high, -1)):
        np.add.at(sums, place, mark if sign > 0 else -mark)
        np.add.at(counts, place, sign)
    used = np.flatnonzero(np.cumsum(counts)[:-1])
    _, first, users = np.unique(np.cumsum(sums)[used], return_index=True, return_inverse=True)
    cells = used[first]
    order = np.argsort(cells)
    from_cell, to_cell = np.searchsorted(cells[order], low), np.searchsorted(cells[order], high)
    place = ragged(from_cell, to_cell - from_cell)
    owner, user = order[place], np.repeat(tile, to_cell - from_cell)
    sorting = np.lexsort((user, owner))
    bounds_of_sets = np.searchsorted(owner[sorting], np.arange(len(cells) + 1))
    members = user[sorting].tolist()
    sets = tuple(tuple(members[low:high]) for low, high in pairwise(bounds_of_sets.tolist()))
    return _Regions(bounds[used], bounds[used + 1], users.reshape(-1), sets).joined()


@public
class TensorUseTracker:
    """Records which tiles use which elements of variables, to map these where they are used.

    Parameters
    ----------
    numTiles:
        How many tiles there are, those of the graph.
    startTile:
        When the variables are mapped, tile 0 of the tracker is this one.
    ascendingMappingOrder:
        Whether tiles are counted upwards from there; else tile 0 is the last tile but `startTile`, and they are counted
        downwards.
    """

    MappingMethod = UseMapping

    def __init__(self, numTiles: int, startTile: int = 0, ascendingMappingOrder: bool = True) -> None:
        self._tiles = whole_number("TensorUseTracker", "numTiles", numTiles, 1)
        self._start = whole_number("TensorUseTracker", "startTile", startTile)
        check_flag("TensorUseTracker", "ascendingMappingOrder", ascendingMappingOrder)
        self._ascending = ascendingMappingOrder
        self._variables: dict[int, Tensor] = {}
        self._uses: dict[int, list[Uses]] = {}

    @overload
    def add(self, graph: Graph, tile: int, t: Tensor) -> None: ...
    @overload
    def add(self, other: TensorUseTracker) -> None: ...
    @overloaded("TensorUseTracker.add")
    def add(
        self, graph: Graph | None = None, tile: int = 0, t: Tensor | None = None, other: TensorUseTracker | None = None
    ) -> None:
        """Note that a tile uses a tensor, constants aside: ``add(graph, tile, t)``; or what another tracker noted: ``add(other)``.

        Parameters
        ----------
        tile:
            The tile, counted from 0.
        t:
            What it uses.
        other:
            A tracker of as many tiles.

        Raises
        ------
        PoplibsError
            For a tile beyond those of the tracker, and a tracker of another number of tiles.
        """
        if other is not None:
            self._add_all(other)
            return
        check_own("TensorUseTracker.add", graph, t)
        assert t is not None
        number = whole_number("TensorUseTracker.add", "tile", tile)
        if number >= self._tiles:
            raise PoplibsError(f"TensorUseTracker.add: tile {number} of a tracker of {self._tiles} tiles")
        runs = t.runs()
        pieces = touched_strands(np.zeros(len(runs.start), np.int64), runs.start, runs.count, runs.step)
        self.add_uses(t, *union(pieces.begin, pieces.begin + pieces.length), number)

    def add_uses(self, t: Tensor, begin: Int64s, end: Int64s, tile: Int64s | int) -> None:
        """Note many uses at once, by the numbers of elements in the graph; this is not part of PopLibs.

        Parameters
        ----------
        t:
            A tensor that has these elements.
        begin, end:
            The bounds of intervals of element numbers.
        tile:
            The tile of each interval, or one for all.
        """
        tiles = np.broadcast_to(np.asarray(tile, np.int64), begin.shape)
        for number, variable in zip(t.variable_numbers(), whole_variables(t), strict=True):
            if variable.containsConstant():
                continue
            first = int(variable.runs().start[0])
            own = (begin < first + variable.numElements()) & (end > first)
            self._variables[number] = variable
            self._uses.setdefault(number, []).append(
                (np.maximum(begin[own] - first, 0), np.minimum(end[own] - first, variable.numElements()), tiles[own])
            )

    def _add_all(self, other: TensorUseTracker) -> None:
        if other._tiles != self._tiles:
            raise PoplibsError(f"TensorUseTracker.add: a tracker of {other._tiles} tiles for one of {self._tiles}")
        self._variables.update(other._variables)
        for number, uses in other._uses.items():
            self._uses.setdefault(number, []).extend(list(uses))

    def empty(self) -> bool:
        """Whether no use of an element has been noted so far."""
        return not self._uses

    def resolve(
        self,
        graph: Graph,
        grainSize: int,
        minElementsPerTile: int,
        extendPartialUsage: bool = False,
        mappingMethod: UseMapping = UseMapping.None_,
    ) -> None:
        """Share what several tiles use out among them, so that each element is used by one tile.

        Parameters
        ----------
        grainSize:
            Tiles get multiples of so many elements, 1 at least.
        minElementsPerTile:
            A tile gets so many at least where that many are shared.
        extendPartialUsage:
            Whether elements that nobody uses go with those before them, the first ones with those behind; else they are left
            alone.
        mappingMethod:
            What becomes of elements that several tiles use.

        Raises
        ------
        PoplarTypeError
            For what is no `TensorUseTracker.MappingMethod`.
        """
        check_graph("TensorUseTracker.resolve", graph)
        grain = whole_number("TensorUseTracker.resolve", "grainSize", grainSize, 1)
        least = whole_number("TensorUseTracker.resolve", "minElementsPerTile", minElementsPerTile)
        check_flag("TensorUseTracker.resolve", "extendPartialUsage", extendPartialUsage)
        if not isinstance(mappingMethod, UseMapping):
            raise PoplarTypeError(
                f"TensorUseTracker.resolve: a mapping method is a TensorUseTracker.MappingMethod, got {mappingMethod!r}"
            )
        for number, variable in self._variables.items():
            regions = _regions(self._merged(number))
            size = variable.numElements()
            self._uses[number] = [_shared_out(regions, size, grain, least, extendPartialUsage, mappingMethod)]

    def _merged(self, number: int) -> Uses:
        """The uses of a variable, of each tile as disjoint intervals."""
        begin, end, tile = (np.concatenate(column) for column in zip(*self._uses[number], strict=True))
        span = int(end.max(initial=0)) + 1
        low, high = union(keys(tile, begin, span), keys(tile, end, span))
        tile = low // span
        return low - tile * span, high - tile * span, tile

    def mapTensorsByUse(
        self,
        graph: Graph,
        grainSize: int,
        minElementsPerTile: int,
        extendPartialUsage: bool = False,
        mappingMethod: UseMapping = UseMapping.None_,
    ) -> None:
        """Share what several tiles use out among them, and map the elements of the variables to the tiles that use them then.

        Parameters
        ----------
        grainSize:
            Tiles get multiples of so many elements, 1 at least.
        minElementsPerTile:
            A tile gets so many at least where that many are shared.
        extendPartialUsage:
            Whether elements that nobody uses go with those before them, the first ones with those behind; else they are not
            mapped.
        mappingMethod:
            What becomes of elements that several tiles use.

        Raises
        ------
        PoplarTypeError
            For what is no `TensorUseTracker.MappingMethod`.
        """
        check_graph("TensorUseTracker.mapTensorsByUse", graph)
        self.resolve(graph, grainSize, minElementsPerTile, extendPartialUsage, mappingMethod)
        places = self._places(graph.getTarget().getNumTiles())
        for number, uses in self._uses.items():
            mapping: dict[int, list[Interval]] = {}
            begin, end, tile = uses[0]
            for low, high, place in zip(begin.tolist(), end.tolist(), places[tile].tolist(), strict=True):
                mapping.setdefault(place, []).append(Interval(low, high))
            graph.setTileMapping(self._variables[number], mapping)

    def _places(self, tiles: int) -> Int64s:
        """The tile of the graph, which has so many, for each that uses something."""
        invTransformTileIndex(min(self._tiles - 1, tiles), tiles, self._start, self._ascending)  # refuses what is beyond
        place = np.arange(self._tiles)
        return (place + self._start if self._ascending else -1 - self._start - place) % tiles


def _shared_out(regions: _Regions, size: int, grain: int, least: int, extend: bool, method: UseMapping) -> Uses:
    """The regions of a variable of `size` elements, each part with the tile that it goes to."""
    constrained = method is UseMapping.ConstrainMappingToUsedTiles
    shared = 1 if constrained else grain
    regions = regions.in_grains(shared)
    if extend:
        regions = regions.extended(-(-size // shared))
    if method is UseMapping.OptimizeHaloRegions:
        regions = regions.without_halos()
    pieces = np.array(list(_parts(regions, grain if constrained else 1, -(-least // shared))), np.int64).reshape(-1, 3)
    begin, end, tile = pieces.T
    return begin * shared, np.minimum(end * shared, size), tile


def _parts(regions: _Regions, grain: int, least: int) -> Iterator[tuple[int, int, int]]:
    """What each set of tiles uses, split among them: (begin, end, tile)."""
    order = np.argsort(regions.users, kind="stable")
    begin, end = regions.begin[order].tolist(), regions.end[order].tolist()
    bounds = np.searchsorted(regions.users[order], np.arange(len(regions.sets) + 1)).tolist()
    for tiles, (low, high) in zip(regions.sets, pairwise(bounds), strict=True):
        if len(tiles) == 1:
            yield from zip(begin[low:high], end[low:high], [tiles[0]] * (high - low), strict=True)
        elif low < high:
            intervals: Iterable[Interval] = map(Interval, begin[low:high], end[low:high])
            parts = splitRegions(intervals, grain, len(tiles), least)
            for tile, part in zip(tiles, parts, strict=False):
                yield from ((*interval, tile) for interval in part)
