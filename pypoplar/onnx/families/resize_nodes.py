"""Resize: a matrix for each axis, whose entries are known when the model is compiled."""

from __future__ import annotations

import math

import numpy as np
import torch
from attrs import frozen
from numpy.typing import NDArray
from torch import Tensor

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator

Floats = NDArray[np.float64]


@frozen
class AxisResize:
    """How an axis is resized."""

    size: int
    result: int
    scale: float
    roi: tuple[float, float]


@operator("Upsample")
def upsample(op: NodeCall, x: Tensor) -> Tensor:
    """By whole factors or others, the nearest below or linear."""
    if op.opset >= 9:
        scales = [float(one) for one in op.array(1).ravel()]
    elif op.attribute("scales") is not None:
        scales = list(op.attribute("scales"))
    else:
        scales = [1.0, 1.0, op.attribute("height_scale", 1.0), op.attribute("width_scale", 1.0)]
    axes = [AxisResize(size, math.floor(size * scale), scale, (0.0, 1.0)) for size, scale in zip(x.shape, scales, strict=True)]
    mode = op.attribute("mode", "nearest")
    return resized(op, x, axes, mode, "asymmetric", "floor")


@operator("Resize", since=10)
def resize_simply(op: NodeCall, x: Tensor) -> Tensor:
    """As opset 10 has it: the nearest below, or linear, with asymmetric places."""
    scales = [float(one) for one in op.array(1).ravel()]
    axes = [AxisResize(size, math.floor(size * scale), scale, (0.0, 1.0)) for size, scale in zip(x.shape, scales, strict=True)]
    return resized(op, x, axes, op.attribute("mode", "nearest"), "asymmetric", "floor")


@operator("Resize", since=11)
def resize(op: NodeCall, x: Tensor) -> Tensor:
    """By scales or to sizes."""
    rank = x.dim()
    chosen = op.axes(op.attribute("axes") or range(rank), rank)
    roi = [float(one) for one in op.array(1).ravel()] if op.has(1) else []
    scales = [float(one) for one in op.array(2).ravel()] if op.has(2) else []
    sizes = (op.ints(3) or []) if op.has(3) else []
    whole = [AxisResize(size, size, 1.0, (0.0, 1.0)) for size in x.shape]
    if not scales and not sizes:
        raise op.error("scales or sizes are needed")
    if (scales and len(scales) != len(chosen)) or (sizes and len(sizes) != len(chosen)):
        raise op.error(f"{len(scales) or len(sizes)} scales or sizes were given for {len(chosen)} axes")
    if sizes:
        sizes, scales = _kept_ratio(op, [x.shape[axis] for axis in chosen], sizes)
    for number, axis in enumerate(chosen):
        size = x.shape[axis]
        span = (roi[number], roi[number + len(chosen)]) if len(roi) == 2 * len(chosen) else (0.0, 1.0)
        result = sizes[number] if sizes else math.floor(size * scales[number] * (span[1] - span[0] if _crops(op) else 1.0))
        whole[axis] = AxisResize(size, result, scales[number], span)
    places = op.attribute("coordinate_transformation_mode", "half_pixel")
    return resized(op, x, whole, op.attribute("mode", "nearest"), places, op.attribute("nearest_mode", "round_prefer_floor"))


def _crops(op: NodeCall) -> bool:
    return bool(op.attribute("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")


def _kept_ratio(op: NodeCall, field: list[int], sizes: list[int]) -> tuple[list[int], list[float]]:
    scales = [wanted / size for wanted, size in zip(sizes, field, strict=True)]
    policy = op.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return sizes, scales
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [math.floor(size * scale + 0.5) for size in field], [scale] * len(field)


def resized(op: NodeCall, x: Tensor, axes: list[AxisResize], mode: str, places: str, nearest: str) -> Tensor:
    """A tensor with each axis resized."""
    outside: list[tuple[int, list[bool]]] = []
    for number, axis in enumerate(axes):
        if axis.size == axis.result and axis.scale == 1.0 and axis.roi == (0.0, 1.0):
            continue
        at = _places(axis, places)
        if places == "tf_crop_and_resize":
            over = (at < 0) | (at > axis.size - 1)
            if over.any():
                outside.append((number, over.tolist()))
        if mode == "nearest":
            rounded = np.clip(_rounded(at, nearest), 0, axis.size - 1).astype(np.int64)
            x = torch.index_select(x, number, torch.tensor(rounded.tolist(), dtype=torch.int64, device=x.device))
            continue
        x = _by_matrix(op, x, number, _weights(op, axis, at, mode))
    value = op.attribute("extrapolation_value", 0.0)
    for number, over_places in outside:
        shape = [1] * x.dim()
        shape[number] = len(over_places)
        mask = torch.tensor(over_places, device=x.device).reshape(shape)
        x = torch.where(mask, torch.full_like(x, value), x)
    return x


def _by_matrix(op: NodeCall, x: Tensor, axis: int, weights: Floats) -> Tensor:
    dtype = x.dtype
    matrix = torch.tensor(weights.T.tolist(), dtype=dtype if dtype.is_floating_point else torch.float32, device=x.device)
    last = x if dtype.is_floating_point else x.to(torch.float32)
    result = torch.matmul(last.transpose(axis, -1), matrix).transpose(axis, -1)
    if dtype.is_floating_point:
        return result
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    return torch.clamp(torch.round(result), least, most).to(dtype)


def _places(axis: AxisResize, kind: str) -> Floats:
    """Where in the axis each element of the result is."""
    x = np.arange(axis.result, dtype=np.float64)
    size, result, scale = axis.size, axis.result, axis.scale
    length = size * scale  # which need not be whole
    if kind == "half_pixel":
        return (x + 0.5) / scale - 0.5
    if kind == "half_pixel_symmetric":
        adjusted = result / length
        return size / 2 * (1 - adjusted) + (x + 0.5) / scale - 0.5
    if kind == "pytorch_half_pixel":
        return (x + 0.5) / scale - 0.5 if length > 1 else np.zeros_like(x)
    if kind == "align_corners":
        return x * (size - 1) / (length - 1) if length != 1 else np.zeros_like(x)
    if kind == "asymmetric":
        return x / scale
    if kind == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    start, end = axis.roi
    if result > 1:
        return start * (size - 1) + x * (end - start) * (size - 1) / (result - 1)
    return np.full_like(x, 0.5 * (start + end) * (size - 1))


def _rounded(at: Floats, kind: str) -> Floats:
    if kind == "round_prefer_floor":
        return np.ceil(at - 0.5)
    if kind == "round_prefer_ceil":
        return np.floor(at + 0.5)
    return np.floor(at) if kind == "floor" else np.ceil(at)


def _weights(op: NodeCall, axis: AxisResize, at: Floats, mode: str) -> Floats:
    """What each element of an axis counts in each of the result: [result, size]."""
    smooth = bool(op.attribute("antialias", 0)) and axis.scale < 1
    factor = min(axis.scale, 1.0) if smooth else 1.0
    reach = (1.0 if mode == "linear" else 2.0) / factor
    weights = np.zeros((axis.result, axis.size))
    for row, place in enumerate(at):
        taps = np.arange(math.floor(place - reach) + 1, math.ceil(place + reach))
        if mode == "linear" and not smooth:
            taps = np.array([math.floor(place), math.floor(place) + 1])
        elif not smooth:
            taps = np.arange(math.floor(place) - 1, math.floor(place) + 3)
        counts = _tent(factor * (taps - place)) if mode == "linear" else _cubic(op, factor * (taps - place))
        if op.attribute("exclude_outside", 0):
            counts = np.where((taps >= 0) & (taps < axis.size), counts, 0.0)
        if smooth or op.attribute("exclude_outside", 0):
            counts = counts / counts.sum()
        np.add.at(weights[row], np.clip(taps, 0, axis.size - 1), counts)
    return weights


def _tent(distance: Floats) -> Floats:
    return np.clip(1.0 - np.abs(distance), 0.0, None)


def _cubic(op: NodeCall, distance: Floats) -> Floats:
    a, d = op.attribute("cubic_coeff_a", -0.75), np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
