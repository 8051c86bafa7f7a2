"""Gathers and scatters, one-hot vectors, and what depends on data."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator


def wrapped(op: NodeCall, operand: int, size: int) -> Tensor:
    """An operand's indices, of which negative ones count from the end."""
    indices = op.tensor(operand)
    assert indices is not None
    if op.is_known(operand):
        known = op.array(operand).astype(np.int64)
        if known.size and not (-size <= known.min() and known.max() < size):
            raise op.error(f"{op.operand_name(operand)} has indices from {known.min()} to {known.max()}, of {size}")
        return torch.tensor(np.where(known < 0, known + size, known).tolist(), dtype=torch.int64, device=indices.device).reshape(
            indices.shape
        )
    if indices.dtype not in (torch.int64, torch.int32):
        indices = indices.to(torch.int32)
    return torch.where(indices < 0, indices + size, indices)


@operator("Gather")
def gather(op: NodeCall, x: Tensor) -> Tensor:
    """Slices of an axis, one for each index."""
    axis = op.axis(op.attribute("axis", 0), x.dim())
    if op.is_known(1) and op.array(1).ndim == 0:
        index = int(op.array(1))
        if not -x.shape[axis] <= index < x.shape[axis]:
            raise op.error(f"the index {index} is not one of {x.shape[axis]}")
        return torch.select(x, axis, index % x.shape[axis])
    indices = wrapped(op, 1, x.shape[axis])
    if axis == 0 and x.dim() == 2 and x.is_floating_point():
        return F.embedding(indices, x)
    rows = torch.index_select(x, axis, indices.reshape(-1))
    return rows.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


@operator("GatherElements", since=11)
def gather_elements(op: NodeCall, x: Tensor) -> Tensor:
    """An element of an axis for each index."""
    axis = op.axis(op.attribute("axis", 0), x.dim())
    return torch.gather(x, axis, wrapped(op, 1, x.shape[axis]).to(torch.int64))


def flat_indices(op: NodeCall, operand: int, sizes: list[int], alone: bool = True) -> Tensor:
    """Places in a row of elements for index vectors, which are the last axis of an operand.

    `alone` says that the row has no others: then an index along its only axis is checked where the row is read.
    """
    indices = op.tensor(operand)
    assert indices is not None
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    if op.is_known(operand):
        known = op.array(operand).astype(np.int64)
        outside = (known < -np.array(sizes, np.int64)) | (known >= np.array(sizes, np.int64))
        if outside.any():
            wrong = known[outside.any(-1)][0].tolist()
            raise op.error(f"{op.operand_name(operand)} has the place {wrong}, of {sizes}")
        known = np.where(known < 0, known + np.array(sizes, np.int64), known)
        flat = (known * np.array(strides, np.int64)).sum(-1)
        return torch.tensor(flat.tolist(), dtype=torch.int64, device=indices.device).reshape(indices.shape[:-1])
    total = torch.zeros(indices.shape[:-1], dtype=indices.dtype, device=indices.device)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        one = torch.select(indices, -1, axis)
        place = torch.where(one < 0, one + size, one)
        if len(sizes) == 1 and alone:
            return place
        table = torch.arange(0, size * stride, stride, dtype=torch.int32, device=one.device)  # reading it checks the index
        total = total + torch.index_select(table, 0, place.reshape(-1)).reshape(place.shape).to(total.dtype)
    return total


@operator("GatherND", since=11)
def gather_nd(op: NodeCall, x: Tensor) -> Tensor:
    """Slices of several axes at once."""
    batch = op.attribute("batch_dims", 0)
    indices = op.tensor(1)
    assert indices is not None
    count = indices.shape[-1]
    groups, sizes, rest = math.prod(x.shape[:batch]), list(x.shape[batch : batch + count]), list(x.shape[batch + count :])
    flat = flat_indices(op, 1, sizes, alone=not batch).reshape(groups, -1)
    if batch:
        offsets = (torch.arange(groups, device=x.device) * math.prod(sizes)).to(flat.dtype).unsqueeze(1)
        flat = flat + offsets
    rows = x.reshape(groups * math.prod(sizes), -1) if rest else x.reshape(-1, 1)
    return torch.index_select(rows, 0, flat.reshape(-1)).reshape([*indices.shape[:-1], *rest])


REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("Scatter", since=9)
@operator("ScatterElements", since=11)
def scatter_elements(op: NodeCall, x: Tensor) -> Tensor:
    """Elements of updates put at their places along an axis."""
    axis = op.axis(op.attribute("axis", 0), x.dim())
    indices, updates = wrapped(op, 1, x.shape[axis]).to(torch.int64), op.tensor(2)
    assert updates is not None
    kind = op.attribute("reduction", "none")
    if kind == "none":
        return torch.scatter(x, axis, indices, updates)
    return torch.scatter_reduce(x, axis, indices, updates, REDUCE[kind], include_self=True)


@operator("ScatterND", since=11)
def scatter_nd(op: NodeCall, x: Tensor) -> Tensor:
    """Slices of updates put at their places."""
    indices, updates = op.tensor(1), op.tensor(2)
    assert indices is not None
    assert updates is not None
    count = indices.shape[-1]
    sizes, rest = list(x.shape[:count]), list(x.shape[count:])
    flat = flat_indices(op, 1, sizes).reshape(-1).to(torch.int64)
    rows = x.reshape(math.prod(sizes), math.prod(rest))
    given = updates.reshape(-1, math.prod(rest))
    places = flat.unsqueeze(1).expand(-1, math.prod(rest))
    kind = op.attribute("reduction", "none")
    if kind == "none":
        result = torch.scatter(rows, 0, places, given)
    else:
        result = torch.scatter_reduce(rows, 0, places, given, REDUCE[kind], include_self=True)
    return result.reshape(x.shape)


@operator("OneHot", since=9)
def one_hot(op: NodeCall, indices: Tensor) -> Tensor:
    """Vectors with one value at an index, and another elsewhere."""
    depth, values = int(op.number(1)), op.tensor(2)
    assert values is not None
    axis = op.attribute("axis", -1)
    axis = op.axis(axis, indices.dim() + 1)
    numbers = torch.arange(depth, device=indices.device).reshape([depth, *[1] * (indices.dim() - axis)])
    whole = indices.to(torch.int32).unsqueeze(axis)
    hit = torch.where(whole < 0, whole + depth, whole) == numbers
    return torch.where(hit, values[1], values[0])


@operator("TensorScatter", since=24)
def tensor_scatter(op: NodeCall, cache: Tensor, update: Tensor) -> Tensor:
    """A part of a cache along an axis, overwritten from a place on in each row."""
    axis = op.attribute("axis", -2) % cache.dim()
    size, count = cache.shape[axis], update.shape[axis]
    starts = op.tensor(2)
    if starts is None:
        starts = torch.zeros(cache.shape[0], dtype=torch.int32, device=cache.device)
    numbers = starts.to(torch.int32).unsqueeze(1) + torch.arange(count, device=cache.device, dtype=torch.int32)
    if op.attribute("mode", "linear") == "circular":
        numbers = torch.remainder(numbers, size)
    places = numbers.reshape([cache.shape[0], *[1] * (axis - 1), count, *[1] * (cache.dim() - axis - 1)]).expand(update.shape)
    return torch.scatter(cache, axis, places.to(torch.int64), update)


@operator("NonZero", since=9)
def non_zero(op: NodeCall, x: Tensor) -> Tensor:
    """The places of what is not 0: of known values alone."""
    return torch.from_numpy(np.array(np.nonzero(op.array(0, data=True)), dtype=np.int64))


@operator("Compress", since=9)
def compress(op: NodeCall, x: Tensor) -> Tensor:
    """The places that a known condition chooses."""
    axis = op.attribute("axis")
    chosen = np.flatnonzero(op.array(1, data=True)).tolist()
    rows = x.reshape(-1) if axis is None else x
    place = 0 if axis is None else op.axis(axis, x.dim())
    if chosen and chosen[-1] >= rows.shape[place]:
        raise op.error(f"{op.operand_name(1)} chooses place {chosen[-1]}, of {rows.shape[place]}")
    return torch.index_select(rows, place, torch.tensor(chosen, dtype=torch.int64, device=x.device))


@operator("Unique", since=11)
def unique(op: NodeCall, x: Tensor) -> tuple[Tensor, ...]:
    """Elements that are there, of known values alone."""
    axis, values = op.attribute("axis"), op.array(0, data=True)
    axis = None if axis is None else op.axis(axis, x.dim())
    found, first, inverse, counts = np.unique(values, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not op.attribute("sorted", 1):
        order = np.argsort(first)
        back = np.argsort(order)
        found, first, counts, inverse = np.take(found, order, axis or 0), first[order], counts[order], back[inverse]
    return tuple(torch.from_numpy(np.array(one)) for one in (found, first, inverse, counts))


@operator("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_features(op: NodeCall, x: Tensor, indices: Tensor) -> Tensor:
    """Columns of the last axis."""
    rows = torch.index_select(x, -1, indices.reshape(-1).to(torch.int64))
    return rows.reshape(1, -1) if x.dim() == 1 else rows


@operator("Binarizer", domain="ai.onnx.ml")
def binarizer(op: NodeCall, x: Tensor) -> Tensor:
    """1 above a threshold, else 0."""
    return (x > op.attribute("threshold", 0.0)).to(x.dtype)
