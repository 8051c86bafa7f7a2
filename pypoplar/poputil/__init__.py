"""Tools for library writers: tile mappings, broadcasting, splitting work, copies of tensors, names of vertex templates."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.poputil.absent_members import absent_member
from pypoplar.poputil.broadcast import broadcastToMatch, canBroadcastToMatch, expandToMatchRanks
from pypoplar.poputil.copies import cloneN, duplicate
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.indices import unflattenIndex
from pypoplar.poputil.region_splitting import splitRegions, splitRegionsBetweenWorkers
from pypoplar.poputil.tile_mapping import calcLinearTileMapping, getTileImbalance, mapTensorLinearly, mapTensorLinearlyWithOffset
from pypoplar.poputil.vertex_templates import templateVertex

__all__ = [
    # tile mappings
    "calcLinearTileMapping",
    "getTileImbalance",
    "mapTensorLinearly",
    "mapTensorLinearlyWithOffset",
    # views and copies
    "broadcastToMatch",
    "canBroadcastToMatch",
    "cloneN",
    "duplicate",
    "expandToMatchRanks",
    "unflattenIndex",
    # work and vertices
    "splitRegions",
    "splitRegionsBetweenWorkers",
    "templateVertex",
    # errors
    "PoplibsError",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
