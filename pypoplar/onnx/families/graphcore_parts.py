"""Operators of Graphcore's domain, ``ai.graphcore``, on parts of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pypoplar.onnx.families.graphcore_nodes import DOMAIN
from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator

REDUCTIONS = {"sum": "sum", "max": "amax", "min": "amin", "mul": "prod"}  # PyTorch's by PopART's, in the order of its numbers


@operator("Slice", domain=DOMAIN, needed=("ends", "starts"), attributes=("axes",))
def part(op: NodeCall, x: Tensor) -> Tensor:
    """A part, whose bounds are attributes."""
    starts, ends = list(op.attribute("starts")), list(op.attribute("ends"))
    axes = list(op.attribute("axes") or range(len(starts)))
    if not len(starts) == len(ends) == len(axes):
        raise op.error(f"starts, ends and axes are of one length, got {starts}, {ends} and {axes}")
    for axis, start, end in zip(axes, starts, ends, strict=True):
        _check_axis(op, x, axis)
        begin, stop, _ = slice(start, end).indices(x.shape[axis])
        x = torch.narrow(x, axis, begin, max(stop - begin, 0))
    return x


def _check_axis(op: NodeCall, x: Tensor, axis: int) -> None:
    if not -x.dim() <= axis < x.dim():
        raise op.error(f"axis {axis}: {op.operand_name(0)} has shape {list(x.shape)}")


def _windows(op: NodeCall, x: Tensor, index: Tensor) -> list[tuple[int, Tensor]]:
    """Axes, and the places that data say along each of them."""
    axes, sizes = list(op.attribute("axes")), list(op.attribute("sizes"))
    if not len(axes) == len(sizes) == index.numel():
        raise op.error(f"axes, sizes and {op.operand_name(1)} are of one length, got {axes}, {sizes} and {list(index.shape)}")
    found = []
    for number, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
        _check_axis(op, x, axis)
        if not 0 <= size <= x.shape[axis]:
            raise op.error(f"a size of {size} at axis {axis}: {op.operand_name(0)} has shape {list(x.shape)}")
        found.append((axis, index.reshape(-1)[number].to(torch.int64) + torch.arange(size, device=x.device)))
    return found


@operator("DynamicSlice", domain=DOMAIN, needed=("axes", "sizes"), attributes=("noOverlap",))
def dynamic_slice(op: NodeCall, x: Tensor, index: Tensor) -> Tensor:
    """A part of axes from places on that data say."""
    for axis, places in _windows(op, x, index):
        x = torch.index_select(x, axis, places)
    return x


def _changed(x: Tensor, windows: Sequence[tuple[int, Tensor]], change: Callable[[Tensor], Tensor]) -> Tensor:
    """A tensor with a part of it changed."""
    if not windows:
        return change(x)
    axis, places = windows[0]
    return torch.index_copy(x, axis, places, _changed(torch.index_select(x, axis, places), windows[1:], change))


def _alike(op: NodeCall, windows: Sequence[tuple[int, Tensor]], x: Tensor, given: Tensor) -> None:
    shape = list(x.shape)
    for axis, places in windows:
        shape[axis] = places.numel()
    if list(given.shape) != shape:
        raise op.error(f"{op.operand_name(2)} has the shape of the part, {shape}, got {list(given.shape)}")


@operator("DynamicUpdate", domain=DOMAIN, needed=("axes", "sizes"), attributes=("noOverlap",))
def dynamic_update(op: NodeCall, x: Tensor, index: Tensor, given: Tensor) -> Tensor:
    """With another part at places that data say."""
    windows = _windows(op, x, index)
    _alike(op, windows, x, given)
    return _changed(x, windows, lambda _: given)


@operator("DynamicAdd", domain=DOMAIN, needed=("axes", "sizes"), attributes=())
def dynamic_add(op: NodeCall, x: Tensor, index: Tensor, given: Tensor) -> Tensor:
    """With a part added at places that data say."""
    windows = _windows(op, x, index)
    _alike(op, windows, x, given)
    return _changed(x, windows, lambda now: now + given)


@operator("DynamicZero", domain=DOMAIN, needed=("axes", "sizes"), attributes=())
def dynamic_zero(op: NodeCall, x: Tensor, index: Tensor) -> Tensor:
    """With zeros at places that data say."""
    return _changed(x, _windows(op, x, index), torch.zeros_like)


@operator("Sort", domain=DOMAIN, attributes=("axis", "descending", "stable"))
def sort(op: NodeCall, x: Tensor) -> tuple[Tensor, ...]:
    """Elements in order along an axis, and where they were."""
    values, places = torch.sort(x, op.attribute("axis", -1), bool(op.attribute("descending", 0)))
    return values, places.to(torch.int32)


@operator("Bucketize", domain=DOMAIN, attributes=("right",))
def bucketize(op: NodeCall, x: Tensor, boundaries: Tensor) -> Tensor:
    """How many boundaries are below each element, or, to the right, at most it."""
    return torch.bucketize(x, boundaries, right=bool(op.attribute("right", 0))).to(torch.int32)


@operator("SequenceSlice", domain=DOMAIN, attributes=("zeroUnused",))
def sequence_slice(op: NodeCall, source: Tensor, target: Tensor, counts: Tensor, begins: Tensor, ends: Tensor) -> Tensor:
    """Rows of a source put into a target: of each slice so many, from a place on, to a place on; the others stay or are 0."""
    if counts.dim() != 1 or not counts.shape == begins.shape == ends.shape or source.shape[1:] != target.shape[1:]:
        shapes = ", ".join(str(list(one.shape)) for one in (source, target, counts, begins, ends))
        raise op.error(f"rows are alike, and counts and offsets are of one length, got {shapes}")
    rows = torch.arange(target.shape[0], dtype=torch.int32, device=target.device)
    places = torch.full_like(rows, -1)
    for count, begin, end in zip(counts.unbind(), begins.unbind(), ends.unbind(), strict=True):
        place = rows - end.to(torch.int32)
        places = torch.where((place >= 0) & (place < count.to(torch.int32)), place + begin.to(torch.int32), places)
    taken = torch.index_select(source, 0, torch.clamp(places, 0, source.shape[0] - 1))
    used = (places >= 0).reshape([-1, *[1] * (target.dim() - 1)])
    return torch.where(used, taken, torch.zeros_like(target) if op.attribute("zeroUnused", 0) else target)


SCATTER = ("axis", "reduction", "enable_index_broadcast", "group_size")


@operator("ScatterReduce", domain=DOMAIN, needed=("axis_size",), attributes=SCATTER)
def scatter_reduce(op: NodeCall, data: Tensor, indices: Tensor, initial: Tensor | None = None) -> Tensor:
    """Sums, or largest, least elements or products with initial ones, of what has the same index."""
    return _scattered(op, data, indices, initial, op.attribute("group_size", 1))


@operator("GroupedScatterReduce", domain=DOMAIN, needed=("axis_size",), attributes=SCATTER)
def grouped_scatter_reduce(op: NodeCall, data: Tensor, indices: Tensor, initial: Tensor | None = None) -> Tensor:
    """The same of each group by itself; groups are the first axis, of as many as `group_size` says."""
    return _scattered(op, data, indices, initial, op.attribute("group_size", 1))


def _scattered(op: NodeCall, data: Tensor, indices: Tensor, initial: Tensor | None, groups: int) -> Tensor:
    axis, size = op.attribute("axis", -1), op.attribute("axis_size")
    _check_axis(op, data, axis)
    axis, kind = axis % data.dim(), _kind(op)
    first = 1 if groups > 1 else 0
    if groups < 1 or (first and (data.shape[0] != groups or axis == 0)):
        raise op.error(f"there are {groups} groups, the first axis, and axis {axis} is within them; got {list(data.shape)}")
    if kind not in ("sum", "none") and initial is None:
        raise op.error("Max, Min and Mul need initial values, the third input")
    if indices.dim() == first + 1 and data.dim() > first + 1:
        indices = indices.reshape([one if at < first else -1 if at == axis else 1 for at, one in enumerate(data.shape)])
    fits = indices.dim() == data.dim() and all(one in (1, wanted) for one, wanted in zip(indices.shape, data.shape, strict=True))
    if not fits:
        raise op.error(
            f"{op.operand_name(1)} has the shape of the data, {list(data.shape)}, or one axis, got {list(indices.shape)}"
        )
    shape = [size if at == axis else one for at, one in enumerate(data.shape)]
    if initial is not None and list(initial.shape) != shape:
        raise op.error(f"{op.operand_name(2)} has shape {shape}, got {list(initial.shape)}")
    start = torch.zeros(shape, dtype=data.dtype, device=data.device) if initial is None else initial
    places = indices.to(torch.int64).expand(data.shape)
    if kind == "none":
        return torch.scatter(start, axis, places, data)
    return torch.scatter_reduce(start, axis, places, data, REDUCTIONS[kind])


def _kind(op: NodeCall) -> str:
    """The reduction, which files have as a text, and PopART's enumeration as a number."""
    given = op.attribute("reduction", 0)
    names = [*REDUCTIONS, "none"]
    kind = names[given] if isinstance(given, int) and 0 <= given < len(names) else str(given).lower()
    if kind not in names:
        raise op.error(f"reduction is Sum, Max, Min, Mul or None, got {given!r}")
    return kind


@operator("GroupedGather", domain=DOMAIN, attributes=("axis", "group_size"))
def grouped_gather(op: NodeCall, data: Tensor, indices: Tensor) -> Tensor:
    """Slices of an axis for each index, of each group of the first axis by itself."""
    axis, groups = op.attribute("axis", 1), op.attribute("group_size", data.shape[0])
    if axis < 1 or data.shape[0] != groups or indices.shape[0] != groups:
        raise op.error(
            f"there are {groups} groups, and axis {axis} is within them; got {list(data.shape)} and {list(indices.shape)}"
        )
    return torch.stack(
        [
            torch.index_select(data[one], axis - 1, indices[one].reshape(-1).to(torch.int64)).reshape(
                *data.shape[1:axis], *indices.shape[1:], *data.shape[axis + 1 :]
            )
            for one in range(groups)
        ]
    )
