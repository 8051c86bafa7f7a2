"""Fields sampled at places that data give, and what pools left out put back."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten

MODES = ("linear", "nearest", "cubic")  # by PyTorch's numbers
PADDINGS = ("zeros", "border", "reflection")  # the same
CUBIC = -0.75


@replaces(aten.grid_sampler.default)
def grid_sample(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """Images and solids at places of a grid, as `torch.nn.functional.grid_sample` tells it; halves are computed in float32."""
    result = sampled(input, grid.float(), MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)
    return result.to(input.dtype)


def sampled(x: Tensor, grid: Tensor, mode: str, padding: str, corners: bool) -> Tensor:
    """The elements of fields, [items, channels, field], at places from -1 to 1, [items, ..., axes], the last axis first.

    `mode` is linear, nearest or, of two axes, cubic; `padding` is zeros, border or reflection. With `corners` -1 and 1 are the
    middles of the first and last element, else their outer edges.
    """
    rank = x.dim() - 2
    sizes = list(x.shape[2:])
    at = []
    for axis in range(rank):
        one = torch.select(grid, -1, rank - 1 - axis).reshape(x.shape[0], -1)  # the last axis of the field is first in the grid
        at.append((one + 1) / 2 * (sizes[axis] - 1) if corners else ((one + 1) * sizes[axis] - 1) / 2)
    if mode == "cubic":
        result = _cubic_samples(x, at, padding, corners)
    else:
        at = [_within(one, size, padding, corners) for one, size in zip(at, sizes, strict=True)]
        if mode == "nearest":
            result = _at(x, [torch.round(one) for one in at], padding == "zeros")
        else:
            result = between(x, at, padding == "zeros")
    return result.reshape([*x.shape[:2], *grid.shape[1:-1]])


def taken(field: Tensor, places: list[Tensor]) -> Tensor:
    """Elements of fields, [items, channels, field], at whole places, for each axis [items, samples]: [items, channels, samples]."""
    sizes = list(field.shape[2:])
    flat = places[0]
    for size, one in zip(sizes[1:], places[1:], strict=True):
        flat = flat * size + one
    index = flat.unsqueeze(1).expand(-1, field.shape[1], -1)
    return torch.gather(field.reshape(field.shape[0], field.shape[1], -1), 2, index.to(torch.int64))


def _at(field: Tensor, places: list[Tensor], zeros: bool) -> Tensor:
    """The same at whole places that may be outside: 0 is there, or what is at the edge."""
    sizes = list(field.shape[2:])
    found = taken(field, [whole(one, size) for one, size in zip(places, sizes, strict=True)])
    if not zeros:
        return found
    there = torch.stack([inside(one, size) for one, size in zip(places, sizes, strict=True)]).all(0)
    return torch.where(there.unsqueeze(1), found, torch.zeros((), dtype=field.dtype, device=field.device))


def inside(place: Tensor, size: int) -> Tensor:
    """Whether places are in an axis."""
    return (place >= 0) & (place <= size - 1)


def whole(place: Tensor, size: int) -> Tensor:
    """Places within an axis as integers."""
    return torch.clamp(place, 0, size - 1).to(torch.int32)


def between(field: Tensor, at: list[Tensor], zeros: bool) -> Tensor:
    """Linear samples at places of floats; what is outside is 0, or the edge."""
    low = [torch.floor(one) for one in at]
    total = None
    for corner in itertools.product((0, 1), repeat=len(at)):
        weight = None
        for axis, up in enumerate(corner):
            part = at[axis] - low[axis] if up else 1 - (at[axis] - low[axis])
            weight = part if weight is None else weight * part
        assert weight is not None
        term = _at(field, [one + up for one, up in zip(low, corner, strict=True)], zeros) * weight.unsqueeze(1)
        total = term if total is None else total + term
    assert total is not None
    return total


def _within(place: Tensor, size: int, padding: str, corners: bool) -> Tensor:
    """Places outside of an axis, brought to its edge or reflected."""
    if padding == "border":
        return torch.clamp(place, 0, size - 1)
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
        span = high - low
        if span == 0:
            return torch.zeros_like(place)
        distance = torch.abs(place - low)
        turns = torch.floor(distance / span)
        rest = distance - turns * span
        odd = turns - 2 * torch.floor(turns / 2)
        reflected = torch.where(odd == 0, rest + low, high - rest)
        return torch.clamp(reflected, 0, size - 1)
    return place


def _cubic_samples(x: Tensor, at: list[Tensor], padding: str, corners: bool) -> Tensor:
    sizes = list(x.shape[2:])
    low = [torch.floor(one) for one in at]
    counts = [_cubic_counts(one - below) for one, below in zip(at, low, strict=True)]
    total = None
    for tap in itertools.product(range(4), repeat=2):
        places = [
            _within(below + (number - 1), size, padding, corners) for below, number, size in zip(low, tap, sizes, strict=True)
        ]
        weight = counts[0][tap[0]] * counts[1][tap[1]]
        term = _at(x, [torch.round(place) for place in places], padding == "zeros") * weight.unsqueeze(1)
        total = term if total is None else total + term
    assert total is not None
    return total


def _cubic_counts(part: Tensor) -> list[Tensor]:
    def near(d: Tensor) -> Tensor:
        return ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return ((d - 5) * d + 8) * d * CUBIC - 4 * CUBIC

    return [far(part + 1), near(part), near(1 - part), far(2 - part)]


@replaces(aten.affine_grid_generator.default)
def affine_grid(theta: Any, size: list[int], align_corners: bool) -> Any:
    """Places of an image's or a solid's elements from -1 to 1, each times the matrices of its sample."""
    field = size[2:]
    axes = [torch.linspace(-1, 1, one) * (1 if align_corners else (one - 1) / one) if one > 1 else torch.zeros(1) for one in field]
    places = torch.meshgrid(*axes, indexing="ij")
    rows = torch.stack([*reversed(places), torch.ones_like(places[0])], -1).reshape(1, -1, len(field) + 1).to(theta.dtype)
    return (rows @ theta.transpose(1, 2)).reshape(size[0], *field, len(field))


@replaces(aten.max_unpool2d.default)
def max_unpool2d(input: Any, indices: Any, output_size: list[int]) -> Any:
    """What a max pool took, at the places from which it did; zeros elsewhere."""
    return _unpooled(input, indices, output_size, 2)


@replaces(aten.max_unpool3d.default)
def max_unpool3d(input: Any, indices: Any, output_size: list[int], stride: list[int], padding: list[int]) -> Any:
    """The same of solids."""
    return _unpooled(input, indices, output_size, 3)


def _unpooled(input: Any, indices: Any, output_size: list[int], dimensions: int) -> Any:
    before = input.shape[:-dimensions]
    places = torch.zeros(*before, torch.Size(output_size).numel(), dtype=input.dtype)
    return places.scatter(-1, indices.flatten(-dimensions), input.flatten(-dimensions)).reshape(*before, *output_size)
