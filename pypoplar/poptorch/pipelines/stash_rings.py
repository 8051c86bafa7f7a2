"""Stashes on the device: as many places for a tensor as micro-batches are on their way, taken in turn."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from attrs import frozen

from pypoplar import popops
from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.intervals import Interval
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat, concat_slices
from pypoplar.popops.expr import Const, Equal, PlaceHolder, Select
from pypoplar.popops.slicing.held_places import HeldPlaces
from pypoplar.poptorch.pipelines.pipeline_units import CycleParts
from pypoplar.poptorch.pipelines.stage_segments import NotPipelined
from pypoplar.poptorch.pipelines.stash_plan import Stashed, lag
from pypoplar.program import Copy, Sequence
from pypoplar.types import UNSIGNED_INT, ElementType


@frozen(eq=False)
class StashPrograms:
    """What rings add to a step: by unit, by number, what comes before and behind it; and what begins a step, and each cycle."""

    restores: dict[int, Sequence]
    saves: dict[int, Sequence]
    begin: Sequence
    advance: Sequence


@frozen
class _Ring:
    """Variables that one unit saves and the same units restore: on an IPU, of one type."""

    maker: int
    lags: tuple[tuple[int, int], ...]  # by unit: for how many cycles it is kept
    ipu: int
    type: ElementType

    @property
    def depth(self) -> int:
        """How many places it has: in the cycle in which one is read, another one is written."""
        return max(cycles for _, cycles in self.lags) + 1


def add_rings(graph: Graph, parts: CycleParts, stashed: list[Stashed]) -> StashPrograms:
    """Add rings for all that is put aside, each of as many places as cycles lie between, and one."""
    together: dict[_Ring, list[Tensor]] = defaultdict(list)
    for one in stashed:
        tensor = graph.variable_numbered(one.variable)
        ipus = parts.ipus.of_tensor(tensor)
        if len(ipus) != 1:
            raise NotPipelined(f"{tensor.getDebugStr()} lies on several IPUs")
        lags = tuple((unit, lag(one, unit, parts.units)) for unit in one.restored_by)
        together[_Ring(one.maker, lags, ipus.pop(), tensor.elementType())].append(tensor)
    counters: dict[int, _Counter] = {}
    for ipu in {ring.ipu for ring in together}:
        counters[ipu] = _Counter.of(graph, ipu, [ring for ring in together if ring.ipu == ipu])
    restores: dict[int, Sequence] = defaultdict(Sequence)
    saves: dict[int, Sequence] = defaultdict(Sequence)
    for ring, tensors in together.items():
        counter, depth, name = counters[ring.ipu], ring.depth, f"{parts.units[ring.maker].name}/stash"
        held = HeldByTiles.of(parts.effects.frozen, tensors)
        places = held.places(graph, name, depth)
        places.update(graph, counter.at(depth, 0), saves[ring.maker], f"{name}/save")
        for unit, cycles in ring.lags:
            places.slice(graph, counter.at(depth, cycles), restores[unit], f"{name}/restore")
    begin, advance = Sequence(), Sequence()
    for counter in counters.values():
        counter.add_to(begin, advance)
    return StashPrograms(dict(restores), dict(saves), begin, advance)


@frozen(eq=False)
class HeldByTiles:
    """All of some variables of one type, tile by tile: so that a tile has one piece of each place, whatever it has of them."""

    largest: str  # of the variables; and how many others there are
    elements: Tensor  # flat
    tiles: Int64s  # that have some
    ends: Int64s  # where in `elements` those of each tile end

    @staticmethod
    def of(frozen: FrozenGraph, wholes: list[Tensor]) -> HeldByTiles:
        """Those of variables, each given as a whole."""
        mapping, before = frozen.mapping, 0
        begins, stops, of_tiles = list[Int64s](), list[Int64s](), list[Int64s]()
        for whole in wholes:
            (number,) = whole.variable_numbers()
            first, end = (int(bound) for bound in frozen.variables.first[number : number + 2])
            some = slice(int(np.searchsorted(mapping.end, first, "right")), int(np.searchsorted(mapping.begin, end)))
            begins.append(np.maximum(mapping.begin[some].astype(np.int64), first) - first + before)
            stops.append(np.minimum(mapping.end[some].astype(np.int64), end) - first + before)
            of_tiles.append(mapping.tile[some].astype(np.int64))
            before += whole.numElements()
        begin, stop, tile = (np.concatenate(several) for several in (begins, stops, of_tiles))
        order = np.argsort(tile, kind="stable")
        flat = concat([whole.flatten() for whole in wholes])
        elements = flat if (np.diff(order) == 1).all() else concat_slices(flat, begin[order], stop[order])
        tiles, opened = np.unique(tile[order], return_index=True)
        ends = np.append(0, np.cumsum((stop - begin)[order]))[[*opened[1:], len(order)]]
        name = max(wholes, key=Tensor.numElements).getDebugStr()
        return HeldByTiles(f"{name} and {len(wholes) - 1} more" if len(wholes) > 1 else name, elements, tiles, ends)

    def places(self, graph: Graph, name: str, depth: int) -> HeldPlaces:
        """So many places for them, each on the tiles that have them. A message about memory names them.

        A tile has all places in one piece.
        """
        made = f"{name}, {depth} deep, of {self.largest}"
        flat = graph.addVariable(self.elements.elementType(), [depth * self.elements.numElements()], made)
        mapping: list[list[Interval]] = [[] for _ in range(graph.getTarget().getNumTiles())]
        begin = np.append(0, self.ends)[:-1]
        for tile, first, end in zip(self.tiles.tolist(), (depth * begin).tolist(), (depth * self.ends).tolist(), strict=True):
            mapping[tile].append(Interval(first, end))
        graph.setTileMapping(flat, mapping)
        return HeldPlaces(self.elements, flat, depth, self.tiles, self.ends)


@frozen(eq=False)
class _Counter:
    """The places of the rings of an IPU that are next, which go on by one each cycle."""

    graph: Graph
    ipu: int
    kinds: tuple[tuple[int, int], ...]  # depths of rings, and so many cycles ago something was saved
    slots: Tensor  # UNSIGNED_INT [kinds]

    @staticmethod
    def of(graph: Graph, ipu: int, rings: list[_Ring]) -> _Counter:
        """What the rings of an IPU take."""
        kinds = {(ring.depth, cycles): None for ring in rings for cycles in (0, *(cycles for _, cycles in ring.lags))}
        slots = graph.addVariable(UNSIGNED_INT, [len(kinds)], f"stash/place/ipu{ipu}")
        graph.setTileMapping(slots, ipu * graph.getTarget().getTilesPerIPU())
        return _Counter(graph, ipu, tuple(kinds), slots)

    def at(self, depth: int, cycles: int) -> Tensor:
        """UNSIGNED_INT [1]: where in a ring of some depth is what was saved so many cycles ago."""
        number = self.kinds.index((depth, cycles))
        return self.slots.slice(number, number + 1)

    def add_to(self, begin: Sequence, advance: Sequence) -> None:
        """Extend what begins a step, and each cycle."""
        name = f"stash/place/ipu{self.ipu}"
        starts = [(-1 - cycles) % depth for depth, cycles in self.kinds]
        first, depths = (self._constant(values, name) for values in (starts, [depth for depth, _ in self.kinds]))
        begin.add(Copy(first, self.slots, name=f"{name}/begin"))
        after = PlaceHolder(1) + Const(1, UNSIGNED_INT)
        following = Select(Const(0, UNSIGNED_INT), after, Equal(after, PlaceHolder(2)))
        popops.mapInPlace(self.graph, following, [self.slots, depths], advance, f"{name}/next")

    def _constant(self, values: list[int], name: str) -> Tensor:
        constant = self.graph.addConstant(UNSIGNED_INT, [len(values)], np.array(values, np.uint32), name)
        self.graph.setTileMapping(constant, self.ipu * self.graph.getTarget().getTilesPerIPU())
        return constant
