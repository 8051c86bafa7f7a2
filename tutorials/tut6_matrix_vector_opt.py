"""Tutorial 6: a matrix times a vector, split to fit the machine.

    pypoplar tutorial tut6_matrix_vector_opt 10000 1000 [--device model-ipu2]

Tutorial 5 has a vertex for each row: too few for all workers of all tiles, and each needs the whole vector.
Here the columns are cut into segments. A vertex multiplies one segment of one row, so it needs only that
segment of the vector; a second compute set adds up the partial sums of each row. How many segments are best is
estimated beforehand, by a little model of the machine's costs.

What to look at
- `estimateCycles` is the whole model: the busiest tile's waves of six workers, the bytes that the busiest tile
  receives, the same for the reduction. The estimate uses nothing but numbers that `Target` gives.
- The vertices of a segment are neighbours: a tile needs one segment of the vector, or two.
- "Tile average compute cycles (excluding idle threads)" in the summary is the mean over all tiles of the
  estimates given with `setPerfEstimate`; compare it with the compute cost that was estimated.

Exercises
1. Try other sizes. When is one segment best? When are there more segments than you would think?
2. Compare the estimated exchange cost with the exchange cycles of the step before `mulCS`. What does the model
   leave out?
3. Take both `setPerfEstimate` away: cycles are then counted from the codelets as they run, which are plain
   loops and no hand-written assembler. By how much do they differ, and which split is best now?
4. Run it for `--device model-ipu1`: fewer tiles.
"""

import argparse
import sys

import numpy as np

from pypoplar import FLOAT, Engine, Graph, Input, IPUModel, Output, Vector, Vertex
from pypoplar.program import Copy, Execute, Sequence


class DotProductVertex(Vertex):
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for i in range(len(self.a)):
            total += self.a[i] * self.b[i]
        self.out = total


class ReduceVertex(Vertex):
    in_: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for value in self.in_:
            total += value
        self.out = total


def ceilDiv(a, b):
    return -(-a // b)


def estimateCycles(target, numRows, numCols, split):
    """Cycles of a split: (total, compute, exchange, reduce exchange, reduce compute)."""
    tiles, workers = target.getNumTiles(), target.getNumWorkerContexts()
    bytesPerCycle = target.getExchangeBytesPerCycle()

    # A vertex takes 5 cycles to start and multiplies two elements in a cycle; workers come in waves of six.
    vertices = max(ceilDiv(numRows * split, tiles), 1)
    compute = ceilDiv(vertices, workers) * workers * (5 + (ceilDiv(numCols, split) + 1) // 2)
    # The busiest tile receives as many segments of the vector as its vertices belong to.
    exchange = ceilDiv(vertices, numRows) * ceilDiv(numCols, split) * 4 // bytesPerCycle
    # One vertex for each row of the result adds `split` partial sums, which it receives.
    reductions = max(ceilDiv(numRows, tiles), 1)
    reduceCompute = ceilDiv(reductions, workers) * workers * (5 + (split + 1) // 2)
    reduceExchange = reductions * split * 4 // bytesPerCycle
    total = compute + exchange + reduceExchange + reduceCompute
    return total, compute, exchange, reduceExchange, reduceCompute


def calcOptimalColAxisSplit(target, numRows, numCols):
    """The split of least cost, the first of several; prints it and the worst."""
    costs = {split: estimateCycles(target, numRows, numCols, split) for split in range(1, max(numCols, 2))}
    best = min(costs, key=lambda split: costs[split][0])
    total, compute, exchange, reduceExchange, reduceCompute = costs[best]
    print("Best split chosen:")
    print(
        f"colsAxisSplit={best}, total cost={total} (compute cost={compute}, exchange cost={exchange},"
        f" reduce exchange cost={reduceExchange}, reduce compute cost={reduceCompute})"
    )
    print(f"Worst cost seen: {max(cost[0] for cost in costs.values())}")
    return best


def buildMultiplyProgram(graph, matrix, vector, result):
    """Map everything to tiles and return the program that computes result = matrix times vector."""
    numRows, numCols = matrix.shape()
    tiles = graph.getTarget().getNumTiles()
    split = calcOptimalColAxisSplit(graph.getTarget(), numRows, numCols)
    partials = graph.addVariable(FLOAT, [numRows, split], "partials")

    # All tiles use the vector, so there is no good place for it: spread it.
    for column in range(numCols):
        graph.setTileMapping(vector[column], column * tiles // numCols)

    mulCS = graph.addComputeSet("mulCS")
    for segment in range(split):
        begin, end = segment * numCols // split, (segment + 1) * numCols // split
        for row in range(numRows):
            elements = matrix[row].slice(begin, end)
            vertex = graph.addVertex(
                mulCS, "DotProductVertex", {"a": elements, "b": vector.slice(begin, end), "out": partials[row][segment]}
            )
            tile = (segment * numRows + row) * tiles // (split * numRows)
            graph.setTileMapping(vertex, tile)
            graph.setTileMapping(elements, tile)
            graph.setTileMapping(partials[row][segment], tile)
            graph.setPerfEstimate(vertex, 5 + (end - begin + 1) // 2)

    reduceCS = graph.addComputeSet("reduceCS")
    for row in range(numRows):
        vertex = graph.addVertex(reduceCS, "ReduceVertex", {"in": partials[row], "out": result[row]})
        graph.setTileMapping(vertex, row * tiles // numRows)
        graph.setTileMapping(result[row], row * tiles // numRows)
        graph.setPerfEstimate(vertex, 5 + (split + 1) // 2)
    return Sequence([Execute(mulCS), Execute(reduceCS)])


def checkResult(matrix, vector, result):
    """Whether every element is within 1e-5 of the exact product; says so."""
    expected = matrix.astype(np.float64) @ vector
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(expected == result, 0.0, np.abs(1 - expected / result))
    worst = int(error.argmax())
    if not error[worst] <= 1e-5:
        print(f"ERROR: output {worst}: expected={expected[worst]:g}, actual={result[worst]:g}, relative error={error[worst]:g}")
        return False
    print("Multiplication result OK")
    return True


def main(numRows, numCols, device="model-ipu2"):
    print(f"Device {device}")
    print(f"Multiplying matrix of size {numRows}x{numCols} by vector of size {numCols}")
    print("Constructing compute graph and control program")
    model = IPUModel(device.removeprefix("model-"))
    model.minIPUSyncDelay = 0  # as simple an exchange as the model can have
    model.relativeSyncDelay = IPUModel.RelativeSyncDelayType.NO_DELAY
    simulated = model.createDevice()
    graph = Graph(simulated)
    graph.addCodelets(DotProductVertex, ReduceVertex)

    matrix = graph.addVariable(FLOAT, [numRows, numCols], "matrix")
    inputVector = graph.addVariable(FLOAT, [numCols], "inputVector")
    outputVector = graph.addVariable(FLOAT, [numRows], "outputVector")
    multiply = buildMultiplyProgram(graph, matrix, inputVector, outputVector)

    inStreamV = graph.addHostToDeviceFIFO("inputVector", FLOAT, numCols)
    inStreamM = graph.addHostToDeviceFIFO("inputMatrix", FLOAT, numCols * numRows)
    outStream = graph.addDeviceToHostFIFO("out", FLOAT, numRows)
    program = Sequence([Copy(inStreamV, inputVector), Copy(inStreamM, matrix), multiply, Copy(outputVector, outStream)])

    hostInput = np.arange(numCols, dtype=np.float32)
    hostMatrix = np.arange(numRows, dtype=np.float32)[:, np.newaxis] * hostInput
    hostOutput = np.zeros(numRows, np.float32)
    engine = Engine(graph, program)
    engine.load(simulated)
    engine.connectStream("inputVector", hostInput)
    engine.connectStream("inputMatrix", hostMatrix)
    engine.connectStream("out", hostOutput)

    print("Running graph program to multiply matrix by vector")
    engine.run()
    if not checkResult(hostMatrix, hostInput, hostOutput):
        return 1
    engine.printProfileSummary(sys.stdout, {"showExecutionSteps": "true"})
    return 0


def size(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Multiply a matrix by a vector on a simulated IPU.")
    parser.add_argument("numRows", type=size, nargs="?", default=10000)
    parser.add_argument("numCols", type=size, nargs="?", default=1000)
    parser.add_argument("--device", choices=("model-ipu1", "model-ipu2", "model-bow"), default="model-ipu2")
    arguments = parser.parse_args()
    sys.exit(main(arguments.numRows, arguments.numCols, arguments.device))
