"""Convolutions in plain NumPy, with all transforms, step by step as PopLibs words them; and drawn parameters."""

from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from pypoplar.poplin import ConvParams

Array = NDArray[Any]


def transformed(values: Array, transform: ConvParams.InputTransform, dims: int) -> Array:
    """Values whose last `dims` dimensions are cut, dilated, padded and flipped, one after the other."""
    first = values.ndim - dims
    for dim in range(dims):
        axis = first + dim
        end = values.shape[axis] - transform.truncationUpper[dim]
        values = np.take(values, range(transform.truncationLower[dim], end), axis)
        if values.shape[axis]:
            shape = list(values.shape)
            shape[axis] = 1 + (shape[axis] - 1) * transform.dilation[dim]
            dilated = np.zeros(shape, values.dtype)
            dilated[(*[slice(None)] * axis, slice(None, None, transform.dilation[dim]))] = values
            values = dilated
        widths = [(0, 0)] * values.ndim
        widths[axis] = (transform.paddingLower[dim], transform.paddingUpper[dim])
        values = np.pad(values, widths)
        if transform.flip[dim]:
            values = np.flip(values, axis)
    return values


def reference_convolution(params: ConvParams, input: Array, weights: Array) -> Array:
    """The float64 convolution of an input [batch, groups * channels, *field] with weights [groups, outputs, inputs, *kernel]."""
    dims, groups = len(params.inputFieldShape), params.numConvGroups
    input, weights = input.astype(np.float64), weights.astype(np.float64)
    x = input.reshape(params.batchSize, groups, params.inputChannelsPerConvGroup, *params.inputFieldShape)
    x = transformed(x, params.inputTransform, dims)
    w = transformed(weights, params.kernelTransform, dims)
    windows = [size + 1 - kernel for size, kernel in zip(x.shape[3:], w.shape[3:], strict=True)]
    out = np.zeros((params.batchSize, groups, params.outputChannelsPerConvGroup, *windows))
    for place in product(*map(range, w.shape[3:])):
        seen: Any = (..., *(slice(at, at + count) for at, count in zip(place, windows, strict=True)))
        weight: Any = (..., *place)
        out += np.einsum("ngi...,goi->ngo...", x[seen], w[weight])
    for dim, change in enumerate(
        zip(*(getattr(params.outputTransform, name) for name in params.outputTransform.fields), strict=True)
    ):
        lower, upper, stride, before, behind = change
        out = np.take(out, range(lower, out.shape[3 + dim] - upper, stride), 3 + dim)
        widths = [(0, 0)] * out.ndim
        widths[3 + dim] = (before, behind)
        out = np.pad(out, widths)
    return out.reshape(params.batchSize, groups * params.outputChannelsPerConvGroup, *out.shape[3:])


@st.composite
def fields(draw: st.DrawFn, most: int = 7, plain: bool = False) -> tuple[list[int], list[list[Any]]]:
    """A dimension: the sizes of field and kernel, and the numbers of the three transforms, that fit together."""

    def few(largest: int) -> int:
        return 0 if plain else draw(st.sampled_from((0, 0, 0, 0, *range(1, largest + 1))))

    sizes: list[int] = []
    changes: list[list[Any]] = []
    extents: list[int] = []
    for largest in (most, 4):
        size = draw(st.integers(0 if not plain and draw(st.booleans()) else 1, largest))
        lower = min(few(2), size)
        upper = min(few(2), size - lower)
        dilation = 1 + few(2)
        padding = draw(st.integers(0, 2)) if largest == most else few(2), few(2)
        left = size - lower - upper
        sizes.append(size)
        changes.append([lower, upper, dilation, *padding, not plain and draw(st.booleans())])
        extents.append(sum(padding) + (1 + (left - 1) * dilation if left else 0))
    for place in (1, 0):  # a kernel of one element at least, and an input that is as large
        lacking = max(0, (1 if place else max(extents)) - extents[place])
        changes[place][4] += lacking
        extents[place] += lacking
    windows = extents[0] + 1 - extents[1]
    cut = min(few(2), windows)
    stride = draw(st.integers(1, 3))
    return sizes, [*changes, [cut, min(few(2), windows - cut), stride, few(1), few(1)]]


@st.composite
def conv_params(draw: st.DrawFn, type: Any, output: Any = None, dims: int | None = None, plain: bool = False) -> ConvParams:
    """Parameters of small convolutions of 0 to 3 dimensions with all transforms, or with padding and stride alone."""
    count = draw(st.integers(0, 3)) if dims is None else dims
    drawn = [draw(fields(7 if count < 3 else 4, plain)) for _ in range(count)]
    batch, groups, inputs, outputs = (draw(st.integers(1, largest)) for largest in (2, 2, 4, 4))
    shapes = [[sizes[place] for sizes, _ in drawn] for place in (0, 1)]
    params = ConvParams(type, output or type, batch, shapes[0], shapes[1], inputs, outputs, groups)
    transforms = (params.inputTransform, params.kernelTransform, params.outputTransform)
    for place, transform in enumerate(transforms):
        for number, name in enumerate(transform.fields):
            setattr(transform, name, [changes[place][number] for _, changes in drawn])
    return params
