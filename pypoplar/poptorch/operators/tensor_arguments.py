"""Arguments of PopTorch's own operators: what is no tensor, number or flag is an error that names the call."""

from __future__ import annotations

import json
from typing import Any

import torch

from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.poptorch.asserted_errors import WrongList


def check_tensor(call: str, name: str, value: object) -> None:
    """`PoplarTypeError` unless `value` is a tensor of PyTorch."""
    if not isinstance(value, torch.Tensor):
        raise PoplarTypeError(f"poptorch.{call} takes a torch.Tensor for {name}, got {value!r}")


def check_number(call: str, name: str, value: object, least: int | None = None) -> None:
    """An error unless `value` is a whole number, of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise PoplarTypeError(f"poptorch.{call} takes a whole number for {name}, got {value!r}")
    if least is not None and value < least:
        raise InvalidOption(f"poptorch.{call}: {name} is at least {least}, got {value}")


def check_tensors(call: str, name: str, values: object) -> list[torch.Tensor]:
    """The tensors of a list or tuple; `WrongList` if it is none, or holds anything else. What stands in brackets is PopTorch's."""
    if not isinstance(values, list | tuple):
        raise WrongList(f"poptorch.{call} takes a list of tensors for {name}, got {values!r} (Object is not list)")
    for number, value in enumerate(values):
        if not isinstance(value, torch.Tensor):
            raise WrongList(
                f"poptorch.{call} takes a torch.Tensor for {name}[{number}], got {value!r} (Object contained in list at index "
                f"{number} is not torch.tensor)"
            )
    return list(values)


def described(tensors: list[torch.Tensor]) -> str:
    """Shapes and types of tensors, as a text that an operation can take."""
    return json.dumps([[list(one.shape), str(one.dtype).removeprefix("torch.")] for one in tensors])


def shapes_and_types(text: str) -> list[tuple[list[int], torch.dtype]]:
    """What `described` wrote."""
    return [(shape, getattr(torch, name)) for shape, name in json.loads(text)]


def blank(text: str, device: Any) -> list[torch.Tensor]:
    """Tensors of these shapes and types."""
    return [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in shapes_and_types(text)]
