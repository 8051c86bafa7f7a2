"""What a cycle of a pipeline consists of: what comes from other IPUs and the host, segments, and results that go to the host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from enum import IntEnum
from typing import TypeGuard

import numpy as np
from attrs import define, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.compiler.liveness.block_effects import BlockEffects, effects_on_each_other
from pypoplar.compiler.liveness.set_touches import touches_of_parts
from pypoplar.graph.frozen import FrozenGraph, FrozenMapping, FrozenVariables
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.capture import Pass
from pypoplar.poptorch.pipelines.finished_segments import SegmentOfCycle
from pypoplar.poptorch.pipelines.kept_within import parts_again
from pypoplar.poptorch.pipelines.recomputation import KeptVariables, steps_again
from pypoplar.poptorch.pipelines.stage_segments import NotPipelined, Segment
from pypoplar.program import Copy, Sequence
from pypoplar.program.base import Program


class UnitKind(IntEnum):
    """The parts of a cycle, in their order."""

    ARRIVAL = 0  # a copy from another IPU
    HOST = 1  # a copy from the host
    SEGMENT = 2
    RESULT = 3  # a copy to the host


@define(eq=False)
class CycleUnit:
    """A part of a cycle: what it does for the micro-batch that has come to it, `offset` cycles after that began."""

    kind: UnitKind
    name: str
    offset: int
    programs: list[Program]
    segment: Segment | None = None  # that it is, or, of an arrival, that reads it first
    period: int = 1  # of a result: of how many micro-batches the last one's

    def is_active(self, cycle: int, batches: int) -> bool:
        """Whether a micro-batch has come to it in a cycle."""
        return 0 <= cycle - self.offset < batches and (cycle - self.offset + 1) % self.period == 0


@frozen(eq=False)
class SentResult:
    """A copy to the host of what a segment makes: of each micro-batch, or of the last one of a period."""

    segment: Segment
    copy: Copy
    period: int = 1


@frozen(eq=False)
class CycleParts:
    """The units of a cycle in its order, what they do to variables, and copies from other IPUs that are made once a step."""

    units: tuple[CycleUnit, ...]
    effects: BlockEffects  # a row for each unit
    once: tuple[Copy, ...]
    ipus: IpusOfElements
    initial: frozenset[int]  # the variables, by number, that have values before anything is run

    @property
    def segments(self) -> tuple[SegmentOfCycle, ...]:
        """Those of a cycle, in its order."""
        return tuple(SegmentOfCycle(unit.name, unit.offset) for unit in self.units if unit.kind is UnitKind.SEGMENT)


def cycle_parts(
    graph: Graph,
    programs: dict[Segment, Sequence],
    inputs: Iterable[Copy],
    results: Iterable[SentResult],
    written: Iterable[Tensor],
    chosen: KeptVariables | None = None,
) -> CycleParts:
    """The units of segments, of copies from the host, and of results. `NotPipelined` for what cannot overlap.

    `written` is what the host gives values between calls. If something is `chosen`, all stages but the last make again what
    their gradients take, from their inputs and that.
    """
    frozen = graph.freeze()  # once: of a large network this takes as much memory as all that is built
    initial = _initial(frozen.variables, written)
    ipus, arrivals, segments = IpusOfElements.of(graph, frozen.mapping), list[CycleUnit](), list[CycleUnit]()
    last = max(one.stage for one in programs)
    for segment, program in programs.items():
        own = CycleUnit(UnitKind.SEGMENT, segment.name, segment.offset, [], segment)
        for step in _flat(program):
            if _is_between_tensors(step) and ipus.of_tensor(step.source) != ipus.of_tensor(step.destination):
                arrivals.append(CycleUnit(UnitKind.ARRIVAL, step.name, segment.offset, [step], segment))
            else:
                own.programs.append(step)
        segments.append(own)
    if chosen is not None:
        _recompute(graph, frozen, segments, initial, chosen)
    hosts = [CycleUnit(UnitKind.HOST, copy.name, 0, [copy]) for copy in inputs]
    sent = [CycleUnit(UnitKind.RESULT, one.copy.name, one.segment.offset, [one.copy], one.segment, one.period) for one in results]
    units = [*arrivals, *hosts, *segments, *sent]
    effects = effects_on_each_other(graph, frozen, [Sequence(unit.programs) for unit in units], initial)
    _check_ipus(units, effects, ipus)
    touch = _Touches.of(effects, units)
    for host in hosts:
        host.offset = min((one.offset for one in (*segments, *sent) if touch.finds(one, touch.written[host])), default=0)
    once: list[CycleUnit] = []
    for arrival in _in_turn(arrivals, touch):
        if not _set_offset(arrival, [*segments, *hosts, *(one for one in arrivals if one not in once)], touch):
            once.append(arrival)
    kept = sorted((unit for unit in units if unit not in once), key=lambda unit: _position(unit, last))
    copies = tuple(copy for unit in once for copy in unit.programs if isinstance(copy, Copy))
    rows = _rows(effects, [units.index(unit) for unit in kept])
    return CycleParts(tuple(kept), rows, copies, ipus, initial)


def _initial(variables: FrozenVariables, written: Iterable[Tensor]) -> frozenset[int]:
    """The variables with initial values, and those that the host writes."""
    found = {number for tensor in written for number in tensor.variable_numbers()}
    for runs, _ in variables.initial:
        found |= set((np.searchsorted(variables.first, runs.start[runs.count > 0], "right") - 1).tolist())
    return frozenset(found)


def _recompute(
    graph: Graph, frozen: FrozenGraph, segments: SequenceOf[CycleUnit], initial: frozenset[int], chosen: KeptVariables
) -> None:
    """Let segments backward compute again what they take; the last stage's follow at once, and need not.

    If nothing is kept beside their inputs all of it comes first, which is all that gradients of a chain of layers need.
    """
    found = {(one.segment.stage, one.segment.direction): one for one in segments if one.segment is not None}
    last = max(stage for stage, _ in found)
    for (stage, direction), unit in found.items():
        if direction is Pass.BACKWARD and stage < last:
            forward, backward = found[stage, Pass.FORWARD].programs, unit.programs
            parts = parts_again(graph, frozen, forward, backward, initial, chosen) if chosen.tensors else None
            unit.programs = parts or [*steps_again(graph, frozen, forward, backward, initial, chosen), *backward]


def _in_turn(arrivals: list[CycleUnit], touch: _Touches) -> list[CycleUnit]:
    """Copies from other IPUs, each behind the one that brings what it copies on to a third."""
    left, found = list(arrivals), list[CycleUnit]()
    while left:
        ready = [one for one in left if not any(touch.written[other] & touch.found[one] for other in left if other is not one)]
        if not ready:
            raise NotPipelined(f"{left[0].name} goes round between IPUs")
        found += ready
        left = [one for one in left if one not in ready]
    return found


def _flat(program: Program) -> Iterable[Program]:
    """The steps of a program, without the sequences that have no name."""
    if isinstance(program, Sequence) and not program.name:
        for one in program.programs:
            yield from _flat(one)
    else:
        yield program


def _is_between_tensors(step: Program) -> TypeGuard[_TensorCopy]:
    return type(step) is Copy and isinstance(step.source, Tensor) and isinstance(step.destination, Tensor)


class _TensorCopy(Copy):
    """A copy between tensors, for types."""

    source: Tensor
    destination: Tensor


def _position(unit: CycleUnit, last: int) -> tuple[int, int]:
    """Where in a cycle a unit comes.

    Of an IPU's segments those backward come first, so that what the ones forward give stays. What is copied on to a third IPU has
    come a cycle before, and goes on before the next comes.
    """
    segment = unit.segment
    if unit.kind is UnitKind.ARRIVAL:
        return unit.kind, -unit.offset
    if unit.kind is not UnitKind.SEGMENT or segment is None:
        return unit.kind, 0
    if segment.stage == last:
        return unit.kind, last + (segment.direction is Pass.BACKWARD)
    return unit.kind, segment.stage if segment.direction is Pass.BACKWARD else 2 * last + 1 - segment.stage


def _set_offset(arrival: CycleUnit, makers: SequenceOf[CycleUnit], touch: _Touches) -> bool:
    """Let a copy from another IPU come a cycle after what it copies is made; False if no micro-batch changes that."""
    own = arrival.segment
    assert own is not None
    read = touch.found[arrival]
    making = [one for one in makers if one is not arrival and touch.written[one] & read]
    made = [one.offset for one in making if one.kind is not UnitKind.SEGMENT or one.segment is None or one.segment.rank < own.rank]
    if not made:
        if making:
            raise NotPipelined(f"{arrival.name} reads what a later stage gives")
        return False
    arrival.offset = max(made) + 1
    if arrival.offset > own.offset:
        raise NotPipelined(f"{arrival.name} is needed before it comes from another IPU")
    return True


@frozen(eq=False)
class _Touches:
    """The numbers of variables that each unit finds something in, and writes."""

    found: dict[CycleUnit, set[int]]
    written: dict[CycleUnit, set[int]]

    @classmethod
    def of(cls, effects: BlockEffects, units: SequenceOf[CycleUnit]) -> _Touches:
        atoms = effects.surely
        found, written = (
            {unit: set(atoms.variable[row].tolist()) for unit, row in zip(units, rows, strict=True)}
            for rows in (atoms.finds, atoms.writes)
        )
        return cls(found, written)

    def finds(self, unit: CycleUnit, variables: set[int]) -> bool:
        """Whether it finds something in one of these."""
        return not self.found[unit].isdisjoint(variables)


def _rows(effects: BlockEffects, rows: list[int]) -> BlockEffects:
    """The effects of some of the programs, in another order."""
    surely, probably = (
        type(atoms)(atoms.variable, atoms.finds[rows], atoms.defines[rows], atoms.writes[rows])
        for atoms in (effects.surely, effects.probably)
    )
    return BlockEffects(effects.frozen, surely, probably, tuple(effects.accesses[row] for row in rows))


@frozen(eq=False)
class IpusOfElements:
    """On which IPU elements lie."""

    begin: Int64s  # element ids of stretches, sorted
    ipu: Int64s
    changes: Int64s  # the stretches that are on another IPU than the one before

    @staticmethod
    def of(graph: Graph, mapping: FrozenMapping) -> IpusOfElements:
        """Those of all elements of a mapping of a graph."""
        tiles = graph.replicas().tiles.target.getTilesPerIPU()
        ipu = mapping.tile.astype(np.int64) // tiles
        return IpusOfElements(mapping.begin.astype(np.int64), ipu, np.flatnonzero(np.diff(ipu)) + 1)

    def of_tensor(self, tensor: Tensor) -> set[int]:
        """The IPUs of a tensor."""
        runs = tensor.runs()
        some = runs.count > 0
        start, steps = runs.start[some], (runs.count[some] - 1) * runs.step[some]
        return self.between(np.minimum(start, start + steps), np.maximum(start, start + steps))

    def of_compute_sets(self, frozen: FrozenGraph) -> dict[int, set[int]]:
        """The IPUs of what the vertices of each compute set touch."""
        if not len(self.begin):
            return {}
        places = np.append(0, self.changes)
        touched = touches_of_parts(frozen, np.append(0, self.begin[self.changes]))
        found: dict[int, set[int]] = defaultdict(set)
        for by_set in (touched.read, touched.written):
            for number, parts in by_set.items():
                found[number] |= set(self.ipu[places[sorted(parts)]].tolist())
        return found

    def between(self, first: Int64s, last: Int64s) -> set[int]:
        """The IPUs of the elements from each first to each last one."""
        if not len(first) or not len(self.begin):
            return set()
        begin, end = (np.maximum(np.searchsorted(self.begin, ends, "right") - 1, 0) for ends in (first, last))
        change = np.searchsorted(self.changes, (begin, end), "right")
        found = set(np.unique(self.ipu[np.append(begin, end)]).tolist())
        for low, high in np.unique(change[:, change[1] > change[0]], axis=1).T.tolist():
            found |= set(self.ipu[self.changes[low:high]].tolist())
        return found


def _check_ipus(units: SequenceOf[CycleUnit], effects: BlockEffects, ipus: IpusOfElements) -> None:
    """`NotPipelined` if what a segment does itself takes two IPUs, which would wait for each other in the midst of it."""
    frozen = effects.frozen
    by_set = ipus.of_compute_sets(frozen)
    for unit, accesses in zip(units, effects.accesses, strict=True):
        if unit.kind is not UnitKind.SEGMENT or unit.segment is None:
            continue
        for access in accesses:
            found = set[int]()
            for tensor in (*access.reads, *access.writes):
                found |= ipus.of_tensor(tensor)
            name = "a copy"
            if access.compute_set >= 0:
                found |= by_set.get(access.compute_set, set())
                name = frozen.compute_sets[access.compute_set]
            elif access.reads or access.writes:
                name = (access.writes or access.reads)[0].getDebugStr()
            if not found <= {unit.segment.ipu}:
                others = ", ".join(f"IPU {ipu}" for ipu in sorted(found - {unit.segment.ipu}))
                raise NotPipelined(f"{name} of {unit.name}, on IPU {unit.segment.ipu}, has a part on {others}")
