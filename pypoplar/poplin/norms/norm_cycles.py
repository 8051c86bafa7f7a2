"""What the vertices of norms take, by PopLibs' popopsCycleEstimators and poplinCycleEstimators.

An operation with a vector of channels takes what BroadcastVectorInner1D does where neighbours in memory are of different channels,
and what BroadcastVectorOuterByRow1D does where they are of one, in rows. Where each element is of another channel it is a plain
BinaryOp1D, and where all are of one a BroadcastScalar1D. A vertex of several operations has one start, and the loops of all.
"""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.popops.elements.element_cycles import BROADCAST_START, MISALIGNED_ROW, ROW, START, START_OF_FLOATS
from pypoplar.popops.elements.loop_cycles import Form, loop_round
from pypoplar.poputil.cycles import by_type, ceiling, share_of_worker, supervisor_slots
from pypoplar.target import Target
from pypoplar.types import FLOAT, ElementType

SUPERVISOR = supervisor_slots(13)
OUTER_START = 15


@frozen
class ChannelWork:
    """Operations of a vertex with vectors of channels, and how many additions of whole tensors it does beside."""

    operations: tuple[str, ...]
    plain: int = 0


CHANNEL_WORK: dict[str, ChannelWork] = {
    "NormWhiten": ChannelWork(("SUBTRACT", "MULTIPLY")),
    "NormRemoveMean": ChannelWork(("SUBTRACT",)),
    "NormScale": ChannelWork(("MULTIPLY",)),
    "NormScaleAndShift": ChannelWork(("MULTIPLY", "ADD")),
    "NormStatisticsGradient": ChannelWork(("MULTIPLY", "ADD", "MULTIPLY"), plain=1),
}
"""By the codelet."""


def channel_estimate(vertex: VertexIntrospector, codelet: str, channels: str) -> VertexPerfEstimate:
    """A vertex with vectors of channels, one of which is in the field `channels`."""
    out, inner, work = vertex.getFieldInfo("out"), int(vertex.value("inner")), CHANNEL_WORK[codelet]
    slots = channel_slots(vertex.target, out.elementType(), work, out.size(), vertex.fieldSize(channels), inner)
    return VertexPerfEstimate(slots, (len(work.operations) + 2 * work.plain) * out.size())


def channel_slots(target: Target, type: ElementType, work: ChannelWork, elements: int, period: int, inner: int) -> int:
    """Worker cycles of a vertex with so many elements of `period` channels, each `inner` times in turn."""
    share = share_of_worker(elements, target)
    slots = SUPERVISOR + work.plain * loop_round("ADD", type.code, "plain").of(share)
    if inner == 1 and elements == period:
        return slots + by_type(type, START_OF_FLOATS, START) + _loops(work, type, "plain", share)
    if inner == 1:
        blocks = ceiling(ceiling(elements, period), target.getNumWorkerContexts())
        slots += by_type(type, 17, 26 if period & 1 else 19)
        return slots + sum(inner_slots(operation, type, period, blocks) for operation in work.operations)
    if period == 1:
        return slots + BROADCAST_START + _loops(work, type, "broadcast", share)
    rows = min(ceiling(share, inner) + 1, ceiling(elements, inner) + 1)
    start = MISALIGNED_ROW if inner % target.getVectorWidth(type) else ROW
    return slots + OUTER_START + len(work.operations) * rows * start + _loops(work, type, "broadcast", share)


def _loops(work: ChannelWork, type: ElementType, form: Form, share: int) -> int:
    return sum(loop_round(operation, type.code, form).of(share) for operation in work.operations)


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
