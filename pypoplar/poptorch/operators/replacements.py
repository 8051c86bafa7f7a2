"""Operations that capture traces in another form than PyTorch decomposes them to, and the form of copies into parts of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

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


@replaces(torch.ops.aten.copy.default)
def copied(into: Any, source: Any, non_blocking: bool = False) -> Any:
    """What is copied, in the type and the shape of what it is copied into; PyTorch has no gradient of the copy itself."""
    return source.to(into.dtype).expand(into.shape).clone()
