"""Samples between the elements of a field: GridSample, RoiAlign, deformed convolutions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from torch import Tensor

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator
from pypoplar.poptorch.operators.forms.sampled_images import between, sampled, taken, whole


@operator("GridSample", since=16)
def grid_sample(op: NodeCall, x: Tensor, grid: Tensor) -> Tensor:
    """Samples of a field at places from -1 to 1."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(op.attribute("mode", "linear"), op.attribute("mode", "linear"))
    padding, corners = op.attribute("padding_mode", "zeros"), bool(op.attribute("align_corners", 0))
    if mode == "cubic" and x.dim() != 4:
        raise op.error("cubic samples are of fields of two dimensions")
    return sampled(x, grid, mode, padding, corners)


@operator("RoiAlign", since=10)
def roi_align(op: NodeCall, x: Tensor, rois: Tensor, batches: Tensor) -> Tensor:
    """Means or largest values of samples in the cells of regions."""
    height, width = op.attribute("output_height", 1), op.attribute("output_width", 1)
    ratio, scale = op.attribute("sampling_ratio", 0), op.attribute("spatial_scale", 1.0)
    if ratio <= 0:
        raise op.error("sampling_ratio 0 takes as many samples as the size of a region says, which is data; give a number")
    half = op.opset >= 16 and op.attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    shift = 0.5 if half else 0.0
    ends = [torch.select(rois, 1, one) * scale - shift for one in range(4)]  # x1 y1 x2 y2
    spans = [ends[2] - ends[0], ends[3] - ends[1]]
    if not half:
        spans = [torch.clamp(one, min=1.0) for one in spans]
    fields = torch.index_select(x, 0, batches.to(torch.int64))
    steps = [(np.arange(count * ratio) + 0.5) / (count * ratio) for count in (height, width)]
    rows = ends[1].unsqueeze(1) + spans[1].unsqueeze(1) * torch.tensor(steps[0].tolist(), dtype=x.dtype, device=x.device)
    columns = ends[0].unsqueeze(1) + spans[0].unsqueeze(1) * torch.tensor(steps[1].tolist(), dtype=x.dtype, device=x.device)
    count = rois.shape[0]
    shape = (count, height * ratio, width * ratio)
    at = [rows.unsqueeze(2).expand(shape).reshape(count, -1), columns.unsqueeze(1).expand(shape).reshape(count, -1)]
    samples = _roi_samples(fields, at, op.attribute("mode", "avg") == "max")
    cells = samples.reshape(count, x.shape[1], height, ratio, width, ratio)
    return torch.amax(cells, [3, 5]) if op.attribute("mode", "avg") == "max" else torch.mean(cells, [3, 5])


def _roi_samples(fields: Tensor, at: list[Tensor], largest: bool) -> Tensor:
    """Linear samples: 0 more than one element outside, else at the edge; the largest share of the corners for `largest`."""
    sizes = list(fields.shape[2:])
    live = None
    held = []
    for one, size in zip(at, sizes, strict=True):
        near = (one >= -1.0) & (one <= size)
        live = near if live is None else live & near
        held.append(torch.clamp(one, 0, size - 1))
    assert live is not None
    result = _largest_corner(fields, held) if largest else between(fields, held, zeros=False)
    return result * live.to(fields.dtype).unsqueeze(1)


def _largest_corner(fields: Tensor, at: list[Tensor]) -> Tensor:
    sizes = list(fields.shape[2:])
    best = None
    low = [torch.floor(one) for one in at]
    for corner in itertools.product((0, 1), repeat=2):
        weight, places = None, []
        for axis, up in enumerate(corner):
            part = at[axis] - low[axis] if up else 1 - (at[axis] - low[axis])
            weight = part if weight is None else weight * part
            places.append(whole(low[axis] + up, sizes[axis]))
        assert weight is not None
        term = taken(fields, places) * weight.unsqueeze(1)
        best = term if best is None else torch.maximum(best, term)
    assert best is not None
    return best


@operator("DeformConv", since=19)
def deformed_convolution(op: NodeCall, x: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
    """A convolution whose windows have their elements at other places."""
    from pypoplar.onnx.families.windows import FieldWindows

    bias, mask = op.tensor(3), op.tensor(4)
    if x.dim() != 4:
        raise op.error(f"fields have two dimensions, got {list(x.shape)}")
    windows = FieldWindows.of(op, list(x.shape[2:]), list(weight.shape[2:]))
    groups, parts = op.attribute("group", 1), op.attribute("offset_group", 1)
    items, channels = x.shape[:2]
    taps, cells = math.prod(windows.kernel), math.prod(windows.sizes)
    offsets = offset.reshape(items, parts, taps, 2, *windows.sizes)
    masks = None if mask is None else mask.reshape(items, parts, taps, cells)
    columns = []
    for number, tap in enumerate(itertools.product(*map(range, windows.kernel))):
        rows = []
        for part in range(parts):
            field = x.reshape(items, parts, channels // parts, *x.shape[2:])[:, part]
            at = []
            for axis in range(2):
                base = np.arange(windows.sizes[axis]) * windows.strides[axis] - windows.before[axis]
                base = base + tap[axis] * windows.dilations[axis]
                shape = [1, -1, 1] if axis == 0 else [1, 1, -1]
                grid = torch.tensor(base.tolist(), dtype=x.dtype, device=x.device).reshape(shape)
                at.append((offsets[:, part, number, axis] + grid).reshape(items, cells))
            found = between(field, at, zeros=True)
            rows.append(found if masks is None else found * masks[:, part, number].unsqueeze(1))
        columns.append(torch.cat(rows, 1))
    blocks = torch.stack(columns, 2).reshape(items, groups, channels // groups * taps, cells)
    kernels = weight.reshape(groups, weight.shape[0] // groups, -1)
    result = torch.matmul(kernels.unsqueeze(0), blocks).reshape(items, weight.shape[0], *windows.sizes)
    return result if bias is None else result + bias.reshape(1, -1, 1, 1)
