"""What the vertices of norms take, by PopLibs' popopsCycleEstimators and poplinCycleEstimators.

An operation with a vector of channels takes what BroadcastVectorInner1D does where neighbours in memory are of different channels,
and what BroadcastVectorOuterByRow1D does where they are of one, in rows. A vertex of several operations has one start, and the
loops of all.
"""

from __future__ import annotations

from collections.abc import Sequence

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.popops.elements.loop_cycles import loop_round
from pypoplar.poputil.cycles import by_type, ceiling, share_of_worker, supervisor_slots
from pypoplar.types import FLOAT, ElementType

SUPERVISOR = supervisor_slots(13)
OUTER_START = 15
ROW, MISALIGNED_ROW = 7, 25  # of a worker for a row of one channel that begins with a whole vector, or not


def channel_estimate(vertex: VertexIntrospector, operations: Sequence[str], channels: str, plain: int = 0) -> VertexPerfEstimate:
    """A vertex of these operations with the vector in the field `channels`, and of `plain` additions of whole tensors."""
    out, inner = vertex.getFieldInfo("out"), int(vertex.value("inner"))
    elements, type = out.size(), out.elementType()
    share, width = share_of_worker(elements, vertex.target), vertex.target.getVectorWidth(type)
    if inner == 1:
        period = vertex.fieldSize(channels)
        blocks = ceiling(ceiling(elements, period), vertex.target.getNumWorkerContexts())
        slots = by_type(type, 17, 26 if period & 1 else 19)
        slots += sum(inner_slots(operation, type, period, blocks) for operation in operations)
    else:
        rows = min(ceiling(share, inner) + 1, ceiling(elements, inner) + 1)
        start = MISALIGNED_ROW if inner % width else ROW
        slots = OUTER_START + sum(rows * start + loop_round(name, type.code, "broadcast").of(share) for name in operations)
    slots += plain * loop_round("ADD", type.code, "plain").of(share)
    return VertexPerfEstimate(SUPERVISOR + slots, (len(operations) + 2 * plain) * elements)


def inner_slots(operation: str, type: ElementType, period: int, blocks: int) -> int:
    """The core of VectorInner: a worker's `blocks`, each of `period` elements."""
    if type is FLOAT:
        return 7 + period * (8 + 2 * blocks)
    if operation == "MULTIPLY":
        return _inner_products_of_halves(period, blocks)
    return _inner_sums_of_halves(period, blocks)


def _inner_products_of_halves(period: int, blocks: int) -> int:
    """vectorInnerMulCoreCycles_half."""
    if period % 4:
        return 8 + period * (5 + 9 * blocks)
    if period > 2044 or blocks < 2:
        return 13 + period // 4 * (7 + 2 * blocks)
    return 13 + period // 4 * (9 + blocks)


def _inner_sums_of_halves(period: int, blocks: int) -> int:
    """vectorInnerAddCoreCycles_half."""
    if period % 8 == 0 and period <= 2048:
        loops = period // 8
        return 11 + 7 * loops if blocks == 1 else 12 + loops * (13 + 2 * blocks)
    if period % 4 or period > 2048 or blocks < 2:
        return 15 + period * (5 + 9 * blocks)
    return 15 + period // 4 * (11 + blocks // 2 * 2 + blocks % 2)


def inverse_deviation_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """InverseStdDeviation: pairs of floats, whatever the types."""
    elements = vertex.fieldSize("iStdDev")
    pairs = ceiling(share_of_worker(elements, vertex.target), 2)
    return VertexPerfEstimate(6 + 4 + 5 * pairs, 4 * elements)
