"""Marks on tensors that say how something is computed, not what."""

from __future__ import annotations

from typing import Any, Self

import torch

from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.poptorch.operators.captured_forms import isRunningOnIpu
from pypoplar.poptorch.operators.node_marks import mark_nodes, mark_of
from pypoplar.poptorch.operators.tensor_arguments import check_tensor
from pypoplar.poptorch.user_log import say_once
from pypoplar.tracebacks import public

SCOPE = "poptorch_scope"  # of nodes, by `mark_nodes`


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


@public
def recomputationCheckpoint(*tensors: Any) -> Any:
    """The tensors. It is accepted, told once, and changes nothing: a stage that is computed again is so from its inputs.

    Parameters
    ----------
    tensors:
        Tensors, or a list or tuple of them.

    Returns
    -------
    Any
        As they were given: one tensor, or several.

    Raises
    ------
    PoplarTypeError
        For what is no tensor.
    """
    several = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    for number, one in enumerate(several):
        check_tensor("recomputationCheckpoint", f"tensor {number}", one)
    say_once("poptorch.recomputationCheckpoint changes nothing: what is computed again is so from the inputs of its stage")
    return several[0] if several is tensors and len(several) == 1 else several


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
