"""Floating-point operations of popops' vertices, by the estimators of PopLibs' popopsCycleEstimators: integers count none."""

from __future__ import annotations

from pypoplar.popops.elements.operations import BINARY_OPERATIONS
from pypoplar.poputil.cycles import Estimator
from pypoplar.poputil.flop_conventions import OfElements
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.types import FLOAT, HALF

BINARY_FLOPS = 1  # flopsPerBinaryOpElement, a division as well
SCALED_ADD_FLOPS = 2  # a product and a sum

FLOPS: dict[str, Estimator] = {
    operation.vertex(type, in_place): OfElements("in1Out" if in_place else "out", BINARY_FLOPS if type.is_floating else 0)
    for operation in BINARY_OPERATIONS.values()
    for type in operation.types
    for in_place in (False, True)
}
for _data in (FLOAT, HALF):
    for _delta in (FLOAT, HALF):
        FLOPS[templateVertex("popops::ScaledAdd", _data, _delta)] = OfElements("A", SCALED_ADD_FLOPS)
        for _scale in (FLOAT, HALF):
            FLOPS[templateVertex("popops::ScaledAddTensor", _data, _delta, _scale)] = OfElements("A", SCALED_ADD_FLOPS)
