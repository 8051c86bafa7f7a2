"""Buffers that layers of a module set to new tensors in their forward passes: export sees it of the module itself alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree

from pypoplar.poptorch.capture.written_operands import memory_of


@contextlib.contextmanager
def assigned_buffers_changed(module: torch.nn.Module) -> Iterator[None]:
    """While a module is exported, what its layers have set buffers to is copied into these at the end of its forward pass."""
    before: list[tuple[torch.nn.Module, str, torch.Tensor]] = []

    def begin(_: Any, __: Any) -> None:
        layers = [layer for layer in module.modules() if layer is not module]
        before[:] = [(layer, name, buffer) for layer in layers for name, buffer in buffers_of(layer).items() if buffer is not None]

    def end(_: Any, __: Any, returned: Any) -> Any:
        now = [(layer, name, old, buffers_of(layer).get(name)) for layer, name, old in before]
        changed = [(layer, name, old, new) for layer, name, old, new in now if new is not None and new is not old]
        if not changed:
            return returned
        olds = {id(old): old.clone() for _, _, old, _ in changed}
        memory = {memory_of(old) for _, _, old, _ in changed}

        def as_it_was(value: Any) -> Any:
            """What is returned of the buffers, or another one is set to: not what is copied into them now."""
            shows = isinstance(value, torch.Tensor) and memory_of(value) in memory
            return olds.get(id(value), value.clone() if shows else value)

        news = [as_it_was(new.detach()) for _, _, _, new in changed]
        returned = pytree.tree_map(as_it_was, returned)
        for (layer, name, old, _), new in zip(changed, news, strict=True):
            old.copy_(new)
            buffers_of(layer)[name] = old
        return returned

    hooks = [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def buffers_of(layer: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """By name; mypy knows no type of them."""
    buffers: dict[str, torch.Tensor | None] = layer._buffers
    return buffers
