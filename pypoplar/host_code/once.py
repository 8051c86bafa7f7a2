"""What a process does once, whichever of its threads asks first: machine code is made and loaded one piece at a time."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_lock = threading.RLock()


def _renew() -> None:
    """A forked process has none of the threads that may have held the lock."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def one_at_a_time() -> AbstractContextManager[Any]:
    """What is done under it is done by one thread of the process at a time."""
    return _lock


def once(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, but called once for equal arguments: threads that ask at the same time wait, and get the same result.

    `functools.cache` alone calls it in each of them, and all results but the last are freed while their addresses are in use.
    """
    cached = functools.cache(function)

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with one_at_a_time():
            return cached(*args, **kwargs)  # type: ignore[arg-type]  # the arguments are hashable

    return call
