"""Whether a module runs on the CPU, or is captured for the IPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_capturing: ContextVar[bool] = ContextVar("capturing", default=False)


def isRunningOnIpu() -> bool:
    """Whether a module's forward pass becomes a graph for the IPU just now; False where it runs on the CPU."""
    return _capturing.get()


@contextlib.contextmanager
def running_on_ipu(captured: bool = True) -> Iterator[None]:
    """While a module is captured; or not, where a function of the CPU runs meanwhile."""
    token = _capturing.set(captured)
    try:
        yield
    finally:
        _capturing.reset(token)
