"""Checks of the arguments that all library calls have."""

from __future__ import annotations

from pypoplar.errors import PoplarTypeError
from pypoplar.program import Sequence


def check_prog(call: str, prog: object) -> None:
    """`PoplarTypeError` unless `prog` is a Sequence, which the call extends; before the call changes anything."""
    if not isinstance(prog, Sequence):
        raise PoplarTypeError(f"{call}: the argument prog is the Sequence that the call extends, got {prog!r}")
