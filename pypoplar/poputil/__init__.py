"""Tools for library writers: tile mappings, broadcasting, splitting work, copies of tensors, functions, names of vertices."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.poputil import graphfn
from pypoplar.poputil.absent_members import absent_member
from pypoplar.poputil.broadcast import broadcastToMatch, canBroadcastToMatch, expandToMatchRanks
from pypoplar.poputil.copies import cloneN, duplicate
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.half_accuracy import castToDeviceHalfValue, checkAccuracyWhenCast
from pypoplar.poputil.indices import flattenIndex, unflattenIndex
from pypoplar.poputil.interval_lists import (
    balancedPartition,
    calculateUnshufflingIntervals,
    flattenIntervals,
    intervalSequenceNumElements,
    mergeAdjacentRegions,
)
from pypoplar.poputil.option_parsing import OptionHandler, OptionSpec
from pypoplar.poputil.placement.broadcast_operand import createBroadcastOperand
from pypoplar.poputil.placement.clones import cloneAndExpandAliasing, cloneToGraph, cloneToIpu, copyToIpu, createIpuCopy
from pypoplar.poputil.placement.dimension_spread import dimIsSplitOverIPUs, dimIsSplitOverTiles
from pypoplar.poputil.placement.use_tracking import TensorUseTracker
from pypoplar.poputil.quarter_metadata import createConstantMetadataTensor, createVariableMetadataTensor
from pypoplar.poputil.region_splitting import splitRegions, splitRegionsBetweenWorkers
from pypoplar.poputil.structure.dimension_factors import factorDims, unfactorDims
from pypoplar.poputil.structure.groupings import detectDimGroupings, detectInnermostGrouping
from pypoplar.poputil.structure.partitions import createPartitionableTensor, iterateTensorPartitions
from pypoplar.poputil.tile_mapping import (
    calcLinearTileMapping,
    calcLinearTileMappingAndNewOffset,
    chooseMappingOffset,
    getTileImbalance,
    invTransformTileIndex,
    mapTensorLinearly,
    mapTensorLinearlyWithOffset,
    transformTileIndex,
)
from pypoplar.poputil.vertex_templates import templateVertex

__all__ = [
    # tile mappings
    "TensorUseTracker",
    "calcLinearTileMapping",
    "calcLinearTileMappingAndNewOffset",
    "chooseMappingOffset",
    "createBroadcastOperand",
    "dimIsSplitOverIPUs",
    "dimIsSplitOverTiles",
    "getTileImbalance",
    "invTransformTileIndex",
    "mapTensorLinearly",
    "mapTensorLinearlyWithOffset",
    "transformTileIndex",
    # views and copies
    "broadcastToMatch",
    "canBroadcastToMatch",
    "cloneAndExpandAliasing",
    "cloneN",
    "cloneToGraph",
    "cloneToIpu",
    "copyToIpu",
    "createIpuCopy",
    "createPartitionableTensor",
    "detectDimGroupings",
    "detectInnermostGrouping",
    "duplicate",
    "expandToMatchRanks",
    "factorDims",
    "flattenIndex",
    "iterateTensorPartitions",
    "unfactorDims",
    "unflattenIndex",
    # work, vertices, functions
    "balancedPartition",
    "calculateUnshufflingIntervals",
    "flattenIntervals",
    "graphfn",
    "intervalSequenceNumElements",
    "mergeAdjacentRegions",
    "splitRegions",
    "splitRegionsBetweenWorkers",
    "templateVertex",
    # numbers, options and errors
    "OptionHandler",
    "OptionSpec",
    "PoplibsError",
    "castToDeviceHalfValue",
    "checkAccuracyWhenCast",
    "createConstantMetadataTensor",
    "createVariableMetadataTensor",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
