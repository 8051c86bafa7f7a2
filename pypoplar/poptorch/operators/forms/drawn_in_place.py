"""`Tensor.random_`: whole numbers in place. PyTorch's graphs cannot write its operation, an overload of which is called "from"."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.errors import MissingFeature
from pypoplar.poptorch.user_log import say_once

WIDEST = 1 << 31  # integers on the IPU are 32 bits wide
MANTISSAS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24}
ON_DEVICE = {torch.int64: torch.int32, torch.float64: torch.float32}


def random_(tensor: torch.Tensor, *bounds: Any, generator: Any = None, **named: Any) -> torch.Tensor:
    """``tensor.random_()``, ``tensor.random_(to)`` and ``tensor.random_(from, to)``, of whole numbers in its type."""
    given = dict(zip(("from", "to") if len(bounds) > 1 or "to" in named else ("to",), bounds, strict=False)) | named
    if len(bounds) > 2 or not given.keys() <= {"from", "to"}:
        raise TypeError(f"random_() takes a generator, to, or from and to: got {', '.join(map(str, (*bounds, *named)))}")
    low, high = given.get("from", 0), given.get("to")
    if high is None:
        high = _beyond_all(tensor.dtype)
        if tensor.dtype in ON_DEVICE and "to" not in given:
            say_once(f"random_ of {tensor.dtype} without bounds draws from 0 to {high - 1}, as of {ON_DEVICE[tensor.dtype]}")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if "to" in given:
        _check_type(tensor.dtype, low, high)
    if low < -WIDEST or high > WIDEST:
        raise MissingFeature(
            f"random_ of {tensor.dtype} draws from {low} to {high - 1}, and integers on the IPU are 32 bits wide: "
            f"give it bounds within {-WIDEST} and {WIDEST}"
        )
    dtype = torch.int32 if tensor.dtype is torch.bool else tensor.dtype
    others = {} if generator is None else {"generator": generator}  # which graphs do not have: it is told as that
    return tensor.copy_(torch.randint(low, high, tensor.shape, dtype=dtype, **others))


def _beyond_all(dtype: torch.dtype) -> int:
    """What is one more than the last number that is drawn without bounds: whole numbers of floats are those without a gap.

    Types of 64 bits have the numbers of those that they are on the IPU.
    """
    dtype = ON_DEVICE.get(dtype, dtype)
    if dtype is torch.bool:
        return 2
    return (1 << MANTISSAS[dtype]) + 1 if dtype.is_floating_point else torch.iinfo(dtype).max + 1


def _check_type(dtype: torch.dtype, low: int, high: int) -> None:
    """As PyTorch does, which lets floats have numbers that they round."""
    if dtype is torch.bool:
        least, most = 0, 1
    elif dtype.is_floating_point:
        least, most = int(torch.finfo(dtype).min), int(torch.finfo(dtype).max)
    else:
        least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise RuntimeError(f"{name} is out of bounds for {str(dtype).removeprefix('torch.')}: {value}")
