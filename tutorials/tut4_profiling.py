"""Tutorial 4: what a program costs.

Two matrix multiplications and what they cost: memory, cycles and bytes, as a summary, as an object to ask, and
message by message.

    pypoplar tutorial tut4_profiling [rows inner columns last]

The default is m1 of 900 x 600 times m2 of 600 x 300, times m3 of 300 x 200.

What to look at
- "Memory Usage": how much of the tiles' memory is used, by what, and whether one tile is fuller than the
  others.
- "Execution": the cycles in all, and where the mean tile spends them: computing, exchanging, waiting for the
  others.
- The execution steps: which belong to m4, which to m5. The exchange before a multiplication brings each tile
  its parts of both matrices.
- `engine.getReport()` has the same as an object, under the names that PopVision's libpva uses.
- `engine.executable.exchanges` lists every message: who sends which variable's bytes to whom.

Exercises
1. What part of the tiles' memory is used? What part of the cycles is exchange?
2. Try 1600 700 300 200 and compare the summaries. What grows with the first matrix, what does not?
3. Create m1 with `poplin.createMatMulInputLHS` and m2 with `createMatMulInputRHS`. Which exchange gets smaller?
4. Try 40000 12000 300 200 with plain linear mappings. Read the message, and look at its `report`. Which tiles
   are over, and by what?
5. Set the option `{"partialsType": "half"}`... and read what poplin says about options that it does not have.
"""

import argparse
import sys

from pypoplar import FLOAT, Engine, Graph, IPUModel, poplin, popops, poputil
from pypoplar.program import Sequence


def busiest(exchanges, count=5):
    """The exchanges that move most, as lines of text."""
    order = sorted((one for one in exchanges if len(one.messages)), key=lambda one: -int(one.bytes_received.sum()))
    for one in order[:count]:
        received = one.bytes_received
        yield (
            f"  {one.name} ({one.phase}): {len(one.messages):,} messages, {int(received.sum()):,} bytes received,"
            f" at most {int(received.max()):,} by a tile"
        )


def main(rows=900, inner=600, columns=300, last=200):
    device = IPUModel().createDevice()
    graph = Graph(device.getTarget())
    popops.addCodelets(graph)
    poplin.addCodelets(graph)

    m1 = graph.addVariable(FLOAT, [rows, inner], "m1")
    m2 = graph.addVariable(FLOAT, [inner, columns], "m2")
    m3 = graph.addVariable(FLOAT, [columns, last], "m3")
    for one in (m1, m2, m3):
        poputil.mapTensorLinearly(graph, one)

    program = Sequence()
    m4 = poplin.matMul(graph, m1, m2, program, "m4")
    poplin.matMul(graph, m4, m3, program, "m5")

    engine = Engine(graph, program, {"debug.retainDebugInformation": "true"})
    engine.load(device)
    print("Running program")
    engine.run(0)
    print("Program complete")

    engine.printProfileSummary(sys.stdout, {"showExecutionSteps": "true"})

    report = engine.getReport()
    print("\nExample information from the report:")
    print(f"  Number of compute sets: {report.compilation.graph.numComputeSets}")
    print(f"  Number of tiles on target: {report.compilation.target.numTiles}")
    print(f"  Cycles: {report.execution.totalCycles.total:,}")
    print(f"  Version of pypoplar used: {report.poplarVersion.string}")

    print("\nThe largest exchanges:")
    for line in busiest(engine.executable.exchanges):
        print(line)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Multiply three matrices, and see what it costs.")
    for name, size in (("rows", 900), ("inner", 600), ("columns", 300), ("last", 200)):
        parser.add_argument(name, type=int, nargs="?", default=size)
    main(**vars(parser.parse_args()))
