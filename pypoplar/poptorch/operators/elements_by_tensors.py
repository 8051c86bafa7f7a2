"""Where PyTorch asks for values that no graph knows: numbers in tensors as indices, counts, and distributions that check theirs.

Functions whose operations no graph can have are here, too: they have another form before they become operations.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.distributions import Distribution
from torch.overrides import TorchFunctionMode

from pypoplar.poptorch.operators.forms.drawn_in_place import random_
from pypoplar.poptorch.operators.forms.empty_fields import interpolate
from pypoplar.poptorch.operators.forms.parts import PARTS

WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

_plain = torch.Tensor.__getitem__


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


def _chosen(tensor: Any, index: Any) -> Any:
    """``tensor[..., number, ...]``: each number is an index of one element, whose dimension is left out again."""
    if _is_mask(index) or (isinstance(index, tuple) and any(_is_mask(item) for item in index)):
        given = index if isinstance(index, tuple) else (index,)
        index = _by_places(tensor, given)
    items = index if isinstance(index, tuple) else (index,)
    numbers = [place for place, item in enumerate(items) if _is_number(item)]
    others = [item for place, item in enumerate(items) if place not in numbers]
    if not numbers or not all(item is None or item is ... or isinstance(item, slice) or type(item) is int for item in others):
        return _plain(tensor, index)
    view = _plain(tensor, tuple(slice(None) if place in numbers else item for place, item in enumerate(items)))
    taken = sum(item is not None and item is not ... for item in items)
    for place in reversed(numbers):
        before = sum(tensor.dim() - taken if item is ... else type(item) is not int for item in items[:place])
        view = _plain(view, (*[slice(None)] * before, items[place].reshape(1))).squeeze(before)
    return view


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

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return FORMS.get(func, func)(*args, **(kwargs or {}))


FORMS: dict[Any, Callable[..., Any]] = {
    _plain: _chosen,
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
