"""Stages whose tensors are kept here and there: each part between is computed again just before the gradients that take it."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.compiler.liveness.block_effects import AtomEffects, block_effects
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.graph import Graph
from pypoplar.poptorch.pipelines.recomputation import KeptVariables, done_once
from pypoplar.program import Sequence
from pypoplar.program.base import Program

BEFORE, LOST = -1, -2  # what an atom holds: what was there before the stage; nothing that can be relied on


def parts_again(
    graph: Graph,
    frozen: FrozenGraph,
    forward: SequenceOf[Program],
    backward: SequenceOf[Program],
    kept: frozenset[int],
    chosen: KeptVariables,
) -> list[Program] | None:
    """The steps of a stage backward, with those forward that make again what they take, each as late as it can be.

    What is `chosen` is put aside beside the stage's inputs; `kept` are the variables, by number, that stay from one micro-batch
    to the next. None where a step would have to be done twice, or finds what another has changed since.
    """
    effects = block_effects(graph, frozen, [Sequence([step]) for step in (*forward, *backward)]).surely
    flow = _Flow.of(effects, len(forward))
    flow.keep(chosen.tensors, done_once(graph, frozen, forward, kept, chosen), kept)
    program: list[Program] = []
    for number, step in enumerate(backward, len(forward)):
        again = flow.needed(number)
        for one in again:
            if not flow.does(one):
                return None
            program.append(forward[one])
        if not flow.does(number):
            return None
        program.append(step)
    return program


@define(eq=False)
class _Flow:
    """Which step's values each atom holds, by its number: in the usual order, and as steps are done again."""

    effects: AtomEffects
    forward: int  # how many steps
    takes: list[Int64s]  # the atoms that each step finds, or leaves in part
    wanted: list[Int64s]  # whose values these hold in the usual order
    last: Int64s  # whose they hold behind all steps forward
    holds: Int64s = field(factory=lambda: np.empty(0, np.int64))
    _done: set[int] = field(factory=set)
    _once: frozenset[int] = frozenset()

    @staticmethod
    def of(effects: AtomEffects, forward: int) -> _Flow:
        """The usual order: all steps forward, then those backward."""
        holds = np.full(len(effects.variable), BEFORE, np.int64)
        last, takes, wanted = holds, list[Int64s](), list[Int64s]()
        for number, (finds, defines, writes) in enumerate(zip(effects.finds, effects.defines, effects.writes, strict=True)):
            if number == forward:
                last = holds.copy()
            taken = np.flatnonzero(finds | (writes & ~defines))
            takes.append(taken)
            wanted.append(holds[taken])
            holds[writes] = number
        return _Flow(effects, forward, takes, wanted, last)

    def keep(self, tensors: frozenset[int], once: set[int], kept: frozenset[int]) -> None:
        """Begin with what is put aside: these variables, what is made once, and what no step forward makes."""
        writes: Bools = self.effects.writes[: self.forward]
        there = ~writes.any(0) | writes[sorted(once)].any(0) | np.isin(self.effects.variable, [*tensors, *kept])
        self.holds = np.where(there, self.last, LOST)
        self._once = frozenset(once)

    def needed(self, number: int) -> list[int]:
        """The steps forward, by number, that make what a step takes and is not there, in their order."""
        found: set[int] = set()
        unseen = [number]
        while unseen:
            one = unseen.pop()
            takes, wanted = self.takes[one], self.wanted[one]
            makers = np.unique(wanted[self.holds[takes] != wanted]).tolist()
            fresh = {maker for maker in makers if 0 <= maker < self.forward} - found
            found |= fresh
            unseen += fresh
        return sorted(found)

    def does(self, number: int) -> bool:
        """Do a step; whether it finds what it takes, and is not one that is done once."""
        again = number < self.forward
        if again and (number in self._once or number in self._done):
            return False
        if (self.holds[self.takes[number]] != self.wanted[number]).any():
            return False
        self._done.add(number)
        self.holds[self.effects.writes[number]] = number
        return True
