"""Pooling of fields. A max pool makes no indices: its gradient is found from what was pooled and from the largest elements."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

import torch
from attrs import frozen
from torch import fx

from pypoplar import popnn
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn import pooling
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation, lowers

aten = torch.ops.aten
Numbers = SequenceOf[int]


@frozen(eq=False)
class PooledPlaces:
    """What stands for the indices of a max pool."""

    params: pooling.PoolParams
    pooled: Tensor


def _params(
    at: GraphLowering, input: fx.Node, type: popnn.PoolingType, kernel: Numbers, stride: Numbers, padding: Numbers, windows: Numbers
) -> pooling.PoolParams:
    """Those of a pool whose result has the field `windows`: what the windows do not reach is cut off, what they lack is added."""
    batch, channels, *field = at.shape_of(input)
    kernel, padding = _of_field(kernel, field), _of_field(padding, field)
    stride = _of_field(stride, field) if stride else kernel
    reach = [(count - 1) * step + size for count, step, size in zip(windows, stride, kernel, strict=True)]
    upper = [end - size - lower for end, size, lower in zip(reach, field, padding, strict=True)]
    return pooling.PoolParams(type, field, kernel, stride, padding, upper, channels, batch, at.type_of(input))


def _of_field(numbers: Numbers, field: Numbers) -> Numbers:
    return list(numbers) * len(field) if len(numbers) == 1 else list(numbers)


@lowers(aten.max_pool2d_with_indices.default)
def max_pool(
    at: GraphLowering,
    input: fx.Node,
    kernel: Numbers,
    stride: Numbers = (),
    padding: Numbers = (0,),
    dilation: Numbers = (1,),
    ceil: bool = False,
) -> tuple[Tensor, PooledPlaces]:
    if any(step != 1 for step in dilation):
        raise UnsupportedOperation(f"max_pool2d: a dilation of {dilation} is missing; 1 is supported")
    params = _params(at, input, popnn.PoolingType.MAX, kernel, stride, padding, at.shape[2:])
    pooled = pooling.pool(at.graph, params, at.tensor(input), at.program, at.name)
    return pooled, PooledPlaces(params, pooled)


@lowers(aten.max_pool2d_with_indices_backward.default)
def max_pool_backward(
    at: GraphLowering,
    gradient: fx.Node,
    input: fx.Node,
    kernel: Numbers,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    ceil: bool,
    indices: fx.Node,
) -> Tensor:
    places = at.value(indices)
    operands = at.tensor(input), places.pooled, at.tensor(gradient)
    return pooling.poolInputGradient(at.graph, places.params, *operands, True, at.program, at.name)
