"""C++ braces are sets in Python: wherever an order or names matter, a set is refused and the message says what to write.

Every parameter of a public function that could take several values stands in one of the tables below.
"""

import importlib
import inspect
import io
import re

import numpy as np
import pytest

import pypoplar
from pypoplar import (
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    Device,
    DeviceManager,
    Engine,
    GlobalExchangeConstraint,
    GlobalExchangeFlow,
    Graph,
    InOut,
    InvalidOption,
    IPUModel,
    Output,
    Target,
    Vector,
    VectorList,
    Vertex,
    assume,
    compileGraph,
    concat,
    default,
    poplin,
    popops,
    poputil,
    predict,
    stack,
    sweep,
    testing,
)
from pypoplar.errors import CodeletError, PoplarTypeError
from pypoplar.poplin import createMatMulInputLHS, createMatMulInputRHS, matMul
from pypoplar.popops.elements.element_operations import OPERATIONS
from pypoplar.poputil.overloads import forms
from pypoplar.program import Call, Copy, CrossReplicaCopy, Execute, If, Repeat, Sequence, Switch

ROOMS = ("", ".program", ".poputil", ".popops", ".poplin", ".popnn", ".testing")
SEVERAL = (
    r"\b(Any|ArrayLike|Codelets|FieldValue|Intervals|TileMapping|Iterable|Sequence\[|SequenceOf|list|tuple|Mapping"
    r"|Options|Programs|AnyArray|Operand|Callback|Runnable)"
)
MADE_BY_PYPOPLAR = (  # classes that users get and do not make
    "ComputeSet",
    "DataStream",
    "Device",
    "Executable",
    "FieldRef",
    "Function",
    "HostFunction",
    "RemoteBuffer",
    "Result",
    "Prediction",
    "SweepTable",
    "Target",
    "VertexIntrospector",
    "VertexRange",
    "VertexRef",
)
ONE_VALUE = {  # takes one thing, whatever its annotation says
    "Engine.connectStreamToCallback.callback",
    "Engine.connectStreamToCallback.replica",
    "Graph.addFunction.program",
    "Graph.clone.what",
    "StreamCallback.fetch.chunk",
    "StreamCallback.prefetch.chunk",
    "Target.from_json.values",
    "OptionHandler.__init__.read",
    "SingleReduceOp.__init__.outType",
    "iterateTensorPartitions.f",
    "assert_same_bits.of",
    "SweepTable.to_csv.path",
}


SHAPES = ("aShape", "bShape", "options")
PRODUCTS = {  # calls for products of matrices, and their parameters that take several values
    "createMatMulGroupedInputLHS": SHAPES,
    "createMatMulGroupedInputRHS": SHAPES,
    "createMatMulGroupedOutput": SHAPES,
    "matMulGrouped": ("options",),
    "matMulGroupedReportPlan": SHAPES,
    "matMulGroupedWithOutput": ("options_",),
    "matMulReportPlan": SHAPES,
    "matMulWithOutput": ("options_",),
    "matMulGetConvPlanParams": ("matmuls",),
    "matmulValidateOptions": ("options",),
    "preArrangeMatMulGroupedInputRHS": ("aShape", "options"),
    "preplan": ("convs", "matmuls"),
    "preplanMatMuls": ("matmuls",),
}
SOLVERS = {  # calls for triangular systems and factors, and their parameters that take several values
    **dict.fromkeys(("cholesky", "choleskyInPlace", "triangularSolve"), ("options",)),
    **dict.fromkeys(("createCholeskyInput", "getCholeskyMatMulPrePlanParameters"), ("shape", "options")),
    **{f"createTriangularSolveInput{side}HS": SHAPES for side in "LR"},
    "getTriangularSolveMatMulPrePlanParameters": SHAPES,
}


class Double(Vertex):
    x: InOut[Vector[FLOAT]]
    values: Vector[FLOAT]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] *= 2.0


class Rows(Vertex):
    rows: InOut[VectorList[FLOAT]]

    def compute(self):
        for row in self.rows:
            row[0] = 1.0


class Other(Vertex):
    y: Output[FLOAT]

    def compute(self):
        self.y = 1.0


class Case:
    """A graph and an engine, ready for a mistake."""

    def __init__(self):
        self.device = IPUModel("tiny").createDevice()
        self.graph = Graph(self.device)
        self.x, self.m = (self.graph.addVariable(FLOAT, shape, name) for shape, name in (([8], "x"), ([4, 4], "m")))
        self.index = self.graph.addVariable(INT, [], "index")
        self.offsets = self.graph.addConstant(UNSIGNED_INT, [1, 1], [0])
        for tensor in (self.x, self.m, self.index, self.offsets):
            self.graph.setTileMapping(tensor, 0)
        self.set = self.graph.addComputeSet("the set")
        self.prog = Sequence()
        self.a, self.b = Copy(self.x[0], self.x[1]), Copy(self.x[2], self.x[3])

    def vertex(self, **connections):
        vertex = self.graph.addVertex(self.set, Double, {"x": self.x, **connections})
        self.graph.setTileMapping(vertex, 0)
        return vertex

    def engine(self, program=None):
        self.graph.createHostWrite("x", self.x)
        self.graph.createHostRead("x", self.x)
        stream = self.graph.addHostToDeviceFIFO("in", FLOAT, 8)
        buffer = self.graph.addRemoteBuffer("buffer", FLOAT, 8)
        transfers = Sequence([Copy(stream, self.x), Copy(self.x, buffer)])
        engine = Engine(self.graph, transfers if program is None else program)
        engine.load(self.device)
        return engine

    def host_function(self):
        return self.graph.addHostFunction("f", [(FLOAT, 8)], [(FLOAT, 8)])


def _callback(case):
    engine = case.engine()
    engine.connectStreamToCallback("in", lambda chunk: {1.0, 2.0})
    engine.run()


def _default(case):
    class WithDefault(Vertex):
        values: Vector[FLOAT] = default({1.0, 2.0})

        def compute(self):
            pass

    case.graph.addCodelets(WithDefault)


CONVOLUTIONS = (  # calls whose only parameter of several values is their options
    *(
        "calculateWeightDeltas",
        "convolution",
        "convolutionValidateOptions",
        "convolutionWithOutput",
        "createConvOutput",
        "createInput",
    ),
    *("createWeights", "fullyConnectedWeightTranspose", "reportPlanEstimatedCosts", "reportPlanInfo", "reportWeightUpdatePlanInfo"),
    "weightsTransposeChansFlipXY",
)


def _of_convolutions(name, parameter):
    def call(case):
        function, params = getattr(poplin, name), poplin.ConvParams(FLOAT, 1, [4], [1], 4, 4, 1)
        field, weights = case.m.expand([0]), case.graph.addVariable(FLOAT, [1, 4, 4, 1])
        fitting = {
            "graph": case.graph, "prog": case.prog, "params": params, "fwdParams": params, "out": field, "in_": field,
            "weights": weights, "zDeltas": field, "activations": field, "weightsIn": weights, "weightsOut": weights,
            "transposeAndFlipWeights": False,
        }  # fmt: skip
        case.graph.setTileMapping(weights, 0)
        if name.startswith("report"):
            fitting["out"] = io.StringIO()
        arguments = {key: fitting[key] for key in inspect.signature(function).parameters if key in fitting}
        function(**{**arguments, parameter: {"partialsType"}})

    return call


def _element_wise(name, parameter):
    function = getattr(popops, name)
    given = ("graph", "prog", "debugContext", "options")
    tensors = [parameter for parameter in inspect.signature(function).parameters if parameter not in given]

    def call(case):
        arguments = {**dict.fromkeys(tensors, case.x), "prog": case.prog}
        function(case.graph, **{**arguments, parameter: {1.0}})

    return call


def _of_products(name, parameter):
    def call(case):
        group = [1] if "Grouped" in name else []
        square = case.m.reshape([*group, 4, 4])
        fitting = {
            "graph": case.graph, "prog": case.prog, "out": square if "WithOutput" in name else io.StringIO(),
            **dict.fromkeys(("A", "A_", "B", "B_"), square), "aShape": [*group, 4, 4], "bShape": [*group, 4, 4],
            **dict.fromkeys(("inputType", "outputType"), FLOAT), "convs": [], "matmuls": [],
            "cache": poplin.PlanningCache(),
        }  # fmt: skip
        function = getattr(poplin, name)
        arguments = {key: fitting[key] for key in inspect.signature(function).parameters if key in fitting}
        function(**{**arguments, parameter: {4}})

    return call


def _of_solvers(name, parameter):
    def call(case):
        fitting = {
            "graph": case.graph, "prog": case.prog, "a": case.m, "b": case.m,
            **dict.fromkeys(("lower", "leftSide", "unitDiagonal"), True), **{key: [4, 4] for key in ("aShape", "bShape", "shape")},
            **dict.fromkeys(("inputType", "outputType", "type"), FLOAT),
        }  # fmt: skip
        function = getattr(poplin, name)
        arguments = {key: fitting[key] for key in inspect.signature(function).parameters if key in fitting}
        function(**{**arguments, parameter: {4}})

    return call


OPERANDS_OF_LISTS = {  # fitting arguments by name, of the calls whose lists are tried below
    "t": lambda case: case.m,
    "s": lambda case: case.m[:1].reshape([1, 1, 4]),
    "output": lambda case: case.m[:1],
    "offset": lambda case: case.offsets.flatten(),
    "offsets": lambda case: case.offsets,
    "scale": lambda case: case.x[0],
    "dims": lambda case: [0],
    "sizes": lambda case: [1],
    "shape": lambda case: [4, 4],
    "numSlices": lambda case: [4],
    "numIndices": lambda case: 1,
    "groupSize": lambda case: 1,
    "size": lambda case: 2,
    "type": lambda case: FLOAT,
    "dataType": lambda case: FLOAT,
    "plan": lambda case: popops.embedding.plan(case.graph, FLOAT, 4, 4, [1], {}),
    "params": lambda case: popops.TopKParams(1, True, popops.SortOrder.NONE),
    "reductions": lambda case: [],
    "outputs": lambda case: [],
    "options": lambda case: {},
    "prog": lambda case: case.prog,
    "graph": lambda case: case.graph,
}
LISTS = {  # the calls, and their parameters that take lists or options
    **dict.fromkeys(
        ("createDynamicSliceOutput", "dynamicSlice", "dynamicSliceWithOutput", "dynamicUpdate"), ("dims", "sizes", "options")
    ),
    **{f"groupedMulti{kind}": ("dims", "sizes", "options") for kind in ("Slice", "Update", "UpdateAdd", "UpdateMax", "UpdateMul")},
    **{f"multiUpdate{kind}": ("dims", "sizes", "options") for kind in ("", "Max", "Mul")},
    "CircBuf": ("shape",),
    "createGroupedIndicesTensor": ("dims", "options"),
    "createGroupedSliceTensor": ("shape", "dims", "sizes", "options"),
    "createGroupedSliceableTensor": ("shape", "dims", "sizes", "options"),
    "createIndicesTensor": ("dims", "options"),
    "createNormaliseImageInput": ("shape",),
    "createSliceableTensorFromSlice": ("dims", "numSlices"),
    "createTopKInput": ("shape",),
    "getSliceMapping": ("dims", "sizes"),
    "reduceMany": ("outputs", "options"),
}


def _call_of_lists(name, case, parameter, value):
    """A call that fits but for one of its arguments."""
    popops.addCodelets(case.graph)
    function = getattr(popops, name)
    given = {
        other: OPERANDS_OF_LISTS[other](case)
        for other, declared in inspect.signature(function).parameters.items()
        if declared.default is declared.empty
    }
    return function(**{**given, parameter: value})


def _with_lists(name, parameter):
    """The call with a set for one of its arguments."""
    return lambda case: _call_of_lists(name, case, parameter, {"x"} if parameter == "options" else {1})


OPERANDS = {  # what the operands of functions on elements are called, where not A and B
    "CLAMP": ("values", "minimums", "maximums"),
    "SELECT": ("A", "B", "conditions"),
    "INV_STD_DEV_TO_VARIANCE": ("invStdDev", "epsilon"),
    "VARIANCE_TO_INV_STD_DEV": ("variance", "epsilon"),
}
ELEMENT_WISE = {  # the functions on elements, and their operands that may be numbers
    f"{row.function}{suffix}": () if row.operands == 1 else OPERANDS.get(row.name, ("A", "B"))[suffix == "InPlace" :]
    for row in OPERATIONS.values()
    for suffix in ("", "InPlace", "WithOutput")
    if row.name != "RELU" and not ("VARIANCE" in row.name and not suffix)
}
FIELDS = {"x": [1.0], "values": [1.0]}

REFUSED = {
    "Device.createSimulatorDevice.opts": lambda case: Device.createSimulatorDevice(case.graph.getTarget(), {"a"}),
    "DeviceManager.getDevice.opts": lambda case: DeviceManager().getDevice(0, {"a"}),
    "DeviceManager.getDevices.opts": lambda case: DeviceManager().getDevices(opts={"a"}),
    "Engine.__init__.programs": lambda case: Engine(case.graph, {case.a, case.b}),
    "Engine.__init__.options": lambda case: Engine(case.graph, case.a, {("pypoplar.threads", 1)}),
    "Engine.connectStream.array": lambda case: case.engine().connectStream("in", {1.0, 2.0}),
    "Engine.copyFromRemoteBuffer.array": lambda case: case.engine().copyFromRemoteBuffer("buffer", {1.0}),
    "Engine.copyToRemoteBuffer.array": lambda case: case.engine().copyToRemoteBuffer({1.0, 2.0}, "buffer"),
    "Engine.printProfileSummary.options": lambda case: case.engine().printProfileSummary(io.StringIO(), {"showVarStorage"}),
    "Engine.readTensor.array": lambda case: case.engine().readTensor("x", {1.0}),
    "Engine.writeTensor.array": lambda case: case.engine().writeTensor("x", {1.0, 2.0}),
    "GlobalExchangeConstraint.__init__.flows": lambda case: GlobalExchangeConstraint(1e9, {GlobalExchangeFlow(0, 1)}),
    "Graph.addCodelets.sources": lambda case: case.graph.addCodelets({Double, Other}),
    "Graph.addConstant.shape": lambda case: case.graph.addConstant(FLOAT, {4}, 1.0),
    "Graph.addConstant.value": lambda case: case.graph.addConstant(FLOAT, [2], {1.0, 2.0}),
    "Graph.addDeviceToHostFIFO.options": lambda case: case.graph.addDeviceToHostFIFO("out", FLOAT, 1, {"bufferingDepth"}),
    "Graph.addHostFunction.inputs": lambda case: case.graph.addHostFunction("f", {(FLOAT, 1)}, []),
    "Graph.addHostFunction.outputs": lambda case: case.graph.addHostFunction("f", [], [{FLOAT, 1}]),
    "Graph.addHostToDeviceFIFO.options": lambda case: case.graph.addHostToDeviceFIFO("in", FLOAT, 1, options={"bufferingDepth"}),
    "Graph.addVariable.shape": lambda case: case.graph.addVariable(FLOAT, {4}),
    "Graph.addVertex.connections": lambda case: case.graph.addVertex(case.set, Double, {("x", case.x)}),
    "Graph.add_vertices.connections": lambda case: case.graph.add_vertices(case.set, Double, {("x", case.m)}),
    "Graph.add_vertices.tiles": lambda case: case.graph.add_vertices(case.set, Double, {"x": case.m}, {0, 1, 2, 3}),
    "Graph.connect.value": lambda case: case.graph.connect(case.graph.addVertex(case.set, Rows)["rows"], {case.m[0], case.m[1]}),
    "Graph.createVirtualGraph.tiles": lambda case: case.graph.createVirtualGraph({4, 5, 9}),
    "Graph.getSortedContiguousRegions.intervals": lambda case: case.graph.getSortedContiguousRegions(case.x, {(0, 4), (4, 8)}),
    "Graph.outputComputationGraph.programs": lambda case: case.graph.outputComputationGraph(io.StringIO(), {case.a, case.b}),
    "Graph.outputVertexGraph.programs": lambda case: case.graph.outputVertexGraph(io.StringIO(), {case.a, case.b}),
    "Graph.reorderToSimplify.others": lambda case: case.graph.reorderToSimplify(case.x, {case.x}),
    "Graph.setCycleEstimate.cycles": lambda case: case.graph.setCycleEstimate(case.vertex(), {10}),
    "Graph.setInitialValue.value": lambda case: case.graph.setInitialValue(case.x[0:2], {1.0, 2.0}),
    "Graph.setPerfEstimate.cycles": lambda case: case.graph.setPerfEstimate(case.vertex(), {10}),
    "Graph.setPerfEstimate.flops": lambda case: case.graph.setPerfEstimate(case.vertex(), 10, {10}),
    "Graph.kept_layout.shape": lambda case: case.graph.kept_layout(case.x, {4}),
    "Graph.setTileMapping.mapping": lambda case: case.graph.setTileMapping(case.x, {(0, 4), (4, 8)}),
    "IPUModel.__setattr__.value": lambda case: setattr(IPUModel(), "globalExchangeConstraints", set()),
    "IPUModel.createDevice.opts": lambda case: IPUModel().createDevice({"a"}),
    "Target.createIPUTarget.opts": lambda case: Target.createIPUTarget("bow", opts={"ipuLinkTopology"}),
    "Tensor.__getitem__.key": lambda case: case.m[{0, 1}],
    "Tensor.dimShuffle.permutation": lambda case: case.m.dimShuffle({1, 0}),
    "Tensor.dimShufflePartial.source": lambda case: case.m.dimShufflePartial({0}, [1]),
    "Tensor.dimShufflePartial.destination": lambda case: case.m.dimShufflePartial([0], {1}),
    "Tensor.expand.dimensions": lambda case: case.x.expand({0}),
    "Tensor.index.indices": lambda case: case.m.index({1, 2}),
    "Tensor.reshape.shape": lambda case: case.x.reshape({4, 2}),
    "Tensor.reshapePartial.shape": lambda case: case.x.reshapePartial(0, 1, {4, 2}),
    "Tensor.slice.begin": lambda case: case.m.slice({0, 1}, [2, 2]),
    "Tensor.slice.end": lambda case: case.m.slice([0, 1], {2, 3}),
    "Tensor.slice.dimension": lambda case: case.m.slice([0, 0], [1, 2], {1, 0}),
    "Tensor.slices.intervals": lambda case: case.x.slices({(0, 4), (4, 8)}),
    "Tensor.squeeze.dimensions": lambda case: case.x.expand([0]).squeeze({0}),
    "compileGraph.programs": lambda case: compileGraph(case.graph, {case.a, case.b}),
    "compileGraph.options": lambda case: compileGraph(case.graph, case.a, {"pypoplar.threads"}),
    "Switch.switchWithUnreachableDefault.cases": lambda case: Switch.switchWithUnreachableDefault(case.index, {(0, case.a)}),
    "unflattenIndex.shape": lambda case: poputil.unflattenIndex({2, 3}, 4),
    "default.value": _default,
    "concat.tensors": lambda case: concat({case.x, case.x[0:2]}),
    "another tensor of concat": lambda case: concat(case.x, {case.x}, 0),
    "stack.tensors": lambda case: stack({case.m[0], case.m[1]}),
    "Call.__init__.inputs": lambda case: Call(case.host_function(), {case.x}, [case.x]),
    "CrossReplicaCopy.__init__.replicaMap": lambda case: CrossReplicaCopy(case.x, case.x, {0, 1}),
    "Call.__init__.names": lambda case: Call(case.graph.addFunction(case.a), names={"layer0"}),
    "Engine.__init__.assumptions": lambda case: Engine(case.graph, case.a, mode="cost", assumptions={assume(case.index, 1)}),
    "predict.programs": lambda case: predict(case.graph, {case.a, case.b}),
    "predict.options": lambda case: predict(case.graph, case.a, options={"pypoplar.threads"}),
    "predict.assumptions": lambda case: predict(case.graph, case.a, assumptions={assume(case.index, 1)}),
    "sweep.cases": lambda case: sweep(lambda x: x, {"x"}),
    "compileGraph.assumptions": lambda case: compileGraph(case.graph, case.a, mode="cost", assumptions={assume(case.index, 1)}),
    "Call.__init__.outputs": lambda case: Call(case.host_function(), [case.x], {case.x}),
    "Sequence.__init__.programs": lambda case: Sequence({case.a, case.b}),
    "Switch.__init__.cases": lambda case: Switch(case.index, {(0, case.a), (1, case.b)}),
    "broadcastToMatch.others": lambda case: poputil.broadcastToMatch(case.x, {2, 8}),
    "the shape of a mapping by grain": lambda case: poputil.calcLinearTileMapping(case.graph, {4}, 1, 1),
    "splitRegions.regions": lambda case: poputil.splitRegions({pypoplar.Interval(0, 8)}, 1, 2),
    "splitRegionsBetweenWorkers.regions": lambda case: poputil.splitRegionsBetweenWorkers(
        case.graph.getTarget(), {pypoplar.Interval(0, 8)}, 1
    ),
    "createOutputForElementWiseOp.inputs": lambda case: popops.createOutputForElementWiseOp(case.graph, {case.x}, HALF),
    "the epsilon of a deviation": lambda case: popops.varianceToInvStdDev(case.graph, case.x, {1.0}, case.prog),
    "a variance": lambda case: popops.varianceToInvStdDev(case.graph, {1.0}, case.x, case.prog, "name"),
    "the options of a deviation": lambda case: popops.varianceToInvStdDev(case.graph, case.x, 1.0, case.prog, "", {"x"}),
    "the epsilon of a variance": lambda case: popops.invStdDevToVariance(case.graph, case.x, {1.0}, case.prog),
    "a standard deviation": lambda case: popops.invStdDevToVariance(case.graph, {1.0}, case.x, case.prog, "name"),
    "the options of a variance": lambda case: popops.invStdDevToVariance(case.graph, case.x, 1.0, case.prog, "", {"x"}),
    "the trees of a map": lambda case: popops.map(case.graph, {popops.expr._1}, [case.x], case.prog),
    "the options of a map": lambda case: popops.map(case.graph, popops.expr._1, [case.x], case.prog, "", {"x"}),
    "the trees of a map in place": lambda case: popops.mapInPlace(case.graph, {popops.expr._1}, [case.x], case.prog),
    "the options of a map in place": lambda case: popops.mapInPlace(case.graph, popops.expr._1, [case.x], case.prog, "", {"x"}),
    "the tensors of a map into one": lambda case: popops.mapWithOutput(case.graph, popops.expr._1, {case.x}, case.x, case.prog),
    "the options of a map into one": lambda case: popops.mapWithOutput(
        case.graph, popops.expr._1, [case.x], case.x, case.prog, "", {"x"}
    ),
    "the tensors of a map": lambda case: popops.map(case.graph, popops.expr._1, {case.x}, case.prog),
    "the tensors of a map in place": lambda case: popops.mapInPlace(case.graph, popops.expr._1, {case.x}, case.prog),
    "the tensors of a codelet to be shown": lambda case: popops.outputGeneratedCodelet(
        case.graph.getTarget(), popops.expr._1, {case.x}, {}, io.StringIO()
    ),
    "outputGeneratedCodelet.options": lambda case: popops.outputGeneratedCodelet(
        case.graph.getTarget(), popops.expr._1, [case.x], {"x"}, io.StringIO()
    ),
    "the options of a scaled sum": lambda case: popops.scaledAddTo(
        case.graph, case.x, case.x, 1.0, case.prog, options={"optimizeForSpeed"}
    ),
    "the options of a scaled difference": lambda case: popops.scaledSubtractFrom(
        case.graph, case.x, case.x, 1.0, case.prog, options={"optimizeForSpeed"}
    ),
    **{
        f"{name}.{'__init__.' if name == 'CircBuf' else ''}{parameter}": _with_lists(name, parameter)
        for name, parameters in LISTS.items()
        for parameter in parameters
    },
    **{
        f"{name}.{parameter}": _element_wise(name, parameter)
        for name, operands in ELEMENT_WISE.items()
        for parameter in (*operands, "options")
    },
    **{
        f"{name}.{parameter}": _of_convolutions(name, parameter)
        for name in CONVOLUTIONS
        for parameter in ("fwdOptions" if "Update" in name else "options",)
    },
    "OptionHandler.createWithEnum.valueMap": lambda case: poputil.OptionHandler.createWithEnum({"on", "off"}),
    "OptionSpec.__init__.handlers": lambda case: poputil.OptionSpec({"on"}),
    "SingleReduceOp.__init__.dims": lambda case: popops.SingleReduceOp(case.m, {0, 1}, popops.ReduceParams()),
    "calculateUnshufflingIntervals.intervals": lambda case: poputil.calculateUnshufflingIntervals({(0, 2)}),
    "chooseMappingOffset.shape": lambda case: poputil.chooseMappingOffset(4, {4}),
    "createPartitionableTensor.shape": lambda case: poputil.createPartitionableTensor(case.graph, FLOAT, {4}, [2]),
    "createPartitionableTensor.nPartitions": lambda case: poputil.createPartitionableTensor(case.graph, FLOAT, [4], {2}),
    "factorDims.factors": lambda case: poputil.factorDims(case.m, {1, 2}),
    "flattenIndex.shape": lambda case: poputil.flattenIndex({4, 8}, [0, 0]),
    "flattenIndex.indices": lambda case: poputil.flattenIndex([4, 8], {0, 1}),
    "flattenIntervals.intervals": lambda case: poputil.flattenIntervals({((0, 2),)}),
    "intervalSequenceNumElements.seq": lambda case: poputil.intervalSequenceNumElements({((0, 2),)}),
    "iterateTensorPartitions.nPartitions": lambda case: poputil.iterateTensorPartitions(case.m, {1, 2}, print),
    "the regions of mergeAdjacentRegions": lambda case: poputil.mergeAdjacentRegions({(0, 2)}),
    "reduceMany.reductions": lambda case: popops.reduceMany(case.graph, {1}, [], case.prog),
    **{f"{name}.{parameter}": _of_products(name, parameter) for name, parameters in PRODUCTS.items() for parameter in parameters},
    **{f"{name}.{parameter}": _of_solvers(name, parameter) for name, parameters in SOLVERS.items() for parameter in parameters},
    "MatMulParams.__init__.aShape": lambda case: poplin.MatMulParams(FLOAT, FLOAT, {4, 8}, [8, 4]),
    "MatMulParams.__init__.bShape": lambda case: poplin.MatMulParams(FLOAT, FLOAT, [4, 8], {8, 4}),
    "the options of matMul": lambda case: matMul(case.graph, case.m, case.m, case.prog, options={"partialsType"}),
    "aShape of createMatMulInputLHS": lambda case: createMatMulInputLHS(case.graph, FLOAT, {4, 8}, [8, 4]),
    "bShape of createMatMulInputLHS": lambda case: createMatMulInputLHS(case.graph, FLOAT, FLOAT, [8, 4], {4, 8}),
    "options of createMatMulInputLHS": lambda case: createMatMulInputLHS(case.graph, FLOAT, [8, 4], [4, 8], "", {"x"}),
    "aShape of createMatMulInputRHS": lambda case: createMatMulInputRHS(case.graph, FLOAT, {4, 8}, [8, 4]),
    "bShape of createMatMulInputRHS": lambda case: createMatMulInputRHS(case.graph, FLOAT, [4, 8], {8, 4}),
    "options of createMatMulInputRHS": lambda case: createMatMulInputRHS(case.graph, FLOAT, [8, 4], [4, 8], options={"x"}),
    "assert_exchange.expected": lambda case: testing.assert_exchange(case.engine(), None, {(0, 1)}),
    "assert_same_bits.actual": lambda case: testing.assert_same_bits({1.0}, [1.0]),
    "assert_same_bits.expected": lambda case: testing.assert_same_bits([1.0], {1.0}),
    "run.arrays": lambda case: testing.run(Execute, {"x"}),
    "run.streams": lambda case: testing.run(Execute, {}, streams={"x"}),
    "run.mapping": lambda case: testing.run(Execute, {"x": np.zeros(1)}, mapping={"x"}),
    "run.options": lambda case: testing.run(Execute, {}, options={"pypoplar.threads"}),
    "run.modes": lambda case: testing.run(Execute, {}, modes={"native", "interpret"}),
    "run_vertex.fields": lambda case: testing.run_vertex(Double, {"x"}),
    "run_vertex.options": lambda case: testing.run_vertex(Double, FIELDS, options={"pypoplar.threads"}),
    "run_vertex.modes": lambda case: testing.run_vertex(Double, FIELDS, modes={"native"}),
    # the same parameters, in other forms
    "an interval of a tile": lambda case: case.graph.setTileMapping(case.x, [[{0, 8}]]),
    "the intervals of a tile": lambda case: case.graph.setTileMapping(case.x, {0: {(0, 4), (4, 8)}}),
    "an interval of slices": lambda case: case.x.slices([{0, 4}]),
    "an interval of regions": lambda case: case.graph.getSortedContiguousRegions(case.x, [{0, 4}]),
    "indices of several dimensions": lambda case: case.m[0, {1, 2}],
    "an edge of a vertex": lambda case: case.graph.addVertex(case.set, Double, {"x": {case.x}}),
    "a vector of a vertex": lambda case: case.vertex(values={1.0, 2.0}),
    "an edge of many vertices": lambda case: case.graph.add_vertices(case.set, Double, {"x": {case.x}}, [0]),
    "a vector of many vertices": lambda case: case.graph.add_vertices(case.set, Double, {"x": case.m, "values": {1.0}}),
    "values within a list": lambda case: case.graph.addConstant(FLOAT, [2], [{1.0, 2.0}]),
    "a frozen set": lambda case: case.graph.addVariable(FLOAT, frozenset([4])),
    "programs within a list": lambda case: Sequence([{case.a, case.b}]),
    "the body of a loop": lambda case: Repeat(2, {case.a, case.b}),
    "the case of a condition": lambda case: If(case.index, {case.a, case.b}),
    "the shape of a linear mapping": lambda case: poputil.calcLinearTileMapping(case.graph.getTarget(), {4}, FLOAT),
    "what a callback gives": _callback,
    "an array of a test": lambda case: testing.run(Execute, {"x": {1.0, 2.0}}),
    "a field of a test": lambda case: testing.run_vertex(Double, {"x": {1.0, 2.0}}),
    "the rows of a test": lambda case: testing.run_vertex(Rows, {"rows": {(1.0,), (2.0,)}}),
    "the shapes of a product by name": lambda case: createMatMulInputLHS(case.graph, FLOAT, aShape={4, 8}, bShape=[8, 4]),
}


def public_functions():
    """The public functions and methods by their names, without those that make errors and what users only get."""
    for room in ROOMS:
        module = importlib.import_module(f"pypoplar{room}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield name, value
            if inspect.isclass(value) and not issubclass(value, BaseException):
                for attribute, method in inspect.getmembers(value, callable):
                    constructor = attribute == "__init__" and name not in MADE_BY_PYPOPLAR
                    if (attribute[0] != "_" or constructor or attribute in ("__getitem__", "__setattr__")) and (
                        getattr(method, "__module__", None) or ""
                    ).startswith("pypoplar"):
                        yield f"{name}.{attribute}", method


def _has_forms(function):
    """Whether its arguments are held to declared forms; those refuse sets, see tests/libraries/test_overloads.py."""
    return bool(forms(inspect.unwrap(function))) and getattr(function, "__wrapped__", function).__code__.co_name == "choose"


def parameters_of_several_values():
    for name, function in public_functions():
        if _has_forms(function):
            continue
        for parameter in inspect.signature(function).parameters.values() if not inspect.isclass(function) else ():
            if parameter.name != "self" and re.search(SEVERAL, str(parameter.annotation)):
                yield f"{name}.{parameter.name}"


def test_every_public_parameter_that_could_take_a_set_is_tested():
    parameters = set(parameters_of_several_values())
    assert sorted(parameters - REFUSED.keys() - ONE_VALUE) == []
    assert sorted(name for name in (REFUSED.keys() | ONE_VALUE) - parameters if " " not in name) == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_set_is_refused_and_the_message_says_what_to_write(name):
    with pytest.raises((PoplarTypeError, CodeletError), match=r"a set has no order; write \S") as refusal:
        REFUSED[name](Case())
    assert "got " in str(refusal.value)


@pytest.mark.parametrize("name", [name for name, parameters in LISTS.items() if "options" in parameters])
def test_an_unknown_option_is_refused_by_every_call_that_takes_options(name):
    with pytest.raises(InvalidOption, match=f"{name} has no option 'nonsense'"):
        _call_of_lists(name, Case(), "options", {"nonsense": "1"})
