"""Operators that arrange elements anew, and those that give shapes and constants."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator


@operator("Shape")
def shape(op: NodeCall, x: Tensor) -> Tensor:
    """The shape, or a part of it; known."""
    start, end = op.attribute("start", 0), op.attribute("end")
    return torch.tensor(list(x.shape)[start:end], dtype=torch.int64)


@operator("Size")
def size(op: NodeCall, x: Tensor) -> Tensor:
    """How many elements there are; known."""
    return torch.tensor(x.numel(), dtype=torch.int64)


@operator("Constant")
def constant(op: NodeCall) -> Tensor:
    """What the node's attribute says."""
    if op.attribute("value") is not None:
        return op.attribute("value")
    for name, dtype in (("value_float", torch.float32), ("value_floats", torch.float32)):
        if op.attribute(name) is not None:
            return torch.tensor(op.attribute(name), dtype=op.precision.converted(dtype))
    for name in ("value_int", "value_ints"):
        if op.attribute(name) is not None:
            return torch.tensor(op.attribute(name), dtype=torch.int64)
    if any(one.name == "value_ints" for one in op.node.attribute):
        return torch.zeros(0, dtype=torch.int64)
    if any(one.name == "value_floats" for one in op.node.attribute):
        return torch.zeros(0, dtype=op.precision.converted(torch.float32))
    raise op.error("its value is a text or sparse, which has no form here")


@operator("ConstantOfShape")
def constant_of_shape(op: NodeCall) -> Tensor:
    """One value in a shape."""
    sizes = op.ints(0) if op.array(0).size else []
    value = op.attribute("value")
    if value is None:
        value = torch.zeros(1, dtype=op.precision.converted(torch.float32))
    return value.reshape(()).expand(sizes or []).clone()


@operator("Range", since=11)
def range_of_numbers(op: NodeCall) -> Tensor:
    """Numbers at equal distances."""
    start, limit, delta = (op.number(one) for one in range(3))
    count = max(math.ceil((limit - start) / delta), 0)
    assert op.known[0] is not None
    dtype = op.known[0].dtype
    return (start + delta * torch.arange(count, dtype=torch.float64 if dtype.is_floating_point else torch.int64)).to(dtype)


@operator("EyeLike", since=9)
def eye_like(op: NodeCall, x: Tensor) -> Tensor:
    """Ones on a diagonal."""
    if x.dim() != 2:
        raise op.error(f"a matrix is wanted, got {list(x.shape)}")
    code = op.attribute("dtype")
    dtype = x.dtype if code is None else op.dtype(code)
    return torch.from_numpy(np.eye(x.shape[0], x.shape[1], op.attribute("k", 0))).to(dtype)


@operator("Reshape")
def reshape(op: NodeCall, x: Tensor) -> Tensor:
    """Another shape: 0 keeps a size, -1 is what is left."""
    sizes = (op.ints(1, "shape") or []) if op.count < 2 or op.array(1).size else []
    if not op.attribute("allowzero", 0):
        for axis, one in enumerate(sizes):
            if one == 0 and axis >= x.dim():
                raise op.error(f"the shape {sizes} keeps size {axis} of its input, whose shape is {list(x.shape)}")
        sizes = [x.shape[axis] if one == 0 else one for axis, one in enumerate(sizes)]
    return x.reshape(sizes)


@operator("Flatten")
def flatten(op: NodeCall, x: Tensor) -> Tensor:
    """A matrix: axes before `axis`, and the others."""
    axis = op.attribute("axis", 1)
    axis = axis if axis == x.dim() else op.axis(axis, x.dim())
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Squeeze")
def squeeze(op: NodeCall, x: Tensor) -> Tensor:
    """Without axes of size 1."""
    axes = op.ints(1, "axes")
    if axes is None:
        return x.reshape([one for one in x.shape if one != 1])
    gone = op.axes(axes, x.dim())
    wrong = [axis for axis in gone if x.shape[axis] != 1]
    if wrong:
        raise op.error(f"axis {wrong[0]} has size {x.shape[wrong[0]]}, not 1")
    return x.reshape([one for axis, one in enumerate(x.shape) if axis not in gone])


@operator("Unsqueeze")
def unsqueeze(op: NodeCall, x: Tensor) -> Tensor:
    """With more axes of size 1."""
    axes = op.ints(1, "axes") or []
    rank = x.dim() + len(axes)
    new = op.axes(axes, rank)
    sizes = iter(x.shape)
    return x.reshape([1 if axis in new else next(sizes) for axis in range(rank)])


@operator("Transpose")
def transpose(op: NodeCall, x: Tensor) -> Tensor:
    """Axes in another order; backwards if none is given."""
    return torch.permute(x, list(op.attribute("perm") or reversed(range(x.dim()))))


@operator("Concat")
def concat(op: NodeCall, *operands: Tensor) -> Tensor:
    """One behind the other."""
    if len({one.dim() for one in operands}) > 1:  # which PyTorch lets pass for those without elements
        raise op.error(f"operands have the same dimensions, got {[list(one.shape) for one in operands]}")
    return torch.cat(operands, op.attribute("axis", 1))


@operator("Split")
def split(op: NodeCall, x: Tensor) -> tuple[Tensor, ...]:
    """Parts along an axis, of the sizes that are given or of equal ones."""
    axis = op.axis(op.attribute("axis", 0), x.dim())
    sizes = op.ints(1, "split")
    if sizes is None:
        parts = op.attribute("num_outputs") or len(op.node.output)
        if op.opset < 18 and x.shape[axis] % parts:
            raise op.error(f"axis {axis} has {x.shape[axis]} elements, which {parts} equal parts do not have; say split")
        each = -(-x.shape[axis] // parts)
        sizes = [max(min(each, x.shape[axis] - each * one), 0) for one in range(parts)]
    if sum(sizes) != x.shape[axis]:
        raise op.error(f"the parts {sizes} make {sum(sizes)}, and axis {axis} has {x.shape[axis]}")
    if len(sizes) != len(op.node.output):
        raise op.error(f"there are {len(sizes)} parts and {len(op.node.output)} outputs")
    begins = [0, *itertools.accumulate(sizes)]
    return tuple(x.narrow(axis, begin, one) for begin, one in zip(begins, sizes, strict=False))


@operator("Slice")
def slice_by_attributes(op: NodeCall, x: Tensor) -> Tensor:
    """A part, whose bounds are attributes."""
    starts, ends = op.attribute("starts"), op.attribute("ends")
    axes = op.attribute("axes") or list(range(len(starts)))
    return sliced(op, x, starts, ends, axes, [1] * len(starts))


@operator("Slice", since=10)
def slice_by_operands(op: NodeCall, x: Tensor) -> Tensor:
    """A part, whose bounds are operands."""
    starts, ends = op.ints(1) or [], op.ints(2) or []
    axes, steps = op.ints(3), op.ints(4)
    return sliced(op, x, starts, ends, list(range(len(starts))) if axes is None else axes, steps or [1] * len(starts))


def sliced(op: NodeCall, x: Tensor, starts: list[int], ends: list[int], axes: list[int], steps: list[int]) -> Tensor:
    """Places of axes from a start to an end; a negative step goes backwards."""
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise op.error(f"starts, ends, axes and steps are of one length, got {starts}, {ends}, {axes} and {steps}")
    for start, end, axis, step in zip(starts, ends, op.axes(axes, x.dim()), steps, strict=True):
        if step == 0:
            raise op.error("a step is not 0")
        places = range(*slice(start, end, step).indices(x.shape[axis]))
        if step < 0 and len(places):
            x = torch.flip(_strided(x, axis, places[-1], places[0] + 1, -step), [axis])
        else:
            x = _strided(x, axis, places.start, places.start + len(places) * step if len(places) else places.start, step)
    return x


def _strided(x: Tensor, axis: int, start: int, end: int, step: int) -> Tensor:
    end = max(min(end, x.shape[axis]), start)
    return x[(slice(None),) * axis + (slice(start, end, abs(step)),)]


@operator("Expand", since=8)
def expand(op: NodeCall, x: Tensor) -> Tensor:
    """Repeated along axes of size 1."""
    sizes = (op.ints(1) or []) if op.array(1).size else []
    return x.expand(torch.broadcast_shapes(x.shape, tuple(sizes))).clone()


@operator("Tile")
def tile(op: NodeCall, x: Tensor) -> Tensor:
    """Repeated along an axis."""
    repeats = [1] * x.dim()
    repeats[int(op.number(2))] = int(op.number(1))
    return x.repeat(repeats)


@operator("Tile", since=6)
def tile_all(op: NodeCall, x: Tensor) -> Tensor:
    """Repeated along all axes."""
    return x.repeat(op.ints(1) or []) if x.dim() else x


@operator("Pad")
def pad(op: NodeCall, x: Tensor) -> Tensor:
    """With elements around: a constant, a reflection, the edge, or from the other side."""
    rank = x.dim()
    pads = op.ints(1, "pads" if op.opset >= 2 else "paddings") or []
    axes = op.axes(op.ints(3) or range(rank), rank) if op.opset >= 18 and op.has(3) else list(range(rank))
    if len(pads) != 2 * len(axes):
        raise op.error(f"pads are two for each of {len(axes)} axes, got {len(pads)}")
    before, after = [0] * rank, [0] * rank
    for number, axis in enumerate(axes):
        before[axis], after[axis] = pads[number], pads[number + len(axes)]
    mode = op.attribute("mode", "constant")
    if mode == "constant":
        by_data = op.opset >= 11 and op.has(2) and not op.is_known(2)
        given = 0 if by_data else op.number(2, 0) if op.opset >= 11 else op.attribute("value", 0.0)
        flat = [one for axis in reversed(range(rank)) for one in (before[axis], after[axis])]
        padded = F.pad(x, flat, value=given if x.is_floating_point() else int(given))
        value = op.tensor(2) if by_data else None
        return padded if value is None else torch.where(_border(x, before, after), value.reshape(()), padded)
    for axis in range(rank):
        if before[axis] or after[axis]:
            x = _padded(op, x, axis, before[axis], after[axis], mode)
    return x


def _border(x: Tensor, before: list[int], after: list[int]) -> Tensor:
    """Which elements of a padded tensor are padding."""
    inner = torch.zeros(
        [max(size + min(one, 0) + min(other, 0), 0) for size, one, other in zip(x.shape, before, after, strict=True)]
    )
    flat = [max(one, 0) for axis in reversed(range(x.dim())) for one in (before[axis], after[axis])]
    return (F.pad(inner, flat, value=1.0) != 0).to(x.device)


def _padded(op: NodeCall, x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    size = x.shape[axis]
    numpy_mode = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}.get(mode)
    if numpy_mode is None:
        raise op.error(f"mode is constant, reflect, edge or wrap, got {mode!r}")
    places = np.pad(np.arange(size), (max(before, 0), max(after, 0)), mode=numpy_mode)  # type: ignore[call-overload]
    places = places[max(-before, 0) : len(places) - max(-after, 0)]
    return torch.index_select(x, axis, torch.tensor(places.tolist(), dtype=torch.int64, device=x.device))


@operator("Trilu", since=14)
def triangle(op: NodeCall, x: Tensor) -> Tensor:
    """The upper or lower triangle."""
    diagonal = int(op.number(1, 0))
    return torch.triu(x, diagonal) if op.attribute("upper", 1) else torch.tril(x, diagonal)


@operator("DepthToSpace")
def depth_to_space(op: NodeCall, x: Tensor) -> Tensor:
    """Channels that become blocks of pixels."""
    block = op.attribute("blocksize")
    n, c, h, w = x.shape
    if op.attribute("mode", "DCR") == "DCR":
        parts = x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, c // block**2, block, block, h, w).permute(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, c // block**2, h * block, w * block)


@operator("SpaceToDepth")
def space_to_depth(op: NodeCall, x: Tensor) -> Tensor:
    """Blocks of pixels that become channels."""
    block = op.attribute("blocksize")
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // block, block, w // block, block)
    if op.attribute("mode", "DCR") == "DCR":
        parts = parts.permute(0, 3, 5, 1, 2, 4)
    else:
        parts = parts.permute(0, 1, 3, 5, 2, 4)
    return parts.reshape(n, c * block**2, h // block, w // block)


@operator("Col2Im", since=18)
def columns_to_image(op: NodeCall, x: Tensor) -> Tensor:
    """Sums of blocks at their places."""
    image, block = op.ints(1) or [], op.ints(2) or []
    rank = len(image)
    dilations, strides = op.attribute("dilations") or [1] * rank, op.attribute("strides") or [1] * rank
    pads = op.attribute("pads") or [0] * 2 * rank
    full = [one + pads[axis] + pads[axis + rank] for axis, one in enumerate(image)]
    steps = [(full[axis] - dilations[axis] * (block[axis] - 1) - 1) // strides[axis] + 1 for axis in range(rank)]
    n, channels = x.shape[0], x.shape[1] // math.prod(block)
    blocks = x.reshape(n, channels, math.prod(block), *steps)
    total = torch.zeros(n, channels, *full, dtype=x.dtype, device=x.device)
    for number, offset in enumerate(itertools.product(*map(range, block))):
        part = blocks[:, :, number]
        for axis in range(rank):
            part = _spread(part, axis + 2, offset[axis] * dilations[axis], strides[axis], full[axis])
        total = total + part
    for axis in range(rank):
        total = total.narrow(axis + 2, pads[axis], image[axis])
    return total


def _spread(x: Tensor, axis: int, begin: int, stride: int, size: int) -> Tensor:
    """Elements at equal distances along an axis, with zeros between and around."""
    if stride > 1:
        gaps = F.pad(x.unsqueeze(axis + 1), [0, 0] * (x.dim() - axis - 1) + [0, stride - 1])
        x = gaps.reshape([*x.shape[:axis], x.shape[axis] * stride, *x.shape[axis + 1 :]])
        x = x.narrow(axis, 0, x.shape[axis] - stride + 1)
    return F.pad(x, [0, 0] * (x.dim() - axis - 1) + [begin, size - begin - x.shape[axis]])


@operator("ReverseSequence", since=10)
def reverse_sequence(op: NodeCall, x: Tensor, lengths: Tensor) -> Tensor:
    """The first places of each row backwards."""
    time, batch = op.attribute("time_axis", 0), op.attribute("batch_axis", 1)
    numbers = torch.arange(x.shape[time], device=x.device).unsqueeze(1)
    rows = lengths.unsqueeze(0)
    places = torch.where(numbers < rows, rows - 1 - numbers, numbers)  # [time, batch]
    if time == 1 and batch == 0:
        places = places.transpose(0, 1)
    places = places.reshape([*places.shape, *[1] * (x.dim() - 2)]).expand(x.shape)
    return torch.gather(x, time, places)


@operator("Stack", domain="pypoplar")
def stack(op: NodeCall, *operands: Tensor) -> Tensor:
    """What each round of a loop gives, along a new axis."""
    return torch.stack(operands, op.attribute("axis"))


@operator("Sum", domain="pypoplar")
def add_zeros(op: NodeCall, x: Tensor, zeros: Tensor) -> Tensor:
    """A tensor, with zeros added that have its gradient."""
    return x + zeros


@operator("Select", domain="pypoplar")
def select(op: NodeCall, x: Tensor) -> Tensor:
    """What a round of a Scan is given."""
    return torch.select(x, op.attribute("axis"), op.attribute("index"))


@operator("Join", domain="pypoplar")
def join(op: NodeCall, *operands: Tensor) -> Tensor:
    """The tensors of a sequence, one behind the other."""
    return torch.cat(operands, op.attribute("axis"))


@operator("Part", domain="pypoplar")
def part(op: NodeCall, x: Tensor) -> Tensor:
    """A part of a tensor that becomes a sequence."""
    return x.narrow(op.attribute("axis"), op.attribute("begin"), op.attribute("size"))
