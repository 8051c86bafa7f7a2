"""Groups of replicas, each of which does a collective for itself."""

from __future__ import annotations

import operator
from enum import Enum

from attrs import field, frozen

from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.graph.graph import Graph


class CommGroupType(Enum):
    """Which replicas are a group of a `CommGroup`.

    Attributes
    ----------
    ALL:
        All of them; the size is ignored.
    CONSECUTIVE:
        Neighbours: 0 to k - 1, k to 2 k - 1, and on; with a stride, each that many apart.
    ORTHOGONAL:
        Those of N / k groups at equal distances: 0, N / k, 2 N / k, and on; then 1, N / k + 1.
    """

    ALL = "ALL"
    CONSECUTIVE = "CONSECUTIVE"
    ORTHOGONAL = "ORTHOGONAL"


def _whole(number: object) -> int:
    try:
        if isinstance(number, bool):
            raise TypeError
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise PoplarTypeError(f"size and stride of a CommGroup are whole numbers, got {number!r}") from None


@frozen
class CommGroup:
    """How the replicas of a graph are divided into groups of equal size.

    Parameters
    ----------
    type:
        Which replicas are a group.
    replicaGroupSize:
        How many replicas a group has.
    stride:
        How far apart the replicas of a CONSECUTIVE group are.

    Raises
    ------
    PoplarTypeError
        If the type is no `CommGroupType`, or a number is no whole number.
    """

    type: CommGroupType = CommGroupType.ALL
    replicaGroupSize: int = field(default=0, converter=_whole)
    stride: int = field(default=1, converter=_whole)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.type, CommGroupType):
            raise PoplarTypeError(f"the type of a CommGroup is a CommGroupType, got {self.type!r}")


def replica_groups(call: str, graph: Graph, group: CommGroup | None) -> tuple[tuple[int, ...], ...]:
    """The replicas of each group, by rank; of a nested graph they are those within one replica of the top-level graph."""
    if not isinstance(group, CommGroup | None):
        raise PoplarTypeError(f"{call}: a group is a CommGroup, got {group!r}")
    replicas = graph.replicas()
    count, whole = replicas.count, replicas.within if replicas.within > 1 else replicas.count
    size, stride = whole, 1
    if group is not None and group.type is not CommGroupType.ALL:
        size = group.replicaGroupSize
        if size < 1 or whole % size:
            raise InvalidOption(f"{call}: {whole} replicas cannot be divided into groups of {size}")
        stride = group.stride
        if group.type is CommGroupType.ORTHOGONAL:
            if stride != 1:
                raise InvalidOption(f"{call}: an ORTHOGONAL group has its own stride, got {stride}")
            stride = whole // size
        elif stride < 1 or whole % (size * stride):
            raise InvalidOption(f"{call}: {whole} replicas cannot be divided into groups of {size} with a stride of {stride}")
    block = size * stride
    return tuple(tuple(range(begin + first, begin + block, stride)) for begin in range(0, count, block) for first in range(stride))
