"""Tutorial 4: what a program costs.

Two matrix multiplications and what they cost: memory, cycles and bytes, as a summary, as a profile in a file, as a
page to look at, and message by message. And what happens when memory does not suffice.

    pypoplar tutorial tut4_profiling [rows inner columns last] [--summary FILE] [--report DIRECTORY]
    pypoplar tutorial tut4_profiling --out-of-memory [--report DIRECTORY]

The default is m1 of 900 x 600 times m2 of 600 x 300, times m3 of 300 x 200.

What to look at
- "Memory Usage": how much of the tiles' memory is used, by what, and whether one tile is fuller than the
  others. "Variable Storage Liveness": which variables always need their memory, and which only for some steps.
- "Execution": the cycles in all, and where the mean tile spends them: computing, exchanging, waiting for the
  others. The floating-point operations, and what part of the machine's peak that is.
- The execution steps: which belong to m4, which to m5. The exchange before a multiplication brings each tile
  its parts of both matrices.
- `engine.getReport()` has the same as an object, under the names that PopVision's libpva uses. In a notebook it is
  shown as a small picture; so are tensors.
- With `--report DIRECTORY` the engine writes a profile there: the options `autoReport.all` and
  `autoReport.directory` do that. They may also come from the environment, for any program:

      POPLAR_ENGINE_OPTIONS='{"autoReport.all": "true", "autoReport.directory": "report"}' python program.py

  `pva.openReport` reads it, and `pypoplar report DIRECTORY` makes a page of it for your browser.
- `engine.executable.exchanges` lists every message: who sends which variable's bytes to whom.

Exercises
1. What part of the tiles' memory is used? What part of the cycles is exchange?
2. Run it with `--report small`, and with `1600 700 300 200 --report large`. Compare the two with
   `pypoplar report small large`. What grows with the first matrix, what does not?
3. Create m1 with `poplin.createMatMulInputLHS` and m2 with `createMatMulInputRHS`. What becomes of the exchange before
   m4, and of the memory?
4. Run it with `--out-of-memory`. By how much are the fullest tiles over, and what fills them? Is there a
   size of m1 between the two that just fits?
5. Give `matMul` the option `{"partialType": "half"}` and read the message; then the option that it names, with the
   value `"double"`.
"""

import argparse
import sys
from pathlib import Path

from pypoplar import FLOAT, Engine, Graph, GraphMemoryAllocationError, IPUModel, poplin, popops, poputil, pva
from pypoplar.program import Sequence

SUMMARY = {"showExecutionSteps": "true", "showVarStorage": "true"}
TOO_LARGE = (10500, 8700, 300, 200)


def busiest(exchanges, count=5):
    """The exchanges that move most, as lines of text."""
    order = sorted((one for one in exchanges if len(one.messages)), key=lambda one: -int(one.bytes_received.sum()))
    for one in order[:count]:
        received = one.bytes_received
        yield (
            f"  {one.name} ({one.phase}): {len(one.messages):,} messages, {int(received.sum()):,} bytes received,"
            f" at most {int(received.max()):,} by a tile"
        )


def fullest(report, count=3):
    """The tiles that hold most, and what, as lines of text."""
    order = sorted(report.compilation.tiles, key=lambda one: -one.memory.total.includingGaps)
    for tile in order[:count]:
        parts = sorted(tile.memory.category.items(), key=lambda one: -one[1])[:3]
        largest = ", ".join(f"{name.replace('_', ' ')} {size:,}" for name, size in parts)
        yield f"  tile {tile.number:,}: {tile.memory.total.includingGaps:,} bytes: {largest}"


def engine_options(directory):
    options = {"debug.retainDebugInformation": "true", "profiler.includeFlopEstimates": "true"}
    if directory is not None:
        options |= {"autoReport.all": "true", "autoReport.directory": str(directory)}
    return options


def make_program(rows, inner, columns, last):
    """The device, the graph and the program of two multiplications."""
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
    return device, graph, program


def profile(rows, inner, columns, last, directory=None, summary=None):
    device, graph, program = make_program(rows, inner, columns, last)
    engine = Engine(graph, program, engine_options(directory))
    engine.load(device)
    print("Running program")
    engine.run(0)
    print("Program complete")

    if summary is None:
        engine.printProfileSummary(sys.stdout, SUMMARY)
    else:
        with summary.open("w", encoding="utf-8") as stream:
            engine.printProfileSummary(stream, SUMMARY)
        print(f"The summary is in {summary}")

    report = engine.getReport() if directory is None else pva.openReport(directory / "profile.pop")
    print("\nExample information from the report:" if directory is None else "\nExample information from profile:")
    print(f"  Number of compute sets: {report.compilation.graph.numComputeSets}")
    print(f"  Number of tiles on target: {report.compilation.target.numTiles}")
    print(f"  Cycles: {report.execution.totalCycles.total:,}")
    print(f"  Version of pypoplar used: {report.poplarVersion.string}")

    print("\nThe largest exchanges:")
    for line in busiest(engine.executable.exchanges):
        print(line)
    if directory is not None:
        print(f"\nThe profile is in {directory}; make a page of it with: pypoplar report {directory}")


def run_out_of_memory(directory=None):
    """Matrices that do not fit. The error has the report of what memory was needed, and the profile is written too."""
    _, graph, program = make_program(*TOO_LARGE)
    try:
        Engine(graph, program, engine_options(directory))
    except GraphMemoryAllocationError as error:
        print(str(error).partition(";")[0])
        print("\nThe fullest tiles:")
        for line in fullest(error.report):
            print(line)
        if directory is not None:
            print(f"\nProfile saved to: {directory / 'profile.pop'}; make a page of it with: pypoplar report {directory}")
    else:
        print("they fit")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Multiply three matrices, and see what it costs.")
    for name, size in (("rows", 900), ("inner", 600), ("columns", 300), ("last", 200)):
        parser.add_argument(name, type=int, nargs="?", default=size)
    parser.add_argument("--summary", type=Path, metavar="FILE", help="write the summary to a file")
    parser.add_argument("--report", type=Path, metavar="DIRECTORY", help="write a profile there")
    parser.add_argument("--out-of-memory", action="store_true", help="multiply matrices that do not fit")
    chosen = parser.parse_args()
    if chosen.out_of_memory:
        run_out_of_memory(chosen.report)
    else:
        profile(chosen.rows, chosen.inner, chosen.columns, chosen.last, chosen.report, chosen.summary)
