"""Tutorial 2: library operations and transposed views.

PopLibs has the operations that most programs need. A library call adds what it needs to the graph and to the
end of the program that it is given, and returns the tensor of the result.

    pypoplar tutorial tut2_operations

What to look at
- `popops.addCodelets(graph)` makes the library's device code known to the graph; each library needs its own
  call once.
- `popops.add` is called three times on the same program. Its result has a tile mapping already: that of an
  operand.
- `v2.transpose()` is a view like any other. v2 is mapped so that v2.transpose() lies on the tiles of v1,
  element by element: the third addition exchanges nothing, the first one does.

Exercises
1. Print `[(one.name, int(one.bytes_sent.sum())) for one in engine.executable.exchanges]` and find the additions
   in it.
2. Map v2 as v1 is mapped. Which addition is free of exchange now?
3. Add a row of two elements to v1. What shape does the row need, and how is it repeated?
4. Take `popops.addInPlace(graph, v1, v2, program)`. What changes for the additions after it?
"""

import sys

from pypoplar import FLOAT, Engine, Graph, IPUModel, popops
from pypoplar.program import Copy, PrintTensor, Sequence


def main():
    device = IPUModel().createDevice()
    graph = Graph(device.getTarget())
    popops.addCodelets(graph)

    v1 = graph.addVariable(FLOAT, [2, 2], "v1")
    v2 = graph.addVariable(FLOAT, [2, 2], "v2")
    for i in range(2):
        for j in range(2):
            graph.setTileMapping(v1[i][j], i * 2 + j)
            graph.setTileMapping(v2[i][j], j * 2 + i)

    c1 = graph.addConstant(FLOAT, [4], [1.0, 1.5, 2.0, 2.5])
    c2 = graph.addConstant(FLOAT, [4], [4.0, 3.0, 2.0, 1.0])
    graph.setTileMapping(c1, 0)
    graph.setTileMapping(c2, 0)
    program = Sequence([Copy(c1, v1.flatten()), Copy(c2, v2.flatten())])

    v3 = popops.add(graph, v1, v2, program, "Add")
    program.add(PrintTensor("v3", v3))

    v4 = popops.add(graph, v3, v2, program, "Add")
    program.add(PrintTensor("v4", v4))

    v5 = popops.add(graph, v1, v2.transpose(), program, "Add")
    program.add(PrintTensor("v5", v5))

    engine = Engine(graph, program)
    engine.load(device)
    engine.setPrintStream(sys.stdout)
    print("Running program")
    engine.run(0)
    print("Program complete")


if __name__ == "__main__":
    main()
