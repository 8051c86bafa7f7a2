"""What compute sets cost: cycles of their tiles by estimates, and by the costs of classes where the code decides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.engine.block_tables import BlockTables
from pypoplar.engine.cost.class_examples import ClassCost
from pypoplar.engine.cost.class_runs import ClassRuns, Samples
from pypoplar.engine.cost.vertex_classes import find_classes
from pypoplar.engine.interpreter.interpreter import schedule
from pypoplar.executable.executable import Executable
from pypoplar.interface.context_words import WORK_WORDS, Work
from pypoplar.interface.driver_records import VertexCount
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.vertex_kinds import VertexKind


@frozen(eq=False)
class ComputePrice:
    """What one execution of a compute set counts."""

    cycles: Int64s  # [active tiles]
    slots: Int64s  # [active tiles]: in which workers of its vertices work
    codelet: Int64s  # the codelets that it has
    codelet_slots: Int64s  # of each of them
    codelet_work: Int64s  # [those codelets, WORK_WORDS], no columns where work is not counted
    blocks: tuple[tuple[int, Int64s], ...]  # places in the table of blocks, and what is added from there on
    slowest: tuple[int, int]  # the most cycles of a vertex, and its position

    @property
    def longest(self) -> int:
        """Cycles of the slowest tile."""
        return int(self.cycles.max(initial=0))


@define(eq=False)
class ComputePrices:
    """The prices of the compute sets of an executable, each found when it is first asked for."""

    executable: Executable
    samples: Samples
    blocks: BlockTables | None
    runs: ClassRuns = field(init=False)
    _known: dict[int, ComputePrice] = field(factory=dict)
    _schedules: dict[bytes, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        computes = self.executable.computes
        decided = np.ones(len(computes.vertex), bool)
        if len(computes.estimate) and self.blocks is None:
            decided = computes.estimate == NOTHING
        self.runs = ClassRuns(self.executable, find_classes(self.executable, decided), self.samples)

    def of(self, compute: int) -> ComputePrice:
        """The price of a compute set; `ControlProgramError` where data decide it and nobody has said which."""
        if compute not in self._known:
            self._known[compute] = self._found(compute)
        return self._known[compute]

    def _found(self, compute: int) -> ComputePrice:
        computes, workers = self.executable.computes, self.executable.target.getNumWorkerContexts()
        vertices = np.arange(*computes.first_vertex[compute : compute + 2])
        active = np.arange(*computes.first_active[compute : compute + 2])
        groups = np.arange(*computes.first_group[[active[0], active[-1] + 1]]) if len(active) else active
        count = computes.group_count[groups]
        kind, codelet = np.repeat(computes.group_kind[groups], count), np.repeat(computes.group_codelet[groups], count)
        classes = self.runs.classes.of_vertex[vertices]
        self.runs.run_beforehand(distinct(classes[classes != NOTHING]).tolist())
        slots, by_code = self._slots(vertices, classes)
        taken = slots * np.where(kind == VertexKind.MULTI, workers, 1)
        busy = self._of_classes(classes, by_code, lambda cost: cost.busy)
        busy = busy if bool(by_code.all()) else np.where(by_code, busy, taken)
        first = computes.group_position[computes.first_group[active]] - (vertices[0] if len(vertices) else 0)
        numbers, which = np.unique(codelet, return_inverse=True)
        work = self._work(vertices, classes) if self.executable.options.flop_estimates else np.zeros((len(vertices), 0), np.int64)
        return ComputePrice(
            cycles=self._cycles(kind, slots, taken, first, vertices),
            slots=np.add.reduceat(busy, first) if len(first) else first,
            codelet=numbers,
            codelet_slots=np.bincount(which, taken, len(numbers)).astype(np.int64),
            codelet_work=_summed(work, which, len(numbers)),
            blocks=self._blocks(compute, groups, classes, codelet, taken),
            slowest=_slowest(kind, slots, vertices, workers),
        )

    def _slots(self, vertices: Int64s, classes: Int64s) -> tuple[Int64s, Bools]:
        """Slots of each vertex: what an estimate says, else what its class costs; and of which vertices it is the class."""
        computes = self.executable.computes
        if not len(computes.estimate):
            by_code = np.ones(len(vertices), bool)
            return self._of_classes(classes, by_code, lambda cost: cost.slots), by_code
        given = computes.estimate[vertices]
        by_code = given == NOTHING
        return np.where(by_code, self._of_classes(classes, by_code, lambda cost: cost.slots), given), by_code

    def _of_classes(self, classes: Int64s, chosen: Bools, value: Callable[[ClassCost], int]) -> Int64s:
        """What the class of each vertex costs, of those that are chosen; 0 of others."""
        numbers = distinct(classes[chosen])
        if len(numbers) == 1 and bool(chosen.all()):
            return np.full(len(classes), value(self.runs.of(int(numbers[0]))))
        values = np.zeros(int(numbers[-1]) + 1 if len(numbers) else 0, np.int64)
        for number in numbers.tolist():
            values[number] = value(self.runs.of(number))
        found = np.zeros(len(classes), np.int64)
        found[chosen] = values[classes[chosen]]
        return found

    def _work(self, vertices: Int64s, classes: Int64s) -> Int64s:
        """[vertices, WORK_WORDS]; flops that were given take the place of those of the code."""
        numbers = distinct(classes)
        of_class = np.zeros((len(numbers), WORK_WORDS), np.int64)
        for place, number in enumerate(numbers.tolist()):
            counts = self.runs.counts_of(number)
            if counts is not None:
                of_class[place] = counts.work
        work = of_class[np.searchsorted(numbers, classes)]
        if len(self.executable.computes.flops):
            given = self.executable.computes.flops[vertices]
            work[:, Work.FLOPS] = np.where(given != NOTHING, given, work[:, Work.FLOPS])
        return work

    def _cycles(self, kind: Int64s, slots: Int64s, taken: Int64s, first: Int64s, vertices: Int64s) -> Int64s:
        """Cycles of each tile, whose vertices begin at `first`."""
        workers = self.executable.target.getNumWorkerContexts()
        if len(first) == 0:
            return first
        count = np.diff(np.append(first, len(slots)))
        most = np.maximum.reduceat(slots, first)
        plain, multi = (_all_of(kind, one, first) for one in (VertexKind.VERTEX, VertexKind.MULTI))
        even = plain & (count <= workers)
        if not bool((even | multi).all()):
            even |= plain & (np.minimum.reduceat(slots, first) == most)
        total = np.add.reduceat(slots, first) if bool(multi.any()) else most
        cycles = np.where(multi, total * workers, -(-count // workers) * most * workers)
        order = self.executable.computes.list_order[vertices]
        for tile in np.flatnonzero(~multi & ~even).tolist():
            own = slice(int(first[tile]), int(first[tile] + count[tile]))
            prices = np.stack((kind[own], slots[own]), 1)[order[own]]
            key = prices.tobytes()
            if key not in self._schedules:
                self._schedules[key] = schedule([(int(sort), int(cost)) for sort, cost in prices.tolist()], workers)
            cycles[tile] = self._schedules[key]
        return cycles

    def _blocks(
        self, compute: int, groups: Int64s, classes: Int64s, codelet: Int64s, taken: Int64s
    ) -> tuple[tuple[int, Int64s], ...]:
        """What is added to the rows of the compute set's codelets, where executions of blocks are counted."""
        if self.blocks is None:
            return ()
        computes, added = self.executable.computes, []
        for number in distinct(computes.group_codelet[groups]).tolist():
            place = int(self.blocks.of_group[groups[computes.group_codelet[groups] == number][0]])
            own = codelet == number
            different, times = np.unique(classes[own], return_counts=True)
            counts = np.zeros(1, np.int64)
            for which, often in zip(different.tolist(), times.tolist(), strict=True):
                known = self.runs.counts_of(which)
                counts = counts if known is None else counts + often * known.blocks
            added += [(place + VertexCount.SLOTS, np.array([taken[own].sum()])), (place + VertexCount.BLOCKS, counts)]
        return tuple(added)


def _all_of(kind: Int64s, one: VertexKind, first: Int64s) -> Bools:
    """bool [groups]: whether all vertices of each are of a kind; most compute sets have one kind alone."""
    of_kind = kind == one
    if of_kind.all() or not of_kind.any():
        return np.full(len(first), bool(of_kind.all()))
    groups: Bools = np.logical_and.reduceat(of_kind, first)
    return groups


def _summed(work: Int64s, which: Int64s, count: int) -> Int64s:
    """Sums of rows by number."""
    sums = np.zeros((count, work.shape[1]), np.int64)
    np.add.at(sums, which, work)
    return sums


def _slowest(kind: Int64s, slots: Int64s, vertices: Int64s, workers: int) -> tuple[int, int]:
    """The most cycles of a vertex and its position: of several the lowest, and 0 of none where none takes any."""
    cycles = slots * np.where(kind == VertexKind.SUPERVISOR, 1, workers)
    most = int(cycles.max(initial=0))
    return (most, int(vertices[int(cycles.argmax())])) if most else (0, 0)
