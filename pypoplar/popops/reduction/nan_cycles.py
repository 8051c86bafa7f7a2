"""Worker cycles of the search for NaNs and infinities: hasNaN1DCyles of PopLibs' popopsCycleEstimators."""

from __future__ import annotations

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.poputil.cycles import ceiling, supervisor_slots
from pypoplar.types import FLOAT, ElementType

WORD = 8  # bytes, of which a worker has whole ones
SUPERVISOR = supervisor_slots(24)


def search_cycles(type: ElementType, elements: int, infinities: bool) -> int:
    """hasNanInnerLoopCycles, and what comes before and after the loop."""
    cycles = 17 + (10 if type is FLOAT else 12) + infinities + (7 if type is FLOAT else 11)
    if type is FLOAT or not infinities:
        longer = infinities if type is FLOAT else True
        return cycles + (2 + longer) * (elements // 4) + (2 if elements & 2 else 0) + (elements & 1)
    return cycles + 2 * (elements // 8) + 2 * (elements >> 2 & 1) + 2 * (elements >> 1 & 1) + 2 * (elements & 1)


def nan_estimate(vertex: VertexIntrospector, infinities: bool) -> VertexPerfEstimate:
    """Of a vertex whose workers divide what they search."""
    field = vertex.getFieldInfo("in")
    grain = WORD // field.elementType().size
    words, rest = divmod(field.size(), grain)
    share = ceiling(words, vertex.target.getNumWorkerContexts()) * grain + rest
    return VertexPerfEstimate(SUPERVISOR + search_cycles(field.elementType(), share, infinities), field.size())
