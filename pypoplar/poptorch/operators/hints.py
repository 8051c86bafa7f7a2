"""Marks on tensors that say how something is computed, not what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import torch

from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.poptorch.operators.captured_forms import isRunningOnIpu
from pypoplar.poptorch.operators.node_marks import mark_nodes, mark_of
from pypoplar.poptorch.operators.tensor_arguments import check_tensor
from pypoplar.tracebacks import public

SCOPE = "poptorch_scope"  # of nodes, by `mark_nodes`
PLANNED = "poptorch_plan"


@torch.library.custom_op("poptorch::set_available_memory", mutates_args=())
def _set_available_memory(x: torch.Tensor, proportion: float) -> torch.Tensor:
    return x.clone()


@_set_available_memory.register_fake
def _(x: torch.Tensor, proportion: float) -> torch.Tensor:
    return torch.empty_like(x)


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
    return gradient.clone(), None


_set_available_memory.register_autograd(_backward)


@public
def set_available_memory(tensor: torch.Tensor, available_memory_proportion: float) -> torch.Tensor:
    """The tensor; the convolution or product that it is the result of, and its gradients, take a part of memory for their plans.

    Parameters
    ----------
    tensor:
        The result of a convolution or a product of matrices.
    available_memory_proportion:
        The part, from 0 to 1.

    Returns
    -------
    torch.Tensor
        The same values, which have to be used in its place.

    Raises
    ------
    InvalidOption
        For a part beyond 0 to 1.
    PoplarTypeError
        For what is no tensor, or no number.
    """
    check_tensor("set_available_memory", "tensor", tensor)
    given: object = available_memory_proportion
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise PoplarTypeError(f"poptorch.set_available_memory takes a number for available_memory_proportion, got {given!r}")
    if not 0 <= given <= 1:
        raise InvalidOption(f"poptorch.set_available_memory: available_memory_proportion is from 0 to 1, got {given}")
    return _set_available_memory(tensor, float(given))


@torch.library.custom_op("poptorch::recomputation_checkpoint", mutates_args=())
def _recomputation_checkpoint(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@_recomputation_checkpoint.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


_recomputation_checkpoint.register_autograd(lambda ctx, gradient: gradient.clone())


@public
def recomputationCheckpoint(*tensors: Any) -> Any:
    """The tensors; where a stage of a pipeline is computed again for its gradients, they are kept instead.

    Beside the inputs of a stage its stash has these tensors, and what lies between two of them is computed again just before the
    gradients that take it. Without recomputation, see PopART's option ``autoRecomputation``, and in the last stage nothing changes.

    Parameters
    ----------
    tensors:
        Tensors, or a list or tuple of them.

    Returns
    -------
    Any
        The same values as they were given, one tensor or several, which have to be used in their place.

    Raises
    ------
    PoplarTypeError
        For what is no tensor.
    """
    several = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    for number, one in enumerate(several):
        check_tensor("recomputationCheckpoint", f"tensor {number}", one)
    marked = [_recomputation_checkpoint(one) for one in several]
    if several is tensors and len(marked) == 1:
        return marked[0]
    return type(several)(marked) if type(several) in (list, tuple) else marked


_scopes: list[str] = []


@public
class NameScope:
    """Names of what is called in ``with poptorch.NameScope("attention"):`` begin with that in the report. Scopes nest.

    Parameters
    ----------
    name:
        What names begin with.

    Raises
    ------
    PoplarTypeError
        If it is no text, or an empty one.
    """

    def __init__(self, name: str) -> None:
        if type(name) is not str or not name:
            raise PoplarTypeError(f"poptorch.NameScope takes a name, got {name!r}")
        self.name = name
        self._entered = 0  # a scope may be entered within itself

    def __enter__(self) -> Self:
        if isRunningOnIpu():
            self._entered += 1
            _scopes.append(self.name)
            mark_nodes(SCOPE, "/".join(_scopes))
        return self

    def __exit__(self, *error: object) -> None:
        if self._entered:
            self._entered -= 1
            _scopes.pop()
            mark_nodes(SCOPE, "/".join(_scopes) or None)


def scope_of(meta: dict[str, Any]) -> str:
    """The scopes that a node is in, with slashes between them."""
    return mark_of(meta, SCOPE) or ""


@contextmanager
def planned_by(options: Mapping[str, str]) -> Iterator[None]:
    """Convolutions and products that are called within it, and their gradients, are planned by options of their own."""
    if not options or not isRunningOnIpu():
        yield
        return
    mark_nodes(PLANNED, tuple(sorted(options.items())))
    try:
        yield
    finally:
        mark_nodes(PLANNED, None)


def plan_of(meta: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The options of its plan that a node has by itself."""
    return tuple(tuple(one) for one in mark_of(meta, PLANNED) or ())
