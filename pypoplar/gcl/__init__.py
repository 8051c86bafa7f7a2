"""Collectives: what replicas make of their tensors together."""

from typing import NoReturn

from pypoplar.errors import PoplarAttributeError
from pypoplar.gcl.balanced_reorder import CollectiveBalancedHostRearrangement, CollectiveBalancedReorder
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
from pypoplar.gcl.tile_allocation import getMinIoTiles, perIPUTiles
from pypoplar.gcl.within_replica import Chunk, Chunks, allGatherWithinReplica, allReduceWithinReplica, reduceScatterWithinReplica
from pypoplar.spelling import nearest

__all__ = [
    "Chunk",
    "Chunks",
    "CollectiveBalancedHostRearrangement",
    "CollectiveBalancedReorder",
    "CollectiveOperator",
    "CommGroup",
    "CommGroupType",
    "addCodelets",
    "allGatherCrossReplica",
    "allGatherToDestinationCrossReplica",
    "allGatherWithinReplica",
    "allReduceCrossReplica",
    "allReduceInPlaceCrossReplica",
    "allReduceToDestinationCrossReplica",
    "allReduceWithinReplica",
    "allToAllCrossReplica",
    "broadcastCrossReplica",
    "getMinIoTiles",
    "perIPUTiles",
    "reduceScatterCrossReplica",
    "reduceScatterToDestinationCrossReplica",
    "reduceScatterWithinReplica",
]


def __getattr__(name: str) -> NoReturn:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise PoplarAttributeError(f"pypoplar.gcl has no {name!r}{nearest(name, __all__)}")
