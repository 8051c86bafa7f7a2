"""Loops and choices of the device: a body is captured once, between two marks of the graph.

On the CPU they are Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from pypoplar.errors import MissingFeature, PoplarTypeError, TensorShapeError
from pypoplar.poptorch.operators.captured_forms import isRunningOnIpu
from pypoplar.poptorch.operators.tensor_arguments import check_number, check_tensor, check_tensors
from pypoplar.tracebacks import public

Body = Callable[..., Any]


def _refused(call: str) -> Callable[..., NoReturn]:
    def backward(ctx: Any, *gradients: Any) -> NoReturn:
        raise MissingFeature(
            f"poptorch.{call}() is only supported in inference, and in training for values that the loss does not depend on: it "
            "has no gradient (detach() its inputs and what its body uses)"
        )

    return backward


def _copies(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [one.clone() for one in tensors]


def _mark(name: str, schema: str, copied: int, call: str) -> Any:
    """An operation that gives copies of the tensors of its argument number `copied`, and marks a place in the graph."""

    def act(*arguments: Any) -> list[torch.Tensor]:
        return _copies(arguments[copied])

    mark = torch.library.custom_op(f"poptorch::{name}", act, mutates_args=(), schema=schema)
    mark.register_fake(act)
    mark.register_autograd(_refused(call))
    return mark


_start_for_loop = _mark("start_for_loop", "(Tensor[] inputs) -> Tensor[]", 0, "for_loop")
_end_for_loop = _mark("end_for_loop", "(Tensor[] outputs, Tensor[] inputs, int count) -> Tensor[]", 0, "for_loop")
_start_if = _mark("start_if_block", "(Tensor[] condition) -> Tensor[]", 0, "cond")
_start_else = _mark("start_else_block", "(Tensor[] outputs, Tensor[] condition) -> Tensor[]", 0, "cond")
_end_if = _mark("end_if_block", "(Tensor[] outputs, Tensor[] others, Tensor[] condition) -> Tensor[]", 0, "cond")


def _results(call: str, what: str, results: Any) -> list[torch.Tensor]:
    """The tensors that a body returned."""
    listed = list(results) if isinstance(results, list | tuple) else [results]
    for number, one in enumerate(listed):
        if not isinstance(one, torch.Tensor):
            raise PoplarTypeError(f"poptorch.{call}: {what} returns tensors, result {number} is {one!r}")
    return listed


def _check_alike(call: str, what: str, got: list[torch.Tensor], like: str, wanted: list[torch.Tensor]) -> None:
    """`TensorShapeError` unless tensors have shapes and types like others."""
    listed = [[f"{list(one.shape)} of {one.dtype}".replace("torch.", "") for one in several] for several in (got, wanted)]
    if listed[0] != listed[1]:
        raise TensorShapeError(f"poptorch.{call}: {what} has shapes and types as {like}, {listed[1]}; got {listed[0]}")


@public
def for_loop(count: int, body: Body, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Call a body on the device several times, at first with inputs, then with what it returned.

    The graph has the body once. It may use other tensors, which stay as they are.

    Parameters
    ----------
    count:
        How often, at least 0.
    body:
        A function that returns as many tensors as it takes, of the same shapes and types.
    inputs:
        The first arguments.

    Returns
    -------
    list[torch.Tensor]
        The last results; copies of the inputs if the count is 0.

    Raises
    ------
    TensorShapeError
        If results do not have shapes and types of the inputs.
    PoplarTypeError
        For what is no function, or no tensors.
    MissingFeature
        Where a loss depends on it: a loop has no gradient.

    Examples
    --------
    >>> import torch
    >>> from pypoplar import poptorch
    >>> poptorch.for_loop(3, lambda x: x * 2, [torch.ones(2)])
    [tensor([8., 8.])]
    """
    check_number("for_loop", "count", count, 0)
    if not callable(body):
        raise PoplarTypeError(f"poptorch.for_loop takes a function for body, got {body!r}")
    values = _copies(check_tensors("for_loop", "inputs", inputs))
    given = values
    if not isRunningOnIpu():
        for _ in range(count):
            results = _results("for_loop", "the body", body(*values))
            _check_alike("for_loop", "what the body returns", results, "the inputs", given)
            values = _copies(results)
        return values
    if not count:
        return values
    within = _start_for_loop(values or [torch.zeros(())])  # a body without arguments may still change what is outside
    results = _results("for_loop", "the body", body(*_copies(within[: len(values)])))  # it may change its arguments
    _check_alike("for_loop", "what the body returns", results, "the inputs", given)
    return list(_end_for_loop(results or within, within, count))[: len(values)]


@public
def cond(
    condition: torch.Tensor, then_body: Body, then_inps: list[torch.Tensor], else_body: Body, else_inps: list[torch.Tensor]
) -> list[torch.Tensor]:
    """One of two bodies, chosen by a value that is known when the device runs.

    The device runs one of them. They may use other tensors, which stay as they are.

    Parameters
    ----------
    condition:
        One element.
    then_body:
        The function that is called if it is not zero.
    then_inps:
        Its arguments.
    else_body:
        The function that is called if it is zero; it returns tensors of the same shapes and types.
    else_inps:
        Its arguments.

    Returns
    -------
    list[torch.Tensor]
        What the body returned.

    Raises
    ------
    TensorShapeError
        For a condition of several elements, and, while a model is captured, for bodies whose results differ in shapes or types.
    PoplarTypeError
        For what is no tensors.
    MissingFeature
        Where a loss depends on it: a choice has no gradient.
    """
    check_tensor("cond", "condition", condition)
    if condition.numel() != 1:
        raise TensorShapeError(f"poptorch.cond: the condition has one element, got shape {tuple(condition.shape)}")
    then, otherwise = check_tensors("cond", "then_inps", then_inps), check_tensors("cond", "else_inps", else_inps)
    if not isRunningOnIpu():
        chosen = then_body(*then) if condition else else_body(*otherwise)
        return _copies(_results("cond", "the body", chosen))
    flag = condition if condition.dtype is torch.bool else condition != 0
    start = _start_if([flag])
    first = _results("cond", "then_body", then_body(*then))
    between = _start_else(first, start)
    second = _results("cond", "else_body", else_body(*otherwise))
    _check_alike("cond", "what else_body returns", second, "what then_body returns", first)
    return list(_end_if(second, between, start))
