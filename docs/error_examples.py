"""What raises each error, and its message: the examples of docs/errors.md, which are run when that page is made."""

from __future__ import annotations

import linecache
from typing import Any

from pypoplar import errors

BEGINNING = """\
from pypoplar import *
from pypoplar.program import *

device = IPUModel("tiny").createDevice()
graph = Graph(device)
x = graph.addVariable(FLOAT, [8], "x")
graph.setTileMapping(x, 0)
graph.setInitialValue(x, 8 * [1.0])
step = graph.addComputeSet("step")


class Add(Vertex):
    x: InOut[Vector[FLOAT]]
    by: FLOAT

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += self.by


def vertex(codelet, **fields):
    graph.setTileMapping(graph.addVertex(step, codelet, fields), 0)


def run(program, options={}):
    Engine(graph, program, options, mode="interpret").loadAndRun(device)
"""
EXAMPLES: dict[str, str] = {
    "GraphConnectionError": """\
vertex(Add, x=x)
run(Execute(step))
""",
    "MemoryElemConstraintsError": """\
class AddTo(Vertex, constraint="elem(*x) != elem(*y)"):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.y[i] += self.x[i]


vertex(AddTo, x=x[0:4], y=x[2:6])
run(Execute(step))
""",
    "GraphCycleError": """\
vertex(Add, x=x[0:5], by=1.0)
vertex(Add, x=x[4:8], by=1.0)
run(Execute(step))
""",
    "AtomicStoreError": """\
class Fill(Vertex):
    out: Output[HALF]

    def compute(self):
        self.out = 1.0


halves = graph.addVariable(HALF, [2], "halves")
graph.setTileMapping(halves, 0)
for i in range(2):
    vertex(Fill, out=halves[i])
run(Execute(step))
""",
    "GraphMemoryAllocationError": """\
large = graph.addVariable(FLOAT, [200_000], "large")
graph.setTileMapping(large, 3)
run(Copy(large, graph.clone(large)))
""",
    "PoplarMemoryError": "graph.getTileMapping(x.broadcast(1 << 45, 0).reverse(0))\n",
    "InvalidTileMapping": "graph.setTileMapping(x, 16)\n",
    "InvalidOption": 'run(Sequence([]), {"pypoplar.thread": 2})\n',
    "UnknownField": "vertex(Add, x=x, to=1.0)\n",
    "UnknownVertexType": 'vertex("Ad", x=x)\n',
    "UnknownHandle": 'Engine(graph, Sequence([])).readTensor("x")\n',
    "PoplarIndexError": "x[8]\n",
    "PoplarTypeError": "Copy(x, [1.0, 2.0])\n",
    "PoplarAttributeError": "x.dtype\n",
    "TypeNotSupportedError": "graph.addVariable(DOUBLE, [4])\n",
    "TensorShapeError": "x.reshape([3, 3])\n",
    "TensorWriteError": "Copy(x, x[0:1].broadcast(8, 0))\n",
    "TensorIOStateError": """\
graph.createHostRead("result", x[0:4])
graph.createHostRead("result", x[4:8])
""",
    "CodeletError": """\
class Sort(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        self.x.sort()


vertex(Sort, x=x)
""",
    "CodeletCompileError": 'graph.addCodelets("codelets.cpp", compileFlags="-DSIZE=4 -lm")\n',
    "ControlProgramError": "Repeat(-1, Sequence([]))\n",
    "StreamConnectionError": 'run(Copy(graph.addHostToDeviceFIFO("in", FLOAT, 8), x))\n',
    "StreamMemoryAllocationError": 'graph.addHostToDeviceFIFO("in", FLOAT, 1 << 28)\n',
    "FileLoadError": 'Executable.load("program.exe")\n',
    "MissingFeature": """\
from pypoplar import poputil

poputil.createVariableMetadataTensor(graph, None, 0)
""",
    "MissingMember": """\
from pypoplar import poputil

poputil.poplibs_error
""",
    "ApplicationRuntimeError": 'run(Abort("no more data"))\n',
    "CodeletRuntimeError": """\
class Root(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        ipu.check(self.x > 2.0, "too small")


vertex(Root, x=x[0])
run(Execute(step))
""",
    "CodeletIndexError": """\
class Last(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        self.x[len(self.x)] = 0.0


vertex(Last, x=x)
run(Execute(step))
""",
    "CodeletArithmeticError": """\
class Share(Vertex):
    number: INT
    out: Output[FLOAT]

    def compute(self):
        self.out = FLOAT(100 // self.number)


vertex(Share, number=0, out=x[0])
run(Execute(step))
""",
    "CycleLimitError": """\
class Halve(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        while self.x != 0.1:
            self.x *= 0.5


vertex(Halve, x=x[0])
run(Execute(step), {"pypoplar.cycle_limit": 10_000})
""",
    "UninitialisedReadError": """\
fresh = graph.addVariable(FLOAT, [8], "fresh")
graph.setTileMapping(fresh, 0)
vertex(Add, x=fresh, by=1.0)
run(Execute(step), {"pypoplar.uninitialised": "error"})
""",
}


def message(name: str) -> str:
    """What the error of an example says; another error, or none, goes on to whoever makes the page."""
    text = f"{BEGINNING}\n\n{EXAMPLES[name]}"
    file = f"program_{name}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": file.removesuffix(".py"), "__file__": file}
    try:
        exec(compile(text, file, "exec"), names)
    except errors.PoplarError as error:
        if type(error).__name__ == name:
            return str(error).replace(file, "program.py")
        raise
    raise AssertionError(f"{name}: nothing was raised")


def sections() -> str:
    """A section for each error, with its example and the message."""
    parts = [f"### {name}\n\n```py\n{text}```\n\n```text\n{message(name)}\n```" for name, text in EXAMPLES.items()]
    return "\n\n".join(parts)
