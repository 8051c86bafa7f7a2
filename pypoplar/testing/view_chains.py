"""A chain of tensor views that can be taken of a tensor and of a NumPy array alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import AnyArray

if TYPE_CHECKING:
    from pypoplar.graph.tensor import Tensor


def _slice(array: AnyArray, begin: int, end: int, dimension: int) -> AnyArray:
    return array[(slice(None),) * dimension + (slice(begin, end),)]


def _reshape_partial(array: AnyArray, begin: int, end: int, shape: Sequence[int]) -> AnyArray:
    return array.reshape((*array.shape[:begin], *shape, *array.shape[end:]))


def _expand(array: AnyArray, dimensions: Sequence[int]) -> AnyArray:
    for dimension in sorted(dimensions, reverse=True):
        array = np.expand_dims(array, dimension)
    return array


def _twice(array: AnyArray, begin: int, end: int, dimension: int) -> AnyArray:
    return np.concatenate([array, _slice(array, begin, end, dimension)], dimension)


ARRAY_FORMS: dict[str, Callable[..., AnyArray]] = {
    "slice": _slice,
    "getitem": lambda array, index: array[index],
    "flatten": lambda array: array.reshape(-1),
    "reshape": lambda array, shape: array.reshape(shape),
    "reshapePartial": _reshape_partial,
    "dimShuffle": lambda array, order: array.transpose(order),
    "dimRoll": lambda array, dimension, place: np.moveaxis(array, dimension, place),
    "transpose": lambda array: array.T,
    "expand": _expand,
    "squeeze": lambda array, dimensions: np.squeeze(array, tuple(dimensions)),
    "reverse": lambda array, dimension: np.flip(array, dimension),
    "subSample": lambda array, stride, dimension: array[(slice(None),) * dimension + (slice(None, None, stride),)],
    "broadcast": lambda array, times, dimension: np.concatenate([array] * times, dimension),
    "upsample": lambda array, scale, dimension: np.repeat(array, scale, dimension),
    "twice": _twice,
}
"""What each step does to an array. ``twice`` joins a tensor with a slice of itself."""


@frozen
class View:
    """Steps such as ``("slice", (1, 3, 0))``, applied in order; names are those of `Tensor`'s methods."""

    steps: tuple[tuple[str, tuple[Any, ...]], ...] = field(default=())

    def of_array(self, array: AnyArray) -> AnyArray:
        """The view of a NumPy array."""
        for name, arguments in self.steps:
            array = ARRAY_FORMS[name](array, *arguments)
        return array

    def of(self, tensor: Tensor) -> Tensor:
        """The view of a tensor."""
        from pypoplar.graph.views import concat

        for name, arguments in self.steps:
            if name == "getitem":
                tensor = tensor[arguments[0]]
            elif name == "twice":
                tensor = concat([tensor, tensor.slice(*arguments)], dimension=arguments[2])
            else:
                tensor = getattr(tensor, name)(*arguments)
        return tensor

    def __str__(self) -> str:
        return "".join(f".{name}({', '.join(map(repr, arguments))})" for name, arguments in self.steps)
