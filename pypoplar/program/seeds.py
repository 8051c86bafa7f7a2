"""Seeds of random numbers."""

from __future__ import annotations

import operator

from pypoplar.errors import PoplarTypeError, TensorShapeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.operands import check_kind
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Nothing, Program
from pypoplar.program.sequence import Sequence, check_sequence
from pypoplar.tracebacks import public
from pypoplar.types import UNSIGNED_INT


@public
class SetSeed(Program):
    """Seed the random numbers of all workers; see `setSeed`."""

    def __init__(self, seed: Tensor, modifier: int, name: str = "") -> None:
        super().__init__(name)
        self.seed, self.modifier = seed, modifier

    def reads(self) -> tuple[Tensor, ...]:
        return (self.seed,)

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Nothing:
        return Nothing()


@public
def setSeed(graph: Graph, masterSeed: Tensor, seedModifier: int, sequence: Sequence, name: str = "") -> None:
    """Append a step that seeds the random numbers of all tiles.

    Each worker of each tile has a generator of its own, xoroshiro128aox with 128 bits of state, as the hardware has. Workers of
    a MultiVertex draw from theirs, the vertices of a codelet on a tile take the tile's generators in turn, a supervisor the
    first. The states are made by splitmix64 from the seed, the modifier, the tile and the worker, so the same seed, modifier
    and layout give the same numbers in both engines at any number of threads.

    Parameters
    ----------
    graph:
        The graph of the sequence's programs.
    masterSeed:
        UNSIGNED_INT of 2 elements, 64 bits, read when the program comes here.
    seedModifier:
        A whole number; other ones give other random numbers from the same seed.
    sequence:
        What the step is added to.
    name:
        The debug name of the step.

    Raises
    ------
    PoplarTypeError
        If the seed is of another type or graph, or `sequence` is none.
    TensorShapeError
        If the seed does not have 2 elements.
    """
    check_kind(masterSeed, "the seed of setSeed", (UNSIGNED_INT,))
    if masterSeed.numElements() != 2:
        raise TensorShapeError(f"the seed of setSeed has 2 elements, got {masterSeed._described()}")
    if masterSeed.graph is not graph.getTopLevelGraph():
        raise PoplarTypeError(f"the seed of setSeed, {masterSeed._described()}, belongs to another graph")
    check_sequence(sequence, "setSeed")
    sequence.add(SetSeed(masterSeed, operator.index(seedModifier), name))
