"""What vertices of non-linearities take, by PopLibs' popnnCycleEstimators and PerformanceEstimation, and by its UnaryOp1D.

RELU, TANH, SIGMOID and GELU_ERF are operations on elements there. A softmax has no vertex of its own: it is priced as the steps
that it consists of, each by one worker.
"""

from __future__ import annotations

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.popops.elements.element_cycles import (
    EXPONENT_START,
    START_OF_FLOATS,
    SUPERVISOR,
    UNARY_START,
    UNARY_START_IN_PLACE,
    UNARY_SUPERVISOR,
)
from pypoplar.popops.elements.loop_cycles import Form, loop_round
from pypoplar.poputil.cost_conventions import sum_flops
from pypoplar.poputil.cycles import by_type, ceiling, share_of_worker, supervisor_slots
from pypoplar.target import Target
from pypoplar.types import FLOAT, ElementType

FLOPS = {"RELU": 1, "TANH": 1, "SIGMOID": 1, "HARD_SIGMOID": 4, "GELU": 8, "GELU_ERF": 8, "SWISH": 2}  # nonlinearityFlops
GRADIENT_FLOPS = {"RELU": 1, "TANH": 2, "SIGMOID": 2, "HARD_SIGMOID": 4, "GELU": 15, "GELU_ERF": 15, "SWISH": 5}
# getNonLinearityGradOpCycles; all others take 3.
GRADIENT_LOOPS = {
    ("GELU", "f32"): (10, 10), ("GELU", "f16"): (5, 5), ("GELU_ERF", "f32"): (30, 30), ("GELU_ERF", "f16"): (15, 15),
    ("SWISH", "f32"): (10, 15), ("SWISH", "f16"): (7, 9),
}  # fmt: skip
UNPACKED = 3  # a scaled pointer
# getNonLinearityOpCycles: of an element, and of a vector, by type. A hard sigmoid is an expression of map's there.
OWN_LOOPS = {("GELU", "f32"): (10, 10), ("GELU", "f16"): (5, 5), ("SWISH", "f32"): (6, 11), ("SWISH", "f16"): (3, 5)}
HARD_SIGMOID: tuple[tuple[str, Form], ...] = (
    ("MULTIPLY", "broadcast"),
    ("ADD", "broadcast"),
    ("CLAMP", "plain"),
)
HARD_SIGMOID_GRADIENT: tuple[tuple[str, Form], ...] = (
    ("ABSOLUTE", "plain"),
    ("LESS_THAN_EQUAL", "broadcast"),
    ("MULTIPLY", "broadcast"),
    ("MULTIPLY", "plain"),
)


def non_linearity_estimate(vertex: VertexIntrospector, in_place: bool) -> VertexPerfEstimate:
    """A vertex whose workers divide the elements of `data`."""
    name, type = vertex.templateArguments()
    assert isinstance(type, ElementType)
    elements = vertex.fieldSize("data")
    slots = non_linearity_slots(str(name), type, elements, vertex.target, in_place)
    return VertexPerfEstimate(slots, FLOPS[str(name)] * elements)


def non_linearity_slots(name: str, type: ElementType, elements: int, target: Target, in_place: bool) -> int:
    """Slots of a vertex for so many elements."""
    if (name, type.code) in OWN_LOOPS:
        return supervisor_slots(9) + _own_loop(name, type, elements, target)
    share = share_of_worker(elements, target)
    if name == "HARD_SIGMOID":
        return SUPERVISOR + UNARY_START + sum(loop_round(step, type.code, form).of(share) for step, form in HARD_SIGMOID)
    start = UNARY_START_IN_PLACE if in_place else UNARY_START
    return UNARY_SUPERVISOR + start + loop_round(name, type.code, "in place" if in_place else "plain").of(share)


def _own_loop(name: str, type: ElementType, elements: int, target: Target) -> int:
    """nonLinearity1DCycleEstimator: whole vectors, divided among the workers, and what is left."""
    single, vector = OWN_LOOPS[name, type.code]
    vectors, rest = divmod(elements, target.getVectorWidth(type))
    share = ceiling(vectors, target.getNumWorkerContexts())
    slots = 20 + UNPACKED + (3 + single + (share - 1) * vector + single if share else 0)
    if type is FLOAT:
        return slots + 3 + (2 + single if rest else 0)
    return slots + 4 + (2 + single if rest & 2 else 0) + (3 + single if rest & 1 else 0)


def gradient_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """NonLinearityGrad1D, and for the hard sigmoid the expression of map's: workers divide the elements."""
    name, type = vertex.templateArguments()
    assert isinstance(type, ElementType)
    elements, target = vertex.fieldSize("inGrad"), vertex.target
    flops = GRADIENT_FLOPS[str(name)] * elements
    if name == "HARD_SIGMOID":
        share = share_of_worker(elements, target)
        loops = sum(loop_round(step, type.code, form).of(share) for step, form in HARD_SIGMOID_GRADIENT)
        return VertexPerfEstimate(SUPERVISOR + UNARY_START + loops, flops)
    single, vector = GRADIENT_LOOPS.get((str(name), type.code), (3, 3))
    vectors, rest = divmod(elements, target.getVectorWidth(type))
    share = ceiling(vectors, target.getNumWorkerContexts())
    slots = 20 + UNPACKED + 2 + (5 + (share - 1) * vector if share else 0)
    if type is FLOAT:
        slots += 4 + (single + 1 if rest else 0)
    else:
        slots += 6 + (single + 2 if rest & 2 else 0) + (single + 4 if rest & 1 else 0)
    return VertexPerfEstimate(supervisor_slots(9) + slots, flops)


def softmax_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """A vertex of one worker for rows."""
    rows, stable = vertex.getFieldInfo("in"), bool(vertex.value("stable"))
    lengths = [rows.getSizeAtIndex(row) for row in range(rows.size())]
    cycles = sum(softmax_slots(rows.elementType(), length, stable) for length in lengths)
    flops = sum(_plain_flops(length) + (sum_flops(length) + length if stable else 0) for length in lengths)
    return VertexPerfEstimate(cycles, flops)


def log_softmax_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """The same with two subtractions for the product, and a logarithm for each row."""
    rows = vertex.getFieldInfo("in")
    lengths = [rows.getSizeAtIndex(row) for row in range(rows.size())]
    cycles = sum(softmax_slots(rows.elementType(), length, stable=True) for length in lengths)
    return VertexPerfEstimate(cycles, sum(_plain_flops(length) + sum_flops(length) + length for length in lengths))


def softmax_gradient_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Products, their sum, which is taken from each gradient, and products again."""
    rows = vertex.getFieldInfo("out")
    lengths = [rows.getSizeAtIndex(row) for row in range(rows.size())]
    cycles = sum(softmax_gradient_slots(rows.elementType(), length) for length in lengths)
    return VertexPerfEstimate(cycles, sum(4 * length + sum_flops(length) for length in lengths))


def softmax_slots(type: ElementType, count: int, stable: bool) -> int:
    """Powers, their sum, and the product with its inverse; first, where asked for, the largest element and its subtraction."""
    vector = by_type(type, 2, 4)
    powers = EXPONENT_START + loop_round("EXPONENT", type.code, "plain").of(count)
    return powers + (1 + stable) * (_reduced(vector, count) + _scaled(vector, count))


def softmax_gradient_slots(type: ElementType, count: int) -> int:
    """Of a row."""
    vector = by_type(type, 2, 4)
    products = START_OF_FLOATS + 2 * loop_round("MULTIPLY", type.code, "plain").of(count)
    return products + _reduced(vector, count) + _scaled(vector, count)


def _reduced(vector: int, count: int) -> int:
    return 17 + 2 * ceiling(count, 2 * vector)


def _scaled(vector: int, count: int) -> int:
    return 20 + 2 * ceiling(count, vector)


def _plain_flops(count: int) -> int:
    return count + sum_flops(count) + 1 + count
