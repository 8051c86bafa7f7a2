"""What vertices of non-linearities take, by PopLibs' popnnCycleEstimators and PerformanceEstimation, and by its UnaryOp1D.

RELU, TANH, SIGMOID and GELU_ERF are operations on elements there. A softmax has no vertex of its own: it is priced as the steps
that it consists of, each by one worker.
"""

from __future__ import annotations

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.popops.elements.element_cycles import SUPERVISOR, UNARY_START, UNARY_SUPERVISOR
from pypoplar.popops.elements.loop_cycles import Form, loop_round
from pypoplar.poputil.cycles import by_type, ceiling, share_of_worker, supervisor_slots
from pypoplar.poputil.flop_conventions import sum_flops
from pypoplar.target import Target
from pypoplar.types import FLOAT, ElementType

FLOPS = {"RELU": 1, "TANH": 1, "SIGMOID": 1, "HARD_SIGMOID": 4, "GELU": 8, "GELU_ERF": 8, "SWISH": 2}  # nonlinearityFlops
UNPACKED = 3  # a scaled pointer
# getNonLinearityOpCycles: of an element, and of a vector, by type. A hard sigmoid is an expression of map's there.
OWN_LOOPS = {("GELU", "f32"): (10, 10), ("GELU", "f16"): (5, 5), ("SWISH", "f32"): (6, 11), ("SWISH", "f16"): (3, 5)}
HARD_SIGMOID: tuple[tuple[str, Form], ...] = (
    ("MULTIPLY", "broadcast"),
    ("ADD", "broadcast"),
    ("CLAMP", "plain"),
)


def non_linearity_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """A vertex whose workers divide the elements of `data`."""
    name, type = vertex.templateArguments()
    assert isinstance(type, ElementType)
    elements = vertex.fieldSize("data")
    return VertexPerfEstimate(non_linearity_slots(str(name), type, elements, vertex.target), FLOPS[str(name)] * elements)


def non_linearity_slots(name: str, type: ElementType, elements: int, target: Target) -> int:
    """Slots of a vertex for so many elements."""
    if (name, type.code) in OWN_LOOPS:
        return supervisor_slots(9) + _own_loop(name, type, elements, target)
    share = share_of_worker(elements, target)
    if name == "HARD_SIGMOID":
        return SUPERVISOR + UNARY_START + sum(loop_round(step, type.code, form).of(share) for step, form in HARD_SIGMOID)
    return UNARY_SUPERVISOR + UNARY_START + loop_round(name, type.code, "plain").of(share)


def _own_loop(name: str, type: ElementType, elements: int, target: Target) -> int:
    """nonLinearity1DCycleEstimator: whole vectors, divided among the workers, and what is left."""
    single, vector = OWN_LOOPS[name, type.code]
    vectors, rest = divmod(elements, target.getVectorWidth(type))
    share = ceiling(vectors, target.getNumWorkerContexts())
    slots = 20 + UNPACKED + (3 + single + (share - 1) * vector + single if share else 0)
    if type is FLOAT:
        return slots + 3 + (2 + single if rest else 0)
    return slots + 4 + (2 + single if rest & 2 else 0) + (3 + single if rest & 1 else 0)


def softmax_estimate(vertex: VertexIntrospector, field: str) -> VertexPerfEstimate:
    """A vertex of one worker for the rows of a field."""
    rows, stable = vertex.getFieldInfo(field), bool(vertex.value("stable"))
    lengths = [rows.getSizeAtIndex(row) for row in range(rows.size())]
    cycles = sum(softmax_slots(rows.elementType(), length, stable) for length in lengths)
    return VertexPerfEstimate(cycles, sum(_softmax_flops(length, stable) for length in lengths))


def softmax_slots(type: ElementType, count: int, stable: bool) -> int:
    """Powers, their sum, and the product with its inverse; first, where asked for, the largest element and its subtraction."""
    vector = by_type(type, 2, 4)
    reduced = 17 + 2 * ceiling(count, 2 * vector)
    scaled = 20 + 2 * ceiling(count, vector)
    return 33 + by_type(type, 6, 4) * ceiling(count, vector) + (1 + stable) * (reduced + scaled)


def _softmax_flops(count: int, stable: bool) -> int:
    plain = count + sum_flops(count) + 1 + count
    return plain + (sum_flops(count) + count if stable else 0)
