"""The table of operations: what each becomes.

An entry is a function of an `EntryContext` and of the operation's arguments, in which tensors are `Operand`s, that adds to the
program and gives the operation's value. Entries of operations on elements give an expression instead (see `elements`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pypoplar.errors import PoplarError

Entry = TypeVar("Entry", bound=Callable[..., Any])

TABLE: dict[Any, Callable[..., Any]] = {}


class UnsupportedOperation(PoplarError, NotImplementedError):
    """Operations of a module that have no entry in the table, or no entry for these arguments.

    The message has all of them, each with its module, its line and the nearest entry.
    """


def lowers(*operations: Any) -> Callable[[Entry], Entry]:
    """Enter a function for operations of PyTorch, such as `torch.ops.aten.mm.default`."""

    def enter(entry: Entry) -> Entry:
        for operation in operations:
            assert operation not in TABLE, f"{operation} has two entries"
            TABLE[operation] = entry
        return entry

    return enter
