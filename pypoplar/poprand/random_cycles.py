"""Cycles and floating-point operations of the codelets of poprand, by poprandCycleEstimators of PopLibs.

Each formula gives a tile's cycles: a supervisor's call, each worker's beginning, the loop over words of 8 bytes, and a remainder.
The estimators of Uniform and Bernoulli divide the 64 bits of a word by 2 and 4 where the others divide by 32 and 16, and would
store more than a word a cycle. That is taken for a slip: a word holds two FLOATs or four HALFs here, as in the assembler's loops.
"""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.vertex_introspector import VertexIntrospector
from pypoplar.types import HALF, INT, ElementType

MULTIPLY_OF_DRAW, MULTIPLY_ADD_OF_DRAW = 2, 3  # a random number counts as one operation


@frozen
class WordLoop:
    """What a loop over words of random numbers costs: cycles of a tile."""

    call: int
    beginning: int  # of each worker
    word: int
    remainder: int  # where the last word is not full

    def cycles(self, elements: int, type: ElementType, workers: int) -> int:
        """Cycles of so many elements, divided among the workers."""
        width = 4 if type is HALF else 2
        part = self.remainder if elements % width else 0
        return self.call + self.beginning * workers + self.word * (elements + width - 1) // width + part


def uniform_loop(type: ElementType) -> WordLoop:
    """The loop of PopLibs' `Uniform`, by type."""
    return WordLoop(4, 24, 4, 12) if type is HALF else WordLoop(4, 22, 4, 4)


def uniform_int_cycles(elements: int, scale: int, workers: int) -> int:
    """Of INTs, of all there are where the scale is 0."""
    loop = elements // 2 if scale == 0 else 6 * (elements // 2) + 2 * (elements % 2)
    return 4 + 22 * workers + loop


def bernoulli_loop(type: ElementType) -> WordLoop:
    """The loop of PopLibs' `Bernoulli`, by type."""
    return WordLoop(4, 21, 1, 9) if type is HALF else WordLoop(4, 23, 1, 1)


def normal_loop(type: ElementType) -> WordLoop:
    """The loop of PopLibs' `Normal`, by type."""
    return WordLoop(4, 24, 4, 12) if type is HALF else WordLoop(4, 22, 4, 3)


def truncated_normal_loop(type: ElementType, iterations: int) -> WordLoop:
    """The loop of PopLibs' `TruncatedNormal`, by type and by how often it draws."""
    if type is HALF:
        return WordLoop(4, 28, 12 * iterations + 5, 12 * iterations + 10)
    return WordLoop(4, 26, 11 * iterations + 5, 13 * iterations + 2)


def dropout_loop(type: ElementType) -> WordLoop:
    """The loop of PopLibs' `Dropout`, by type."""
    return WordLoop(6, 24, 2, 9) if type is HALF else WordLoop(6, 24, 2, 1)


def seeding_cycles(workers: int) -> int:
    """SetSeed."""
    return 14 + 27 * workers


def loop_slots(vertex: VertexIntrospector, loop: WordLoop) -> int:
    """Worker slots of a vertex that draws the elements of `out`."""
    out = vertex.getFieldInfo("out")
    return random_slots(vertex, loop.cycles(out.size(), out.elementType(), vertex.target.getNumWorkerContexts()))


def random_slots(vertex: VertexIntrospector, cycles: int) -> int:
    """A tile's cycles as slots of its workers, to the nearest, with the seeding of those that have a seed."""
    workers = vertex.target.getNumWorkerContexts()
    seeding = seeding_cycles(workers) if vertex.fieldSize("seed") else 0
    return (cycles + seeding + workers // 2) // workers


def random_flops(vertex: VertexIntrospector, each: int) -> int:
    """So many floating-point operations an element, none of integers."""
    out = vertex.getFieldInfo("out")
    return 0 if out.elementType() is INT else each * out.size()
