"""Cycles and flops of the vertices of convolutions, by their fields."""

from __future__ import annotations

from math import prod

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.poplin.convolution.conv_cycles import (
    conversion_slots,
    lanes_cycles,
    outer_cycles,
    product_cycles,
    sliding_cycles,
    slots,
)
from pypoplar.poplin.convolution.sliding_axis import SlidingAxis
from pypoplar.poputil.cost_conventions import MULTIPLY_ADD


def product_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of a vertex that multiplies matrices."""
    groups, depth, columns = (int(vertex.value(name)) for name in ("groups", "inChannels", "outChannels"))
    outputs = vertex.fieldSize("out")
    type = vertex.getFieldInfo("in").elementType()
    cycles = product_cycles(vertex.target, groups, outputs // (groups * columns), depth, columns, type)
    return VertexPerfEstimate(slots(cycles), MULTIPLY_ADD * outputs * depth)


def outer_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of a vertex that multiplies a column and a row."""
    groups, columns, outputs = int(vertex.value("groups")), int(vertex.value("outChannels")), vertex.fieldSize("out")
    types = [vertex.getFieldInfo(name).elementType() for name in ("in", "out")]
    cycles = outer_cycles(vertex.target, groups, outputs // (groups * columns), columns, *types)
    return VertexPerfEstimate(slots(cycles), outputs)


def sliding_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of a vertex whose kernel slides."""
    groups, batch, depth, columns = (int(vertex.value(name)) for name in ("groups", "batch", "inChannels", "outChannels"))
    axes = [_axis(vertex, place) for place in range(3)]
    type, partials = (vertex.getFieldInfo(name).elementType() for name in ("in", "out"))
    positions = batch * prod(axis.out for axis in axes)
    cycles = sliding_cycles(
        vertex.target, groups, positions, axes[2].out, [axis.kernel for axis in axes], depth, columns, type, partials,
        axes[2].dilation == 1,
    )  # fmt: skip
    products = groups * batch * prod(axis.products() for axis in axes) * depth * columns
    return VertexPerfEstimate(slots(cycles), MULTIPLY_ADD * products)


def lanes_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of a vertex whose channels have kernels of their own."""
    axes, batch, lanes = [_axis(vertex, place) for place in range(3)], int(vertex.value("batch")), int(vertex.value("outChannels"))
    types = [vertex.getFieldInfo(name).elementType() for name in ("in", "out")]
    positions = batch * prod(axis.out for axis in axes)
    cycles = lanes_cycles(vertex.target, positions, axes[2].out, [axis.kernel for axis in axes], lanes, *types)
    return VertexPerfEstimate(slots(cycles), MULTIPLY_ADD * batch * prod(axis.products() for axis in axes) * lanes)


def conversion_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of a vertex that converts partial sums."""
    return VertexPerfEstimate(
        int(conversion_slots(vertex.target, vertex.fieldSize("out"), vertex.getFieldInfo("out").elementType())), 0
    )


def _axis(vertex: VertexIntrospector, place: int) -> SlidingAxis:
    size, kernel, first, dilation, stride, out = (
        int(vertex.value(f"{name}{place}")) for name in ("in", "kernel", "first", "dilation", "stride", "out")
    )
    return SlidingAxis(size, kernel, -first, dilation, stride, out)
