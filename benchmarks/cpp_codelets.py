"""Codelets in C++: adding a file of 300 lines, new and again, and how fast they run beside their twins in Python."""

from __future__ import annotations

import io
import statistics
import time
import uuid
from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row

CLASS = """
class Scale{number} : public Vertex {{
public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  float factor;
  int n;

  bool compute() {{
    float sum = 0;
    for (unsigned i = 0; i < in.size(); ++i) {{
      out[i] = in[i] * factor + 1.0f;
      sum += out[i];
    }}
    int k = 0;
    while (k < n) {{
      if (sum > 3.0f)
        out[k] = sum;
      else
        out[k] -= 1.0f;
      ++k;
    }}
    return true;
  }}
}};
"""
HEAD = "#include <poplar/Vertex.hpp>\nusing namespace poplar;\n"
NEW_FILES = 5


def text_of(classes: int) -> str:
    """A text that nobody has translated."""
    return HEAD + "".join(CLASS.format(number=number) for number in range(classes)) + f"// {uuid.uuid4().hex}\n"


def added(text: str) -> float:
    """Processor seconds to add the codelets of a text to a new graph."""
    from pypoplar import Graph, Target

    graph = Graph(Target.of_preset("bow"))
    begin = time.process_time()
    graph.addCodelets(io.StringIO(text))
    return time.process_time() - begin


def twin() -> Any:
    """The first class in Python."""
    from pypoplar import FLOAT, INT, Input, Output, Vector, Vertex

    class Scale0(Vertex):
        in_: Input[Vector[FLOAT]]
        out: Output[Vector[FLOAT]]
        factor: FLOAT
        n: INT

        def compute(self) -> bool:  # type: ignore[no-untyped-def,unused-ignore]
            sum = 0.0
            for i in range(len(self.in_)):
                self.out[i] = self.in_[i] * self.factor + 1.0
                sum += self.out[i]
            k = 0
            while k < self.n:
                if sum > 3.0:
                    self.out[k] = sum
                else:
                    self.out[k] -= 1.0
                k += 1
            return True

    return Scale0


def running(codelet: Any, tiles: int, elements: int) -> Any:
    """A loaded engine with a vertex of the codelet on each tile."""
    from pypoplar import FLOAT, Engine, Graph, IPUModel
    from pypoplar.program import Execute, Repeat

    device = IPUModel("bow").createDevice()
    graph = Graph(device.getTarget())
    graph.addCodelets(codelet)
    x, y = graph.addVariable(FLOAT, [tiles, elements], "x"), graph.addVariable(FLOAT, [tiles, elements], "y")
    scales = graph.addComputeSet("scales")
    for tile in range(tiles):
        fields = {"in": x[tile], "out": y[tile], "factor": 1.5, "n": elements}
        for part in (x[tile], y[tile], graph.addVertex(scales, "Scale0", fields)):
            graph.setTileMapping(part, tile)
    graph.createHostWrite("x", x)
    engine = Engine(graph, Repeat(10, Execute(scales)))
    engine.load(device)
    engine.writeTensor("x", np.zeros((tiles, elements), np.float32))
    engine.run()
    return engine


def seconds(engine: Any) -> float:
    begin = time.perf_counter()
    engine.run()
    return time.perf_counter() - begin


def measure(smoke: bool) -> list[Figure]:
    classes, rounds = (1, 1) if smoke else (11, 15)
    added(text_of(1))  # loads libclang
    new = statistics.median(added(text_of(classes)) for _ in range(1 if smoke else NEW_FILES))
    text = text_of(classes)
    added(text)
    again = statistics.median(added(text) for _ in range(rounds))
    tiles, elements = (2, 8) if smoke else (256, 1024)
    ours, theirs = running(io.StringIO(text_of(1)), tiles, elements), running(twin(), tiles, elements)
    ratio = statistics.median(seconds(ours) / seconds(theirs) for _ in range(rounds))
    return [
        Figure("addCodelets of 300 lines of C++, processor", new, "s", 0.5),
        Figure("  the same again, from the cache", again, "s", 0.005),
        Figure("a run of a codelet in C++ beside its twin in Python", ratio, "x", 1.02),
    ]


ROW = Row("cpp_codelets", measure)
