"""Tutorial 3: writing vertices.

A *codelet* is the device code of a kind of vertex: a class whose annotations are its fields and whose `compute`
is what it does. A *vertex* is one use of it, on one tile, with its fields connected to elements of tensors. A
*compute set* is a group of vertices that run at the same time; the program runs it with `Execute`.

    pypoplar tutorial tut3_vertices

What to look at
- `compute` is Python that is translated and compiled for the simulated tile; lines that have no meaning there
  are refused when the codelet is added, with a caret under them.
- The four vertices read overlapping slices of v1, which is no race, and each writes an element of its own.
- Vertex i is on tile i, its input is not: what it lacks arrives in the exchange before the compute set.
- `setPerfEstimate` says how many cycles a vertex takes. Poplar's model needs it; here it is optional, since
  cycles are counted from the code as it runs.

Exercises
1. Let two vertices write v2[0] and read the message. Then let a vertex read v2 as well.
2. Take `setPerfEstimate` away and compare `engine.getReport().execution.steps` before and after.
3. Run the same with `Engine(graph, program, mode="interpret")` and a `print` in `compute`.
4. Put the class into a file of its own, `sum_codelets.py`, and add it with
   `graph.addCodelets("sum_codelets.py")`.
5. Write a codelet that gives the largest element of its input, and its position.
"""

import sys

from pypoplar import FLOAT, Engine, Graph, Input, IPUModel, Output, Vector, Vertex
from pypoplar.program import Copy, Execute, PrintTensor, Sequence


class SumVertex(Vertex):
    in_: Input[Vector[FLOAT]]  # "in" is a keyword of Python: the class has an underscore behind it, the graph has not
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for value in self.in_:
            total += value
        self.out = total


def main():
    device = IPUModel().createDevice()
    graph = Graph(device.getTarget())
    graph.addCodelets(SumVertex)

    v1 = graph.addVariable(FLOAT, [4], "v1")
    v2 = graph.addVariable(FLOAT, [4], "v2")
    for i in range(4):
        graph.setTileMapping(v1[i], i)
        graph.setTileMapping(v2[i], i)

    c1 = graph.addConstant(FLOAT, [4], [1.0, 1.5, 2.0, 2.5])
    graph.setTileMapping(c1, 0)
    program = Sequence([Copy(c1, v1)])

    computeSet = graph.addComputeSet("computeSet")
    for i in range(4):
        vertex = graph.addVertex(computeSet, "SumVertex")
        graph.connect(vertex["in"], v1.slice(i, 4))
        graph.connect(vertex["out"], v2[i])
        graph.setTileMapping(vertex, i)
        graph.setPerfEstimate(vertex, 20)

    program.add(Execute(computeSet))
    program.add(PrintTensor("v2", v2))

    engine = Engine(graph, program)
    engine.load(device)
    engine.setPrintStream(sys.stdout)
    print("Running program")
    engine.run(0)
    print("Program complete")


if __name__ == "__main__":
    main()
