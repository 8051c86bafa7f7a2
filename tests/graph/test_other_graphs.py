"""What is of another graph is refused wherever it comes in: its elements have the numbers of other ones here."""

import io

import pytest
from engine_builder import tiny

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    ControlProgramError,
    Engine,
    Graph,
    GraphConnectionError,
    InOut,
    Input,
    Output,
    PoplarTypeError,
    Vector,
    VectorList,
    Vertex,
    append,
    compileGraph,
    concat,
    popnn,
    popops,
    poputil,
    stack,
)
from pypoplar.program import Call, Copy, Execute, If, PrintTensor, Repeat, Sequence, WriteUndef, cycleCount, setSeed

HERE = r"test_other_graphs\.py:\d+"


class Fill(Vertex):
    x: InOut[Vector[FLOAT]]
    n: INT

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] = self.n


class Rows(Vertex):
    rows: Input[VectorList[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        self.out = len(self.rows)


class Side:
    """A graph with one of everything; two of them are alike in all numbers."""

    def __init__(self):
        self.graph = Graph(tiny().getTarget())
        self.vector, self.matrix = self.variable(FLOAT, [4], "vector"), self.variable(FLOAT, [4, 4], "matrix")
        self.flag, self.seed = self.variable(BOOL, [], "flag"), self.variable(UNSIGNED_INT, [2], "seed")
        self.constant = self.graph.addConstant(FLOAT, [4], 1.0, "constant")
        self.compute_set = self.graph.addComputeSet("fill")
        self.vertex = self.graph.addVertex(self.compute_set, Fill, {"x": self.vector, "n": 1})
        self.source, self.sink = self.graph.addHostToDeviceFIFO("in", FLOAT, 4), self.graph.addDeviceToHostFIFO("out", FLOAT, 4)
        self.buffer = self.graph.addRemoteBuffer("buffer", FLOAT, 4, 2)
        self.takes, self.idle = self.graph.addHostFunction("takes", [(FLOAT, 4)], []), self.graph.addHostFunction("idle", [], [])
        self.function = self.graph.addFunction(Sequence())
        self.sequence = Sequence()

    def variable(self, type, shape, name):
        tensor = self.graph.addVariable(type, shape, name)
        self.graph.setTileMapping(tensor, 0)
        return tensor


@pytest.fixture
def own():
    return Side()


@pytest.fixture
def other():
    return Side()


OTHER = r"'vector' FLOAT \[4\] belongs to another graph"
NAMED = r"pop(ops.add|ops.addInPlace|util.mapTensorLinearly): <Tensor 'vector' FLOAT \[4\]> belongs to another graph"


@pytest.mark.parametrize(("call", "text"), [
    (lambda own, far: own.graph.createHostRead("x", far.vector), OTHER),
    (lambda own, far: own.graph.createHostWrite("x", far.vector), OTHER),
    (lambda own, far: own.graph.setTileMapping(far.vector, 0), OTHER),
    (lambda own, far: own.graph.setTileMapping(far.vector, [[(0, 4)]]), OTHER),
    (lambda own, far: own.graph.setTileMapping(far.vertex, 0), f"<VertexRef Fill, .* added at .*{HERE}> belongs to another graph"),
    (lambda own, far: own.graph.getTileMapping(far.vector), OTHER),
    (lambda own, far: own.graph.setInitialValue(far.vector, [1, 2, 3, 4]), OTHER),
    (lambda own, far: own.graph.setInitialValue(far.vertex["n"], 1), f"expected a field of a vertex of this graph, .*{HERE}"),
    (lambda own, far: own.graph.setFieldSize(far.vertex["n"], 1), f"expected a field of a vertex of this graph, .*{HERE}"),
    (lambda own, far: own.graph.connect(far.vertex["x"], own.vector), f"expected a field of a vertex of this graph, .*{HERE}"),
    (lambda own, far: own.graph.addVertex(far.compute_set, Fill, {"x": own.vector}), "a compute set of its graph, got <ComputeSet"),
    (lambda own, far: own.graph.add_vertices(far.compute_set, Fill, {"x": own.matrix}, 0), "a compute set of their graph, got"),
    (lambda own, far: own.graph.setPerfEstimate(far.vertex, 1), f"an estimate is for a vertex of this graph, .*{HERE}"),
    (lambda own, far: own.graph.clone(far.vector), OTHER),
    (lambda own, far: own.graph.clone(HALF, far.vector), OTHER),
    (lambda own, far: own.graph.cloneN(far.vector, 2), OTHER),
    (lambda own, far: own.graph.isConstant(far.constant), r"'constant' FLOAT \[4\] belongs to another graph"),
    (lambda own, far: own.graph.getConstantValue(far.constant), r"'constant' FLOAT \[4\] belongs to another graph"),
    (lambda own, far: own.graph.getSortedContiguousRegions(far.vector, [(0, 4)]), OTHER),
    (lambda own, far: own.graph.reorderToSimplify(own.vector, [far.vector]), OTHER),
    (lambda own, far: own.graph.findUnbroadcastTensor(far.vector), OTHER),
    (lambda own, far: own.graph.outputComputationGraph(io.StringIO(), Execute(far.compute_set)), "belongs to another graph"),
    (lambda own, far: own.graph.outputVertexGraph(io.StringIO(), Execute(far.compute_set)), "belongs to another graph"),
    (lambda own, far: concat([own.vector, far.vector]), "concat needs tensors of one graph"),
    (lambda own, far: append(own.matrix, far.vector), "concat needs tensors of one graph"),
    (lambda own, far: stack([own.vector, far.vector]), "stack needs tensors of one graph"),
    (lambda own, far: Copy(own.vector, far.vector), "Copy between tensors of two graphs"),
    (lambda own, far: Copy(far.source, own.vector), "<DataStream 'in' .*> belongs to another graph than 'vector'"),
    (lambda own, far: Copy(own.vector, far.sink), "<DataStream 'out' .*> belongs to another graph than 'vector'"),
    (lambda own, far: Copy(far.buffer, own.vector), "<RemoteBuffer 'buffer' .*> belongs to another graph than 'vector'"),
    (lambda own, far: Copy(own.buffer, own.vector, far.seed[0:1]), "<RemoteBuffer .*> belongs to another graph than 'seed'"),
    (lambda own, far: Call(far.takes, [own.vector]), "<HostFunction 'takes'> belongs to another graph than 'vector'"),
    (lambda own, far: Execute(far.compute_set, own.flag), "<ComputeSet 'fill'> belongs to another graph than the result"),
    (lambda own, far: setSeed(own.graph, far.seed, 0, own.sequence), "the seed of setSeed, 'seed' .*, belongs to another graph"),
    (lambda own, far: popops.add(own.graph, own.vector, far.vector, own.sequence), NAMED),
    (lambda own, far: popops.addInPlace(own.graph, own.vector, far.vector, own.sequence), NAMED),
    (lambda own, far: popnn.argMax(own.graph, far.matrix, own.sequence), "'matrix' .* belongs to another graph"),
    (lambda own, far: poputil.mapTensorLinearly(own.graph, far.vector), NAMED),
])  # fmt: skip
def test_a_call_is_given_what_is_of_its_graph(own, other, call, text):
    with pytest.raises(PoplarTypeError, match=text):
        call(own, other)


@pytest.mark.parametrize("call", [
    lambda own, far: own.graph.connect(own.vertex["x"], far.vector),
    lambda own, far: own.graph.addVertex(own.compute_set, Fill, {"x": far.vector}),
    lambda own, far: own.graph.addVertex(own.compute_set, Rows, {"rows": [own.vector, far.vector]}),
    lambda own, far: own.graph.addVertex(own.compute_set, Rows, {"rows": far.matrix}),
    lambda own, far: own.graph.add_vertices(own.compute_set, Fill, {"x": far.matrix}, 0),
])  # fmt: skip
def test_a_field_is_connected_to_tensors_of_its_graph(own, other, call):
    with pytest.raises(GraphConnectionError, match=r"field '\w+' .*: '(vector|matrix)' .* belongs to another graph"):
        call(own, other)


def counted(other):
    cycleCount(other.graph, other.sequence, 0)
    return other.sequence


@pytest.mark.parametrize(("program", "text"), [
    (lambda other: Copy(other.matrix[0], other.vector), r"<Copy made at {}> uses 'matrix' FLOAT \[4\] of another graph"),
    (lambda other: Copy(other.source, other.vector), r"<Copy made at {}> uses 'vector' FLOAT \[4\] of another graph"),
    (lambda other: Execute(other.compute_set), "<Execute made at {}> uses <ComputeSet 'fill'> of another graph"),
    (lambda other: Call(other.function), "<Call made at {0}> uses the function made at .*{0} of another graph"),
    (lambda other: Call(other.takes, [other.vector]), r"<Call made at {}> uses 'vector' FLOAT \[4\] of another graph"),
    (lambda other: Call(other.idle), "the rule of <Call made at {}> uses <HostFunction 'idle'> of another graph"),
    (lambda other: If(other.flag, Sequence()), r"<If made at {}> uses 'flag' BOOL \[\] of another graph"),
    (lambda other: PrintTensor(other.vector), r"<PrintTensor made at {}> uses 'vector' FLOAT \[4\] of another graph"),
    (lambda other: WriteUndef(other.vector), r"<WriteUndef made at {}> uses 'vector' FLOAT \[4\] of another graph"),
    (counted, r"<CycleCount made at {}> uses 'cycleCount' UNSIGNED_INT \[2\] of another graph"),
])  # fmt: skip
@pytest.mark.parametrize("way", [
    lambda graph, program: Engine(graph, program),
    lambda graph, program: compileGraph(graph, [Sequence(), Repeat(2, Sequence([program]))]),
    lambda graph, program: compileGraph(graph, Call(graph.addFunction(program))),
    lambda graph, program: compileGraph(graph.createVirtualGraph(4), program),
])  # fmt: skip
def test_an_engine_runs_programs_of_its_own_graph(own, other, program, text, way):
    with pytest.raises(ControlProgramError, match=text.format(f".*{HERE}") + ": an Engine's programs are of its own graph"):
        way(own.graph, program(other))


def test_a_virtual_graph_is_part_of_its_graph(own):
    virtual = own.graph.createVirtualGraph(4)
    x = virtual.addVariable(FLOAT, [4], "x")
    own.graph.setTileMapping(x, 5)
    for graph in (own.graph, virtual):
        assert compileGraph(graph, Sequence([Copy(own.vector, x), Copy(x, own.sink), Call(own.function)])).entries.tolist() == [0]
