"""Defaults of plain fields: ``n: INT = 3`` in the class is what vertices hold that are given nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypoplar.braces import ordered
from pypoplar.codelet.ir.terms import Form, exactly
from pypoplar.errors import PoplarTypeError
from pypoplar.host_values import values_of
from pypoplar.types import ElementType

Default = bool | int | float | tuple[bool | int | float, ...]
"""A number, or the values of a vector, as the field's type holds them."""


def default_value(type: ElementType, form: Form, value: Any) -> Default:
    """The default that a class, or a file, gives to a field; `PoplarTypeError` where the field cannot hold it."""
    if form == "scalar":
        if not isinstance(value, bool | int | float | np.number | np.bool_):
            raise PoplarTypeError(f"the default of {_article(type)} field is a number, got {value!r}")
        number: bool | int | float = values_of(type, value, 1, "the field")[0].item()
        return number
    ordered(value, f"the default of a Vector[{type!r}]", "[1, 2]")
    if np.ndim(value) != 1 or isinstance(value, str | bytes):
        raise PoplarTypeError(f"the default of a Vector[{type!r}] is a sequence of numbers, got {value!r}")
    return tuple(values_of(type, value, len(value), "the vector").tolist())


def same_default(default: Default | None) -> object:
    """What tells defaults apart, to the bit."""
    return tuple(map(exactly, default)) if isinstance(default, tuple) else exactly(default)


def _article(type: ElementType) -> str:
    return f"{'an' if type.__name__[0] in 'AEIOU' else 'a'} {type!r}"
