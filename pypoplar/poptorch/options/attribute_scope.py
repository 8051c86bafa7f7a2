"""`Attribute`: marks that PopART's compiler reads on operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pypoplar.errors import PoplarTypeError
from pypoplar.poptorch.user_log import say_once
from pypoplar.tracebacks import public


@public
class Attribute:
    """Marks operations in its ``with`` block for PopART's compiler. It is accepted, told once, and changes nothing here.

    Parameters
    ----------
    kwargs:
        Each keyword is a kind of mark, with a dict of names and values.

    Raises
    ------
    PoplarTypeError
        For a kind without a dict.
    """

    def __init__(self, **kwargs: Mapping[str, Any]) -> None:
        for kind, values in kwargs.items():
            if not isinstance(values, Mapping):
                raise PoplarTypeError(f"Attribute takes a dict for {kind}, got {values!r}")
        self._marks = kwargs

    def __enter__(self) -> Self:
        say_once(f"poptorch.Attribute({', '.join(self._marks)}) changes nothing: its marks are for PopART's compiler")
        return self

    def __exit__(self, *error: object) -> None:
        return None
