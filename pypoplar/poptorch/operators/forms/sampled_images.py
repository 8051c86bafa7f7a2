"""Images sampled at places that data give, and what pools left out put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pypoplar.errors import MissingFeature
from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten

BILINEAR, NEAREST, CUBIC = range(3)  # PyTorch's numbers of interpolations
ZEROS, BORDER = range(2)  # and of what is beyond an image; 2 is its reflection
SHARPNESS = -0.75  # of PyTorch's cubic interpolation

Sampled = Callable[[Any, Any], Any]  # what an image has at whole places (y, x)


@replaces(aten.grid_sampler.default)
def grid_sample(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """The elements of images at places from -1 to 1 of their field, as `torch.nn.functional.grid_sample` tells it."""
    if input.dim() != 4:
        raise MissingFeature("grid_sample: solids [N, C, D, H, W] are missing; images [N, C, H, W] are supported")
    height, width = input.shape[2:]
    wide = grid.float()
    x, y = (_scaled(wide[..., axis], size, align_corners) for axis, size in ((0, width), (1, height)))

    def within(at: Any, size: int) -> Any:
        return _within(at, size, padding_mode, align_corners)

    def sampled(rows: Any, columns: Any) -> Any:
        return _at(input, rows, columns)

    if interpolation_mode == CUBIC:
        return _cubic(lambda rows, columns: sampled(within(rows, height), within(columns, width)), y, x).to(input.dtype)
    x, y = within(x, width), within(y, height)
    if interpolation_mode == NEAREST:
        return sampled(torch.round(y), torch.round(x))
    return _linear(sampled, y, x).to(input.dtype)


def _scaled(at: Any, size: int, align_corners: bool) -> Any:
    """Places from -1 to 1 as places of elements: those are the middles of the first and last one, or their outer edges."""
    return (at + 1) * ((size - 1) / 2) if align_corners else ((at + 1) * size - 1) / 2


def _within(at: Any, size: int, padding: int, align_corners: bool) -> Any:
    """Places that are in the image, but for those of zeros."""
    if padding == ZEROS:
        return at
    if padding != BORDER:
        low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
        if span == 0:
            return torch.zeros_like(at)
        away = (at - low).abs()
        rest = torch.fmod(away, span)
        at = torch.where(torch.floor(away / span) % 2 == 0, rest + low, span - rest + low)
    return at.clamp(0, size - 1)


def _at(input: Any, rows: Any, columns: Any) -> Any:
    """float32 [N, C, ...]: the elements at whole places [N, ...]; zeros beyond the image."""
    samples, channels, height, width = input.shape
    inside = (rows >= 0) & (rows <= height - 1) & (columns >= 0) & (columns <= width - 1)
    place = (rows.clamp(0, height - 1) * width + columns.clamp(0, width - 1)).to(torch.int32)
    places = place.reshape(samples, 1, -1).expand(samples, channels, -1).long()
    found = input.reshape(samples, channels, -1).gather(2, places).reshape(samples, channels, *rows.shape[1:])
    return torch.where(inside.unsqueeze(1), found, torch.zeros((), dtype=input.dtype))


def _linear(sampled: Sampled, y: Any, x: Any) -> Any:
    top, left = torch.floor(y), torch.floor(x)
    down, right = (y - top).unsqueeze(1), (x - left).unsqueeze(1)
    above = sampled(top, left) * (1 - right) + sampled(top, left + 1) * right
    below = sampled(top + 1, left) * (1 - right) + sampled(top + 1, left + 1) * right
    return above * (1 - down) + below * down


def _cubic(sampled: Sampled, y: Any, x: Any) -> Any:
    top, left = torch.floor(y), torch.floor(x)
    across, along = _cubic_weights(x - left), _cubic_weights(y - top)
    rows = []
    for row in range(-1, 3):
        parts = [sampled(top + row, left + column) * weight.unsqueeze(1) for column, weight in enumerate(across, -1)]
        rows.append(parts[0] + parts[1] + parts[2] + parts[3])
    weighted = [row * weight.unsqueeze(1) for row, weight in zip(rows, along, strict=True)]
    return weighted[0] + weighted[1] + weighted[2] + weighted[3]


def _cubic_weights(rest: Any) -> list[Any]:
    """The weights of four neighbours, for a place `rest` behind the second of them."""

    def near(distance: Any) -> Any:
        return ((SHARPNESS + 2) * distance - (SHARPNESS + 3)) * distance * distance + 1

    def far(distance: Any) -> Any:
        return ((SHARPNESS * distance - 5 * SHARPNESS) * distance + 8 * SHARPNESS) * distance - 4 * SHARPNESS

    return [far(rest + 1), near(rest), near(1 - rest), far(2 - rest)]


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
