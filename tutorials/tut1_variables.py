"""Tutorial 1: programs and variables.

A Poplar program has three parts. A *graph* is built for a target and holds variables; every element of a
variable lives in the memory of one tile. A *program* says what happens to them, step by step. An *engine* is
the compiled pair: load it on a device and run it.

    pypoplar tutorial tut1_variables

What to look at
- `addVariable` gives a `Tensor`, which is a view: `v1[0:3]` and `v3.slice([1, 1], [2, 4])` copy nothing, they
  only say which elements are meant. `Copy` needs as many elements on both sides, not the same shape.
- `v2` is spread over four tiles, element by element. Nothing in the program changes because of it; the exchange
  does (exercise 3).
- A write handle and a read handle move data while no program runs; a stream moves it when the program says so,
  and takes the next piece of its buffer each time.

Exercises
1. Take the `writeTensor` away. What does the copied-back v3 hold, and why is it neither 0 nor an error? (What
   has never been written is NaN here. The option `{"pypoplar.uninitialised": "error"}` makes a codelet that
   reads it an error.)
2. Leave out the tile mapping of v4 and read the message.
3. Print `[(one.name, one.messages.tolist()) for one in engine.executable.exchanges]`. Which copy exchanges
   nothing, and why?
4. Copy from the stream four times instead of twice. What does the fourth copy bring?
"""

import sys

import numpy as np

from pypoplar import FLOAT, INT, Engine, Graph, IPUModel
from pypoplar.program import Copy, PrintTensor, Sequence


def main():
    device = IPUModel().createDevice()
    graph = Graph(device.getTarget())

    v1 = graph.addVariable(FLOAT, [4], "v1")
    v2 = graph.addVariable(FLOAT, [4], "v2")
    v3 = graph.addVariable(FLOAT, [4, 4], "v3")
    v4 = graph.addVariable(INT, [10], "v4")
    c1 = graph.addConstant(FLOAT, [4], [1.0, 1.5, 2.0, 2.5])

    graph.setTileMapping(v1, 0)
    for i in range(4):
        graph.setTileMapping(v2[i], i)
    graph.setTileMapping(v3, 0)
    graph.setTileMapping(v4, 0)
    graph.setTileMapping(c1, 0)

    program = Sequence()
    program.add(Copy(c1, v1))
    program.add(PrintTensor("v1-debug", v1))
    program.add(Copy(v1, v2))
    program.add(PrintTensor("v2-debug", v2))

    graph.createHostWrite("v3-write", v3)
    graph.createHostRead("v3-read", v3)
    program.add(Copy(v1[0:3], v3.slice([1, 1], [2, 4])))  # three elements into the middle of the second row

    stream = graph.addHostToDeviceFIFO("v4-input-stream", INT, 10)
    program.add(Copy(stream, v4))
    program.add(PrintTensor("v4-0", v4))
    program.add(Copy(stream, v4))
    program.add(PrintTensor("v4-1", v4))

    engine = Engine(graph, program)
    engine.load(device)
    engine.setPrintStream(sys.stdout)  # PrintTensor goes to stderr otherwise
    engine.writeTensor("v3-write", np.zeros((4, 4), np.float32))
    engine.connectStream("v4-input-stream", np.arange(30, dtype=np.int32))

    print("Running program")
    engine.run(0)
    print("Program complete")

    h3 = engine.readTensor("v3-read")
    print("\nh3 data:")
    for row in h3:
        print(" ", " ".join(f"{value:g}" for value in row))


if __name__ == "__main__":
    main()
