"""Gradients that Python computes or changes while PyTorch's backward pass runs: no graph has them, so training refuses them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.utils.checkpoint import CheckpointFunction

from pypoplar.poptorch.capture.problems import Problem, Whereabouts
from pypoplar.poptorch.capture.side_effects import replaced

HOOKS = "gradients are computed on the IPU, where no hook is called; leave it out, or read gradients with Options.anchorTensor"


def hooks_of_gradients(module: torch.nn.Module) -> list[Problem]:
    """The hooks of a module's layers and parameters that a backward pass of PyTorch would call."""
    problems = [
        Problem(f"{path or 'the model'} has a backward hook: {HOOKS}")
        for path, layer in module.named_modules()
        if layer._backward_hooks or layer._backward_pre_hooks
    ]
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:
            problems.append(Problem(f"the parameter {name} has a hook of its gradient: {HOOKS}"))
    return problems


@contextlib.contextmanager
def noticed_gradients(whereabouts: Whereabouts, problems: list[Problem]) -> Iterator[None]:
    """While a module is exported, note gradients of the user's own, and hooks of gradients."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(torch.autograd.Function, "apply", classmethod(_noting(whereabouts, problems))))
        for hook in ("register_hook", "register_post_accumulate_grad_hook", "retain_grad"):
            stack.enter_context(replaced(torch.Tensor, hook, _noting_hook(hook, whereabouts, problems)))
        yield


def _noting(whereabouts: Whereabouts, problems: list[Problem]) -> Callable[..., Any]:
    original = torch.autograd.Function.__dict__["apply"].__func__

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if cls is CheckpointFunction:  # which runs its function without gradients, to run it again in the backward pass
            function, _, *operands = args
            return function(*operands, **kwargs)
        tensors = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        own = cls.__module__.partition(".")[0] not in ("torch", "pypoplar")
        if own and torch.is_grad_enabled() and any(one.requires_grad for one in tensors):
            what = (
                f"{cls.__name__} is a torch.autograd.Function, whose own backward is not captured; build the gradient from "
                "detach(), as in x + (f(x) - x).detach(), or take poptorch.custom_op"
            )
            problems.append(Problem(what, whereabouts.now()))
        return original(cls, *args, **kwargs)

    return apply


def _noting_hook(name: str, whereabouts: Whereabouts, problems: list[Problem]) -> Callable[..., Any]:
    original = getattr(torch.Tensor, name)

    def noted(tensor: torch.Tensor, *args: Any) -> Any:
        problems.append(Problem(f"Tensor.{name}: {HOOKS}", whereabouts.now()))
        return original(tensor, *args)

    return noted
