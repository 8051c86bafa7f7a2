"""Floating-point operations of popnn's vertices, by the estimators of PopLibs' popnnCycleEstimators.

A non-linearity is one, but for those that PopLibs says more of. A softmax is counted as the steps that it consists of.
"""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.vertex_introspector import VertexIntrospector
from pypoplar.poputil.cycles import Estimator, OfRows
from pypoplar.poputil.flop_conventions import OfElements, sum_flops
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF

NON_LINEARITIES = {"RELU": 1, "TANH": 1, "SIGMOID": 1, "HARD_SIGMOID": 1, "GELU": 8, "GELU_ERF": 8, "SWISH": 2}


@frozen
class SoftMaxFlops:
    """Powers, their sum, its inverse, and the product with that; with `stable` the largest element and its subtraction before."""

    field: str

    def __call__(self, vertex: VertexIntrospector, target: Target) -> int:
        return OfRows(self.field, self._stable if vertex.value("stable") else self._plain)(vertex, target)

    def _plain(self, count: int) -> int:
        return count + sum_flops(count) + 1 + count

    def _stable(self, count: int) -> int:
        return sum_flops(count) + count + self._plain(count)


def cross_entropy(count: int) -> int:
    """LossCrossEntropyTransform, then the sum over the row."""
    return 6 * count + 2 + sum_flops(count)


def sum_squared(count: int) -> int:
    """LossSumSquaredTransform, then the sum over the row."""
    return 3 * count + sum_flops(count)


def largest(count: int) -> int:
    """ReduceMaxClassGather: one for each element."""
    return count


FLOPS: dict[str, Estimator] = {}
for _type in (FLOAT, HALF):
    for _name, _each in NON_LINEARITIES.items():
        FLOPS[templateVertex("popnn::NonLinearity1DInPlace", _name, _type)] = OfElements("data", _each)
    FLOPS[templateVertex("popnn::SoftMax", _type)] = SoftMaxFlops("in")
    FLOPS[templateVertex("popnn::SoftMaxInPlace", _type)] = SoftMaxFlops("data")
    FLOPS[templateVertex("popnn::LossCrossEntropy", _type)] = OfRows("probs", cross_entropy)
    FLOPS[templateVertex("popnn::LossCrossEntropyScaled", _type)] = OfRows("probs", cross_entropy)
    FLOPS[templateVertex("popnn::LossSumSquared", _type)] = OfRows("probs", sum_squared)
    for _name in ("CountCorrect", "PartCorrect"):
        FLOPS[templateVertex(f"popnn::{_name}", _type)] = OfRows("probs", largest)
    FLOPS[templateVertex("popnn::ArgMax", _type)] = OfRows("in", largest)
