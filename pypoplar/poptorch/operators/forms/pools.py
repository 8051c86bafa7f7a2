"""Max pools with the places of what they take, or with gaps in their windows, from shifted views of a field."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from attrs import frozen

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten


@frozen
class _Dimension:
    """How windows go along one dimension of a field."""

    size: int
    kernel: int
    stride: int
    padding: int
    gap: int
    windows: int

    @staticmethod
    def of(size: int, kernel: int, stride: int, padding: int, gap: int, ceil_mode: bool) -> _Dimension:
        """With `ceil_mode` there is one more window, which is not whole, if it begins in the field or before it."""
        room = size + 2 * padding - gap * (kernel - 1) - 1
        windows = (-(-room // stride) if ceil_mode else room // stride) + 1
        if ceil_mode and (windows - 1) * stride >= size + padding:
            windows -= 1
        return _Dimension(size, kernel, stride, padding, gap, windows)

    def behind(self) -> int:
        """How far the last window reaches beyond the field."""
        return max(0, (self.windows - 1) * self.stride + self.gap * (self.kernel - 1) + 1 - self.padding - self.size)

    def elements(self, number: int) -> slice:
        """The elements that have this number in their windows, of a field with its padding."""
        begin = number * self.gap
        return slice(begin, begin + (self.windows - 1) * self.stride + 1, self.stride)

    def places(self, number: Any) -> Any:
        """Where in the field an element is that has this number in its window."""
        return torch.arange(self.windows) * self.stride - self.padding + number * self.gap


def _dimensions(field: Sequence[int], *given: Sequence[int], ceil_mode: bool) -> list[_Dimension]:
    """Of each dimension what PyTorch is given for all of them, or in one number."""
    kernel, stride, padding, gap = ([*one] * len(field) if len(one) == 1 else [*one] for one in given)
    return [_Dimension.of(*one, ceil_mode) for one in zip(field, kernel, stride, padding, gap, strict=True)]


def _with_places(
    input: Any, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool
) -> tuple[Any, Any]:
    """The largest element of each window, the first of equal ones, and where in the field that is."""
    field = input.shape[-len(kernel) :]
    dimensions = _dimensions(field, kernel, stride or kernel, padding, dilation, ceil_mode=ceil_mode)
    lowest = -torch.inf if input.dtype.is_floating_point else torch.iinfo(input.dtype).min
    around = [amount for one in reversed(dimensions) for amount in (one.padding, one.behind())]
    padded = torch.nn.functional.pad(input, around, value=lowest)
    offsets = list(product(*(range(one.kernel) for one in dimensions)))
    views = [padded[(..., *(one.elements(number) for one, number in zip(dimensions, some, strict=True)))] for some in offsets]
    largest, which = torch.stack(views).max(0)
    return largest, _places(which, dimensions)


def _places(which: Any, dimensions: list[_Dimension]) -> Any:
    """Places in the flat field, from the numbers of elements in windows."""
    total, before, rest = torch.zeros_like(which), 1, which
    for behind, one in enumerate(reversed(dimensions)):
        numbers = (rest % one.kernel).movedim(-1 - behind, -1)
        total = total + one.places(numbers).movedim(-1, -1 - behind) * before
        rest, before = rest // one.kernel, before * one.size
    return total


@replaces(aten.max_pool1d_with_indices.default, aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool_with_indices(
    input: Any, kernel_size: Any, stride: Any = (), padding: Any = (0,), dilation: Any = (1,), ceil_mode: bool = False
) -> Any:
    """What a model asks for the places of."""
    return _with_places(input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool(operation: Any) -> Any:
    def max_pool(
        input: Any, kernel_size: Any, stride: Any = (), padding: Any = (0,), dilation: Any = (1,), ceil_mode: bool = False
    ) -> Any:
        """A pool whose windows have no gaps is an entry of the table."""
        if all(gap == 1 for gap in dilation):
            return operation(input, kernel_size, stride, padding, dilation, ceil_mode)
        return _with_places(input, kernel_size, stride, padding, dilation, ceil_mode)[0]

    return max_pool


for _operation in (aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default):
    replaces(_operation)(_max_pool(_operation))
