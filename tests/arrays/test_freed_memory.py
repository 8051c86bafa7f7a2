"""Memory that a large compilation has freed is given back to the system; small ones do not ask for it."""

import os
import subprocess
import sys

import pytest

from pypoplar import FLOAT, Engine, Graph, InOut, IPUModel, Vertex, popops, predict
from pypoplar.arrays import freed_memory
from pypoplar.compiler import compile as compiling
from pypoplar.poputil import mapTensorLinearly
from pypoplar.program import Execute, Sequence


class Double(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x = self.x * 2.0


def compiled():
    graph = Graph(IPUModel("tiny").createDevice())
    x, cs = graph.addVariable(FLOAT, [2], "x"), graph.addComputeSet("double")
    graph.setTileMapping(x, 0)
    for number in range(2):
        graph.setTileMapping(graph.addVertex(cs, Double, {"x": x[number]}), 0)
    return Engine(graph, Execute(cs))


@pytest.mark.parametrize(("large", "given_back"), [(2, True), (3, False)])
def test_a_large_compilation_gives_back_what_it_has_freed(large, given_back, monkeypatch):
    asked = []

    def noted(rows):
        asked.append(rows)
        return give_back(rows)

    give_back = freed_memory.give_back
    monkeypatch.setattr(freed_memory, "LARGE", large)
    monkeypatch.setattr(compiling, "give_back", noted)
    compiled()
    assert asked == [2] * 6, "runs of the edges: between the passes, and at the end"
    assert give_back(2) is (given_back and freed_memory._of_c_library("malloc_trim") is not None)


FREED_AND_TAKEN = """
import resource
import numpy as np
from pypoplar import Graph, IPUModel

Graph(IPUModel("tiny").createDevice())

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tables = [np.ones(1 << 18) for _ in range(8)]
    del tables
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
print(first, max(faults() for _ in range(3)))
"""


def faults(**environment):
    command = [sys.executable, "-c", FREED_AND_TAKEN]
    run = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return map(int, run.stdout.split())


@pytest.mark.skipif(freed_memory._of_c_library("malloc_trim") is None, reason="of the GNU C library")
def test_memory_that_is_freed_while_a_graph_is_built_is_taken_again_without_page_faults():
    first, later = faults()
    assert first > 2048, "8 tables of 2 MB in pages of 4 kB"
    assert later < 64


@pytest.mark.skipif(freed_memory._of_c_library("malloc_trim") is None, reason="of the GNU C library")
@pytest.mark.parametrize("said", [{"MALLOC_TRIM_THRESHOLD_": "131072"}, {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"}])
def test_what_a_user_says_to_the_c_library_stays(said):
    _, later = faults(**said)
    assert later > 2048


@pytest.fixture
def told(monkeypatch):
    """What the C library is told."""
    options = []
    monkeypatch.setattr(freed_memory, "_mallopt", lambda: lambda number, value: options.append((number, value)))
    monkeypatch.setattr(freed_memory, "keep_freed", lambda: True)
    return options


def test_a_prediction_keeps_what_it_frees_and_then_lets_the_c_library_do_as_before(told):
    graph = Graph(IPUModel("tiny").createDevice())
    popops.addCodelets(graph)
    x, program = graph.addVariable(FLOAT, [64], "x"), Sequence()
    mapTensorLinearly(graph, x)
    popops.addInPlace(graph, x, x, program)
    predict(graph, program)
    assert told == [*freed_memory.ALL_KEPT.items(), *freed_memory.AS_BEFORE.items()]


def test_what_is_kept_within_each_other_is_kept_to_the_last_also_after_an_error(told):
    with pytest.raises(ZeroDivisionError), freed_memory.keeping_all():
        with freed_memory.keeping_all():
            pass
        assert told == [*freed_memory.ALL_KEPT.items()]
        raise ZeroDivisionError
    assert told == [*freed_memory.ALL_KEPT.items(), *freed_memory.AS_BEFORE.items()]


def test_a_c_library_that_is_set_by_its_environment_is_left_alone(monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    assert freed_memory._mallopt() is None
