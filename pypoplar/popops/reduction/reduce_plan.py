"""The plan of a reduction across tiles: in how many stages, of how many partial results each, on how many tiles.

A stage is a compute set after an exchange; its cycles are the sync, what the busiest tile receives or sends, and its vertex, by
the functions that are its estimators. Beginnings of plans are extended stage by stage, all at once, as columns; one is given up
where another leaves no more in fewer cycles, or a whole plan takes no more.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from attrs import evolve, fields, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.popops.reduction.reduce_cycles import ReduceKind, chosen, worker_cycles
from pypoplar.poputil.cycles import Count, ceiling
from pypoplar.target import Target
from pypoplar.types import ElementType

MESSAGE = 3  # cycles that a tile needs for a contiguous piece that it sends or receives, however short
WORD = 4  # bytes that two vertices of a tile do not share
FEW, FINER = 16, 1.12  # groups of up to so many partial results are all looked at, larger ones at this ratio
WIDER = (1, 2, 8)  # outputs of a vertex beside the fewest for which there are tiles: times these in whole vectors
UNEVEN = 48  # cycles by which more partial results can take less: some make whole vectors


@frozen
class Stage:
    """Groups of `partials` partial results of an output become one; a vertex has `width` outputs.

    If it `splits`, each of the vertex's workers makes a partial result of its own.
    """

    partials: int
    width: int
    splits: bool = False

    def column_bounds(self, columns: int) -> list[int]:
        """Where the outputs of each vertex begin, and the end."""
        return [*range(0, columns, self.width), columns]


@frozen
class Spread:
    """Partial results before a stage: how many each of so many outputs has, and how they lie.

    A tile has `adjacent` ones of an output side by side, and `width` outputs side by side. `type` is theirs.
    """

    partials: int
    outputs: int
    adjacent: int
    width: int
    type: ElementType


@frozen
class Results:
    """What the last stage gives: its type, whether what is there is updated, and where places are given, a tile's most outputs."""

    type: ElementType
    update: bool = False
    placed: int = 0


@frozen
class ReducePlan:
    """Stages and the cycles that are predicted for them. `at_output`: the last one's vertices lie where its results do."""

    stages: tuple[Stage, ...]
    cycles: int
    at_output: bool = False


def sync_cycles(target: Target) -> int:
    """What a compute set takes beside its exchange and its vertices."""
    sync = target.getMaxIPUSyncDelay() if target.getNumIPUs() == 1 else target.getGlobalSyncCycles()
    return sync + target.compute_set_start_cycles


def vertex_cycles(kind: ReduceKind, target: Target, partials: Count, width: Count, splits: bool) -> Count:
    """Tile cycles of a stage's vertex."""
    workers = target.getNumWorkerContexts()
    if splits:
        return workers * worker_cycles(kind, width, width, ceiling(partials, workers))
    grain = max(target.getVectorWidth(kind.result), WORD // kind.result.size)
    share = ceiling(ceiling(width, grain), workers) * grain
    return workers * worker_cycles(kind, chosen(share > width, width, share), width, partials)


def exchange_cycles(target: Target, size: int, outputs: int, adjacent: Count, lying: Count, partials: Count, width: Count) -> Count:
    """Cycles of the tile that receives or sends most, where vertices take so many partial results of `width` outputs each.

    A tile has `adjacent` partial results of `lying` outputs, of `size` bytes each.
    """
    rate = target.getExchangeBytesPerCycle()
    rows = (width >= outputs) & (lying >= outputs)  # whole ones, which lie one behind the other
    received = chosen(rows, -(-partials // adjacent), partials * -(-width // lying))
    sent = chosen(rows, 1 + 0 * adjacent, adjacent * -(-lying // width))
    moved = _larger(partials * width, adjacent * lying)
    return _larger(ceiling(moved * size, rate), MESSAGE * _larger(received, sent))


def return_cycles(target: Target, results: Results, width: Count) -> Count:
    """Cycles in which results go to the tiles that have places for them."""
    rate = target.getExchangeBytesPerCycle()
    received = MESSAGE * -(-results.placed // width)
    moved = _larger(width, results.placed + 0 * width)
    return target.getMaxIPUSyncDelay() + _larger(received, ceiling(moved * results.type.size, rate))


def _larger(first: Count, second: Count) -> Count:
    return chosen(first > second, first, second)


@lru_cache(maxsize=1024)
def plan_stages(
    target: Target, operation: str, spread: Spread, types: tuple[ElementType, ElementType], results: Results
) -> ReducePlan:
    """The cheapest plan. `types` are those of partial results between tiles, of whole vertices and of vertices that split."""
    return _StageSearch(target, operation, spread, types, results).best()


@frozen(eq=False)
class _Fronts:
    """Beginnings of plans with as many stages: what they leave, in which type, and what they cost.

    `number` is that of each among all, `before` of the one that it extends by a stage of `group`, `outputs` and `splits`.
    """

    partials: Int64s
    adjacent: Int64s
    width: Int64s
    cycles: Int64s
    before: Int64s
    group: Int64s
    outputs: Int64s
    splits: Int64s

    def chosen(self, which: Int64s | Bools) -> _Fronts:
        return _Fronts(*(getattr(self, column.name)[which] for column in fields(_Fronts)))

    @staticmethod
    def joined(several: list[_Fronts]) -> _Fronts:
        return _Fronts(*(np.concatenate([getattr(front, column.name) for front in several]) for column in fields(_Fronts)))

    def __len__(self) -> int:
        return len(self.partials)


@frozen(eq=False)
class _StageSearch:
    target: Target
    operation: str
    spread: Spread
    types: tuple[ElementType, ElementType]
    results: Results

    def best(self) -> ReducePlan:
        """The cheapest of all plans."""
        spread, none = self.spread, np.array([-1])
        first = _Fronts(
            none + 1 + spread.partials, none + 1 + spread.adjacent, none + 1 + spread.width, none + 1, none, none, none, none
        )
        fronts, types = [first], [spread.type]
        cycles, width, at_output, last = self._completed(first, spread.type, begun=False)
        begin = 0
        while True:
            level = self._extended(fronts[begin:], types[begin:], sum(map(len, fronts[:begin])), cycles, begun=begin > 0)
            if not level:
                break
            begin = len(fronts)
            number = sum(map(len, fronts))
            for front, type in level:
                whole, wide, at, place = self._completed(front, type, begun=True)
                if whole < cycles:
                    cycles, width, at_output, last = whole, wide, at, number + place
                number += len(front)
                fronts.append(front)
                types.append(type)
        return self._traced(_Fronts.joined(fronts), last, width, cycles, at_output)

    def _traced(self, fronts: _Fronts, last: int, width: int, cycles: int, at_output: bool) -> ReducePlan:
        stages = [Stage(int(fronts.partials[last]), width)]
        while fronts.before[last] >= 0:
            stages.append(Stage(int(fronts.group[last]), int(fronts.outputs[last]), bool(fronts.splits[last])))
            last = int(fronts.before[last])
        return ReducePlan(tuple(reversed(stages)), cycles, at_output)

    def _kind(self, type: ElementType, result: ElementType, begun: bool) -> ReduceKind:
        operation = "ADD" if begun and self.operation == "SQUARE_ADD" else self.operation
        return ReduceKind(operation, type, result)

    def _stage_cycles(self, kind: ReduceKind, fronts: _Fronts, partials: Int64s, width: Int64s, splits: bool = False) -> Int64s:
        moved = exchange_cycles(self.target, kind.type.size, self.spread.outputs, fronts.adjacent, fronts.width, partials, width)
        computed = vertex_cycles(kind, self.target, partials, width, splits)
        cycles: Int64s = fronts.cycles + sync_cycles(self.target) + moved + computed
        return cycles

    def _completed(self, fronts: _Fronts, type: ElementType, begun: bool) -> tuple[int, int, bool, int]:
        """The cheapest completion of a beginning: cycles, outputs of a vertex, whether it lies where they do, which beginning."""
        results = self.results
        kind = evolve(self._kind(type, results.type, begun), update=results.update)
        width = self._widths()
        place = np.repeat(np.arange(len(fronts)), len(width))
        grid, width = fronts.chosen(place), np.tile(width, len(fronts))
        cycles = self._stage_cycles(kind, grid, grid.partials, width)
        if results.placed:
            cycles = cycles + return_cycles(self.target, results, width)
        best = int(cycles.argmin())
        answer = int(cycles[best]), int(width[best]), False, int(place[best])
        if results.placed:
            there = self._stage_cycles(kind, fronts, fronts.partials, np.full(len(fronts), results.placed))
            best = int(there.argmin())
            answer = min(answer, (int(there[best]), results.placed, True, best))
        return answer

    def _extended(
        self, fronts: list[_Fronts], types: list[ElementType], number: int, limit: int, begun: bool
    ) -> list[tuple[_Fronts, ElementType]]:
        """The beginnings with one more stage, by type of what they leave; none that cannot be completed below `limit` cycles."""
        longer: dict[ElementType, list[_Fronts]] = {}
        for front, type in zip(fronts, types, strict=True):
            for splits in (False, True):
                left = self.types[splits]
                more = self._with_stage(front, self._kind(type, left, begun), number, splits)
                longer.setdefault(left, []).append(more.chosen(more.cycles + sync_cycles(self.target) < limit))
            number += len(front)
        cheapest = [(_cheapest(_Fronts.joined(several)), type) for type, several in longer.items()]
        return [(front, type) for front, type in cheapest if len(front)]

    def _with_stage(self, fronts: _Fronts, kind: ReduceKind, number: int, splits: bool) -> _Fronts:
        """All beginnings with each stage that leaves less and has tiles enough."""
        groups, place = self._groups(fronts.partials, splits)
        least = self._least_width(groups)
        vectors = ceiling(least, kind.loaded) * kind.loaded  # loads are of whole ones
        width = np.minimum(np.concatenate([least, *(vectors * times for times in WIDER)]), self.spread.outputs)
        place = np.tile(place, len(WIDER) + 1)
        grid = fronts.chosen(place)
        group = -(-grid.partials // np.tile(groups, len(WIDER) + 1))
        cycles = self._stage_cycles(kind, grid, group, width, splits)
        one = np.ones_like(group)
        parts = -(-group // ceiling(group, self.target.getNumWorkerContexts())) if splits else one
        longer = _Fronts(-(-grid.partials // group) * parts, parts, width, cycles, number + place, group, width, splits * one)
        return longer.chosen(longer.partials < grid.partials)

    def _groups(self, partials: Int64s, splits: bool) -> tuple[Int64s, Int64s]:
        """Numbers of groups, for each of several numbers of partial results, and the place of that number."""
        most = int(partials.max(initial=2))
        steps = np.arange(int(np.log(most) / np.log(FINER)) + 2)
        sizes = distinct(np.append(np.arange(2, FEW), np.minimum((FEW * FINER**steps).astype(np.int64), most)))
        groups = -(-partials[:, None] // sizes)
        fitting = (groups >= (1 if splits else 2)) & (groups <= self.target.getNumTiles())
        fitting[:, 1:] &= groups[:, 1:] != groups[:, :-1]
        place, size = np.nonzero(fitting)
        return groups[place, size], place

    def _least_width(self, groups: Int64s) -> Int64s:
        """The fewest outputs of a vertex for which there are tiles."""
        return -(-self.spread.outputs // np.maximum(self.target.getNumTiles() // groups, 1))

    def _widths(self) -> Int64s:
        """Outputs of a vertex of the last stage: the fewest for which there are tiles, powers of two, and all."""
        powers = 1 << np.arange(self.spread.outputs.bit_length() + 1)
        return distinct(np.clip(powers, self._least_width(np.array([1])), self.spread.outputs))


def _cheapest(fronts: _Fronts) -> _Fronts:
    """Of beginnings that leave the same the cheapest, and none beside which another leaves no more and takes clearly less."""
    order = np.lexsort((fronts.cycles, fronts.partials, fronts.adjacent, fronts.width))
    fronts = fronts.chosen(order)
    group = np.cumsum(np.append([0], (fronts.width[1:] != fronts.width[:-1]) | (fronts.adjacent[1:] != fronts.adjacent[:-1])))
    new = np.append([True], (fronts.partials[1:] != fronts.partials[:-1]) | (group[1:] != group[:-1]))
    span = int(fronts.cycles.max(initial=0)) + 1
    least = np.minimum.accumulate(fronts.cycles - group * span) + group * span
    return fronts.chosen((new & (fronts.cycles < least + UNEVEN))[: len(fronts)])
