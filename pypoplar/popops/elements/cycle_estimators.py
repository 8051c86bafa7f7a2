"""Worker cycles of popops' vertices: popopsCycleEstimators and PerformanceEstimation of PopLibs."""

from __future__ import annotations

from itertools import product

from attrs import frozen

from pypoplar.graph.vertex_introspector import VertexIntrospector
from pypoplar.popops.elements.operations import BINARY_OPERATIONS, BinaryOperation
from pypoplar.poputil.cycles import Estimator, ceiling, share_of_worker, supervisor_slots
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT, ElementType

# Loop cycles of one vector (2 floats, 4 halves, 1 integer), from the table of binary operations of the estimators' header.
LOOP: dict[ElementType, dict[str, int]] = {
    FLOAT: {"ADD": 3, "SUBTRACT": 3, "MULTIPLY": 3, "MAXIMUM": 3, "MINIMUM": 3, "DIVIDE": 10},
    HALF: {"ADD": 3, "SUBTRACT": 3, "MULTIPLY": 3, "MAXIMUM": 3, "MINIMUM": 3, "DIVIDE": 21},
    INT: {"ADD": 7, "SUBTRACT": 7, "MULTIPLY": 7, "MAXIMUM": 7, "MINIMUM": 7},
    UNSIGNED_INT: {"ADD": 7, "SUBTRACT": 7, "MULTIPLY": 7, "MAXIMUM": 7, "MINIMUM": 7},
}
ELEMENTS: dict[ElementType, int] = {FLOAT: 2, HALF: 4, INT: 1, UNSIGNED_INT: 1}  # of one round of the loop
SUPERVISOR = supervisor_slots(11)  # basicOpSupervisorOverhead
START: dict[ElementType, int] = {FLOAT: 29, HALF: 26, INT: 26, UNSIGNED_INT: 26}
START_IN_PLACE = 58
SCALED_SUPERVISOR = supervisor_slots(57)
SCALED_SHORT: dict[ElementType, int] = {FLOAT: 27, HALF: 24}  # where no worker has a whole round
SCALED_ODD = 8  # a last element by itself
BROADCAST_START = 20
BROADCAST_SAVES = 1  # cycles of the loop that the second operand's load takes


@frozen
class BinaryOpCycles:
    """BinaryOp1D, its in-place form, and BroadcastScalar1D where one operand is a single element."""

    operation: BinaryOperation
    type: ElementType
    in_place: bool

    def __call__(self, vertex: VertexIntrospector, target: Target) -> int:
        elements = vertex.fieldSize("in1Out" if self.in_place else "out")
        rounds = ceiling(share_of_worker(elements, target), ELEMENTS[self.type])
        loop = LOOP[self.type][self.operation.name]
        if vertex.fieldSize("in2") == 1 != elements:
            return SUPERVISOR + BROADCAST_START + (loop - BROADCAST_SAVES) * rounds
        return SUPERVISOR + (START_IN_PLACE if self.in_place else START[self.type]) + loop * rounds


@frozen
class ScaledAddCycles:
    """getScaledArithmeticSupervisorCycleEstimate: rounds of two floats or four halves on each worker; the rest comes apart."""

    type: ElementType

    def __call__(self, vertex: VertexIntrospector, target: Target) -> int:
        elements = vertex.fieldSize("A")
        rounds = elements // (ELEMENTS[self.type] * target.getNumWorkerContexts())
        if rounds == 0:
            return SCALED_SUPERVISOR + SCALED_SHORT[self.type]
        return SCALED_SUPERVISOR + 25 + 3 * (rounds - 1) + (SCALED_ODD if elements % 2 else 0)


ESTIMATORS: dict[str, Estimator] = {
    operation.vertex(type, in_place): BinaryOpCycles(operation, type, in_place)
    for operation in BINARY_OPERATIONS.values()
    for type in operation.types
    for in_place in (False, True)
} | {
    templateVertex(name, *types): ScaledAddCycles(types[0])
    for name, count in (("popops::ScaledAdd", 2), ("popops::ScaledAddTensor", 3))
    for types in product((FLOAT, HALF), repeat=count)
}
