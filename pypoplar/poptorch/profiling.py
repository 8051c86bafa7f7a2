"""Marks of a host's time line, which is PopVision's: they change nothing here. `PoplarExecutor.getReport` has cycles."""

from __future__ import annotations

import contextlib
from typing import TypeVar

from pypoplar.errors import PoplarTypeError
from pypoplar.tracebacks import public

Instrumented = TypeVar("Instrumented")


@public
class Channel:
    """A channel of marks; as in PopTorch without the library libpvti, nothing is written."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise PoplarTypeError(f"poptorch.profiling.Channel takes a name, got {name!r}")
        self.name = name

    def instrument(self, obj: Instrumented, *methods: str) -> Instrumented:
        """The object, whose `methods` are as they were."""
        for method in methods:
            if not callable(getattr(obj, method, None)):
                raise PoplarTypeError(f"poptorch.profiling.Channel.instrument: {type(obj).__name__} has no method {method!r}")
        return obj

    def tracepoint(self, name: str) -> contextlib.AbstractContextManager[None]:
        """A context that marks nothing."""
        return contextlib.nullcontext()
