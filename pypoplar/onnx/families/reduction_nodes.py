"""Reductions over axes, largest places, softmax, sums along an axis, sorting."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator

Reduction = Callable[[Tensor, list[int], bool], Tensor]


def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keepdim=keep, dtype=x.dtype)
    return x


def _greatest(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if any(x.shape[axis] == 0 for axis in axes):
        return _empty(x, axes, keep, 0 if x.dtype is torch.bool else _lowest(x.dtype))
    if x.dtype is torch.bool:
        return _greatest(x.to(torch.int32), axes, keep) != 0
    return torch.amax(x, axes, keep)


def _least(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if any(x.shape[axis] == 0 for axis in axes):
        return _empty(x, axes, keep, 1 if x.dtype is torch.bool else _highest(x.dtype))
    if x.dtype is torch.bool:
        return _least(x.to(torch.int32), axes, keep) != 0
    return torch.amin(x, axes, keep)


def _lowest(dtype: torch.dtype) -> float:
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _highest(dtype: torch.dtype) -> float:
    return float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


def _empty(x: Tensor, axes: list[int], keep: bool, value: float) -> Tensor:
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape) if keep or axis not in axes]
    return torch.full(shape, value, dtype=x.dtype, device=x.device)


def _mean(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if x.is_floating_point():
        return torch.mean(x, axes, keep)
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    if count == 0:
        raise ValueError("the mean of no integers is no integer")
    return torch.div(torch.sum(x, axes, keep, dtype=x.dtype), count, rounding_mode="trunc")


def _in_floats(function: Reduction) -> Reduction:
    """A reduction of integers by way of floats."""

    def reduced(x: Tensor, axes: list[int], keep: bool) -> Tensor:
        return function(x, axes, keep) if x.is_floating_point() else function(x.to(torch.float32), axes, keep).to(x.dtype)

    return reduced


def _sum(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return torch.sum(x, axes, keep, dtype=x.dtype)


REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": lambda x, axes, keep: _sum(torch.abs(x), axes, keep),
    "ReduceL2": _in_floats(lambda x, axes, keep: torch.sqrt(_sum(x * x, axes, keep))),
    "ReduceLogSum": _in_floats(lambda x, axes, keep: torch.log(_sum(x, axes, keep))),
    "ReduceLogSumExp": _in_floats(lambda x, axes, keep: torch.logsumexp(x, axes, keep)),
    "ReduceMax": _greatest,
    "ReduceMean": _mean,
    "ReduceMin": _least,
    "ReduceProd": _product,
    "ReduceSum": _sum,
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
}
ALONE: dict[str, Callable[[Tensor], Tensor]] = {  # what is left of a reduction over no axis
    "ReduceL1": torch.abs,
    "ReduceL2": torch.abs,
    "ReduceLogSum": torch.log,
    "ReduceSumSquare": torch.square,
}


def _enter(name: str, function: Reduction) -> None:
    def entry(op: NodeCall, x: Tensor) -> Tensor:
        axes = op.ints(1, "axes")
        keep = bool(op.attribute("keepdims", 1))
        if not axes:
            if op.attribute("noop_with_empty_axes", 0):
                return ALONE[name](x) if name in ALONE else x
            axes = list(range(x.dim()))
        if not axes:  # of a scalar, which PyTorch reduces over its only place
            return function(x.reshape(1), [0], False)
        return function(x, op.axes(axes, x.dim()), keep)

    operator(name)(entry)


for _name, _function in REDUCTIONS.items():
    _enter(_name, _function)


def _place(op: NodeCall, x: Tensor, find: Callable[..., Tensor]) -> Tensor:
    axis, keep = op.axis(op.attribute("axis", 0), x.dim()), bool(op.attribute("keepdims", 1))
    if not op.attribute("select_last_index", 0):
        return find(x, axis, keep)
    return x.shape[axis] - 1 - find(torch.flip(x, [axis]), axis, keep)


@operator("ArgMax")
def arg_max(op: NodeCall, x: Tensor) -> Tensor:
    """The first place of the largest element, or the last one."""
    return _place(op, x, torch.argmax)


@operator("ArgMin")
def arg_min(op: NodeCall, x: Tensor) -> Tensor:
    """The first place of the least element, or the last one."""
    return _place(op, x, torch.argmin)


def _rows(op: NodeCall, x: Tensor) -> tuple[Tensor, int]:
    """The operand as matrix around its axis, as opsets before 13 had it, and the axis."""
    if op.opset >= 13:
        return x, op.attribute("axis", -1)
    axis = op.attribute("axis", 1)
    axis = op.axis(axis, x.dim()) if axis < 0 else axis
    rows = 1
    for size in x.shape[:axis]:
        rows *= size
    return x.reshape(rows, x.numel() // rows if rows else 0), 1


@operator("Softmax")
def softmax(op: NodeCall, x: Tensor) -> Tensor:
    """Before opset 13 over all axes from `axis` on."""
    rows, axis = _rows(op, x)
    return torch.softmax(rows, axis).reshape(x.shape)


@operator("LogSoftmax")
def log_softmax(op: NodeCall, x: Tensor) -> Tensor:
    """Before opset 13 over all axes from `axis` on."""
    rows, axis = _rows(op, x)
    return torch.log_softmax(rows, axis).reshape(x.shape)


@operator("Hardmax")
def hardmax(op: NodeCall, x: Tensor) -> Tensor:
    """1 at the first of the largest elements, else 0."""
    rows, axis = _rows(op, x)
    if not rows.numel():
        return x.clone()
    places = torch.argmax(rows, axis, keepdim=True)
    shape = [1] * rows.dim()
    shape[axis] = rows.shape[axis]
    numbers = torch.arange(rows.shape[axis], device=x.device).reshape(shape)
    return (places == numbers).to(x.dtype).reshape(x.shape)


@operator("CumSum")
def cumulative_sum(op: NodeCall, x: Tensor) -> Tensor:
    """Sums of all elements before, with this one or without."""
    return _cumulative(op, x, lambda one, axis: torch.cumsum(one, axis, dtype=one.dtype), 0)


@operator("CumProd", since=26)
def cumulative_product(op: NodeCall, x: Tensor) -> Tensor:
    """Products of all elements before, with this one or without."""
    return _cumulative(op, x, lambda one, axis: torch.cumprod(one, axis, dtype=one.dtype), 1)


def _cumulative(op: NodeCall, x: Tensor, function: Callable[[Tensor, int], Tensor], first: int) -> Tensor:
    axis = op.axis(int(op.number(1)), x.dim())
    if not x.numel():
        return x.clone()
    back = op.attribute("reverse", 0)
    if back:
        x = torch.flip(x, [axis])
    if op.attribute("exclusive", 0):
        start = torch.full_like(x.narrow(axis, 0, 1), first)
        x = torch.cat([start, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    result = function(x, axis)
    return torch.flip(result, [axis]) if back else result


@operator("TopK")
def top_k(op: NodeCall, x: Tensor) -> tuple[Tensor, Tensor]:
    """The largest elements or the least, and their places."""
    wanted = op.ints(1, "k") or [1]
    count, axis = wanted[0], op.axis(op.attribute("axis", -1), x.dim())
    if not 0 <= count <= x.shape[axis]:
        raise op.error(f"k is {count}, and axis {axis} has {x.shape[axis]} elements")
    largest = bool(op.attribute("largest", 1))
    if op.is_known(0) and x.device.type != "meta":  # on the host, where PyTorch's says no order of equal elements
        values, places = torch.sort(x, dim=axis, descending=largest, stable=True)
        return values.narrow(axis, 0, count), places.narrow(axis, 0, count)
    values, places = torch.topk(x, count, axis, largest, True)
    return values, places


@operator("LpNormalization")
def lp_normalization(op: NodeCall, x: Tensor) -> Tensor:
    """Divided by the norm along an axis; 0 where that is 0."""
    axis, order = op.attribute("axis", -1), op.attribute("p", 2)
    if order not in (1, 2):
        raise op.error(f"p is 1 or 2, got {order}")
    norm = torch.sum(torch.abs(x), axis, True) if order == 1 else torch.sqrt(torch.sum(x * x, axis, True))
    return torch.where(norm == 0, torch.zeros_like(x), x / norm)


@operator("Det")
def determinant(op: NodeCall, x: Tensor) -> Tensor:
    """Of matrices of up to five rows, along their first row."""
    if x.shape[-1] != x.shape[-2]:
        raise op.error(f"matrices are square, got {list(x.shape)}")
    if x.shape[-1] > 5:
        raise op.error(f"determinants of more than five rows are missing, got {list(x.shape)}")
    return _determinant(x)


def _determinant(x: Tensor) -> Tensor:
    size = x.shape[-1]
    if size == 1:
        return x[..., 0, 0]
    if size == 2:
        return x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0]
    total = None
    for column in range(size):
        rest = torch.cat([x[..., 1:, :column], x[..., 1:, column + 1 :]], -1)
        term = x[..., 0, column] * _determinant(rest)
        total = term if total is None else total - term if column % 2 else total + term
    assert total is not None
    return total


@operator("Normalizer", domain="ai.onnx.ml")
def normalizer(op: NodeCall, x: Tensor) -> Tensor:
    """Rows divided by their largest element, their sum or their length."""
    x = x.to(torch.float32)
    kind = op.attribute("norm", "MAX")
    if kind == "MAX":
        return x / torch.amax(torch.abs(x), -1, True)
    return F.normalize(x, p=1.0 if kind == "L1" else 2.0, dim=-1)
