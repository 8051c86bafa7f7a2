"""Words that declarations of codelets and their typed form share."""

from __future__ import annotations

from collections.abc import Sequence
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


def line_texts(locations: Sequence[Location]) -> tuple[str, ...]:
    """``file:line`` of each; equal objects share a text."""
    made: dict[int, str] = {}
    return tuple(made.get(id(location)) or made.setdefault(id(location), line_text(location)) for location in locations)


def exactly(value: object) -> object:
    """What tells constants apart: -0.0 is not 0.0, True is not 1, and a NaN equals itself."""
    return (type(value), value.hex()) if isinstance(value, float) else (type(value), value)
