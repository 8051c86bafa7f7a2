"""Where PyTorch asks for values that no graph knows: numbers in tensors as indices, counts, and distributions that check theirs.

Functions whose operations no graph can have are here, too: they have another form before they become operations.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import torch
from torch.distributions import Distribution
from torch.overrides import TorchFunctionMode

from pypoplar.poptorch.operators.forms.drawn_in_place import random_
from pypoplar.poptorch.operators.forms.empty_fields import interpolate
from pypoplar.poptorch.operators.forms.parts import PARTS

WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8)  # a uint8 is a mask

_plain = torch.Tensor.__getitem__
_plainly_set = torch.Tensor.__setitem__


def _is_number(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.dim() == 0 and item.dtype in WHOLE


def _is_mask(item: Any) -> bool:
    return isinstance(item, list) and bool(item) and all(type(one) is bool for one in item)


def _by_places(tensor: Any, items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Indices in which lists of truths, whose count a graph does not see, are the places of what is true."""
    known = items[: next((place for place, item in enumerate(items) if item is None or item is ...), len(items))]
    masks = [dim for dim, item in enumerate(known) if _is_mask(item) and dim < tensor.dim() and len(item) == tensor.shape[dim]]
    return tuple(
        [number for number, true in enumerate(item) if true] if place in masks else item for place, item in enumerate(items)
    )


@attrs.frozen
class _Numbered:
    """An index with numbers: a view of what all other items choose, and its dimension of each number."""

    view: torch.Tensor
    numbers: dict[int, torch.Tensor]


def _numbered(tensor: Any, index: Any) -> _Numbered | None:
    """An index in which tensors of one number stand beside slices and whole numbers; None for any other."""
    items = index if isinstance(index, tuple) else (index,)
    numbers = [place for place, item in enumerate(items) if _is_number(item)]
    others = [item for place, item in enumerate(items) if place not in numbers]
    if not numbers or not all(item is None or item is ... or isinstance(item, slice) or type(item) is int for item in others):
        return None
    view = _plain(tensor, tuple(slice(None) if place in numbers else item for place, item in enumerate(items)))
    taken = sum(item is not None and item is not ... for item in items)
    dims = [sum(tensor.dim() - taken if item is ... else type(item) is not int for item in items[:place]) for place in numbers]
    return _Numbered(view, dict(zip(dims, (items[place].long() for place in numbers), strict=True)))


def _without_masks(tensor: Any, index: Any) -> Any:
    """An index in which lists of truths are places."""
    if _is_mask(index) or (isinstance(index, tuple) and any(_is_mask(item) for item in index)):
        return _by_places(tensor, index if isinstance(index, tuple) else (index,))
    return index


def _chosen(numbered: _Numbered) -> tuple[torch.Tensor, int]:
    """``tensor[..., number, ...]`` as a new tensor, and a dimension of one element that it still has, the first number's."""
    *later, first = reversed(numbered.numbers)
    view = numbered.view
    for dim in later:
        view = _element(view, dim, numbered.numbers[dim]).squeeze(dim)
    return _element(view, first, numbered.numbers[first]), first


def _element(tensor: torch.Tensor, dim: int, number: torch.Tensor) -> torch.Tensor:
    element: torch.Tensor = _plain(tensor, (*[slice(None)] * dim, number.reshape(1)))
    return element


def _placed(tensor: Any, index: Any, value: Any) -> None:
    """``tensor[..., number, ...] = value``: each number is an index of one element."""
    numbered = _numbered(tensor, index)
    if numbered is None:
        _plainly_set(tensor, index, value)
        return
    view, numbers = numbered.view, numbered.numbers
    given = value.to(view.dtype) if isinstance(value, torch.Tensor) else torch.full((), value, dtype=view.dtype)
    while given.dim() > view.dim() - len(numbers) and given.shape[0] == 1:  # as PyTorch: [1, 1, 4] goes into [4]
        given = given.squeeze(0)
    shape = [size for dim, size in enumerate(view.shape) if dim not in numbers]
    torch.ops.aten.index_put_(view, [numbers.get(dim) for dim in range(max(numbers) + 1)], given.expand(shape))


@attrs.define(eq=False)
class _Copy:
    """What numbers choose of a tensor: in PyTorch a view, here a copy. Each follows what is changed in the other one."""

    tensor: torch.Tensor
    index: Any
    elements: weakref.ref[torch.Tensor]  # those of the copy, which all its views keep
    dim: int  # of one element, which the copy does not have
    versions: tuple[int, int]

    def follow(self) -> bool:
        """Change the one of the two where the other has been changed; whether that was so."""
        elements = self.elements()
        if elements is None or (self.tensor._version, elements._version) == self.versions:
            return False
        if elements._version != self.versions[1]:
            _placed(self.tensor, self.index, elements.squeeze(self.dim))
        else:
            numbered = _numbered(self.tensor, self.index)
            assert numbered is not None
            elements.copy_(_chosen(numbered)[0])
        self.versions = self.tensor._version, elements._version
        return True


def _counted(input: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> torch.Tensor:
    """``bincount``, whose length a graph knows only if it is given: as in PopTorch the least length is the largest, too."""
    if minlength <= 0:
        return torch.bincount(input, weights, minlength)
    if weights is None:
        weights = torch.ones_like(input, dtype=torch.int64)
    elif weights.dtype is not torch.float32:
        weights = weights.double()
    return torch.zeros(minlength, dtype=weights.dtype).scatter_add(0, input.long(), weights)


class _ByNumbers(TorchFunctionMode):
    """Lets tensors be chosen from, and counted, in this way; and all else that has a form of its own.

    No other method takes the place of `torch.Tensor.__getitem__`: once it has been set, Python holds tensors for sequences, also
    when it is as before, and PyTorch's exporter to ONNX takes them apart.
    """

    def __init__(self) -> None:
        super().__init__()
        self.copies: list[_Copy] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _plain:
            return self._of(*args)
        result = FORMS.get(func, func)(*args, **(kwargs or {}))
        while any(copy.follow() for copy in self.copies):
            pass  # until all do: a copy may be of a copy
        return result

    def _of(self, tensor: Any, index: Any) -> Any:
        """``tensor[index]``."""
        index = _without_masks(tensor, index)
        numbered = _numbered(tensor, index)
        if numbered is None:
            return _plain(tensor, index)
        elements, dim = _chosen(numbered)
        if not (tensor.is_inference() or elements.is_inference()):  # which have no versions
            versions = tensor._version, elements._version
            items = index if isinstance(index, tuple) else (index,)
            index = tuple(item.clone() if _is_number(item) else item for item in items)  # as they are now
            living = [copy for copy in self.copies if copy.elements() is not None]
            self.copies = [*living, _Copy(tensor, index, weakref.ref(elements), dim, versions)]
        return elements.squeeze(dim)


FORMS: dict[Any, Callable[..., Any]] = {
    _plainly_set: _placed,
    torch.bincount: _counted,
    torch.Tensor.bincount: _counted,
    torch.Tensor.random_: random_,
    torch.nn.functional.interpolate: interpolate,
    **PARTS,
}


@contextlib.contextmanager
def numbers_as_indices(module: torch.nn.Module) -> Iterator[None]:
    """While a module is exported, tensors of one number are indices that data give; counts have the length that is asked for."""
    modes: list[_ByNumbers] = []

    def begins(*_: Any) -> None:  # within the pass: a mode of export's own would come before one that is around it
        modes.append(_ByNumbers())
        modes[-1].__enter__()

    def ends(*_: Any) -> None:
        if modes:  # it is called where nothing has begun, too
            modes.pop().__exit__(None, None, None)

    hooks = module.register_forward_pre_hook(begins), module.register_forward_hook(ends, always_call=True)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        while modes:  # a pass that was traced and failed: export's own mode has ended in the place of this one, and is still there
            modes.pop().__exit__(None, None, None)


@contextlib.contextmanager
def distributions_as_given() -> Iterator[None]:
    """While a module is exported, distributions do not look at the values of their arguments, which a graph does not know."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)
