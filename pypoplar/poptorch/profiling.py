"""Marks of a host's time line, which is PopVision's: they change nothing here. `PoplarExecutor.getReport` has cycles."""

from __future__ import annotations

import contextlib
from typing import TypeVar

from pypoplar.errors import PoplarTypeError
from pypoplar.tracebacks import public

Instrumented = TypeVar("Instrumented")


@public
class Channel:
    """A channel of marks on a host's time line; as in PopTorch without the library libpvti, nothing is written.

    Parameters
    ----------
    name:
        Its name, which is checked and kept.

    Raises
    ------
    PoplarTypeError
        If the name is no text.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise PoplarTypeError(f"poptorch.profiling.Channel takes a name, got {name!r}")
        self.name = name

    def instrument(self, obj: Instrumented, *methods: str) -> Instrumented:
        """The object as it is: its methods mark nothing.

        Parameters
        ----------
        obj:
            The object.
        methods:
            Names of its methods.

        Returns
        -------
        Instrumented
            The same object.

        Raises
        ------
        PoplarTypeError
            If it has no such method.
        """
        for method in methods:
            if not callable(getattr(obj, method, None)):
                raise PoplarTypeError(f"poptorch.profiling.Channel.instrument: {type(obj).__name__} has no method {method!r}")
        return obj

    def tracepoint(self, name: str) -> contextlib.AbstractContextManager[None]:
        """A context that marks nothing.

        Parameters
        ----------
        name:
            The name of a mark.

        Returns
        -------
        AbstractContextManager
            For ``with``.
        """
        return contextlib.nullcontext()
