"""Supersteps that several convolutions share."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.vertices import ComputeSet
from pypoplar.program import Execute, Sequence


class Supersteps:
    """What convolutions that are computed side by side do: programs and then a compute set, the n-th of each in one superstep."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.before: list[Sequence] = []
        self.sets: list[ComputeSet] = []

    def lane(self) -> SuperstepLane:
        """Where another convolution adds what it does."""
        return SuperstepLane(self)

    def add_to(self, prog: Sequence) -> None:
        """Extend a program by all of them."""
        for number, before in enumerate(self.before):
            for program in before.programs:
                prog.add(program)
            if number < len(self.sets):
                prog.add(Execute(self.sets[number]))


class SuperstepLane:
    """What one convolution does, superstep by superstep."""

    def __init__(self, shared: Supersteps) -> None:
        self._shared, self._number = shared, 0

    @property
    def programs(self) -> Sequence:
        """What is done before the next compute set."""
        before = self._shared.before
        while len(before) <= self._number:
            before.append(Sequence())
        return before[self._number]

    def compute_set(self, name: str) -> ComputeSet:
        """The next compute set; the first convolution that comes to it gives the name."""
        sets = self._shared.sets
        _ = self.programs
        if len(sets) <= self._number:
            sets.append(self._shared.graph.addComputeSet(name))
        self._number += 1
        return sets[self._number - 1]
