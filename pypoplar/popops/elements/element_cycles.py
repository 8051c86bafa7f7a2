"""What vertices on elements take: the start of a vertex and the loops of its operations, by PopLibs' popopsCycleEstimators.

The loops' rounds are the tables in `loop_cycles`. Flops are those of `element_operations`, which only floats have.
"""

from __future__ import annotations

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.popops.elements.cast_cycles import cast_start_cycles
from pypoplar.popops.elements.element_operations import OPERATIONS, ElementOperation
from pypoplar.popops.elements.loop_cycles import Form, loop_round
from pypoplar.poputil.cycles import share_of_worker, supervisor_slots
from pypoplar.types import FLOAT, HALF, ElementType

SUPERVISOR_CYCLES = 11  # basicOpSupervisorOverhead
SUPERVISOR = supervisor_slots(SUPERVISOR_CYCLES)
UNARY_SUPERVISOR = supervisor_slots(20)  # of UnaryOp1D
UNARY_START = 17
EXPONENT_START = 33
UNARY_START_IN_PLACE = 55
START_OF_FLOATS = 29
START = 26
START_IN_PLACE = 58
BROADCAST_START = 20
ROW, MISALIGNED_ROW = 7, 25  # BroadcastVectorOuter: of a worker for a row that begins with a whole vector, or not
FORMS: dict[tuple[bool, bool], Form] = {
    (False, False): "plain",
    (False, True): "in place",
    (True, False): "broadcast",
    (True, True): "broadcast in place",
}
"""By whether an operand is a single element, and whether the result replaces an operand."""


def start_cycles(operation: ElementOperation | None, type: ElementType, form: Form) -> int:
    """Worker cycles in front of the loop, by the operation that gives the result; None is a cast."""
    in_place = form in ("in place", "broadcast in place")
    if operation is None:
        return cast_start_cycles()
    if operation.operands == 1:
        plain = EXPONENT_START if operation.name == "EXPONENT" else UNARY_START
        return UNARY_SUPERVISOR + (UNARY_START_IN_PLACE if in_place else plain)
    if operation.operands == 2 and form in ("broadcast", "broadcast in place"):
        return SUPERVISOR + BROADCAST_START
    if operation.operands == 2 and in_place:
        return SUPERVISOR + START_IN_PLACE
    return SUPERVISOR + (START_OF_FLOATS if type is FLOAT else START)


def operation_flops(operation: ElementOperation, type: ElementType) -> int:
    """Floating-point operations of an element."""
    return operation.flops if type in (FLOAT, HALF) else 0


def binary_estimate(vertex: VertexIntrospector, written: str, in_place: bool) -> VertexPerfEstimate:
    """BinaryOp1D and BinaryOp1DInPlace, and BroadcastScalar1D where the second operand is a single element."""
    name, type = vertex.templateArguments()
    assert isinstance(type, ElementType)
    operation, elements = OPERATIONS[str(name)], vertex.fieldSize(written)
    form = FORMS[vertex.fieldSize("in2") == 1 != elements, in_place]
    loop = loop_round(operation.name, type.code, form).of(share_of_worker(elements, vertex.target))
    return VertexPerfEstimate(start_cycles(operation, type, form) + loop, elements * operation_flops(operation, type))
