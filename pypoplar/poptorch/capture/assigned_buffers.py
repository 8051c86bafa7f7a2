"""Buffers that a module and its layers set to new tensors in their forward passes: export copies into what they return, too."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree

from pypoplar.poptorch.capture.problems import CaptureError
from pypoplar.poptorch.capture.written_operands import memory_of


@contextlib.contextmanager
def assigned_buffers_changed(module: torch.nn.Module, training: bool) -> Iterator[None]:
    """While a module is exported, what its layers have set buffers to is copied into these at the end of its forward pass."""
    before: list[tuple[torch.nn.Module, str, torch.Tensor]] = []

    def begin(_: Any, __: Any) -> None:
        layers = list(module.modules())
        before[:] = [(layer, name, buffer) for layer in layers for name, buffer in buffers_of(layer).items() if buffer is not None]

    def end(_: Any, __: Any, returned: Any) -> Any:
        now = [(layer, name, old, buffers_of(layer).get(name)) for layer, name, old in before]
        changed = [(layer, name, old, new) for layer, name, old, new in now if new is not None and new is not old]
        if not changed:
            return returned
        names = {id(layer): path for path, layer in module.named_modules()}
        parameters = {name: one for name, one in module.named_parameters() if training and one.requires_grad}
        trained = {memory_of(one): f"parameter {name}" for name, one in parameters.items()}
        _refuse_shared([(f"{names[id(layer)]}.{name}".lstrip("."), old, new) for layer, name, old, new in now], trained)
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
    setting = torch.nn.Module.__setattr__
    torch.nn.Module.__setattr__ = _set_buffer(setting)
    try:
        yield
    finally:
        torch.nn.Module.__setattr__ = setting
        for hook in hooks:
            hook.remove()


def _refuse_shared(buffers: list[tuple[str, torch.Tensor, torch.Tensor | None]], finals: dict[int, str]) -> None:
    """`CaptureError` where a buffer has become another one, what has a memory already, or a view: on the device they are two."""
    for name, old, new in sorted(buffers, key=lambda one: one[1] is not one[2]):  # what has not changed first
        if new is None:
            continue
        other = finals.setdefault(memory_of(new), f"buffer {name}")
        if other != f"buffer {name}" and new is not old:
            raise CaptureError(
                f"the buffer {name} is set to the {other}, or a view of it, and would change with it from then on: set it "
                "to a clone() of it"
            )


def _set_buffer(original: Callable[..., None]) -> Callable[..., None]:
    """Sets buffers without PyTorch's hooks, by which export would copy into those of the model itself in an order of its own."""

    def set_attribute(layer: torch.nn.Module, name: str, value: Any) -> None:
        buffers = vars(layer).get("_buffers", {})
        if isinstance(value, torch.Tensor) and buffers.get(name) is not None:
            buffers[name] = value
        else:
            original(layer, name, value)

    return set_attribute


def buffers_of(layer: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """By name; mypy knows no type of them."""
    buffers: dict[str, torch.Tensor | None] = layer._buffers
    return buffers
