"""What vertices of losses take, by PopLibs' popnnCycleEstimators and PerformanceEstimation: for each row, by one worker."""

from __future__ import annotations

from collections.abc import Callable

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.poputil.cost_conventions import sum_flops
from pypoplar.poputil.cycles import Count, ceiling


def rows_estimate(
    vertex: VertexIntrospector, field: str, slots: Callable[[int], int], flops: Callable[[int], int]
) -> VertexPerfEstimate:
    """A vertex of one worker: for each row of a field functions of the row's length."""
    rows = vertex.getFieldInfo(field)
    lengths = [rows.getSizeAtIndex(row) for row in range(rows.size())]
    return VertexPerfEstimate(sum(map(slots, lengths)), sum(map(flops, lengths)))


def cross_entropy_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """LossCrossEntropyTransform, then the sum over the row."""
    return rows_estimate(vertex, "probs", loss_slots, lambda count: 6 * count + 2 + sum_flops(count))


def sum_squared_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """LossSumSquaredTransform, then the sum over the row."""
    return rows_estimate(vertex, "probs", loss_slots, lambda count: 3 * count + sum_flops(count))


def largest_estimate(vertex: VertexIntrospector, field: str) -> VertexPerfEstimate:
    """ReduceMaxClassGather with one worker."""
    return rows_estimate(vertex, field, best_slots, lambda count: count)


def joined_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """ReduceMaxClassSparse."""
    return rows_estimate(vertex, "in", lambda count: 27 + 3 * (count - 1), lambda count: count)


def best_slots(count: Count) -> Count:
    """The best of so many elements, by one worker."""
    slots: Count = 30 + 3 * (count - 1)
    return slots


def loss_slots(count: Count) -> Count:
    """The loss of so many classes, by one worker."""
    slots: Count = 20 + 9 * count + 17 + ceiling(count, 2)
    return slots
