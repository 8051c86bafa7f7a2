"""What is no argument of a call is refused before anything changes: of poputil, and of popops' order, encoding, loops, images."""

import numpy as np
import pytest
from library_programs import new_graph, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, PoplarError, Tensor, popops, poputil
from pypoplar.program import Sequence

GRAPH, _ = new_graph(4)
F, LABELS, U, S, THREE = (
    variable(GRAPH, type, shape, name)
    for type, shape, name in (
        (FLOAT, [4, 6], "f"),
        (INT, [4], "i"),
        (UNSIGNED_INT, [5], "u"),
        (INT, [], "s"),
        (FLOAT, [3], "three"),
    )
)
PROG, CS, PARAMS = Sequence(), GRAPH.addComputeSet("cs"), popops.TopKParams(2, True, popops.SortOrder.ASCENDING)
IMAGE, BUFFER = popops.createNormaliseImageInput(GRAPH, FLOAT, [4, 3]), popops.CircBuf(GRAPH, FLOAT, 2, [4, 6])
TRACKER = poputil.TensorUseTracker(4)
OTHER, _ = new_graph(4)
FOREIGN = variable(OTHER, FLOAT, [4, 6], "foreign")
NO_ARGUMENTS = (object(), np.array([0.5, 1.5]), {1.5, 2.5})
rearrange, graphfn = popops.rearrange, poputil.graphfn

CALLS = {  # calls with arguments that fit
    "iota": (popops.iota, GRAPH, U, 1, PROG, "d"),
    "encodeOneHot": (popops.encodeOneHot, GRAPH, LABELS, F, PROG, "d"),
    "pad": (popops.pad, GRAPH, F, 1, 1, 0, 0.0),
    "pad with lists": (popops.pad, GRAPH, F, [1, 1], [0, 0], 0.0),
    "pad by type": (popops.pad, F, [1, 1], [0, 0], popops.padding.Type.EDGE),
    "topK": (popops.topK, GRAPH, PROG, F, PARAMS, "d"),
    "topKKeyValue": (popops.topKKeyValue, GRAPH, PROG, F, F, PARAMS, "d"),
    "topKWithPermutation": (popops.topKWithPermutation, GRAPH, PROG, F, PARAMS, "d"),
    "createTopKInput": (popops.createTopKInput, GRAPH, FLOAT, [4, 6], PARAMS, "d"),
    "sort": (popops.sort, GRAPH, F, 0, PROG, "d"),
    "sortInPlace": (popops.sortInPlace, GRAPH, F, 0, PROG, "d"),
    "sortKeyValue": (popops.sortKeyValue, GRAPH, F, F, 0, PROG, "d"),
    "histogram": (popops.histogram, GRAPH, F, THREE, False, PROG, "d", {}),
    "normaliseImage": (popops.normaliseImage, GRAPH, PROG, IMAGE, 1.0, THREE, THREE, "d"),
    "createNormaliseImageInput": (popops.createNormaliseImageInput, GRAPH, FLOAT, [4, 3], "d"),
    "CircBuf": (popops.CircBuf, GRAPH, FLOAT, 2, [3], "d"),
    "CircBuf.add": (BUFFER.add, F, PROG, "d"),
    "CircBuf.prev": (BUFFER.prev, 0, PROG, "d"),
    "countedForLoop": (popops.countedForLoop, GRAPH, S, 0, S, 1, Sequence(), "d"),
    "addForLoopCounterVertex": (popops.addForLoopCounterVertex, GRAPH, S, S, 1, 0, PROG, "d"),
    "regroupTensor": (rearrange.regroupTensor, GRAPH, F, PROG, CS, (0, 2), (1, 2), "d"),
    "regroupIfPossible": (rearrange.regroupIfPossible, GRAPH, F, PROG, (0, 2), "d"),
    "regroupIfBeneficial": (rearrange.regroupIfBeneficial, GRAPH, F, F, PROG, "d"),
    "partialTranspose": (rearrange.partialTranspose, GRAPH, F, CS, "d"),
    "canUseFastTranspose": (rearrange.canUseFastTranspose, GRAPH.getTarget(), HALF, 4, 4, 4),
    "getMinimumRegroupGrainSize": (rearrange.getMinimumRegroupGrainSize, HALF),
    "mapTensorLinearly": (poputil.mapTensorLinearly, GRAPH, F, 2, 2),
    "mapTensorLinearlyWithOffset": (poputil.mapTensorLinearlyWithOffset, GRAPH, F, 2, 2, 1, True),
    "calcLinearTileMapping": (poputil.calcLinearTileMapping, GRAPH, [4], 1, 1, 1, True),
    "chooseMappingOffset": (poputil.chooseMappingOffset, 4, [2, 3], 5),
    "cloneToIpu": (poputil.cloneToIpu, GRAPH, F, 0, "d"),
    "cloneToGraph": (poputil.cloneToGraph, GRAPH, GRAPH, F, "d"),
    "cloneAndExpandAliasing": (poputil.cloneAndExpandAliasing, GRAPH, F, 0, "d"),
    "copyToIpu": (poputil.copyToIpu, GRAPH, F, PROG, 0, "d"),
    "createIpuCopy": (poputil.createIpuCopy, GRAPH, F, 0, "d"),
    "dimIsSplitOverTiles": (poputil.dimIsSplitOverTiles, GRAPH, F, 0),
    "dimIsSplitOverIPUs": (poputil.dimIsSplitOverIPUs, GRAPH, F, 0),
    "createBroadcastOperand": (poputil.createBroadcastOperand, GRAPH, F, FLOAT, 0, False, "d"),
    "TensorUseTracker": (poputil.TensorUseTracker, 4, 0, True),
    "TensorUseTracker.add": (TRACKER.add, GRAPH, 1, F),
    "TensorUseTracker.mapTensorsByUse": (TRACKER.mapTensorsByUse, GRAPH, 1, 1, False, TRACKER.MappingMethod.None_),
    "mergeAdjacentRegions": (poputil.mergeAdjacentRegions, [(0, 1)]),
    "flattenIntervals": (poputil.flattenIntervals, [[(0, 1)]]),
    "splitRegions": (poputil.splitRegions, [(0, 4)], 1, 2, 0, 4, 4),
    "splitRegionsBetweenWorkers": (poputil.splitRegionsBetweenWorkers, GRAPH.getTarget(), [(0, 4)], 1),
    "unflattenIndex": (poputil.unflattenIndex, [2, 3], 1),
    "flattenIndex": (poputil.flattenIndex, [2, 3], [0, 1]),
    "intervalSequenceNumElements": (poputil.intervalSequenceNumElements, [[(0, 1)]]),
    "balancedPartition": (poputil.balancedPartition, 4, 2),
    "factorDims": (poputil.factorDims, F, [2], 0),
    "unfactorDims": (poputil.unfactorDims, F, 1, 0),
    "castToDeviceHalfValue": (poputil.castToDeviceHalfValue, GRAPH.getTarget(), 1.0),
    "checkAccuracyWhenCast": (poputil.checkAccuracyWhenCast, GRAPH.getTarget(), 1.0, FLOAT, HALF, 0.1),
    "calculateUnshufflingIntervals": (poputil.calculateUnshufflingIntervals, [(0, 1)]),
    "detectInnermostGrouping": (poputil.detectInnermostGrouping, GRAPH, F),
    "detectDimGroupings": (poputil.detectDimGroupings, GRAPH, F),
    "createPartitionableTensor": (poputil.createPartitionableTensor, GRAPH, FLOAT, [4], [2], "d"),
    "iterateTensorPartitions": (poputil.iterateTensorPartitions, F, [1, 2], print),
    "duplicate": (poputil.duplicate, GRAPH, F, PROG, "d"),
    "cloneN": (poputil.cloneN, GRAPH, F, 2, "d"),
    "broadcastToMatch": (poputil.broadcastToMatch, F, F),
    "canBroadcastToMatch": (poputil.canBroadcastToMatch, F, F),
    "expandToMatchRanks": (poputil.expandToMatchRanks, F, F),
    "TensorFunction": (graphfn.TensorFunction, GRAPH, [graphfn.input(F)], lambda args, prog: args[0], False, "d"),
}
WITHOUT_GRAPH = (
    "pad by type",
    "factorDims",
    "unfactorDims",
    "iterateTensorPartitions",
    "broadcastToMatch",
    "canBroadcastToMatch",
    "expandToMatchRanks",
)


def state():
    return len(GRAPH.freeze().variables.names), GRAPH.numComputeSets(), GRAPH.numVertices(), len(PROG)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_argument_is_refused_before_anything_changes(name):
    function, *arguments = CALLS[name]
    before = state()
    for place, argument in enumerate(arguments):
        foreign = (FOREIGN, Tensor()) if isinstance(argument, Tensor) and name not in WITHOUT_GRAPH else ()
        for wrong in (*NO_ARGUMENTS, *foreign):
            with pytest.raises(PoplarError):
                function(*arguments[:place], wrong, *arguments[place + 1 :])
            assert state() == before, (place, wrong)
