"""What is large only by its numbers is answered by a result or a refusal, within 2 GB of address space."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space hold on Linux")

RUN = """
import json, resource, sys
import numpy as np
from pypoplar import *
from pypoplar import popnn, popops, poplin, poputil
from pypoplar.errors import PoplarError
from pypoplar.popnn import pooling
from pypoplar.program import *

resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
device = IPUModel().createDevice()

def variable(shape, type=FLOAT):
    x = graph.addVariable(type, shape, "x")
    poputil.mapTensorLinearly(graph, x)
    return x

def scalar():
    x = graph.addVariable(FLOAT, [1], "x")
    graph.setTileMapping(x, 0)
    return x

def run():
    engine = Engine(graph, prog)
    engine.loadAndRun(device)
    return engine

def changed(transform, change):
    for name, value in change.items():
        setattr(transform, name, [value])
    return transform

def field(**change):
    return changed(poplin.ConvParams.InputTransform(1), change)

def window(**change):
    return changed(poplin.ConvParams.OutputTransform(1), change)

def convolved(input=field(), kernel=field(), output=window()):
    params = poplin.ConvParams(FLOAT, FLOAT, 1, [16], [3], 4, 4, 1, input, kernel, output)
    x, weights = poplin.createInput(graph, params, "x"), poplin.createWeights(graph, params, "weights")
    y = poplin.convolution(graph, x, weights, params, False, prog)
    Engine(graph, prog)
    return y.shape()

def updated(input):
    params = poplin.ConvParams(FLOAT, FLOAT, 1, [16], [3], 4, 4, 1, input, field(), window(stride=10**8))
    deltas = variable([1, 4, *params.getOutputFieldShape()])
    return poplin.calculateWeightDeltas(graph, deltas, poplin.createInput(graph, params, "x"), params, prog).shape()

for name, text in json.load(sys.stdin).items():
    graph, prog = Graph(device), Sequence()
    for library in (popops, poplin, popnn):
        library.addCodelets(graph)
    *before, last = text.strip().splitlines()
    try:
        exec("\\n".join(before))
        answer = str(eval(last))
    except PoplarError as error:
        answer = f"{type(error).__name__}: {error}"
    print(json.dumps([name, answer]))
"""

# what is done, the last line being an expression, and how its value or the refusal begins
QUICK = {
    "a matrix of half a Bow": (
        "poplin.createMatMulInputLHS(graph, HALF, [16384, 16384], [16384, 16384]).shape()",
        "[16384, 16384]",
    ),
    "a matrix beyond a Bow": (
        "poplin.createMatMulInputLHS(graph, HALF, [32768, 32768], [32768, 32768]).shape()",
        "PoplibsError: A of a product would be HALF [1, 32768, 32768], which takes 2,147,483,648 bytes; got a target whose 1,472 "
        "tiles have 940,572,672 bytes in all",
    ),
    "an input of a convolution": (
        "poplin.createInput(graph, poplin.ConvParams(FLOAT, 1, [10**5, 10**5], [3, 3], 1, 1, 1)).shape()",
        "PoplibsError: the input of a convolution would be FLOAT [1, 1, 100000, 100000], which takes 40,000,000,000 bytes; got",
    ),
    "an input of a convolution that fits": (
        "poplin.createInput(graph, poplin.ConvParams(FLOAT, 1, [10**4, 10**4], [3, 3], 1, 1, 1)).shape()",
        "[1, 1, 10000, 10000]",
    ),
    "an output of a convolution that fits": (
        "poplin.createConvOutput(graph, poplin.ConvParams(HALF, 1, [10**4, 10**4], [1, 1], 1, 2, 1)).shape()",
        "[1, 2, 10000, 10000]",
    ),
    "weights of a convolution": (
        "poplin.createWeights(graph, poplin.ConvParams(FLOAT, 1, [9, 9], [3, 3], 10**5, 10**5, 1)).shape()",
        "PoplibsError: the weights of a convolution would be FLOAT [1, 100000, 100000, 3, 3], which takes",
    ),
    "a constant of one value": (
        """
c = graph.addConstant(FLOAT, [10**5, 10**5], 1.5, "c")
graph.setTileMapping(c, 0)
prog.add(Copy(c.flatten()[:1], scalar()))
run()
""",
        "GraphMemoryAllocationError: out of memory: 1 of 1472 tiles hold more than the 638,976 bytes of their memory",
    ),
    "initial values of a broadcast array": (
        """
x = graph.addVariable(FLOAT, [10**5, 10**5], "x")
graph.setTileMapping(x, 0)
graph.setInitialValue(x, np.broadcast_to(np.float32(3), (10**5, 10**5)))
prog.add(Copy(x.flatten()[:1], scalar()))
run()
""",
        "GraphMemoryAllocationError: out of memory: 1 of 1472 tiles hold more than the 638,976 bytes of their memory",
    ),
    "a remote buffer of 16 GB": (
        """
rows = graph.addRemoteBuffer("rows", FLOAT, 1 << 20, 1 << 12)
x = variable([1 << 20])
place = graph.addConstant(UNSIGNED_INT, [1], 4000)
graph.setTileMapping(place, 0)
graph.setInitialValue(x, np.arange(1 << 20))
prog.add(Sequence([Copy(x, rows, place), Copy(rows, x, place)]))
engine, row = run(), np.zeros(1 << 20, np.float32)
engine.copyFromRemoteBuffer("rows", row, 4000)
row[-2:].tolist()
""",
        "[1048574.0, 1048575.0]",
    ),
    "a pad by a constant": (
        "popops.pad(graph, scalar(), [1 << 35], [0], 1).shape()",
        "PoplibsError: popops.pad: the constant that is added would be FLOAT [34359738368], which takes",
    ),
    "a pad that is a view": (
        "popops.pad(scalar(), [1 << 35], [0], popops.padding.Type.EDGE).shape()",
        "[34359738369]",
    ),
    "zeros between inputs": (
        "convolved(field(dilation=10**8))",
        "PoplibsError: the output of a convolution would be FLOAT [1, 4, 1499999999], which takes",
    ),
    "zeros between inputs that a stride passes over": (
        "convolved(field(dilation=10**8), output=window(stride=10**8))",
        "[1, 4, 15]",
    ),
    "zeros around inputs": (
        "convolved(field(paddingLower=10**8))",
        "PoplibsError: the output of a convolution would be FLOAT [1, 4, 100000014], which takes 1,600,000,224 bytes; got",
    ),
    "zeros around inputs that a stride passes over": (
        "convolved(field(paddingLower=10**8), output=window(stride=10**6))",
        "[1, 4, 101]",
    ),
    "a dilated kernel on inputs between zeros": (
        "convolved(field(paddingLower=10**8, paddingUpper=10**8), field(dilation=10**8))",
        "[1, 4, 16]",
    ),
    "zeros around outputs": (
        "convolved(output=window(paddingLower=10**8))",
        "PoplibsError: the output of a convolution would be FLOAT [1, 4, 100000014], which takes",
    ),
    "weight deltas with zeros between inputs": ("updated(field(dilation=10**8))", "[1, 4, 4, 3]"),
    "a pool with padding": (
        """
params = pooling.PoolParams(popnn.PoolingType.MAX, [16], [3], [1], [10**8], [10**8], 4, 1, FLOAT)
pooling.pool(graph, params, variable([1, 4, 16]), prog).shape()
""",
        "PoplibsError: popnn.pooling.pool: the output would be FLOAT [1, 4, 200000014], which takes",
    ),
    "the best of many": (
        "popops.topK(graph, prog, variable([10**7]), popops.TopKParams(10**6, True, popops.SortOrder.DESCENDING)).shape()",
        "PoplibsError: popops.topK: k = 1,000,000 of 10,000,000 elements takes 1,173,750,720 comparisons in 294 steps, and at "
        "most 536,870,912 are built",
    ),
    "a reduction of a broadcast": (
        "popops.reduce(graph, scalar().broadcast(10**9, 0), FLOAT, [0], popops.ReduceParams(popops.Operation.ADD), prog).shape()",
        "PoplibsError: popops.reduce: what is reduced would be FLOAT [1000000000], which takes 4,000,000,000 bytes; got",
    ),
    "a sum of broadcasts": (
        "popops.add(graph, scalar().broadcast(10**9, 0), scalar(), prog).shape()",
        "PoplibsError: the result of an operation on elements would be FLOAT [1000000000], which takes",
    ),
}

LONG = {
    "zeros between inputs, many outputs": ("convolved(field(dilation=60_000))", "[1, 4, 899999]"),
    "a constant of one value that fits": (
        """
c = graph.addConstant(FLOAT, [10**8], 1.5, "c")
poputil.mapTensorLinearly(graph, c)
x = scalar()
graph.createHostRead("x", x)
prog.add(Copy(c[10**8 - 1 :], x))
run().readTensor("x").tolist()
""",
        "[1.5]",
    ),
    "initial values that fit": (
        """
x, y = variable([15 * 10**7]), scalar()
graph.setInitialValue(x, np.broadcast_to(np.float64(3), (15 * 10**7,)))
graph.createHostRead("y", y)
prog.add(Copy(x[-1:], y))
run().readTensor("y").tolist()
""",
        "[3.0]",
    ),
    "200,000 copies": (
        """
x = variable([400_000])
graph.createHostRead("x", x)
graph.setInitialValue(x, np.arange(400_000))
for number in range(200_000):
    prog.add(Copy(x[number], x[200_000 + number]))
run().readTensor("x")[-1]
""",
        "199999.0",
    ),
    "100,000 nested sequences": (
        """
x = graph.addVariable(FLOAT, [2], "x")
graph.setTileMapping(x, 0)
graph.setInitialValue(x, [1, 2])
graph.createHostRead("x", x)
prog = Copy(x[0], x[1])
for _ in range(100_000):
    prog = Sequence([prog])
run().readTensor("x").tolist()
""",
        "[1.0, 1.0]",
    ),
}


def answers_of(cases):
    """The value or refusal of each case, all in one process with little address space."""
    texts = json.dumps({name: text for name, (text, _) in cases.items()})
    ran = subprocess.run([sys.executable, "-c", RUN], input=texts, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return dict(map(json.loads, ran.stdout.splitlines()))


@pytest.fixture(scope="module")
def answers():
    return answers_of(QUICK)


@pytest.mark.parametrize("name", QUICK)
def test_what_is_large_by_its_numbers_is_answered_within_little_memory(answers, name):
    assert answers[name].startswith(QUICK[name][1])


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_what_takes_longer_is_answered_within_little_memory(name):
    assert answers_of({name: LONG[name]})[name].startswith(LONG[name][1])
