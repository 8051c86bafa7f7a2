"""Collectives: what replicas make of their tensors together."""

from typing import NoReturn

from pypoplar.errors import MissingMember, PoplarAttributeError
from pypoplar.gcl.codelets import addCodelets
from pypoplar.gcl.collective_operator import CollectiveOperator
from pypoplar.gcl.collectives import (
    allGatherCrossReplica,
    allGatherToDestinationCrossReplica,
    allReduceCrossReplica,
    allReduceInPlaceCrossReplica,
    allReduceToDestinationCrossReplica,
    allToAllCrossReplica,
    broadcastCrossReplica,
    reduceScatterCrossReplica,
    reduceScatterToDestinationCrossReplica,
)
from pypoplar.gcl.comm_group import CommGroup, CommGroupType
from pypoplar.spelling import nearest

__all__ = [
    "CollectiveOperator",
    "CommGroup",
    "CommGroupType",
    "addCodelets",
    "allGatherCrossReplica",
    "allGatherToDestinationCrossReplica",
    "allReduceCrossReplica",
    "allReduceInPlaceCrossReplica",
    "allReduceToDestinationCrossReplica",
    "allToAllCrossReplica",
    "broadcastCrossReplica",
    "reduceScatterCrossReplica",
    "reduceScatterToDestinationCrossReplica",
]

ABSENT = (
    "Chunk",
    "Chunks",
    "CollectiveBalancedHostRearrangement",
    "CollectiveBalancedReorder",
    "allGatherWithinReplica",
    "allReduceWithinReplica",
    "getMinIoTiles",
    "perIPUTiles",
    "reduceScatterWithinReplica",
)
"""What GCL has and pypoplar does not have yet."""


def __getattr__(name: str) -> NoReturn:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ABSENT:
        raise MissingMember(f"GCL has {name}, and pypoplar.gcl does not have it yet; docs/not-there-yet.md lists what is missing")
    raise PoplarAttributeError(f"pypoplar.gcl has no {name!r}{nearest(name, __all__)}")
