"""What is no argument of a call is refused before anything changes: of poputil, poprand, and popops but for element operations."""

import numpy as np
import pytest
from library_programs import new_graph, variable

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    Graph,
    InvalidTileMapping,
    PoplarError,
    PoplarTypeError,
    Tensor,
    UnknownVertexType,
    popops,
    poprand,
    poputil,
)
from pypoplar.program import Sequence

GRAPH, _ = new_graph(4)
poprand.addCodelets(GRAPH)
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
ROWS, INDEX, PLACES, SEED, SCALE, NUMBERS, OPEN = (
    variable(GRAPH, type, shape, name)
    for type, shape, name in (
        (FLOAT, [2, 6], "rows"),
        (UNSIGNED_INT, [2, 1], "index"),
        (UNSIGNED_INT, [4], "places"),
        (UNSIGNED_INT, [2], "seed"),
        (FLOAT, [], "scale"),
        (INT, [4, 2], "numbers"),
        (UNSIGNED_CHAR, [1], "open"),
    )
)
UPDATES = variable(GRAPH, FLOAT, [2, 1, 6], "updates")
PLAN = popops.embedding.plan(GRAPH, FLOAT, 4, 6, [2], {})
BASIS, PSEUDO, KERNEL = (
    variable(GRAPH, type, shape, name)
    for type, shape, name in ((FLOAT, [4, 2], "basis"), (FLOAT, [4, 1], "pseudo"), (INT, [1], "kernel"))
)
EDGES, WEIGHTS = variable(GRAPH, FLOAT, [4, 3], "edges"), variable(GRAPH, FLOAT, [5, 3, 2], "weights")
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
    "dynamicSlice": (popops.dynamicSlice, GRAPH, F, SEED, [0, 1], [1, 1], PROG, "d", {}),
    "dynamicSliceWithOutput": (popops.dynamicSliceWithOutput, GRAPH, ROWS, F, PLACES[:1], [0], [2], PROG, "d", {}),
    "dynamicUpdate": (popops.dynamicUpdate, GRAPH, F, ROWS, PLACES[:1], [0], [2], PROG, "d", {}),
    "multiSlice": (popops.multiSlice, GRAPH, F, INDEX, [0], [1], PROG, PLAN, {}, "d"),
    "multiUpdate": (popops.multiUpdate, GRAPH, F, UPDATES, INDEX, [0], [1], PROG, popops.SlicePlan(), {}, "d"),
    "multiUpdateMax": (popops.multiUpdateMax, GRAPH, F, UPDATES, INDEX, [0], [1], PROG, popops.SlicePlan(), {}, "d"),
    "multiUpdateAdd": (popops.multiUpdateAdd, GRAPH, F, UPDATES, INDEX, SCALE, [0], [1], PROG, popops.SlicePlan(), {}, "d"),
    "multiUpdateAdd of numbers": (popops.multiUpdateAdd, GRAPH, F, UPDATES, [1, 2], SCALE, 0, PROG, "d", {}),
    "embedding.plan": (popops.embedding.plan, GRAPH, FLOAT, 4, 6, [2], {}),
    "embedding.planMultiple": (popops.embedding.planMultiple, []),
    "gather": (popops.gather, GRAPH, F, PLACES, 0, PROG, popops.GatherParams(), "d", {}),
    "gather as XLA": (popops.gather, GRAPH, F, INDEX, 1, [1], [1, 6], [0], [0], PROG, "d", {}),
    "scatter": (popops.scatter, GRAPH, F, INDEX, ROWS, 1, [1], [0], [0], PROG, "d", {}),
    "createGatherInput": (popops.createGatherInput, GRAPH, FLOAT, [4, 6], 0, popops.GatherParams(), "d"),
    "sequenceSlice": (popops.sequenceSlice, GRAPH, F, ROWS, SEED, SEED, SEED, True, PROG, "d"),
    "selectScalarFromRows": (popops.selectScalarFromRows, GRAPH, F, PLACES, PROG, "d"),
    "updateScalarInRows": (popops.updateScalarInRows, GRAPH, F, PLACES, PROG, "d"),
    "createHostSliceableTensor": (popops.createHostSliceableTensor, GRAPH, FLOAT, [4, 6], True, 0, "d"),
    "splineBasis": (popops.splineBasis, GRAPH, PSEUDO, KERNEL, OPEN, BASIS, NUMBERS, 1, PROG, "d"),
    "splineWeighting": (popops.splineWeighting, GRAPH, EDGES, WEIGHTS, BASIS, NUMBERS, PROG, "d"),
    "uniform": (poprand.uniform, GRAPH, SEED, 1, F, FLOAT, 0.0, 1.0, PROG, "d"),
    "dropout": (poprand.dropout, GRAPH, SEED, 1, F, F, 0.5, 2.0, True, PROG, "d"),
    "shapedDropout": (poprand.shapedDropout, GRAPH, SEED, 1, F, F, 0.5, 2.0, PROG, "d"),
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


VIEWS = ("createSliceableTensorFromSlice", "regroupIfPossible", "regroupIfBeneficial", "canUseFastTranspose")
READING = [
    name for name, (function, *_) in CALLS.items() if function.__module__.startswith(("pypoplar.popops", "pypoplar.poprand"))
]


@pytest.mark.parametrize(
    "name", [name for name in READING if name not in WITHOUT_GRAPH and name not in VIEWS and not name.startswith("pad")]
)
def test_operands_without_tiles_or_of_another_graph_are_refused_by_the_call_that_has_them(name):
    function, *arguments = CALLS[name]
    call = name.split(" ")[0]
    for place, argument in enumerate(arguments):
        if not isinstance(argument, Tensor):
            continue
        bare = GRAPH.addVariable(argument.elementType(), argument.shape(), "bare")
        foreign = variable(OTHER, argument.elementType(), argument.shape(), f"foreign {name} {place}")
        before = state()
        for operand, error, text in (
            (bare, InvalidTileMapping, f"{call}: {bare.numElements()} of {bare.numElements()} elements of .*bare.* have no tile"),
            (foreign, PoplarTypeError, f"{call}: .*foreign.* belongs to another graph"),
        ):
            with pytest.raises(error, match=text):
                function(*arguments[:place], operand, *arguments[place + 1 :])
            assert state() == before, (place, operand)


ELSEWHERE = ("CircBuf.add", "CircBuf.prev", "regroupTensor", "regroupIfBeneficial")  # have something of GRAPH


@pytest.mark.parametrize("name", [name for name in READING if name not in WITHOUT_GRAPH + ELSEWHERE])
def test_a_graph_without_device_code_is_told_so_before_anything_is_added(name):
    function, *arguments = CALLS[name]
    if not any(argument is PROG for argument in arguments):
        return
    graph, names = Graph(GRAPH.getTarget()), {}

    def moved(argument):
        if argument is GRAPH:
            return graph
        if not isinstance(argument, Tensor):
            return argument
        if argument.getDebugStr() not in names:
            t = graph.addVariable(argument.elementType(), argument.shape())
            graph.setTileMapping(t, 0)
            names[argument.getDebugStr()] = t
        return names[argument.getDebugStr()]

    arguments = [moved(argument) for argument in arguments]
    variables, parts = len(graph.freeze().variables.names), len(PROG)
    with pytest.raises(UnknownVertexType, match=r"call (popops|poprand)\.addCodelets\(graph\) first"):
        function(*arguments)
    assert (len(graph.freeze().variables.names), graph.numComputeSets(), len(PROG)) == (variables, 0, parts)


@pytest.mark.parametrize("plan", [None, 3, {}, PLAN.table])
def test_what_is_no_plan_is_refused_by_name(plan):
    for call in ("multiUpdate", "multiUpdateMax", "multiUpdateMul"):
        with pytest.raises(PoplarTypeError, match=rf"popops\.{call}: the plan is a SlicePlan, an empty one for none, got"):
            getattr(popops, call)(GRAPH, F, UPDATES, INDEX, [0], [1], PROG, plan, {})


@pytest.mark.parametrize("numbers", [np.array(0), b"\0", {0: 1}, "0"])
def test_what_only_holds_numbers_is_no_list_of_them(numbers):
    with pytest.raises(PoplarTypeError, match=r"popops\.gather: offsetDims is a list.*, got"):
        popops.gather(GRAPH, F, INDEX, 1, numbers, [1, 6], [0], [0], PROG)


def test_flags_and_lists_of_parameters_are_held_to_their_kind():
    before = state()
    with pytest.raises(PoplarTypeError, match=r"popops\.sequenceSlice: zeroUnused is True or False, got None"):
        popops.sequenceSlice(GRAPH, F, ROWS, SEED, SEED, SEED, None, PROG)
    with pytest.raises(PoplarTypeError, match=r"popops\.embedding\.planMultiple takes a list of SlicePlanningParameters, got 7"):
        popops.embedding.planMultiple(7)
    with pytest.raises(PoplarTypeError, match=r"popops\.pad: val is a number or a tensor, got True"):
        popops.pad(GRAPH, F, 1, 1, 0, True)
    assert state() == before


def test_shapes_of_more_elements_than_any_machine_has_are_refused():
    before = state()
    for make in (
        lambda: GRAPH.addVariable(FLOAT, [2**70]),
        lambda: popops.createTopKInput(GRAPH, FLOAT, [2**70], PARAMS),
        lambda: popops.createHostTransferableTensor(GRAPH, FLOAT, [2**70], True),
        lambda: popops.createGatherInput(GRAPH, FLOAT, [2**70], 0),
        lambda: popops.CircBuf(GRAPH, FLOAT, 2, [2**70]),
        lambda: popops.pad(GRAPH, F, 0, 2**64, 0),
        lambda: popops.embedding.plan(GRAPH, FLOAT, 2**64, 8, [6], {}),
        lambda: popops.embedding.plan(GRAPH, FLOAT, 20, 8, [2**70], {}),
    ):
        with pytest.raises(PoplarError, match="more than a graph has"):
            make()
        assert state() == before


def test_vertices_go_into_compute_sets_of_their_graph():
    before, foreign = state(), OTHER.addComputeSet("foreign")
    for make in (
        lambda: rearrange.partialTranspose(GRAPH, F, foreign),
        lambda: rearrange.regroupTensor(GRAPH, F, PROG, foreign, (0, 2), (1, 2)),
    ):
        with pytest.raises(PoplarTypeError, match=r"'foreign.*belongs to another graph"):
            make()
        assert state() == before


@pytest.mark.parametrize("limit", [S, S.reshape([1])])
def test_a_counter_that_is_its_own_limit_is_refused(limit):
    before = state()
    with pytest.raises(PoplarError, match="count and countLimit are the same element"):
        popops.countedForLoop(GRAPH, S, 0, limit, 1, Sequence())
    assert state() == before


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: popops.sequenceSlice(GRAPH, F, ROWS, 3, SEED, SEED, True, PROG), "tN"),
        (lambda: popops.gather(GRAPH, F, 3, 0, PROG, popops.GatherParams()), "indices"),
        (lambda: popops.topKKeyValue(GRAPH, PROG, F, 3, PARAMS), "values"),
        (lambda: popops.dynamicUpdate(GRAPH, F, 3, PLACES[:1], [0], [2], PROG), "s"),
        (lambda: popops.multiUpdateMax(GRAPH, F, UPDATES, 3, [0], [1], PROG, popops.SlicePlan(), {}), "offsets"),
        (lambda: popops.splineWeighting(GRAPH, EDGES, 3, BASIS, NUMBERS, PROG), "weight"),
        (lambda: popops.sortKeyValue(GRAPH, F, 3, 0, PROG), "v"),
        (lambda: poprand.uniform(GRAPH, None, 1, 3, FLOAT, 0.0, 1.0, PROG), "reference"),
    ],
)
def test_what_is_no_tensor_is_refused_by_the_name_of_the_operand(make, name):
    with pytest.raises(PoplarTypeError, match=f"takes a tensor, got 3 for {name}; graph.addConstant"):
        make()


def test_indices_without_groups_are_not_made_by_a_plan_for_groups():
    before = state()
    with pytest.raises(PoplarError, match=r"popops\.createIndicesTensor: the plan is for 2 groups, got 1"):
        popops.createIndicesTensor(GRAPH, [0], 2, popops.embedding.plan(GRAPH, FLOAT, 2, 4, 6, [2], {}), {})
    assert state() == before


def test_what_an_order_of_tiles_a_mapping_and_a_name_cannot_take_is_refused_by_name():
    for name in ("transformTileIndex", "invTransformTileIndex"):
        order = getattr(poputil, name)
        for arguments in (
            (None, 4, 1, True),
            (1.5, 4, 1, True),
            (-1, 4, 1, True),
            (4, 4, 1, True),
            (1, 4, None, True),
            (1, 4, 1, 2),
        ):
            with pytest.raises(PoplarError, match=rf"poputil\.{name}: \w+ "):
                order(*arguments)
        assert order(3, 4, 5, False) in range(4)
    for text, mistake in (
        ("mapTensorLinearly: grainSize is 1 at least, got 0", lambda: poputil.mapTensorLinearly(GRAPH, F, 2, 0)),
        ("mapTensorLinearlyWithOffset: offset is 0 at least", lambda: poputil.mapTensorLinearlyWithOffset(GRAPH, F, -1)),
        ("calcLinearTileMapping: a shape has no negative", lambda: poputil.calcLinearTileMapping(GRAPH, [-1], 1, 1)),
        ("calcLinearTileMappingAndNewOffset: offset", lambda: poputil.calcLinearTileMappingAndNewOffset(GRAPH, F, -1)),
        ("chooseMappingOffset: a shape is a list", lambda: poputil.chooseMappingOffset(4, [1.5])),
        ("broadcastToMatch cannot broadcast", lambda: poputil.broadcastToMatch(F, [5, 6])),
        ("broadcastToMatch: a shape is a list", lambda: poputil.broadcastToMatch(F, None)),
        ("getTileImbalance: <Tensor 'foreign' .* another graph", lambda: poputil.getTileImbalance(GRAPH, FOREIGN)),
        ("templateVertex: an argument is", lambda: poputil.templateVertex("Fill", 1.5)),
        ("templateVertex: an argument is", lambda: poputil.templateVertex("Fill", F)),
    ):
        with pytest.raises(PoplarError, match=rf"poputil\.{text}"):
            mistake()


def test_an_array_beside_an_expression_is_refused():
    for mistake in (lambda: np.ones(3) - popops.expr._1, lambda: popops.expr._1 * np.ones(3)):
        with pytest.raises(PoplarError, match="an expression is made of placeholders, numbers and operations, got array"):
            mistake()
    assert str(np.float32(1) - popops.expr._1) == "sub(1.0,_1)"


@pytest.mark.parametrize("mapping", [[0], [(0, 1)], [["0"]], [[0]], np.array(0), F, [[]] * 5])
def test_what_is_no_mapping_of_matrices_is_refused(mapping):
    before = state()
    with pytest.raises(PoplarError, match=r"popops\.rearrange\.addTransposeVertices"):
        rearrange.addTransposeVertices(GRAPH, CS, FLOAT, 4, 6, mapping, lambda number: (F, F))
    assert state() == before


@pytest.mark.parametrize("given", [None, F, (F,), (F, 3), (F, ROWS), (F, FOREIGN)])
def test_matrices_that_are_none_are_refused_before_one_is_transposed(given):
    fresh = variable(GRAPH, FLOAT, [6, 4], f"fresh {given}")
    before = state()
    with pytest.raises(PoplarError, match=r"popops\.rearrange\.addTransposeVertices"):
        rearrange.addTransposeVertices(GRAPH, CS, FLOAT, 4, 6, [[(0, 1)], [(1, 2)]], lambda number: given if number else (F, fresh))
    assert state() == before
