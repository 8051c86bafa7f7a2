"""Estimates of convolutions' vertices take each of their fields once, at its place."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pypoplar import FLOAT, HALF, Target
from pypoplar.graph.vertex_introspector import VertexIntrospector
from pypoplar.poplin.convolution import conv_estimates as estimates
from pypoplar.poplin.convolution.conv_cycles import (
    conversion_slots,
    lanes_cycles,
    outer_cycles,
    product_cycles,
    sliding_cycles,
    slots,
)

TARGET = Target.createIPUTarget(1, 4, "bow")
# Three axes: the last has a padding at its begin that one element of the kernel meets in one output.
AXES = [
    {"in": 4, "kernel": 2, "first": 0, "dilation": 1, "stride": 1, "out": 3},
    {"in": 7, "kernel": 3, "first": 0, "dilation": 1, "stride": 1, "out": 5},
    {"in": 11, "kernel": 4, "first": -1, "dilation": 1, "stride": 1, "out": 7},
]
PRODUCTS = (2 * 3) * (3 * 5) * (4 * 7 - 1)


def vertex(types: Any, sizes: dict[str, int], axes: list[dict[str, int]] | None = None, **values: int) -> VertexIntrospector:
    """A vertex of which an estimate sees some values, and the sizes and types of some fields."""
    known = dict(values)
    for place, axis in enumerate(axes or []):
        known |= {f"{name}{place}": value for name, value in axis.items()}
    seen = SimpleNamespace(
        target=TARGET,
        value=known.__getitem__,
        fieldSize=sizes.__getitem__,
        getFieldInfo=lambda name: SimpleNamespace(elementType=lambda: types[name]),
    )
    return cast("VertexIntrospector", seen)


@pytest.mark.parametrize(("type", "partials"), [(FLOAT, FLOAT), (HALF, FLOAT), (HALF, HALF)])
def test_channels_with_kernels_of_their_own_count_batch_and_outputs(type, partials):
    found = estimates.lanes_estimate(vertex({"in": type, "out": partials}, {}, AXES, batch=2, outChannels=8))
    assert found.cycles == slots(lanes_cycles(TARGET, 2 * 3 * 5 * 7, 7, [2, 3, 4], 8, type, partials))
    assert found.flops == 2 * 2 * PRODUCTS * 8


@pytest.mark.parametrize(("dilation", "adjacent"), [(1, True), (2, False)])
@pytest.mark.parametrize(("type", "partials"), [(FLOAT, FLOAT), (HALF, FLOAT)])
def test_sliding_kernels_count_groups_batch_channels_and_outputs(type, partials, dilation, adjacent):
    axes = [*AXES[:2], {**AXES[2], "dilation": dilation}]
    sizes = {"groups": 3, "batch": 2, "inChannels": 4, "outChannels": 32}
    found = estimates.sliding_estimate(vertex({"in": type, "out": partials}, {}, axes, **sizes))
    kernel = [2, 3, 4]
    assert found.cycles == slots(sliding_cycles(TARGET, 3, 2 * 3 * 5 * 7, 7, kernel, 4, 32, type, partials, adjacent))
    assert found.cycles != slots(sliding_cycles(TARGET, 3, 2 * 3 * 5 * 7, 7, kernel, 4, 32, type, partials, not adjacent))
    if dilation == 1:
        assert found.flops == 2 * 3 * 2 * PRODUCTS * 4 * 32


def test_products_and_outer_products_count_their_rows():
    types, sizes = {"in": HALF, "out": FLOAT}, {"out": 3 * 5 * 32}
    found = estimates.product_estimate(vertex(types, sizes, groups=3, inChannels=16, outChannels=32))
    assert found.cycles == slots(product_cycles(TARGET, 3, 5, 16, 32, HALF))
    assert found.flops == 2 * 3 * 5 * 32 * 16
    found = estimates.outer_estimate(vertex(types, sizes, groups=3, outChannels=32))
    assert found.cycles == slots(outer_cycles(TARGET, 3, 5, 32, HALF, FLOAT))
    assert found.flops == 3 * 5 * 32


@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_conversions_have_no_flops(type):
    found = estimates.conversion_estimate(vertex({"out": type}, {"out": 13}))
    assert (found.cycles, found.flops) == (conversion_slots(TARGET, 13, type), 0)
