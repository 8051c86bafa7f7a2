"""Programs for `tests/engine/test_concurrency.py` that need a process of their own.

python concurrent_programs.py NAME
"""

import gc
import os
import sys
import threading
import time
import traceback
from unittest.mock import patch

import numpy as np
from engine_builder import Add, Bench

from pypoplar import FLOAT, Engine, Executable, Graph, Input, IPUModel, Output, Vector, Vertex, compileGraph
from pypoplar.host_code import machine
from pypoplar.program import Execute, Repeat


class Scale(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.y[i] = 2.0 * self.x[i]


class Negate(Vertex):
    """Nothing has compiled it before the process forks."""

    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            self.y[i] = -self.x[i]


def wide(codelet: type[Vertex], length: int = 64) -> Executable:
    """A program on all tiles of a Bow, large enough for several threads."""
    graph = Graph(IPUModel().createDevice())
    x, y = (graph.addVariable(FLOAT, [1472, length], name) for name in "xy")
    for tensor in (x, y):
        graph.setTileMapping(tensor, [[(tile * length, (tile + 1) * length)] for tile in range(1472)])
    graph.setInitialValue(x, 1.5)
    graph.createHostRead("y", y)
    compute_set = graph.addComputeSet("wide")
    graph.add_vertices(compute_set, codelet, {"x": x, "y": y}, np.arange(1472)[::-1])
    return compileGraph(graph, Repeat(3, Execute(compute_set)))


def value(engine: Engine) -> float:
    engine.load()
    engine.run()
    values = np.unique(engine.readTensor("y"))
    assert len(values) == 1
    return float(values[0])


def fork() -> None:
    """The parent's engine, and new ones, work in the parent and in its children."""
    executable = wide(Scale)
    engine = Engine(executable, {"pypoplar.threads": 2})
    assert value(engine) == 3
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            try:
                assert value(engine) == 3
                assert value(Engine(executable, {"pypoplar.threads": number})) == 3
                assert value(Engine(wide(Negate), {"pypoplar.threads": 2})) == -1.5
                assert value(Engine(executable, mode="interpret")) == 3
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert value(engine) == 3
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert value(Engine(wide(Negate))) == -1.5


def first_engines() -> None:
    """Eight threads make the first engines of the process at once; each piece of machine code is loaded once."""
    start, load = threading.Barrier(8), machine.load
    results: list[int] = []
    loaded: list[bytes] = []

    def slow_load(code: bytes) -> machine.LoadedCode:
        loaded.append(code)
        time.sleep(0.02)
        return load(code)

    def work(number: int) -> None:
        bench = Bench()
        x = bench.variable("x", [1, 2], [0, 5])
        executable = compileGraph(bench.graph, bench.execute(Add, 2, value=x[1], amount=number))
        start.wait()
        engine = Engine(executable, {"pypoplar.threads": 2})
        engine.load()
        engine.run()
        engine.run()
        results.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    with patch.object(machine, "load", slow_load):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(results) == list(range(8))
    assert len(loaded) == len(set(loaded)) > 3


def resident() -> int:
    """Bytes of memory that the process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth() -> None:
    """Engines that are dropped leave nothing behind."""

    def use() -> None:
        bench = Bench()
        x = bench.variable("x", np.zeros(50_000, np.int32), 3)  # 200 KB
        engine = bench.engine(bench.execute(Add, value=x[0], amount=1))
        engine.run()
        assert engine.readTensor("x")[0] == 1

    for _ in range(20):
        use()
    gc.collect()
    before = resident()
    for _ in range(150):
        use()
    gc.collect()
    grown = resident() - before
    assert grown < 15_000_000, grown


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("done")
