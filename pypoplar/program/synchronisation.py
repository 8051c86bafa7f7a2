"""Waiting for the tiles, IPUs or the host."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Nothing, Program
from pypoplar.tracebacks import public


class SyncType(Enum):
    """What a `Sync` waits for.

    Attributes
    ----------
    INTERNAL:
        The tiles of each IPU.
    EXTERNAL:
        All IPUs.
    GLOBAL:
        All IPUs and the host; here it takes as long as `EXTERNAL`.
    """

    INTERNAL = "INTERNAL"
    EXTERNAL = "EXTERNAL"
    GLOBAL = "GLOBAL"


@public
class Sync(Program):
    """Wait until all tiles (and IPUs, and the host) have come here.

    Parameters
    ----------
    type:
        Who waits for whom.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If the type is no `SyncType`.
    """

    def __init__(self, type: SyncType, name: str = "") -> None:
        super().__init__(name)
        self.type = sync_type(type)

    def reads(self) -> tuple[Tensor, ...]:
        return ()

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Nothing:
        return Nothing()


def sync_type(type: Any) -> SyncType:
    """The argument, which is a SyncType."""
    if not isinstance(type, SyncType):
        raise PoplarTypeError(f"expected a SyncType such as SyncType.INTERNAL, got {type!r}")
    return type
