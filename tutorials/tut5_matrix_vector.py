"""Tutorial 5: a matrix times a vector, one vertex for each row.

    pypoplar tutorial tut5_matrix_vector 40 50

What to look at
- Each vertex gets a row of the matrix, all of the vector, and one element of the result. Vertex i is on tile i.
- The data comes and goes through streams: `connectStream` takes the arrays, the program says when they are read
  or written.
- With `--cpp` the codelet is the one of `tut5_codelets.cpp`, as Poplar's programs have it. It computes and costs the
  same (and needs the extra `cpp`).
- The result is compared for equality: the codelet adds in the order of the loop, in float32, and so does the
  check.

Exercises
1. How many bytes does each tile receive before `mulCS`? (`engine.executable.exchanges`.) What would have to lie
   where for it to be none of the matrix?
2. A tile has six workers. How many of them work here, and what does that mean for the cycles?
3. Multiply 2000 x 50. What happens, and which line has to change?
4. Write the loop of `compute` with two totals, one of the even and one of the odd elements. Does the check
   still hold, and why?

Tutorial 6 does better on the first two points.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from pypoplar import FLOAT, Engine, Graph, Input, IPUModel, Output, Vector, Vertex, poputil
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


def buildMultiplyProgram(graph, matrix, vector, result):
    """The program that computes result = matrix times vector."""
    mulCS = graph.addComputeSet("mulCS")
    for row in range(matrix.dim(0)):
        vertex = graph.addVertex(mulCS, "DotProductVertex", {"a": matrix[row], "b": vector, "out": result[row]})
        graph.setTileMapping(vertex, row)
        graph.setPerfEstimate(vertex, 20)
    return Execute(mulCS)


def checkResult(matrix, vector, result):
    """Whether every element is what a loop in float32 gives; says so."""
    expected = np.zeros_like(result)
    for column in range(len(vector)):
        expected += matrix[:, column] * vector[column]
    for row in np.flatnonzero(expected != result):
        print(f"ERROR: output {row}: expected={expected[row]:g}, actual={result[row]:g}")
        return False
    print("Multiplication result OK")
    return True


def main(numRows=40, numCols=50, cpp=False):
    print(f"Multiplying matrix of size {numRows}x{numCols} by vector of size {numCols}")
    device = IPUModel().createDevice()

    print("Creating new graph object and compiling vertex program additions")
    graph = Graph(device.getTarget())
    graph.addCodelets(Path(__file__).with_name("tut5_codelets.cpp") if cpp else DotProductVertex)

    print("Constructing full compute graph and control program")
    matrix = graph.addVariable(FLOAT, [numRows, numCols], "matrix")
    inputVector = graph.addVariable(FLOAT, [numCols], "inputVector")
    outputVector = graph.addVariable(FLOAT, [numRows], "outputVector")
    for one in (matrix, inputVector, outputVector):
        poputil.mapTensorLinearly(graph, one)
    multiply = buildMultiplyProgram(graph, matrix, inputVector, outputVector)

    inStreamV = graph.addHostToDeviceFIFO("inputVector", FLOAT, numCols)
    inStreamM = graph.addHostToDeviceFIFO("inputMatrix", FLOAT, numCols * numRows)
    outStream = graph.addDeviceToHostFIFO("out", FLOAT, numRows)
    program = Sequence([Copy(inStreamV, inputVector), Copy(inStreamM, matrix), multiply, Copy(outputVector, outStream)])

    hostMatrix = np.outer(np.arange(numRows), np.arange(numCols)).astype(np.float32)
    hostInput = np.arange(numCols, dtype=np.float32)
    hostOutput = np.zeros(numRows, np.float32)
    engine = Engine(graph, program)
    engine.load(device)
    engine.connectStream("inputVector", hostInput)
    engine.connectStream("inputMatrix", hostMatrix)
    engine.connectStream("out", hostOutput)

    print("Running graph program to multiply matrix by vector")
    engine.run()
    return checkResult(hostMatrix, hostInput, hostOutput)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Multiply a matrix by a vector, one vertex for each row.")
    parser.add_argument("numRows", type=int, nargs="?", default=40)
    parser.add_argument("numCols", type=int, nargs="?", default=50)
    parser.add_argument("--cpp", action="store_true", help="take the codelet in C++")
    sys.exit(not main(**vars(parser.parse_args())))
