"""Executables of many kinds, made by the public calls."""

import functools
from collections.abc import Sequence as Row
from typing import Annotated, Literal

import numpy as np
from small_graphs import new_graph

from pypoplar import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    Aligned,
    Array,
    Executable,
    FloatingPointBehaviour,
    Graph,
    InOut,
    Input,
    IPUModel,
    MultiVertex,
    Output,
    Record,
    ReplicatedStreamMode,
    SupervisorVertex,
    SyncType,
    Tensor,
    Vector,
    VectorList,
    Vertex,
    assume,
    assume_count,
    assume_share,
    compileGraph,
    concat,
    cycleCount,
    cycleStamp,
    ipu,
    setFloatingPointBehaviour,
    setSeed,
)
from pypoplar.program import (
    AbortOnCondition,
    AssumeEqualAcrossReplicas,
    Call,
    Copy,
    CrossReplicaCopy,
    ErrorProgram,
    Execute,
    If,
    PrintTensor,
    Repeat,
    RepeatWhileFalse,
    RepeatWhileTrue,
    Sequence,
    Switch,
    Sync,
    WriteUndef,
)

FACTOR = 1.5


class Scale(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    factor: FLOAT
    offsets: Vector[FLOAT]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.y[i] = self.x[i] * self.factor * FACTOR
        self.y[0] += self.offsets[0]
        self.factor += 1.0


class CountDown(Vertex):
    n: InOut[INT]
    more: Output[BOOL]

    def compute(self) -> bool:
        self.n -= 1
        self.more = self.n > 0
        return self.n > 1


class SumRows(MultiVertex):
    rows: Input[VectorList[FLOAT]]
    totals: Output[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        for r in range(worker, len(self.rows), 6):
            total = 0.0
            for value in self.rows[r]:
                total += value
            self.totals[r] = total


class Narrow(SupervisorVertex):
    x: Input[Vector[FLOAT]]
    half: Output[Vector[HALF]]
    char: Output[Vector[CHAR]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.half[i] = HALF(self.x[i] * 0.1)
            self.char[i] = int(self.x[i])
        ipu.debug_print("narrowed", len(self.x))


class Noise(Vertex):
    out: Output[FLOAT]

    def compute(self) -> None:
        self.out = ipu.random_float()


class Touch(Vertex):
    x: InOut[Vector[FLOAT]]
    rows: Input[VectorList[FLOAT]]
    at: INT

    def compute(self) -> None:
        self.x[self.at] = self.rows[0][0] + 1.0


class Mark(Vertex):
    out: Output[FLOAT]

    def compute(self) -> None:
        self.out = 1.0


class Ray(Record):
    kind: CHAR
    hits: Array[INT, Literal[2]]


class Follow(Vertex):
    rays: InOut[Vector[Ray]]

    def compute(self) -> None:
        for ray in self.rays:
            ray.hits[0] += ray.kind


class Apart(Vertex, constraint=["elem(*x) != elem(*y)", "elem(**rows) != elem(*x)"]):
    x: Input[Annotated[Vector[FLOAT], Aligned(8)]]
    w: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    rows: Input[VectorList[FLOAT]]

    def compute(self) -> None:
        for i in range(len(self.y)):
            self.y[i] = self.x[i] + self.w[i]
        for row in self.rows:
            self.y[0] += row[0]


def spread(graph: Graph, tensor: Tensor, tiles: Row[int]) -> None:
    """Map the first dimension of a tensor over tiles, in order."""
    for i in range(tensor.dim(0)):
        graph.setTileMapping(tensor[i], tiles[i % len(tiles)])


def transfers() -> Executable:
    """Copies, two of them one exchange, streams, prints, handles, constants, initial values, remote buffers, a host function."""
    graph = new_graph()
    weights = graph.addVariable(FLOAT, [4, 6], "weights")
    spread(graph, weights, [0, 3, 7, 15])
    seed = graph.addConstant(FLOAT, [4], [1.0, 1.5, 2.0, 2.5], "seed")
    graph.setTileMapping(seed, 0)
    digits = graph.addVariable(INT, [10], "digits")
    graph.setTileMapping(digits, 7)
    graph.setInitialValue(weights, np.arange(24).reshape(4, 6))
    graph.setInitialValue(digits[2:4], [7, 8])
    graph.createHostWrite("weights-write", weights.transpose())
    graph.createHostRead("weights-read", weights)
    graph.createHostRead("digits", digits)
    inward = graph.addHostToDeviceFIFO("inward", INT, 10)
    outward = graph.addDeviceToHostFIFO("outward", FLOAT, 24)
    remote = graph.addRemoteBuffer("remote", FLOAT, 6, 3)
    row = graph.addVariable(UNSIGNED_INT, [2], "row")
    graph.setTileMapping(row, 2)
    graph.setInitialValue(row, [2, 0])
    double = graph.addHostFunction("double", [(FLOAT, 4)], [(FLOAT, 6)])
    first = Sequence(
        Copy(seed[0:3], weights.slice([1, 1], [2, 4]), name="part"),
        Copy(weights[0], weights[3], name="row"),
        Copy(inward, digits),
        PrintTensor("digits", digits),
        Copy(weights.transpose(), outward),
        Copy(remote, weights[1:3], row),
        Copy(weights[0], remote),
        Call(double, [seed], [weights[0]]),
        Sync(SyncType.INTERNAL),
    )
    second = Sequence(WriteUndef(digits), Copy(outward_of(weights), outward), Repeat(3, Copy(inward, digits)))
    return compileGraph(graph, [first, second], {"debug.instrument": "true"})


def outward_of(tensor: Tensor) -> Tensor:
    """Many small pieces, which become lists of places."""
    return tensor.reshape([6, 4]).transpose()


def vertices() -> Executable:
    """Vertices of all kinds, with plain fields, lists, gathers, estimates, prints and random numbers."""
    graph = new_graph()
    x = graph.addVariable(FLOAT, [8, 12], "x")
    spread(graph, x, range(8))
    y = graph.addVariable(FLOAT, [8, 12], "y")
    spread(graph, y, range(15, 7, -1))
    totals = graph.addVariable(FLOAT, [12], "totals")
    graph.setTileMapping(totals, 3)
    half = graph.addVariable(HALF, [12], "half")
    char = graph.addVariable(CHAR, [12], "char")
    noise = graph.addVariable(FLOAT, [16], "noise")
    spread(graph, noise, range(16))
    graph.setTileMapping(half, 5)
    graph.setTileMapping(char, 6)
    scale = graph.addComputeSet("scale")
    for i in range(8):
        for part in range(3):
            columns = slice(4 * part, 4 * part + 4)
            vertex = graph.addVertex(scale, Scale, {"x": x[i, columns], "y": y[i, columns], "factor": 1.0 + part})
            graph.setInitialValue(vertex["offsets"], [0.25 * i, 1.0])
            graph.setTileMapping(vertex, (i + part) % 16)
    graph.setPerfEstimate(vertex, 77, 5)
    mixed = graph.addComputeSet("mixed")
    summing = graph.addVertex(mixed, SumRows, {"rows": y.transpose(), "totals": totals})
    narrow = graph.addVertex(mixed, Narrow, {"x": y[2], "half": half, "char": char})
    graph.setTileMapping(summing, 3)
    graph.setTileMapping(narrow, 3)
    for i in range(16):
        graph.setTileMapping(graph.addVertex(mixed, Noise, {"out": noise[i]}), i)
    graph.createHostWrite("x", x)
    for name, tensor in (("y", y), ("totals", totals), ("half", half), ("char", char), ("noise", noise)):
        graph.createHostRead(name, tensor)
    start = graph.addConstant(UNSIGNED_INT, [2], [5, 6])
    graph.setTileMapping(start, 1)
    program = Sequence()
    setSeed(graph, start, 3, program)
    program.add(Repeat(2, Execute(scale)))
    program.add(Execute(mixed))
    return compileGraph(graph, program)


def shuffled() -> Executable:
    """Small pieces in no order, which many tiles receive alike: lists of places on both sides, fan-out."""
    graph = new_graph()
    order = [5, 2, 11, 7, 0, 13, 3, 9]
    x = graph.addVariable(FLOAT, [16], "x")
    spread(graph, x, [8, 9, 10])
    y = graph.addVariable(FLOAT, [4, 16], "y")
    spread(graph, y, [4, 5, 6, 7])
    pieces = concat([x[i : i + 1] for i in order])
    scale, whole = graph.addComputeSet("scale"), graph.addComputeSet("whole")
    for i in range(4):
        target = concat([y[i, j : j + 1] for j in reversed(order)])
        for compute_set, source, result in ((scale, pieces, target), (whole, x, y[i])):
            vertex = graph.addVertex(compute_set, Scale, {"x": source, "y": result, "factor": 1.0})
            graph.setInitialValue(vertex["offsets"], [0.5])
            graph.setTileMapping(vertex, 4 + i)
    graph.createHostWrite("x", x)
    graph.createHostWrite("pieces", pieces)
    graph.createHostRead("pieces", pieces)
    graph.createHostRead("y", y)
    back = Copy(pieces, concat([x[j : j + 1] for j in order]))
    return compileGraph(graph, [Sequence(Execute(whole), Execute(scale), Copy(y[1, 0:8], pieces), Execute(scale), back)])


def control() -> Executable:
    """Loops, branches, functions in functions, clocks, results of compute sets, errors."""
    graph = new_graph()
    n = graph.addVariable(INT, [1], "n")
    more = graph.addVariable(BOOL, [1], "more")
    agreed = graph.addVariable(BOOL, [1], "agreed")
    which = graph.addVariable(INT, [1], "which")
    values = graph.addVariable(FLOAT, [6], "values")
    for tile, tensor in enumerate((n, more, agreed, which, values)):
        graph.setTileMapping(tensor, 2 * tile)
    graph.setInitialValue(n, [5])
    graph.setInitialValue(which, [-2])
    constants = [graph.addConstant(FLOAT, [1], float(i)) for i in range(6)]
    for constant in constants:
        graph.setTileMapping(constant, 4)
    count = graph.addComputeSet("count")
    vertex = graph.addVertex(count, CountDown, {"n": n[0], "more": more[0]})
    graph.setTileMapping(vertex, 1)
    stream = graph.addHostToDeviceFIFO("n", INT, 1)
    step = graph.addFunction(Sequence(Execute(count, agreed), Sync(SyncType.INTERNAL)))
    again = graph.addFunction(Sequence(Call(step), Copy(stream, n)))
    first = Sequence(
        RepeatWhileTrue(Call(step), more, Copy(constants[1], values[0:1])),
        If(agreed, Copy(constants[2], values[1:2]), Copy(constants[3], values[1:2])),
        Switch(which, [(-2, Copy(constants[4], values[2:3])), (7, Copy(constants[5], values[2:3]))], Sync(SyncType.INTERNAL)),
        Repeat(3, Call(again)),
    )
    spent = cycleCount(graph, first, 5)
    now = cycleStamp(graph, first, 6)
    first.add(AbortOnCondition(agreed, "agreed"))
    second = Sequence()
    setFloatingPointBehaviour(graph, second, FloatingPointBehaviour())
    for program in (
        RepeatWhileFalse(Sync(SyncType.INTERNAL), which, Sync(SyncType.INTERNAL)),
        Call(again),
        ErrorProgram("stopped", values),
    ):
        second.add(program)
    graph.createHostRead("values", values)
    graph.createHostRead("spent", spent)
    graph.createHostRead("now", now)
    graph.createHostRead("n", n)
    return compileGraph(graph, [first, second])


def judged() -> Executable:
    """Races judged by what was touched."""
    graph = new_graph()
    x = graph.addVariable(FLOAT, [16], "x")
    spread(graph, x, range(4))
    rows = graph.addVariable(FLOAT, [4, 3], "rows")
    spread(graph, rows, range(8, 12))
    touch = graph.addComputeSet("touch")
    for i in range(4):
        vertex = graph.addVertex(touch, Touch, {"x": x, "rows": rows[:, 0:2], "at": 3 * i})
        graph.setTileMapping(vertex, i)
    mark = graph.addComputeSet("mark")
    graph.setTileMapping(graph.addVertex(mark, Mark, {"out": x[2]}), 0)
    graph.createHostWrite("rows", rows)
    graph.createHostRead("x", x)
    return compileGraph(graph, Sequence(Execute(touch), Execute(mark)), {"pypoplar.races": "elements"})


def several_ipus() -> Executable:
    """Exchange between IPUs in every phase, streams over all of them, a fan-out, values on the second."""
    model = IPUModel("tiny")
    model.numIPUs, model.tilesPerIPU = 2, 4
    graph = Graph(model.createDevice().getTarget())
    x = graph.addVariable(FLOAT, [16], "x")
    spread(graph, x, [6, 1, 4, 3])
    y = graph.addVariable(FLOAT, [4, 16], "y")
    spread(graph, y, [0, 7, 2, 5])
    n = graph.addVariable(INT, [1], "n")
    more, agreed = graph.addVariable(BOOL, [1], "more"), graph.addVariable(BOOL, [1], "agreed")
    for tile, tensor in ((5, n), (6, more), (7, agreed)):
        graph.setTileMapping(tensor, tile)
    graph.setInitialValue(n, [3])
    count, scale = graph.addComputeSet("count"), graph.addComputeSet("scale")
    graph.setTileMapping(graph.addVertex(count, CountDown, {"n": n[0], "more": more[0]}), 2)
    pieces = concat([x[i : i + 1] for i in (5, 2, 11, 7, 0, 13, 3, 9)])
    for i in range(4):
        vertex = graph.addVertex(scale, Scale, {"x": pieces, "y": y[i, 0:8], "factor": 1.0 + i})
        graph.setInitialValue(vertex["offsets"], [0.5])
        graph.setTileMapping(vertex, 2 * i)
    program = Sequence(
        RepeatWhileTrue(Execute(count, agreed), more, Copy(y[0, 0:8], y[1, 8:16])),
        Copy(graph.addHostToDeviceFIFO("in", FLOAT, 16), x),
        Execute(scale),
        Copy(x, y[3]),
        Copy(y, graph.addDeviceToHostFIFO("out", FLOAT, 64)),
    )
    cycleStamp(graph, program, 7)
    graph.createHostWrite("y", y.transpose())
    graph.createHostRead("y", y)
    return compileGraph(graph, program)


def nothing() -> Executable:
    """A graph without anything."""
    return compileGraph(new_graph(), [])


def in_place() -> Executable:
    """A vertex whose Input and Output are one tensor."""
    graph = new_graph()
    x = graph.addVariable(FLOAT, [6], "x")
    graph.setTileMapping(x, 1)
    compute_set = graph.addComputeSet("in place")
    vertex = graph.addVertex(compute_set, Scale, {"x": x, "y": x, "factor": 2.0})
    graph.setInitialValue(vertex["offsets"], [1.0])
    graph.setTileMapping(vertex, 2)
    graph.createHostWrite("x", x)
    graph.createHostRead("x", x)
    return compileGraph(graph, Execute(compute_set))


def records() -> Executable:
    """A vertex that sees bytes as records, gathered where they may begin."""
    graph = new_graph()
    x = graph.addVariable(CHAR, [25], "x")
    graph.setTileMapping(x, 2)
    compute_set = graph.addComputeSet("records")
    graph.setTileMapping(graph.addVertex(compute_set, Follow, {"rays": x[1:]}), 2)
    graph.createHostWrite("x", x)
    graph.createHostRead("x", x)
    return compileGraph(graph, Execute(compute_set))


def demands() -> Executable:
    """Fields that are demanded to be apart, one of which would lie in a row and where it may not begin."""
    graph = new_graph()
    x, y = graph.addVariable(FLOAT, [3, 5], "x"), graph.addVariable(FLOAT, [5], "y")
    graph.setTileMapping(x, 2)
    graph.setTileMapping(y, 2)
    compute_set = graph.addComputeSet("demands")
    graph.setTileMapping(graph.addVertex(compute_set, Apart, {"x": x[1], "w": y, "y": y, "rows": x}), 2)
    graph.createHostWrite("x", x)
    graph.createHostRead("y", y)
    return compileGraph(graph, Execute(compute_set))


def priced() -> Executable:
    """Control that data decide, as it is assumed, in a program that is never run."""
    graph = new_graph()
    n, more = graph.addVariable(INT, [1], "n"), graph.addVariable(BOOL, [1], "more")
    for tile, tensor in enumerate((n, more)):
        graph.setTileMapping(tensor, tile)
    count = graph.addComputeSet("count")
    graph.setTileMapping(graph.addVertex(count, CountDown, {"n": n[0], "more": more[0]}), 1)
    stream = graph.addHostToDeviceFIFO("n", INT, 1)
    loop, choice = RepeatWhileTrue(Execute(count), more, Copy(stream, n)), If(more, Copy(stream, n), Sync(SyncType.INTERNAL))
    program = Sequence(loop, choice, Switch(n, [(1, Sync(SyncType.INTERNAL))]))
    assumptions = (assume_count(loop, 3), assume_share(choice, 0.5), assume(n, 1))
    return compileGraph(graph, program, mode="cost", assumptions=assumptions)


def replicated() -> Executable:
    """Replicas that exchange tensors, with a stream that brings all the same, and values of each that the host writes."""
    model = IPUModel("tiny")
    model.numIPUs = 3
    graph = Graph(model.createDevice().getTarget(), 3)
    index = graph.addReplicationIndexConstant()
    x = graph.addVariable(INT, [4], "x")
    for tile, tensor in ((3, index), (15, x)):
        graph.setTileMapping(tensor, tile)
    graph.createHostWrite("x", graph.getNonReplicatedTensor(x))
    graph.createHostRead("x", x)
    graph.createHostRead("index", index)
    stream = graph.addHostToDeviceFIFO("in", INT, 4, ReplicatedStreamMode.BROADCAST)
    swap = CrossReplicaCopy(x, x, {0: 1, 1: 2, 2: 0}, "swap")
    program = Sequence(AssumeEqualAcrossReplicas(x[3]), If(x[3], Copy(stream, x), Sequence()), swap)
    return compileGraph(graph, program)


PROGRAMS = {
    program.__name__: functools.cache(program)
    for program in (
        transfers,
        vertices,
        shuffled,
        control,
        judged,
        several_ipus,
        nothing,
        in_place,
        records,
        demands,
        priced,
        replicated,
    )
}

RUN = [name for name in PROGRAMS if name != "priced"]  # those that are there to be run
