"""Vertices of a tile on its six workers, in the order in which they were added."""

import numpy as np
from engine_builder import Bench
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import INT, Graph, MultiVertex, Output, SupervisorVertex, Vertex, compileGraph, testing
from pypoplar.engine.engine import Engine
from pypoplar.program import Execute


class Plain(Vertex):
    out: Output[INT]

    def compute(self):
        self.out = 1


class OtherPlain(Vertex):
    out: Output[INT]

    def compute(self):
        self.out = 2


class Together(MultiVertex):
    out: Output[INT]

    def compute(self, worker):
        if worker == 0:
            self.out = 3


class Alone(SupervisorVertex):
    out: Output[INT]

    def compute(self):
        self.out = 4


KINDS = (Plain, OtherPlain, Together, Alone)


def brute_force(vertices):
    """Cycle by cycle: at each, whoever is free takes the next vertex of the list; some wait for all the others."""
    time, workers, waiting = 0, [0] * 6, list(vertices)
    while waiting or any(workers):
        while waiting:
            kind, cycles = waiting[0]
            if kind in (0, 1):
                if 0 not in workers:
                    break
                workers[workers.index(0)] = 6 * cycles
            else:
                if any(workers):
                    break
                workers = [cycles if kind == 3 else 6 * cycles] * 6
            waiting.pop(0)
            if cycles == 0:
                continue
        if any(workers):
            shortest = min(one for one in workers if one)
            time += shortest
            workers = [max(one - shortest, 0) for one in workers]
    return time


VERTICES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 20)), min_size=1, max_size=25)


@examples(60)
@given(st.lists(VERTICES, min_size=1, max_size=3))
def test_a_tile_takes_as_long_as_a_simulation_cycle_by_cycle(tiles):
    bench = Bench()
    compute_set = bench.graph.addComputeSet("work")
    total = sum(map(len, tiles))
    out = bench.variable("out", np.zeros(total, np.int32), [number for number, one in enumerate(tiles) for _ in one])
    place = 0
    for tile, vertices in enumerate(tiles):
        for kind, cycles in vertices:
            vertex = bench.vertex(compute_set, KINDS[kind], tile, out=out[place])
            bench.graph.setPerfEstimate(vertex, cycles)
            place += 1
    executable = compileGraph(bench.graph, Execute(compute_set))
    for mode in ("interpret", "native"):
        engine = Engine(executable, mode=mode)
        engine.load()
        engine.run()
        (step,) = (one for one in engine.getReport().execution.steps if one.name == "work")
        assert step.cyclesByTile[: len(tiles)].tolist() == [brute_force(one) for one in tiles]


def test_simple_cases_by_hand():
    assert brute_force([(0, 10)] * 6) == 60
    assert brute_force([(0, 10)] * 7) == 120
    assert brute_force([(0, 10), (2, 5), (0, 1)]) == 60 + 30 + 6
    assert brute_force([(0, 10), (3, 5), (0, 1)]) == 60 + 5 + 6


def test_vertices_of_different_codelets_take_their_turns_in_the_order_of_the_list():
    """The long one comes first or last; on six workers that makes a difference."""

    def build(first, then):
        def program(graph: Graph, out):
            compute_set = graph.addComputeSet("work")
            for number, (codelet, cycles) in enumerate([*first, *then]):
                vertex = graph.addVertex(compute_set, codelet, {"out": out[number]})
                graph.setPerfEstimate(vertex, cycles)
                graph.setTileMapping(vertex, 0)
            return compute_set

        return testing.run(program, {"out": np.zeros(13, np.int32)}, mapping={"out": 0}).report.execution.steps[0].compute_cycles

    short, long = [(Plain, 10)] * 12, [(OtherPlain, 20)]
    assert build(long, short) == 6 * 30
    assert build(short, long) == 6 * 40
