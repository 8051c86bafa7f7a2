"""Tensors of the device "meta", which have no elements: while a module is captured, tensors of the CPU stand for them.

What stands for them has shape and type alone, too, but what a module computes with it is what it computes on the CPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def has_meta_tensors(module: torch.nn.Module, *arguments: Any) -> bool:
    """Whether a module or its arguments have tensors without elements."""
    own = [one for layer in module.modules() for _, _, one in _tensors(layer)]
    return any(_is_meta(leaf) for leaf in (*own, *pytree.tree_leaves(arguments)))


@contextlib.contextmanager
def standing_for_meta(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Arguments]:
    """Let tensors of the CPU without elements stand for those of a module on "meta"; gives arguments likewise.

    Factories of PyTorch make tensors on the CPU meanwhile, whatever the default device is. The module has its own tensors again
    afterwards.
    """
    if not has_meta_tensors(module, args, kwargs):
        with _on_cpu():
            yield args, dict(kwargs)
        return
    fake_mode = FakeTensorMode(shape_env=ShapeEnv(tracked_fakes=[]), allow_non_fake_inputs=True, export=True)
    known: dict[int, torch.Tensor] = {}
    changed: list[tuple[dict[str, Any], str, torch.Tensor]] = []

    def stand_in(leaf: Any) -> Any:
        if not _is_meta(leaf):
            return leaf
        if id(leaf) not in known:
            known[id(leaf)] = _fake(leaf, fake_mode)
        return known[id(leaf)]

    try:
        for layer in module.modules():
            for attributes, name, one in list(_tensors(layer)):
                if _is_meta(one):
                    changed.append((attributes, name, one))
                    attributes[name] = stand_in(one)
        with _on_cpu(), tracing(TracingContext(fake_mode)):
            yield pytree.tree_map(stand_in, (args, dict(kwargs)))
    finally:
        for attributes, name, one in changed:
            attributes[name] = one


def has_values(tensor: torch.Tensor) -> bool:
    """Whether a tensor has elements, and not shape and type alone."""
    return not isinstance(tensor, FakeTensor) and not _is_meta(tensor)


def _is_meta(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.device.type == "meta"


def _tensors(layer: torch.nn.Module) -> Iterator[tuple[dict[str, Any], str, torch.Tensor]]:
    """The tensors of a layer itself, with the dicts that have them: parameters, buffers, and other attributes."""
    for attributes in (layer._parameters, layer._buffers, layer.__dict__):
        for name, one in attributes.items():
            if isinstance(one, torch.Tensor):
                yield attributes, name, one


def _fake(tensor: torch.Tensor, fake_mode: FakeTensorMode) -> torch.Tensor:
    fake = FakeTensor(fake_mode, tensor.detach(), torch.device("cpu"))
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(fake, requires_grad=tensor.requires_grad)
    return fake.requires_grad_(tensor.requires_grad)


def _on_cpu() -> contextlib.AbstractContextManager[Any]:
    """What factories make is on the CPU, where a default device says otherwise."""
    default = torch.get_default_device()
    return contextlib.nullcontext() if default.type == "cpu" else torch.device("cpu")
