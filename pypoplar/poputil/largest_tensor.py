"""What is refused before it is planned, because no target of its kind has memory for it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.target import Target
from pypoplar.types import ElementType

LEAST_REFUSED = 1 << 28  # bytes: below it the host has no trouble, and one may want to see by how much a small target is too small


def most_bytes(target: Target) -> int:
    """The bytes of the largest tensor that is planned: as much as all tiles have together."""
    return max(target.getMemoryBytes(), LEAST_REFUSED)


def check_fits(what: str, target: Target, type: ElementType, shape: Sequence[int]) -> None:
    """`PoplibsError` for a tensor that takes more bytes than all tiles have; `what` names it."""
    size, tiles = prod(shape) * target.getTypeSize(type), target.getNumTiles()
    if size > most_bytes(target):
        raise PoplibsError(
            f"{what} would be {type!r} {list(shape)}, which takes {size:,} bytes; got a target whose {tiles:,} tiles have "
            f"{target.getMemoryBytes():,} bytes in all"
        )
