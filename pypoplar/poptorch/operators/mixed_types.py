"""Layers and products of halves and floats, which PyTorch refuses: as in PopTorch, weights take the type of what comes in.

Operations on elements have PyTorch's own rule: a half and a float are floats. Doubles count as floats, which they become.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional

FLOATS = {torch.float16, torch.float32, torch.float64}
LAYERS = [
    *("linear", "bilinear", "prelu", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    *("layer_norm", "group_norm", "rms_norm"),
]
RECURRENT = "lstm", "gru", "rnn_tanh", "rnn_relu"
PRODUCTS: list[tuple[Any, list[str]]] = [
    (torch, ["matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv", "einsum"]),
    (torch.Tensor, ["matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv"]),
    (functional, ["scaled_dot_product_attention"]),
]


def _in_type(given: Any, dtype: torch.dtype) -> Any:
    if isinstance(given, list | tuple):
        return [_in_type(one, dtype) for one in given]
    return given.to(dtype) if isinstance(given, torch.Tensor) and given.dtype in FLOATS else given


def _types(given: Any) -> list[torch.dtype]:
    """The types of floating-point tensors among arguments, in their order."""
    if isinstance(given, list | tuple):
        return [dtype for one in given for dtype in _types(one)]
    return [given.dtype] if isinstance(given, torch.Tensor) and given.is_floating_point() else []


def _with_types(call: Callable[..., Any], chosen: Callable[[list[torch.dtype]], torch.dtype]) -> Callable[..., Any]:
    """A function whose arguments are all of one type where they are several."""

    @functools.wraps(call)  # what notes calls knows them by their names
    def form(*args: Any, **kwargs: Any) -> Any:
        types = _types([*args, *kwargs.values()])
        if len(set(types)) > 1 and FLOATS.issuperset(types) and not torch.is_autocast_enabled("cpu"):
            dtype = chosen(types)
            args = tuple(_in_type(one, dtype) for one in args)
            kwargs = {name: _in_type(one, dtype) for name, one in kwargs.items()}
        return call(*args, **kwargs)

    return form


def _of_first(types: list[torch.dtype]) -> torch.dtype:
    return torch.float16 if types[0] is torch.float16 else torch.float32


def _wider(types: list[torch.dtype]) -> torch.dtype:
    return torch.float32


def _checked(check: Callable[..., Any]) -> Callable[..., Any]:
    """A recurrent layer's look at its input, whose type may be another than that of the weights."""

    @functools.wraps(check)
    def form(self: Any, input: Any, batch_sizes: Any) -> None:
        check(self, _in_type(input, next(self.parameters()).dtype), batch_sizes)

    return form


@contextlib.contextmanager
def halves_beside_floats() -> Iterator[None]:
    """While a module is exported, layers and products take halves beside floats."""
    forms = [(functional, name, _with_types(getattr(functional, name), _of_first)) for name in LAYERS]
    forms += [(owner, name, _with_types(getattr(owner, name), _wider)) for owner, names in PRODUCTS for name in names]
    forms += [(torch._VF, name, _with_types(getattr(torch._VF, name), _of_first)) for name in RECURRENT]
    forms.append((torch.nn.RNNBase, "check_input", _checked(torch.nn.RNNBase.check_input)))
    before = [(owner, name, vars(owner).get(name)) for owner, name, _ in forms]
    for owner, name, form in forms:
        setattr(owner, name, form)
    try:
        yield
    finally:
        for owner, name, original in before:
            if original is None:  # it is inherited
                delattr(owner, name)
            else:
                setattr(owner, name, original)
