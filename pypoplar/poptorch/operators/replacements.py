"""Operations that capture traces in another form than PyTorch decomposes them to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Form = TypeVar("Form", bound=Callable[..., Any])

REPLACEMENTS: dict[Any, Callable[..., Any]] = {}


def replaces(*operations: Any) -> Callable[[Form], Form]:
    """Let a function of the same arguments be traced in place of operations such as `torch.ops.aten.lstm.input`."""

    def enter(form: Form) -> Form:
        for operation in operations:
            assert operation not in REPLACEMENTS, f"{operation} has two forms"
            REPLACEMENTS[operation] = form
        return form

    return enter
