"""Which channels are pooled side by side."""

from __future__ import annotations

from collections.abc import Callable

from pypoplar.graph.graph import Graph
from pypoplar.popnn.pooling.pool_axis import PoolAxis
from pypoplar.popnn.pooling.pool_cycles import Kind
from pypoplar.popnn.pooling.pool_plan import PoolPlan, plan_pooling
from pypoplar.types import ElementType


def plan_channels(
    graph: Graph, kind: Kind, type: ElementType, together: int, axes_of: Callable[[int], list[PoolAxis]]
) -> tuple[int, PoolPlan]:
    """How many channels are a group, all that lie together or a part of them, and the cheapest plan."""
    width = graph.getTarget().getVectorWidth(type)
    sizes = [together, *(size for size in range(together // 2, 0, -1) if together % size == 0 and size % width == 0)]
    plans = [(size, plan_pooling(graph.getTarget(), kind, type, size, axes_of(size))) for size in sizes]
    return min(plans, key=lambda plan: plan[1].cycles)
