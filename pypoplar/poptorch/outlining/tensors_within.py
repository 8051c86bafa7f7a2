"""Tensors within values: within tuples of results, and within what stands for saved statistics or places of a pool."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import attrs

from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.values import Constant, Pending, Unplaced
from pypoplar.types import ElementType

_PLAIN = (bool, int, float, str, Enum, ElementType, type(None), Constant)


def consists_of_tensors(value: Any) -> bool:
    """Whether nothing but tensors within a value is to be computed."""
    if isinstance(value, list | tuple):
        return all(map(consists_of_tensors, value))
    if isinstance(value, Pending | Unplaced):
        return False
    if attrs.has(type(value)) and not isinstance(value, Constant):
        return all(consists_of_tensors(getattr(value, part.name)) for part in attrs.fields(type(value)))
    return isinstance(value, (Tensor, *_PLAIN)) or (isinstance(value, type) and issubclass(value, ElementType))


def with_tensors(value: Any, replaced: Callable[[Tensor], Tensor]) -> Any:
    """A value with other tensors within."""
    if isinstance(value, Tensor):
        return replaced(value)
    if isinstance(value, list | tuple):
        return type(value)(with_tensors(part, replaced) for part in value)
    if attrs.has(type(value)) and not isinstance(value, Constant):
        parts = {part.alias: with_tensors(getattr(value, part.name), replaced) for part in attrs.fields(type(value)) if part.init}
        return type(value)(**parts)
    return value


def tensors_within(value: Any) -> list[Tensor]:
    """All tensors within a value, whatever else is in it, in one order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for part in value for tensor in tensors_within(part)]
    if attrs.has(type(value)) and not isinstance(value, Constant):
        return [tensor for part in attrs.fields(type(value)) for tensor in tensors_within(getattr(value, part.name))]
    return []


def beside_tensors(value: Any) -> Any:
    """What a value is beside the tensors within it, in a form that can be compared."""
    if isinstance(value, Tensor):
        return type(value)
    if isinstance(value, list | tuple):
        return type(value), tuple(map(beside_tensors, value))
    if attrs.has(type(value)) and not isinstance(value, Constant):
        parts = attrs.fields(type(value))
        return type(value), tuple(beside_tensors(getattr(value, part.name)) for part in parts)
    return value
