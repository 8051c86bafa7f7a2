"""Hints of PopTorch which arguments and results are copied while the device computes; they are checked, and change nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch
import torch.utils._pytree as pytree
from attrs import define, field

from pypoplar.errors import PoplarError, PoplarTypeError
from pypoplar.poptorch.enums import OverlapMode
from pypoplar.poptorch.operators.tensor_arguments import check_tensor
from pypoplar.poptorch.user_log import say_once
from pypoplar.tracebacks import public


class OverlapError(PoplarError, ValueError):
    """A hint about a tensor that is no argument, or no result, of the model."""


@define(eq=False)
class _Transfers:
    """What a module is given while it is captured, and what hints say that it returns."""

    arguments: list[Any] = field(factory=list)
    results: list[Any] = field(factory=list)


_transfers: ContextVar[_Transfers | None] = ContextVar("transfers", default=None)


@contextlib.contextmanager
def checked_overlaps(module: torch.nn.Module) -> Iterator[None]:
    """While a module is exported, hints have to be about its arguments and results."""
    transfers = _Transfers()

    def begins(_: Any, args: Any, kwargs: Any) -> None:
        transfers.arguments = pytree.tree_leaves((args, kwargs))

    def ends(_: Any, __: Any, returned: Any) -> None:
        if not all(_among(one, pytree.tree_leaves(returned)) for one in transfers.results):
            raise OverlapError("poptorch.set_overlap_for_output applied on a node which is not a tensor output to the model.")

    hooks = module.register_forward_pre_hook(begins, with_kwargs=True), module.register_forward_hook(ends)
    token = _transfers.set(transfers)
    try:
        yield
    finally:
        _transfers.reset(token)
        for hook in hooks:
            hook.remove()


def _among(tensor: Any, tensors: list[Any]) -> bool:
    return any(one is tensor for one in tensors)


def _overlap(call: str, tensors: Any, mode: OverlapMode) -> Any:
    if not isinstance(mode, OverlapMode):
        raise PoplarTypeError(f"poptorch.{call} takes poptorch.OverlapMode for mode, got {mode!r}")
    for one in pytree.tree_leaves(tensors):
        check_tensor(call, "its tensors", one)
    if mode is not OverlapMode.NoOverlap:
        say_once(f"poptorch.{call} changes nothing: copies from and to the host do not overlap with computation")
    return tensors


@public
def set_overlap_for_input(input_tensors: Any, mode: OverlapMode) -> Any:
    """The tensors. It is accepted, told once, and changes nothing: copies overlap with nothing.

    Parameters
    ----------
    input_tensors:
        Tensors, which may be nested.
    mode:
        How far ahead PopTorch would copy them.

    Returns
    -------
    Any
        The tensors as they are.

    Raises
    ------
    PoplarTypeError
        For what is no tensor, or no `OverlapMode`.
    OverlapError
        While a model is captured: for what is no argument of it.
    """
    result, transfers = _overlap("set_overlap_for_input", input_tensors, mode), _transfers.get()
    if transfers is not None and not all(_among(one, transfers.arguments) for one in pytree.tree_leaves(input_tensors)):
        raise OverlapError("poptorch.set_overlap_for_input applied on a node which is not a tensor input to the model.")
    return result


@public
def set_overlap_for_output(output_tensors: Any, mode: OverlapMode) -> Any:
    """The tensors. It is accepted, told once, and changes nothing: copies overlap with nothing.

    Parameters
    ----------
    output_tensors:
        Tensors, which may be nested.
    mode:
        How far ahead PopTorch would copy them.

    Returns
    -------
    Any
        The tensors as they are.

    Raises
    ------
    PoplarTypeError
        For what is no tensor, or no `OverlapMode`.
    OverlapError
        When a model is captured: for what is no result of it.
    """
    result, transfers = _overlap("set_overlap_for_output", output_tensors, mode), _transfers.get()
    if transfers is not None:
        transfers.results += pytree.tree_leaves(output_tensors)
    return result
