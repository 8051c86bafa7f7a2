"""Scratch arrays in programs: both engines work on them, and they lie on the stacks of the tiles whose vertices use them."""

import re

import numpy as np
import pytest
from engine_builder import tiny

from pypoplar import (
    FLOAT,
    INT,
    Engine,
    Executable,
    Graph,
    GraphMemoryAllocationError,
    InOut,
    IPUModel,
    MultiVertex,
    Output,
    SupervisorVertex,
    UninitialisedReadError,
    Vector,
    Vertex,
    compileGraph,
    ipu,
)
from pypoplar.program import Execute, Sequence

LARGEST = 32768


class Sort(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        work = ipu.array(FLOAT, 16)
        for i in range(len(self.x)):
            k = i
            while k > 0 and work[k - 1] > self.x[i]:
                work[k] = work[k - 1]
                k -= 1
            work[k] = self.x[i]
        for i in range(len(self.x)):
            self.x[i] = work[i]


class Weigh(MultiVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self, worker):
        part = ipu.array(INT, 3)  # 12 bytes, in steps of 8
        part[1] = worker
        if worker < len(self.x):
            self.x[worker] = 10.0 * self.x[worker] + part[1]


class Supervise(SupervisorVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        last = ipu.array(FLOAT, 2)
        last[0] = self.x[0]
        self.x[0] = last[0] + 100.0


class Early(Vertex):
    y: Output[FLOAT]

    def compute(self):
        work = ipu.array(FLOAT, 4)
        work[0] = 1.0
        self.y = work[0] + work[2]


class Big(Vertex):
    y: Output[FLOAT]

    def compute(self):
        work = ipu.array(FLOAT, LARGEST)
        work[LARGEST - 1] = 2.0
        self.y = work[LARGEST - 1]


def program():
    """`Sort` and `Weigh` on tile 0, `Weigh` and `Supervise` on tile 1, nothing on others; the values are on tile 2."""
    graph = Graph(tiny())
    x = graph.addVariable(FLOAT, [8], "x")
    graph.setTileMapping(x, 2)
    graph.setInitialValue(x, np.array([3, 1, 2, 0, 5, 4, 7, 6], np.float32))
    order = [(Sort, 0), (Weigh, 0), (Weigh, 1), (Supervise, 1)]
    steps = []
    for number, (cls, tile) in enumerate(order):
        compute_set = graph.addComputeSet(f"step {number}")
        part = x[:4] if number < 2 else x[4:]
        graph.setTileMapping(graph.addVertex(compute_set, cls, {"x": part}), tile)
        steps.append(Execute(compute_set))
    graph.createHostRead("x", x)
    return graph, Sequence(steps)


@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_both_engines_work_on_scratch_arrays_also_those_of_an_executable_that_was_saved(mode):
    executable = compileGraph(*program())
    for executable_ in (executable, Executable.deserialize(executable.serialize())):
        engine = Engine(executable_, mode=mode)
        engine.load(IPUModel("tiny").createDevice())
        engine.run()
        assert engine.readTensor("x").tolist() == [0, 11, 22, 33, 150, 41, 72, 63]


def test_the_stack_of_each_worker_has_room_for_the_largest_vertex_of_the_tile():
    stack = compileGraph(*program()).memory.stack
    usual = 6 * 512 + 128
    assert stack[:3].tolist() == [usual + 6 * 64, usual + 6 * 16 + 8, 0]


def test_an_array_that_is_read_before_it_is_written_is_an_uninitialised_read():
    graph = Graph(tiny())
    compute_set, out = graph.addComputeSet("early"), graph.addVariable(FLOAT, [1], "out")
    graph.setTileMapping(out, 0)
    graph.setTileMapping(graph.addVertex(compute_set, Early, {"y": out[0]}), 0)
    graph.createHostRead("out", out)
    for mode in ("native", "interpret"):
        engine = Engine(graph, Execute(compute_set), mode=mode)
        engine.load(IPUModel("tiny").createDevice())
        engine.run()
        assert np.isnan(engine.readTensor("out"))
        engine = Engine(graph, Execute(compute_set), {"pypoplar.uninitialised": "error"}, mode=mode)
        engine.load(IPUModel("tiny").createDevice())
        with pytest.raises(UninitialisedReadError, match=re.escape("self.y = work[0] + work[2]")):
            engine.run()


def test_scratch_arrays_that_fill_a_tile_are_named_where_memory_does_not_suffice():
    graph = Graph(tiny())
    compute_set, out = graph.addComputeSet("big"), graph.addVariable(FLOAT, [1], "out")
    graph.setTileMapping(out, 0)
    graph.setTileMapping(graph.addVertex(compute_set, Big, {"y": out[0]}), 0)
    graph.createHostRead("out", out)
    with pytest.raises(GraphMemoryAllocationError, match=f"stack {6 * (512 + 131_072) + 128:,}"):
        compileGraph(graph, Execute(compute_set))


@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_the_largest_arrays_run_in_all_threads(mode):
    graph = Graph(tiny())
    compute_set, out = graph.addComputeSet("big"), graph.addVariable(FLOAT, [4], "out")
    for tile in range(4):
        graph.setTileMapping(out[tile], tile)
        graph.setTileMapping(graph.addVertex(compute_set, Big, {"y": out[tile]}), tile)
    graph.createHostRead("out", out)
    options = {"pypoplar.run_out_of_memory": True, "pypoplar.threads": 2}
    engine = Engine(graph, Execute(compute_set), options, mode=mode)
    engine.load(IPUModel("tiny").createDevice())
    engine.run()
    assert engine.readTensor("out").tolist() == [2, 2, 2, 2]
