"""Whether a module runs on the CPU or is captured for the IPU, and what capture has another form for than PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import torch

Form = TypeVar("Form", bound=Callable[..., Any])

REPLACEMENTS: dict[Any, Callable[..., Any]] = {}

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


def replaces(*operations: Any) -> Callable[[Form], Form]:
    """Let a function of the same arguments be traced in place of operations such as `torch.ops.aten.lstm.input`."""

    def enter(form: Form) -> Form:
        for operation in operations:
            assert operation not in REPLACEMENTS, f"{operation} has two forms"
            REPLACEMENTS[operation] = form
        return form

    return enter


@replaces(torch.ops.aten.copy.default)
def copied(into: Any, source: Any, non_blocking: bool = False) -> Any:
    """What is copied, in the type and the shape of what it is copied into; PyTorch has no gradient of the copy itself."""
    if not isinstance(source, torch.Tensor):
        return torch.full_like(into, source)
    return source.to(into.dtype).expand(into.shape).clone()
