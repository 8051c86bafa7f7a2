"""Checks of what users give to options: each names the option, what it takes and what it got."""

from __future__ import annotations

import math
import operator
import os
from enum import Enum
from numbers import Real
from typing import Any, TypeVar

from pypoplar.errors import InvalidOption, PoplarTypeError

Member = TypeVar("Member", bound=Enum)


def flag(option: str, value: object) -> bool:
    """True or False; `PoplarTypeError` for anything else."""
    if not isinstance(value, bool):
        raise PoplarTypeError(f"{option} takes True or False, got {value!r}")
    return value


def whole_number(option: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """An int; `PoplarTypeError` for what is none, `InvalidOption` for one below `least` or above `most`."""
    try:
        if isinstance(value, bool | Enum):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise PoplarTypeError(f"{option} takes a whole number, got {value!r}") from None
    if number < least or (most is not None and number > most):
        span = f"of at least {least}" if most is None else f"between {least} and {most}"
        raise InvalidOption(f"{option} takes a whole number {span}, got {number}")
    return number


def number(option: str, value: object) -> float:
    """A number, which may be infinite or NaN; `PoplarTypeError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise PoplarTypeError(f"{option} takes a number, got {value!r}")
    return float(value)


def fraction(option: str, value: object) -> float:
    """A number from 0 to 1; `InvalidOption` for one beyond."""
    share = number(option, value)
    if not 0 <= share <= 1:  # which NaN is not either
        raise InvalidOption(f"{option} takes a number from 0 to 1, got {value!r}")
    return share


def finite(option: str, value: object) -> float:
    """A number that is neither infinite nor NaN."""
    finite_number = number(option, value)
    if not math.isfinite(finite_number):
        raise InvalidOption(f"{option} takes a number, got {value!r}")
    return finite_number


def text(option: str, value: object) -> str:
    """A string that is not empty; `PoplarTypeError` for what is no string, `InvalidOption` for an empty one."""
    if not isinstance(value, str):
        raise PoplarTypeError(f"{option} takes a string, got {value!r}")
    if not value:
        raise InvalidOption(f"{option} takes a string that is not empty")
    return value


def path(option: str, value: object) -> str:
    """A path as a string."""
    return text(option, os.fspath(value) if isinstance(value, os.PathLike) else value)


def texts(option: str, value: object) -> list[str]:
    """A list of strings."""
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise PoplarTypeError(f"{option} takes a list of strings, got {value!r}")
    return [text(option, entry) for entry in value]


def member(option: str, value: object, choices: type[Member]) -> Member:
    """One of an enum's members; `PoplarTypeError` for anything else, also for the number of one."""
    if not isinstance(value, choices):
        names = ", ".join(f"{choices.__name__}.{choice.name}" for choice in choices)
        raise PoplarTypeError(f"{option} takes one of poptorch's {names}, got {value!r}")
    return value
