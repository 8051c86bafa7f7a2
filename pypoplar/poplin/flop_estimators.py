"""Floating-point operations of poplin's vertices, by the estimators of PopLibs' poplinCycleEstimators."""

from __future__ import annotations

from pypoplar.graph.vertex_introspector import VertexIntrospector
from pypoplar.poputil.cycles import Estimator, OfRows
from pypoplar.poputil.flop_conventions import MULTIPLY_ADD, OfElements, sum_flops
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF


def dot_products(vertex: VertexIntrospector, target: Target) -> int:
    """A product and a sum for each element of each row."""
    return MULTIPLY_ADD * vertex.fieldSize("out") * vertex.fieldSize("b")


def block_product(vertex: VertexIntrospector, target: Target) -> int:
    """ConvPartial1x1Out: rows times depth times columns."""
    return MULTIPLY_ADD * vertex.fieldSize("out") * int(vertex.value("depth"))


def reduce_add(vertex: VertexIntrospector, target: Target) -> int:
    """ReduceAdd: a sum of the partials for each output."""
    return vertex.fieldSize("out") * sum_flops(vertex.fieldSize("partials"))


FLOPS: dict[str, Estimator] = {}
for _type in (FLOAT, HALF):
    FLOPS[templateVertex("poplin::DotProducts", _type)] = dot_products
    FLOPS[templateVertex("poplin::BlockProduct", _type)] = block_product
    FLOPS[templateVertex("poplin::SumPartials", _type)] = OfRows("partials", sum_flops)
    FLOPS[templateVertex("poplin::ReduceAdd", _type)] = reduce_add
    for _result in (FLOAT, HALF):
        FLOPS[templateVertex("poplin::OuterProduct", _type, _result)] = OfElements("out", 1)
