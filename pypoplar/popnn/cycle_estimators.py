"""Worker cycles of popnn's vertices: popnnCycleEstimators and PerformanceEstimation of PopLibs, where these have them.

A softmax has no vertex of its own there: it is priced as the steps that it consists of, each by one worker.
"""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.vertex_introspector import VertexIntrospector
from pypoplar.poputil.cycles import Estimator, OfRows, by_type, ceiling, share_of_worker, supervisor_slots
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF, ElementType

SUPERVISOR = supervisor_slots(20)  # of UnaryOp1D
# Start of a vertex, then cycles for two floats or four halves; from the non-linearities' estimators.
NON_LINEARITIES: dict[tuple[str, ElementType], tuple[int, int]] = {
    ("RELU", FLOAT): (17, 3),
    ("RELU", HALF): (17, 3),
    ("TANH", FLOAT): (17, 12),
    ("TANH", HALF): (17, 4),
    ("SIGMOID", FLOAT): (17, 12),
    ("SIGMOID", HALF): (17, 4),
    ("GELU_ERF", FLOAT): (17, 44),
    ("GELU_ERF", HALF): (17, 88),
}


@frozen
class NonLinearityCycles:
    """NonLinearity1D and the unary operations that stand for it."""

    start: int
    loop: int
    elements: int

    def __call__(self, vertex: VertexIntrospector, target: Target) -> int:
        rounds = ceiling(share_of_worker(vertex.fieldSize("data"), target), self.elements)
        return SUPERVISOR + self.start + self.loop * rounds


def gelu_cycles(vertex: VertexIntrospector, target: Target) -> int:
    """nonLinearity1DCycleEstimator of GELU on floats: ten cycles for each pair of the busiest worker."""
    pairs = vertex.fieldSize("data") // 2
    return supervisor_slots(9) + (39 + 10 * ceiling(pairs, target.getNumWorkerContexts()) if pairs else 38)


@frozen
class SoftMaxCycles:
    """Powers, their sum, and the product with its inverse; first, where asked for, the largest element and its subtraction."""

    field: str
    type: ElementType

    def __call__(self, vertex: VertexIntrospector, target: Target) -> int:
        return OfRows(self.field, self._stable if vertex.value("stable") else self._plain)(vertex, target)

    def _plain(self, count: int) -> int:
        vectors = ceiling(count, by_type(self.type, 2, 4))
        return 33 + by_type(self.type, 6, 4) * vectors + self._reduced(count) + self._scaled(count)

    def _stable(self, count: int) -> int:
        return self._plain(count) + self._reduced(count) + self._scaled(count)

    def _reduced(self, count: int) -> int:
        return 17 + 2 * ceiling(count, by_type(self.type, 4, 8))

    def _scaled(self, count: int) -> int:
        return 20 + 2 * ceiling(count, by_type(self.type, 2, 4))


def loss_cycles(count: int) -> int:
    """LossCrossEntropyTransform, then the sum over the row."""
    return 20 + 9 * count + 17 + ceiling(count, 2)


def largest_cycles(count: int) -> int:
    """ReduceMaxClassGather with one worker."""
    return 30 + 3 * (count - 1)


ESTIMATORS: dict[str, Estimator] = {
    templateVertex("popnn::NonLinearity1DInPlace", name, type): NonLinearityCycles(start, loop, by_type(type, 2, 4))
    for (name, type), (start, loop) in NON_LINEARITIES.items()
}
ESTIMATORS[templateVertex("popnn::NonLinearity1DInPlace", "GELU", FLOAT)] = gelu_cycles
for _type in (FLOAT, HALF):
    ESTIMATORS[templateVertex("popnn::SoftMax", _type)] = SoftMaxCycles("in", _type)
    ESTIMATORS[templateVertex("popnn::SoftMaxInPlace", _type)] = SoftMaxCycles("data", _type)
    for _name in ("LossCrossEntropy", "LossCrossEntropyScaled", "LossSumSquared"):
        ESTIMATORS[templateVertex(f"popnn::{_name}", _type)] = OfRows("probs", loss_cycles)
    for _name in ("CountCorrect", "PartCorrect"):
        ESTIMATORS[templateVertex(f"popnn::{_name}", _type)] = OfRows("probs", largest_cycles)
    ESTIMATORS[templateVertex("popnn::ArgMax", _type)] = OfRows("in", largest_cycles)
