"""The program of a step of a pipeline: it fills, cycle by cycle, goes round in a loop, and empties."""

from __future__ import annotations

from attrs import define, field, frozen

from pypoplar import popops
from pypoplar.graph.graph import Graph
from pypoplar.graph.host_links import Function
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.pipelines.pipeline_units import CycleParts, CycleUnit, UnitKind
from pypoplar.poptorch.pipelines.stash_plan import is_of_head, stashes
from pypoplar.poptorch.pipelines.stash_rings import StashPrograms, add_rings
from pypoplar.program import Call, Copy, Repeat, Sequence


@frozen(eq=False)
class Seeds:
    """The seed of a step, and on each IPU the one that its random operations read; UNSIGNED_INT [2] each."""

    all: Tensor
    of_ipus: dict[int, Tensor]


@define(eq=False)
class PipelineProgram:
    """Builds the program of so many micro-batches that follow each other through the units of a cycle."""

    graph: Graph
    parts: CycleParts
    seeds: Seeds | None
    _functions: dict[int, Function] = field(factory=dict)  # by unit
    _begin: Sequence = field(factory=Sequence)

    def build(self, batches: int) -> Sequence:
        """The program."""
        units = self.parts.units
        rings = add_rings(self.graph, self.parts, stashes(self.parts))
        for number, unit in enumerate(units):
            if unit.kind is UnitKind.SEGMENT:
                self._functions[number] = self._function(number, unit, rings)
        cycles = batches + max(unit.offset for unit in units)
        active = [tuple(n for n, unit in enumerate(units) if unit.is_active(cycle, batches)) for cycle in range(cycles)]
        period = max(unit.period for unit in units)
        program = Sequence([Sequence(list(self.parts.once)), rings.begin, self._begin])
        begin = 0
        while begin < cycles:
            rounds = _rounds(active, begin, period)
            some = Sequence([self._cycle(one, rings) for one in active[begin : begin + (period if rounds > 1 else 1)]])
            program.add(Repeat(rounds, some) if rounds > 1 else some)
            begin += rounds * period if rounds > 1 else 1
        if self.seeds is not None:
            popops.addInPlace(self.graph, self.seeds.all.slice(1, 2), batches, program, "seed/forward")
        return program

    def _function(self, number: int, unit: CycleUnit, rings: StashPrograms) -> Function:
        """What a segment does of a micro-batch, on its IPU alone."""
        before, behind = (one.get(number, Sequence()) for one in (rings.restores, rings.saves))
        return self.graph.addFunction(Sequence([self._next_seed(unit), before, *unit.programs, behind]))

    def _next_seed(self, unit: CycleUnit) -> Sequence:
        """Every micro-batch draws other random numbers, and in all of its segments from the same seed."""
        program, seeds = Sequence(), self.seeds
        assert unit.segment is not None
        ipu = unit.segment.ipu
        if seeds is None or ipu not in seeds.of_ipus:
            return program
        name, read = f"seed/{unit.name}", seeds.of_ipus[ipu]
        own = self.graph.clone(read, name)
        self._begin.add(Copy(seeds.all, own, name=name))
        popops.addInPlace(self.graph, own.slice(1, 2), 1, program, name)
        program.add(Copy(own, read, name=name))
        return program

    def _cycle(self, active: tuple[int, ...], rings: StashPrograms) -> Sequence:
        """What units do in one cycle. What comes from other IPUs comes first, and at once: from there on each goes by itself."""
        units = self.parts.units
        head = [number for number in active if is_of_head(units[number])]
        results = [number for number in active if units[number].kind is UnitKind.RESULT]
        program = Sequence([rings.advance])
        for some in (head, results):
            if some is results:
                for number, function in self._functions.items():
                    if number in active:
                        program.add(Call(function, name=units[number].name))
            for number in some:
                if number in rings.restores:
                    program.add(rings.restores[number])
            for number in some:
                for copy in units[number].programs:
                    program.add(copy)
            for number in some:
                if number in rings.saves:
                    program.add(rings.saves[number])
        return program


def _rounds(active: list[tuple[int, ...]], begin: int, period: int) -> int:
    """How often what is done in the next `period` cycles is done again and again from there on."""
    first, rounds = active[begin : begin + period], 0
    if len(first) < period:
        return 1
    while active[begin + rounds * period : begin + (rounds + 1) * period] == first:
        rounds += 1
    return rounds
