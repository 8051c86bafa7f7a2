"""Pools over windows and whole fields."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pypoplar.onnx.families.windows import FieldWindows
from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator

MAX_POOLS: dict[int, Callable[..., Tensor]] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
MEAN_POOLS: dict[int, Callable[..., Tensor]] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
POOLED = (torch.float32, torch.float16)  # what the device's pools take


def _windows(op: NodeCall, x: Tensor) -> FieldWindows:
    return FieldWindows.of(op, list(x.shape[2:]), list(op.attribute("kernel_shape")))


def parts_of(x: Tensor, windows: FieldWindows) -> Iterator[Tensor]:
    """For each place within windows the elements there, of a padded field."""
    for offset in itertools.product(*map(range, windows.kernel)):
        part = x
        for axis, one in enumerate(offset):
            begin, stride = one * windows.dilations[axis], windows.strides[axis]
            end = begin + (windows.sizes[axis] - 1) * stride + 1
            part = part[(slice(None),) * (axis + 2) + (slice(begin, end, stride),)]
        yield part


def lowest(dtype: torch.dtype) -> float:
    """What every element of a type is as large as."""
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


@operator("MaxPool")
def max_pool(op: NodeCall, x: Tensor) -> tuple[Tensor, ...]:
    """The largest element of each window, and its place in the whole tensor."""
    windows = _windows(op, x)
    rank = x.dim() - 2
    if len(op.outputs) > 1 and op.outputs[1]:
        return _max_with_places(op, x, windows)
    if windows.dense and x.dtype in POOLED and rank in MAX_POOLS:
        padding: list[int] = windows.before
        if not windows.symmetric:
            x, padding = F.pad(x, windows.flat(), value=lowest(x.dtype)), [0] * rank
        return (MAX_POOLS[rank](x, windows.kernel, windows.strides, padding),)
    padded = F.pad(x, windows.flat(), value=lowest(x.dtype))
    result = None
    for part in parts_of(padded, windows):
        result = part if result is None else torch.maximum(result, part)
    assert result is not None
    return (result,)


def _max_with_places(op: NodeCall, x: Tensor, windows: FieldWindows) -> tuple[Tensor, Tensor]:
    field = list(x.shape[2:])
    if op.attribute("storage_order", 0):
        strides = [math.prod(field[:axis]) for axis in range(len(field))]
    else:
        strides = [math.prod(field[axis + 1 :]) for axis in range(len(field))]
    numbers = sum(
        (np.arange(size) - windows.before[axis]).reshape([-1, *[1] * (len(field) - axis - 1)]) * strides[axis]
        for axis, size in enumerate(_padded_sizes(field, windows))
    )
    planes = (np.arange(x.shape[0] * x.shape[1]) * math.prod(field)).reshape(x.shape[0], x.shape[1], *[1] * len(field))
    padded = F.pad(x, windows.flat(), value=lowest(x.dtype))
    field_numbers = torch.tensor(np.asarray(numbers)[None, None].tolist(), dtype=torch.int64, device=x.device)
    best, place = None, None
    for part, number in zip(parts_of(padded, windows), parts_of(field_numbers, windows), strict=True):
        if best is None or place is None:
            best, place = part, number.expand(part.shape)
            continue
        better = part > best
        best, place = torch.where(better, part, best), torch.where(better, number, place)
    assert best is not None
    assert place is not None
    return best, place + torch.tensor(planes.tolist(), dtype=torch.int64, device=x.device)


def _padded_sizes(field: list[int], windows: FieldWindows) -> list[int]:
    return [size + windows.before[axis] + windows.after[axis] + windows.rest[axis] for axis, size in enumerate(field)]


@operator("AveragePool")
def average_pool(op: NodeCall, x: Tensor) -> Tensor:
    """The mean of each window, with its padding or without."""
    windows = _windows(op, x)
    rank = x.dim() - 2
    counted = bool(op.attribute("count_include_pad", 0))
    if windows.dense and windows.symmetric and x.dtype in POOLED and rank in MEAN_POOLS:
        return MEAN_POOLS[rank](x, windows.kernel, windows.strides, windows.before, False, counted)
    total = _window_sums(x, windows)
    counts = torch.tensor(_counts(list(x.shape[2:]), windows, counted).tolist(), dtype=x.dtype, device=x.device)
    return total / counts


def _window_sums(x: Tensor, windows: FieldWindows) -> Tensor:
    rank = x.dim() - 2
    padded = F.pad(x, windows.flat())
    if windows.dense and rank in MEAN_POOLS and x.dtype in POOLED:
        return MEAN_POOLS[rank](padded, windows.kernel, windows.strides) * math.prod(windows.kernel)
    total = None
    for part in parts_of(padded, windows):
        total = part if total is None else total + part
    assert total is not None
    return total


def _counts(field: list[int], windows: FieldWindows, counted: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """How many elements a window's mean is of: those within the field, and with padding what is padded, but not beyond."""
    counts = np.ones((1,) * len(field))
    for axis, size in enumerate(field):
        begins = np.arange(windows.sizes[axis]) * windows.strides[axis] - windows.before[axis]
        places = begins[:, None] + np.arange(windows.kernel[axis]) * windows.dilations[axis]
        low, high = (-windows.before[axis], size + windows.after[axis]) if counted else (0, size)
        own = ((places >= low) & (places < high)).sum(1)
        counts = counts * own.reshape([-1, *[1] * (len(field) - axis - 1)])
    return counts


@operator("LpPool")
def lp_pool(op: NodeCall, x: Tensor) -> Tensor:
    """The norm of each window."""
    windows, order = _windows(op, x), op.attribute("p", 2)
    total = _window_sums(torch.abs(x) ** order, windows)
    return torch.sqrt(total) if order == 2 else total if order == 1 else total ** (1.0 / order)


def _field(x: Tensor) -> list[int]:
    return list(range(2, x.dim()))


@operator("GlobalAveragePool")
def global_average_pool(op: NodeCall, x: Tensor) -> Tensor:
    """The mean of each field."""
    return torch.mean(x, _field(x), True)


@operator("GlobalMaxPool")
def global_max_pool(op: NodeCall, x: Tensor) -> Tensor:
    """The largest element of each field."""
    return torch.amax(x, _field(x), True)


@operator("GlobalLpPool")
def global_lp_pool(op: NodeCall, x: Tensor) -> Tensor:
    """The norm of each field."""
    order = op.attribute("p", 2)
    return torch.sum(torch.abs(x) ** order, _field(x), True) ** (1.0 / order)


@operator("MaxUnpool", since=9)
def max_unpool(op: NodeCall, x: Tensor, places: Tensor) -> Tensor:
    """Elements put where the largest of their windows were, among zeros."""
    rank = x.dim() - 2
    kernel, strides = op.attribute("kernel_shape"), op.attribute("strides") or [1] * rank
    pads = op.attribute("pads") or [0] * 2 * rank
    own = [(x.shape[2 + axis] - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + rank] for axis in range(rank)]
    inner = [x.shape[0], x.shape[1], *own]
    wanted = op.ints(2)
    flat = torch.zeros(math.prod(inner), dtype=x.dtype, device=x.device)
    filled = torch.scatter(flat, 0, places.reshape(-1).to(torch.int64), x.reshape(-1)).reshape(inner)
    if wanted is None or wanted == inner:
        return filled
    more = [one for axis in reversed(range(rank)) for one in (0, wanted[2 + axis] - own[axis])]
    return F.pad(filled, more)
