"""Rings of replicas: what goes from each to the next, until all have what they need.

The program is the same on all replicas; which fragment a replica takes up in a step follows from its number, by tables.
"""

from __future__ import annotations

import numpy as np
from attrs import define, field

from pypoplar import popops
from pypoplar.gcl.collective_operator import ROWS, CollectiveOperator
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.program import Copy, CrossReplicaCopy, Repeat, Sequence
from pypoplar.types import UNSIGNED_INT, ElementType

Groups = tuple[tuple[int, ...], ...]


def ring_order(ranks: int) -> tuple[int, ...]:
    """The ranks in the order of the ring, every other one forth and the rest back: 0, 2, 4, 5, 3, 1."""
    return (*range(0, ranks, 2), *range(ranks - 1 - ranks % 2, 0, -2))


@define(eq=False)
class Ring:
    """The rings of all groups, and what is done in each: each rank sends to the next, or against the clock to the one before."""

    graph: Graph
    groups: Groups
    prog: Sequence
    debug: str
    clockwise: bool = True
    _order: tuple[int, ...] = field(init=False)  # ranks
    _index: Tensor = field(init=False)

    def __attrs_post_init__(self) -> None:
        order = ring_order(self.ranks)
        self._order = order if self.clockwise else order[::-1]
        self._index = self.graph.addReplicationIndexConstant(f"{self.debug}/replicationIndex")
        self.graph.setTileMapping(self._index, 0)

    @property
    def ranks(self) -> int:
        """How many replicas each group has."""
        return len(self.groups[0])

    def to_next(self) -> dict[int, int]:
        """For each replica the next one of its ring."""
        return {
            group[rank]: group[self._order[(place + 1) % self.ranks]]
            for group in self.groups
            for place, rank in enumerate(self._order)
        }

    def shifted(self, by: int) -> dict[int, int]:
        """For each replica the one whose rank is higher by so much, or that much less than the number of ranks."""
        return {replica: group[(rank + by) % self.ranks] for group in self.groups for rank, replica in enumerate(group)}

    # Numbers that differ from replica to replica

    def number(self, of_rank: tuple[int, ...] | list[int], name: str) -> Tensor:
        """A variable UNSIGNED_INT [1] with a number that follows from the replica's rank."""
        values = np.zeros(sum(map(len, self.groups)), np.uint32)
        for group in self.groups:
            values[list(group)] = of_rank
        table = self._table(values, name)
        return popops.dynamicSlice(self.graph, table, self._index.reshape([1]), [0], [1], self.prog, f"{self.debug}/{name}")

    def _table(self, values: np.ndarray, name: str) -> Tensor:
        table = self.graph.addConstant(UNSIGNED_INT, [len(values)], values, f"{self.debug}/{name}")
        self.graph.setTileMapping(table, 0)
        return table

    def rank(self) -> Tensor:
        """The replica's rank in its group."""
        return self.number(list(range(self.ranks)), "rank")

    def _before(self, by: int) -> list[int]:
        """For each rank the one that comes so much before it in the ring."""
        found = [0] * self.ranks
        for place, rank in enumerate(self._order):
            found[rank] = self._order[(place - by) % self.ranks]
        return found

    # Phases

    def sliceable(self, type: ElementType, size: int, name: str) -> Tensor:
        """A variable of so many elements for each rank."""
        return popops.createSliceableTensor(self.graph, type, [self.ranks, size], [0], [1], debugContext=f"{self.debug}/{name}")

    def _take_turn(self, body: Sequence, moved: Tensor, fragment: Tensor) -> None:
        """Send what is `moved` to the next, and take up the fragment that has come."""
        body.add(CrossReplicaCopy(moved, moved, self.to_next(), f"{self.debug}/toNext"))
        following = self._table(np.array(self._before(1), np.uint32), "following")
        number = popops.dynamicSlice(self.graph, following, fragment, [0], [1], body, f"{self.debug}/next")
        body.add(Copy(number, fragment, f"{self.debug}/next"))

    def reduce_scatter(
        self, fragments: Tensor, op: CollectiveOperator, ranks: int | None = None, *, with_own: bool = True
    ) -> Tensor:
        """[1, elements]: of `fragments` [ranks, elements], that of the replica's rank, of all replicas of the group together.

        With a number of `ranks` it is of so many that come before the replica in the ring, and of its own.
        """
        graph, debug, rounds = self.graph, self.debug, self.ranks - 1 if ranks is None else ranks
        if op is CollectiveOperator.LOCAL or rounds == 0:
            return self._slice(fragments, self.rank(), self.prog)
        fragment = self.number(self._before(-rounds), "fragment")
        reduced = self._slice(fragments, fragment, self.prog)
        body = Sequence()
        self._take_turn(body, reduced, fragment)
        own = self._slice(fragments, fragment, body)
        ROWS[op].combine(graph, reduced, own, body, f"{debug}/{op.name}")
        self.prog.add(Repeat(rounds if with_own else rounds - 1, body, debug))
        if not with_own:
            self._take_turn(self.prog, reduced, fragment)
        return reduced

    def _slice(self, fragments: Tensor, number: Tensor, prog: Sequence) -> Tensor:
        return popops.dynamicSlice(self.graph, fragments, number, [0], [1], prog, f"{self.debug}/slice")

    def all_gather(self, own: Tensor, gathered: Tensor, ranks: int | None = None) -> None:
        """Put what each replica has, [1, elements], into `gathered` [ranks, elements] of all; `own` is that of another then.

        With a number of `ranks` it is put into that of so many that come next in the ring, and of its own.
        """
        graph, debug, rounds = self.graph, self.debug, self.ranks - 1 if ranks is None else ranks
        fragment = self.rank()
        popops.dynamicUpdate(graph, gathered, own, fragment, [0], [1], self.prog, f"{debug}/own")
        if rounds:
            body = Sequence()
            self._take_turn(body, own, fragment)
            popops.dynamicUpdate(graph, gathered, own, fragment, [0], [1], body, f"{debug}/other")
            self.prog.add(Repeat(rounds, body, debug))

    def all_to_all(self, given: Tensor, taken: Tensor) -> None:
        """Put row r of `given` of the replica of rank s into row s of `taken` of the replica of rank r."""
        graph, prog, debug, ranks = self.graph, self.prog, self.debug, range(self.ranks)
        for by in ranks:
            to = self.number([(rank + by) % self.ranks for rank in ranks], f"to{by}")
            moved = self._slice(given, to, prog)
            if by:
                prog.add(CrossReplicaCopy(moved, moved, self.shifted(by), f"{debug}/by{by}"))
            source = self.number([(rank - by) % self.ranks for rank in ranks], f"from{by}")
            popops.dynamicUpdate(graph, taken, moved, source, [0], [1], prog, f"{debug}/put")
