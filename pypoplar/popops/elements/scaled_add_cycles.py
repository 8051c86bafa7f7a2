"""What scaled additions take: getScaledArithmeticSupervisorCycleEstimate of PopLibs, and aXPlusbY of halves with scales in float.

The vertex's supervisor prepares the workers, who take vectors of 64 bits in turn; one of them takes what is left of a vector. For
X - aX + bY PopLibs has the price of aX + bY.
"""

from __future__ import annotations

from enum import Enum

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.popops.elements.element_cycles import SUPERVISOR_CYCLES
from pypoplar.poputil.cycles import ceiling, supervisor_slots
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF, ElementType


class ScaledForm(Enum):
    """What a vertex computes; the value is its floating-point operations for an element."""

    ADD = ("A + bB", 2)
    SUBTRACT = ("A - bB", 2)
    AXPLUSBY = ("aA + bB", 3)
    AXMINUSBY = ("aA - bB", 3)
    XMINUSAXPLUSBY = ("A - aA + bB", 4)

    @property
    def scales_both(self) -> bool:
        return self.value[1] > 2


def scaled_add_estimate(vertex: VertexIntrospector, form: ScaledForm) -> VertexPerfEstimate:
    """Of a vertex whose template's arguments are the types of A, of B and of the scales, of those that it has."""
    elements = vertex.fieldSize("A")
    data, delta, scale = vertex.getFieldInfo("A").elementType(), vertex.getFieldInfo("B").elementType(), None
    if not data.is_floating:
        return VertexPerfEstimate(whole_cycles(elements, form), 0)
    if form.scales_both:
        scale = vertex.getFieldInfo("scaleB").elementType()
    return VertexPerfEstimate(scaled_add_cycles(elements, data, delta, scale, form, vertex.target), form.value[1] * elements)


def whole_cycles(elements: int, form: ScaledForm) -> int:
    """Of 32-bit integers, three in a round."""
    rounds, rest = divmod(elements, 3)
    return supervisor_slots(53 + 26 * rounds + (form is ScaledForm.SUBTRACT) + 6 + 26 * rest + 8 + 6)


def scaled_add_cycles(
    elements: int, data: ElementType, delta: ElementType, scale: ElementType | None, form: ScaledForm, target: Target
) -> int:
    """Of FLOAT or HALF; `scale` is the type of the scales where A has one too."""
    if data is HALF and scale is FLOAT and form is not ScaledForm.XMINUSAXPLUSBY:
        return _halves_by_floats(elements, target)
    vectors, rest = divmod(elements, target.getVectorWidth(data))
    share, more = divmod(vectors, target.getNumWorkerContexts())
    supervisor = 21 + SUPERVISOR_CYCLES + (13 if rest else 7) + 12 + 6
    supervisor += 12 * (form in (ScaledForm.AXPLUSBY, ScaledForm.XMINUSAXPLUSBY)) + 7 * (form is ScaledForm.SUBTRACT)
    if data is HALF and delta is FLOAT:
        supervisor += form is ScaledForm.SUBTRACT
        return supervisor_slots(supervisor) + max(_mixed_worker(share, worker, more, rest) for worker in range(more + 1))
    if data is FLOAT and form.scales_both:
        worker = 16 + _loop(6, 3, share) + 1 + 5 * bool(rest) + 1
    else:
        last = 8 * bool(rest) if data is FLOAT else (0, 5, 12, 18)[rest]
        worker = 15 + _loop(6, 3 if data is delta else 4, share) + 2 + 1 + last + 1
    return supervisor_slots(supervisor) + worker


def _loop(first: int, round: int, vectors: int) -> int:
    """A loop over vectors whose first round is outside it."""
    return first + round * (vectors - 1) if vectors else 0


def _mixed_worker(share: int, worker: int, more: int, rest: int) -> int:
    """A worker that adds floats to halves: the first `more` have a vector more, the next one has the rest."""
    cycles = 16 + _loop(9, 5, share + (worker < more)) + 2
    if worker == more:
        cycles += 1 + (2 + 5 * (rest >= 2) + 2 + 6 * (rest % 2) if rest else 0)
    return cycles + 1


def _halves_by_floats(elements: int, target: Target) -> int:
    """aXPlusbY and aXMinusbY of halves with scales in float: the busiest worker's pairs, and the test of the scales' accuracy."""
    workers = target.getNumWorkerContexts()
    last = elements % workers
    pairs, remaining = elements // workers // 2, elements // workers % workers + ceiling(last, 2)
    supervisor = 1 + 6 + 10 + 15 * 6 + 9 + 5 + 28 + (5 if last == 0 else 0)
    counts = [2 * (pairs + (worker <= remaining)) + last * (worker == remaining) for worker in range(workers)]
    shares = [19 + _pairs(count) + (worker == remaining) for worker, count in enumerate(counts)]
    return supervisor_slots(supervisor) + max(shares)


def _pairs(count: int) -> int:
    """Pairs of halves: those beyond the first four in a loop."""
    if count > 4:
        return 4 + 11 + 5 * max((count - 4) // 2 - 1, 0) + 4 + 9 * (count % 2) + 1
    return 4 + 1 + (0, 14, 13, 22, 0)[count] + 1
