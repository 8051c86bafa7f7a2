"""Operators that give what they get: one prints it, one keeps its place in the graph."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.poptorch.operators.tensor_arguments import check_number, check_tensor
from pypoplar.spelling import nearest_or_all
from pypoplar.tracebacks import public

FLOAT_FORMATS = ("auto", "fixed", "scientific", "none")


@torch.library.custom_op("poptorch::ipu_print_tensor", mutates_args=())
def _print_tensor(  # noqa: PLR0913 (those of `ipu_print_tensor`)
    x: torch.Tensor, title: str, gradient: bool, threshold: int, edges: int, width: int, digits: int, floats: str, separator: str,
    opened: str, closed: str,
) -> torch.Tensor:  # fmt: skip
    return x.clone()


@_print_tensor.register_fake
def _(x: torch.Tensor, *layout: Any) -> torch.Tensor:
    return torch.empty_like(x)


def _keep_layout(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.layout = inputs[1:]


def _print_gradient(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    title, wanted, *layout = ctx.layout
    nothing = (None,) * len(ctx.layout)
    if not wanted:
        return gradient.clone(), *nothing
    named = f"{title}_gradient" if title else "gradient"
    return torch.ops.poptorch.ipu_print_tensor(gradient, named, False, *layout), *nothing


_print_tensor.register_autograd(_print_gradient, setup_context=_keep_layout)


@public
def ipu_print_tensor(  # noqa: PLR0913 (PopTorch's arguments)
    tensor: torch.Tensor,
    title: str = "",
    print_gradient: bool = True,
    summarise_threshold: int = 1000,
    edge_items: int = 3,
    max_line_width: int = 80,
    digits: int = 4,
    float_format: str = "auto",
    separator: str = ", ",
    open_bracket: str = "(",
    close_bracket: str = ")",
) -> torch.Tensor:
    """Print a tensor whenever the device has computed it, and its gradient too.

    What it gives has to be used, else there is nothing to compute. On the CPU nothing is printed. Text goes where
    `Engine.setPrintStream` says, which is standard error at first.

    Parameters
    ----------
    tensor:
        The tensor.
    title:
        What stands before it; before the gradient ``TITLE_gradient``.
    print_gradient:
        Whether the gradient is printed.
    summarise_threshold:
        Tensors of more elements are shown by their edges; 0: always whole.
    edge_items:
        Elements at each edge.
    max_line_width:
        Columns of a line; 0: as long as it takes.
    digits:
        Those behind the point of a float.
    float_format:
        "auto", "fixed", "scientific", or "none" for each number by itself.
    separator:
        What stands between elements.
    open_bracket, close_bracket:
        What stands around a dimension.

    Returns
    -------
    torch.Tensor
        The tensor.

    Raises
    ------
    PoplarTypeError
        For arguments of other types.
    InvalidOption
        For another format, and negative numbers.
    """
    call = "ipu_print_tensor"
    check_tensor(call, "tensor", tensor)
    for name, text in (
        ("title", title),
        ("separator", separator),
        ("open_bracket", open_bracket),
        ("close_bracket", close_bracket),
    ):
        if not isinstance(text, str):
            raise PoplarTypeError(f"poptorch.{call} takes a string for {name}, got {text!r}")
    numbers = {"summarise_threshold": summarise_threshold, "edge_items": edge_items, "max_line_width": max_line_width}
    for name, number in {**numbers, "digits": digits}.items():
        check_number(call, name, number, 0)
    if float_format not in FLOAT_FORMATS:
        raise InvalidOption(
            f"poptorch.{call}: no float_format is called {float_format!r}{nearest_or_all(float_format, FLOAT_FORMATS)}"
        )
    return _print_tensor(
        tensor, title, bool(print_gradient), summarise_threshold, edge_items, max_line_width, digits, float_format, separator,
        open_bracket, close_bracket,
    )  # fmt: skip


@torch.library.custom_op("poptorch::nop", mutates_args=())
def _nop(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@_nop.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def _nop_backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
    return torch.ops.poptorch.nop(gradient)


_nop.register_autograd(_nop_backward)


@public
def nop(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself; what it is computed from is not joined with what it is used for.

    Parameters
    ----------
    tensor:
        The tensor.

    Returns
    -------
    torch.Tensor
        A copy of it.

    Raises
    ------
    PoplarTypeError
        For what is no tensor.
    """
    check_tensor("nop", "tensor", tensor)
    return _nop(tensor)
