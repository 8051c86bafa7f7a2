"""Words that declarations of codelets and their typed form share."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import get_args

from attrs import frozen

Access = OneOf["input", "output", "inout", "state"]
Form = OneOf["scalar", "vector", "list"]
Kind = OneOf["vertex", "multi", "supervisor"]
ACCESSES: tuple[Access, ...] = get_args(Access)
FORMS: tuple[Form, ...] = get_args(Form)
KINDS: tuple[Kind, ...] = get_args(Kind)


@frozen
class Location:
    """A line of the user's code."""

    file: str
    line: int
    function: str


def line_text(location: Location) -> str:
    """``file:line``, as messages show it."""
    return f"{location.file}:{location.line}"


def exactly(value: object) -> object:
    """What tells constants apart: -0.0 is not 0.0, True is not 1, and a NaN equals itself."""
    return (type(value), value.hex()) if isinstance(value, float) else (type(value), value)
