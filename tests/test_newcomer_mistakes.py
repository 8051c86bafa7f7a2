"""What newcomers from C++, NumPy or PyTorch get wrong: each is an error of ours that says what to write, at their line."""

import io
import sys
import traceback

import numpy as np
import pytest

import pypoplar
from pypoplar import (
    FLOAT,
    HALF,
    INT,
    Engine,
    Graph,
    InOut,
    Input,
    IPUModel,
    MissingMember,
    PoplarAttributeError,
    PoplarError,
    PoplarIndexError,
    PoplarTypeError,
    TensorShapeError,
    Vector,
    VectorList,
    Vertex,
    poplin,
    popnn,
    popops,
    poputil,
    program,
    testing,
)
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import is_ours


class Increase(Vertex):
    x: InOut[Vector[FLOAT]]
    values: Vector[FLOAT]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += 1.0


class First(Vertex):
    rows: InOut[VectorList[FLOAT]]

    def compute(self):
        self.rows[0][0] = 1.0


class Case:
    """What an expression of `MISTAKES` may name."""

    def __init__(self):
        self.device = IPUModel("tiny").createDevice()
        self.graph = Graph(self.device)
        self.x, self.y = (self.graph.addVariable(FLOAT, [8], name) for name in "xy")
        self.m = self.graph.addVariable(FLOAT, [2, 3], "m")
        self.i = self.graph.addVariable(INT, [], "i")
        for tensor in (self.x, self.y, self.m, self.i):
            self.graph.setTileMapping(tensor, 0)
        self.cs = self.graph.addComputeSet("cs")
        self.prog = Sequence()

    def vertex(self, codelet=Increase, **connections):
        return self.graph.addVertex(self.cs, codelet, connections)

    def engine(self, **keywords):
        self.graph.createHostWrite("m", self.m)
        self.graph.createHostRead("m", self.m)
        stream = self.graph.addHostToDeviceFIFO("in", FLOAT, 8)
        buffer = self.graph.addRemoteBuffer("buffer", FLOAT, 8)
        engine = Engine(self.graph, Sequence([Copy(stream, self.x), Copy(self.x, buffer)]), **keywords)
        engine.load(self.device)
        return engine


ARRAY = np.zeros((3, 2), np.float32)
VIEW = "a tensor is a view of device memory, without values here"
X = "'x' FLOAT [8]"
TRANSPOSED = "expected the shape [2, 3], got an array of shape [3, 2]; transpose it, or flatten() it"

MISTAKES = {  # as it is written: the error, and a part of what it says
    "Graph('bow')": (PoplarTypeError, "IPUModel().createDevice()"),
    "graph.addConstant(FLOAT, [2, 3], ARRAY)": (TensorShapeError, f"constant 'constant': {TRANSPOSED}"),
    "graph.setInitialValue(m, ARRAY)": (TensorShapeError, f"'m' FLOAT [2, 3]: {TRANSPOSED}"),
    "engine().writeTensor('m', ARRAY)": (ValueError, f"handle 'm': {TRANSPOSED}"),
    "engine().readTensor('m', ARRAY)": (ValueError, f"handle 'm': {TRANSPOSED}"),
    "engine().writeTensor('m', np.zeros((2, 3)))": (ValueError, "got float64; write array.astype(numpy.float32)"),
    "engine().connectStream('in', [1.0] * 8)": (ValueError, "got list; write numpy.array(values, numpy.float32)"),
    "engine().connectStream('in', np.zeros(8))": (ValueError, "got float64; write array.astype(numpy.float32)"),
    "engine().connectStream('in', lambda chunk: None)": (ValueError, "got function; connectStreamToCallback takes functions"),
    "engine().copyToRemoteBuffer('buffer', np.zeros(8))": (ValueError, "the name of a remote buffer is a string, got array("),
    "engine().printProfileSummary('profile.txt')": (PoplarTypeError, "to an open text file, got 'profile.txt'; write sys.stdout"),
    "engine().setPrintStream('prints.txt')": (PoplarTypeError, "writes to an open text file, got 'prints.txt'"),
    "engine().load(IPUModel())": (PoplarTypeError, "expected a Device, got IPUModel; its createDevice() makes one"),
    "engine(name=3)": (PoplarTypeError, "the name of an Engine is a string, got 3"),
    "Engine(graph, cs)": (PoplarTypeError, "got ComputeSet; Execute(computeSet) is a program"),
    "graph.setTileMapping(x, True)": (PoplarTypeError, f"a tile is a whole number, got True for {X}"),
    "graph.createVirtualGraph('0')": (PoplarTypeError, "whole numbers, got '0'; write [4, 5]"),
    "graph.cloneN(x, -1)": (PoplarTypeError, f"the number of clones of {X} is a whole number of at least 0, got -1"),
    "graph.cloneN(x, '2')": (PoplarTypeError, "got '2'"),
    "graph.addHostToDeviceFIFO('in', FLOAT, 8, {'bufferingDepth': '2'})": (PoplarTypeError, "options come after it"),
    "graph.addHostFunction('f', FLOAT, FLOAT)": (PoplarTypeError, "takes lists of (type, elements) pairs, got FLOAT"),
    "graph.outputVertexGraph('vertices.dot')": (PoplarTypeError, "writes to an open text file, got 'vertices.dot'"),
    "graph.outputComputationGraph('graph.dot')": (PoplarTypeError, "writes to an open text file, got 'graph.dot'"),
    "graph.hasCodelet(Increase)": (PoplarTypeError, "a codelet is asked for by its name, got"),
    "graph.addCodelets('codelets.cpp')": (OSError, "no file of codelets at 'codelets.cpp' (looked in"),
    "graph.addVertex(cs, Increase, x)": (PoplarTypeError, "connections are a dict or a list of pairs"),
    "graph.setFieldSize(vertex()['values'], '4')": (PoplarTypeError, "the size of field 'values' (FLOAT) of Increase"),
    "vertex(First)['rows']['a']": (PoplarTypeError, "is a whole number, got 'a'"),
    "Tensor([1, 2, 3])": (PoplarTypeError, "tensors are made by graphs: write graph.addVariable(FLOAT, [4], 'x')"),
    "x[[3, 1, 7]]": (PoplarTypeError, "got [3, 1, 7]; concat([t[i:i + 1] for i in ...]) has rows that are known now"),
    "x[np.array([3, 1])]": (PoplarTypeError, "popops.multiSlice takes a tensor of indices"),
    "x[m.rank]": (PoplarTypeError, "FLOAT [2, 3]>>; call it: rank()"),
    "x[x]": (PoplarTypeError, "popops.multiSlice and popops.dynamicSlice take what a tensor of indices says"),
    "x[0].broadcast(4, 0)": (PoplarIndexError, "of rank 0 has no dimension 0: reshape([1]) makes it a tensor of rank 1"),
    "x[True]": (PoplarTypeError, "a tensor is indexed by whole numbers and slices, got True"),
    "x.slice('a', 2)": (PoplarTypeError, "a tensor is indexed by whole numbers and slices, got 'a'"),
    "x.slices(2)": (PoplarTypeError, "slices takes one list; write slices([2])"),
    "m.transpose(1, 0)": (TensorShapeError, "use dimShuffle([1, 0])"),
    "x.broadcast(2.0)": (PoplarTypeError, "the count of broadcast is a whole number, got 2.0"),
    "x.upsample('2')": (PoplarTypeError, "the count of upsample is a whole number, got '2'"),
    "x.subSample(2.5)": (PoplarTypeError, "a stride is a whole number, got 2.5"),
    "x.flatten('C')": (PoplarTypeError, "a dimension is a whole number, got 'C'"),
    "x.reverse('0')": (PoplarTypeError, "a dimension is a whole number, got '0'"),
    "range(i)": (PoplarTypeError, f"range('i' INT []): {VIEW}"),
    "np.sum(x)": (PoplarTypeError, f"numpy.sum of {X}: {VIEW}; make a handle with graph.createHostRead"),
    "np.exp(x)": (PoplarTypeError, f"numpy.exp({X}): {VIEW}; compute it in a codelet"),
    "np.add(x, y)": (PoplarTypeError, f"numpy.add({X}, 'y' FLOAT [8]): {VIEW}"),
    "np.zeros(8) - x": (PoplarTypeError, f"an array of float64 [8] - {X}: {VIEW}; say popops.sub"),
    "np.zeros(8) < x": (PoplarTypeError, f"{X} > an array of float64 [8]: {VIEW}"),
    "PrintTensor(x, y)": (PoplarTypeError, "the title of PrintTensor is a string, got <Tensor 'y'"),
    "Abort(3)": (PoplarTypeError, "the message of Abort is a string, got 3"),
    "AbortOnCondition(i, 3)": (PoplarTypeError, "the message of AbortOnCondition is a string, got 3"),
    "ErrorProgram(3, x)": (PoplarTypeError, "the message of ErrorProgram is a string, got 3"),
    "Sequence([[Copy(x, y)]])": (PoplarTypeError, "write Sequence([a, b]) for several"),
    "Repeat(3, [Copy(x, y)])": (PoplarTypeError, "write Sequence([a, b]) for several"),
    "Repeat(i, Copy(x, y))": (PoplarTypeError, "got <Tensor 'i' INT []>; RepeatWhileTrue asks a tensor"),
    "Sync('GLOBAL')": (PoplarTypeError, "expected a SyncType such as SyncType.INTERNAL, got 'GLOBAL'"),
    "Vector[FLOAT, 3]": (
        PoplarTypeError,
        "write Vector[FLOAT]; layouts are not modelled, and an alignment is written",
    ),
    "Input[Vector[FLOAT], 'ONE_PTR']": (PoplarTypeError, "write Input[Vector[FLOAT]]; layouts"),
    "popops.add(x, y, graph, prog)": (PoplarTypeError, "popops.add: the first argument is the graph, got <Tensor 'x'"),
    "popops.add(graph, x, y, prog, {'a': 1})": (PoplarTypeError, "a debug name is a string, got {'a': 1}; options come after it"),
    "popops.add(graph, x, np.zeros(8), prog)": (PoplarTypeError, "graph.addConstant makes one of values"),
    "popops.addInPlace(graph, 1.0, x, prog)": (PoplarTypeError, "popops.addInPlace takes a tensor, got 1.0"),
    "popops.addWithOutput(graph, x, y, 1.0, prog)": (PoplarTypeError, "popops.addWithOutput takes a tensor, got 1.0"),
    "popops.scaledAddTo(graph, x, y, 'a', prog)": (PoplarTypeError, "scaleB is a number or a tensor, got 'a'"),
    "popops.scaledAddTo(graph, x, 1.0, 2.0, prog)": (PoplarTypeError, "popops.scaledAddTo takes a tensor, got 1.0"),
    "popops.addCodelets(prog)": (PoplarTypeError, "popops.addCodelets: the first argument is the graph"),
    "poplin.addCodelets(prog)": (PoplarTypeError, "poplin.addCodelets: the first argument is the graph"),
    "popnn.addCodelets(prog)": (PoplarTypeError, "popnn.addCodelets: the first argument is the graph"),
    "popnn.nonLinearity(graph, 'relu', x, prog)": (PoplarTypeError, "such as NonLinearityType.SIGMOID, got 'relu'"),
    "popnn.logSoftMax(graph, x, prog)": (PoplarAttributeError, "did you mean 'logSoftmax'"),
    "popops.scaleAddTo": (PoplarAttributeError, "did you mean 'scaledAddTo'?"),
    "poputil.mapTensorLinear": (PoplarAttributeError, "did you mean 'mapTensorLinearly'?"),
    "poplin.conv": (PoplarAttributeError, "pypoplar.poplin has no 'conv'"),
    "poputil.poplibs_error": (MissingMember, "PopLibs has poputil.poplibs_error, and pypoplar does not have it yet"),
    "poputil.mapTensorLinearly(x, graph)": (PoplarTypeError, "poputil.mapTensorLinearly: the first argument is the graph"),
    "poputil.mapTensorLinearly(graph, 'x')": (PoplarTypeError, "poputil.mapTensorLinearly takes a tensor, got 'x'"),
    "poputil.mapTensorLinearly(graph, x, '3', 1)": (PoplarTypeError, "minElementsPerTile is a whole number, got '3'"),
    "poputil.unflattenIndex(4, [2, 2])": (PoplarTypeError, "write unflattenIndex([2, 3], 4)"),
    "poputil.templateVertex(Increase, FLOAT)": (PoplarTypeError, "templateVertex takes the name of a codelet"),
    "testing.run_vertex(Increase, [1.0])": (PoplarTypeError, "a dict from names to values, got [1.0]"),
    "testing.assert_no_exchange(3)": (PoplarTypeError, "an Engine, an Executable or a Result, got 3"),
}


NAMES = {name: getattr(module, name) for module in (pypoplar, program) for name in module.__all__}
NAMES |= {"np": np, "poplin": poplin, "popnn": popnn, "popops": popops, "poputil": poputil, "testing": testing}
NAMES |= {"Increase": Increase, "First": First, "ARRAY": ARRAY}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_says_what_to_write(mistake):
    case = Case()
    error, text = MISTAKES[mistake]
    names = {**NAMES, **vars(case), "engine": case.engine, "vertex": case.vertex}
    with pytest.raises(PoplarError) as caught:
        eval(mistake, names)
    assert isinstance(caught.value, error)
    assert text in str(caught.value)
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert sum(map(is_ours, files)) <= 1


def test_arrays_whose_rows_are_those_of_the_tensor_are_taken_as_before():
    case = Case()
    for values in (np.arange(6.0), np.arange(6.0).reshape(2, 3), [[0, 1, 2], [3, 4, 5]], np.arange(6.0).reshape(2, 1, 3)):
        constant = case.graph.addConstant(FLOAT, [2, 3], values)
        np.testing.assert_array_equal(case.graph.getConstantValue(constant), np.arange(6.0).reshape(2, 3))
    case.graph.setInitialValue(case.x, np.arange(8.0).reshape(2, 4))
    assert case.graph.cloneN(case.x, 0).shape() == [0, 8]


@pytest.mark.parametrize("library", [popops, poplin, popnn, poputil])
def test_a_library_has_its_members_and_no_others(library):
    assert all(hasattr(library, name) for name in library.__all__)
    assert not hasattr(library, "nothing")
    assert not hasattr(library, "__nothing__")
    with pytest.raises(ImportError):
        exec(f"from {library.__name__} import nothing")


def test_numpy_functions_of_other_arrays_go_on(capsys):
    assert np.sum(np.ones(3)) == 3
    assert HALF.dtype == np.float16
    Case().engine().printProfileSummary(sys.stdout)
    assert capsys.readouterr().out
    stream = io.StringIO()
    Case().graph.outputVertexGraph(stream)
    assert stream.getvalue().startswith("digraph")
    assert Input[FLOAT] is not None
