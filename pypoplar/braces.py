"""C++ braces that are sets in Python: ``{4, 4}`` holds one 4, in no order."""

from __future__ import annotations

from typing import TypeVar

from pypoplar.errors import PoplarTypeError

Given = TypeVar("Given")

NUMBERS = "[4, 4]"
TENSORS = "[a, b]"
INTERVALS = "[(0, 4), (4, 8)]"
CONNECTIONS = "{'in': t}"
OPTIONS = "{'name': 'value'}"


def ordered(given: Given, what: str, write: str = NUMBERS) -> Given:
    """What a user gave for `what`, if it is no set; `PoplarTypeError` for a set, with what to `write` instead."""
    if isinstance(given, set | frozenset):
        raise PoplarTypeError(f"got {given!r} for {what}: a set has no order; write {write}")
    return given
