"""Tensors of a module and its arguments that are one, or share memory, which PyTorch cannot export where one is changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import torch
import torch.utils._pytree as pytree

from pypoplar.poptorch.capture.meta_tensors import has_values
from pypoplar.poptorch.capture.problems import Problem


@contextlib.contextmanager
def buffers_named_once() -> Iterator[None]:
    """Buffers of a layer that a module has under several names have the first of them alone.

    Export lists names with their duplicates, which for a BatchNorm that is used twice are two inputs of the same memory.
    """
    everything = torch.nn.Module.named_buffers

    def named(
        self: torch.nn.Module, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, torch.Tensor]]:
        if remove_duplicate or not recurse:
            yield from everything(self, prefix, recurse, remove_duplicate)
            return
        for path, layer in self.named_modules(prefix=prefix):  # each layer once
            yield from everything(layer, path, recurse=False, remove_duplicate=False)

    with mock.patch.object(torch.nn.Module, "named_buffers", named):
        yield


def apart(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of which none is another one, or a parameter or buffer of the module: they share memory instead.

    Export takes a tensor that is given twice for one input, which would have one value in all calls that follow.
    """
    seen = {id(one) for one in (*module.parameters(), *module.buffers())}

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) in seen:
            return leaf.detach().requires_grad_(leaf.requires_grad)
        seen.add(id(leaf))
        return leaf

    given: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_map(own, (args, dict(kwargs)))
    return given


def shared_memory(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Problem]:
    """Buffers and arguments that share memory, of which only one may be changed: what is wrong where export fails for them."""
    with buffers_named_once():
        buffers = [(f"the buffer {name}", one) for name, one in module.named_buffers(remove_duplicate=False)]
    given, _ = pytree.tree_flatten_with_path((args, dict(kwargs)))
    arguments = [(f"the argument {_argument(path)}", one) for path, one in given if isinstance(one, torch.Tensor)]
    first: dict[int, str] = {}
    problems = []
    for name, one in [*buffers, *arguments]:
        memory = one.untyped_storage().data_ptr() if has_values(one) and one.numel() else 0
        if memory and first.setdefault(memory, name) != name:
            what = "share memory, and the forward pass changes one of them, which no graph can do to both: clone() one of them"
            problems.append(Problem(f"{first[memory]} and {name} {what}"))
    return problems


def _argument(path: tuple[Any, ...]) -> str:
    return "".join(str(step) for step in path[1:]).removeprefix("[").replace("]", "", 1)
