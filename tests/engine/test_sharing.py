"""Variables whose lives do not overlap share memory, and nothing that a program does tells."""

import io
import random
from itertools import pairwise

import numpy as np
import pytest
from attrs import evolve
from engine_builder import Bench, shown, tiny
from engine_outcome import outcome
from engine_random import Count, Halve, Largest, RandomProgram, Rows, Speak
from hypothesis import assume, given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    AtomicStoreError,
    Engine,
    Executable,
    FileLoadError,
    Input,
    InvalidOption,
    MultiVertex,
    Output,
    Vector,
    Vertex,
    compileGraph,
)
from pypoplar.compiler.compile import compile_graph
from pypoplar.executable.verify.executable_claims import verify
from pypoplar.program import Copy, Sequence


class Scaled(Vertex):
    """Floats and halves, written in full."""

    a: Input[Vector[FLOAT]]
    scale: Input[HALF]
    out: Output[Vector[FLOAT]]
    halves: Output[Vector[HALF]]

    def compute(self):
        total = 1.0
        for value in self.a:
            total = total * 0.5 + value
        for i in range(len(self.out)):
            self.out[i] = total * self.scale + float(i)
        for i in range(len(self.halves)):
            self.halves[i] = self.scale - HALF(i)


class Dealt(MultiVertex):
    """Six workers write all elements."""

    x: Input[Vector[INT]]
    out: Output[Vector[SHORT]]
    long: Output[Vector[LONGLONG]]

    def compute(self, worker):
        for first in range(2 * worker, len(self.out), 12):
            for i in range(first, min(first + 2, len(self.out))):  # in one word
                self.out[i] = len(self.x) + i
        for i in range(worker, len(self.long), 6):
            self.long[i] = len(self.x) * i


WRITING = [Scaled, Dealt, Halve, Count, Rows, Largest, Speak]


def pair(seed, steps, hidden, options=None):
    """A random program with executables that share memory and that do not."""
    made = RandomProgram(random.Random(seed), tiny(3), WRITING, steps, size=12, clock=False, hidden=hidden)
    return made, [compile_graph(made.graph, made.programs, options, share_memory=share) for share in (True, False)]


SEEDS = st.integers(0, 2**32 - 1)
RESULTS = ("values", "arrays", "printed", "errors")


def shares(executable):
    """Bytes that are not there because variables share memory."""
    return int(executable.lives.bytes.sum() - executable.memory.variables.sum() - executable.memory.constants.sum())


@pytest.mark.parametrize("options", [{}, {"pypoplar.races": "elements"}], ids=["regions", "elements"])
@pytest.mark.parametrize("way", ["interpret", "native"])
@examples(10)
@given(seed=SEEDS, steps=st.integers(2, 7), hidden=st.integers(4, 12))
def test_results_with_shared_memory_are_those_without(way, options, seed, steps, hidden):
    try:
        made, (shared, apart) = pair(seed, steps, hidden, options)
    except AtomicStoreError:
        assume(False)
    assume(shares(shared))
    first, second = (outcome(made, one, way, options) for one in (shared, apart))
    for name in RESULTS:
        assert shown(first[name], nan_bits=False) == shown(second[name], nan_bits=False), name


def test_the_random_programs_share_memory_often():
    found = []
    for seed in range(40):
        try:
            _, (shared, apart) = pair(seed, 5, 8)
        except AtomicStoreError:
            continue
        assert shares(apart) == 0
        found.append(shares(shared) > 0)
    assert np.mean(found) > 0.5


def chain():
    """A program in which two variables may share memory."""
    bench = Bench()
    made = [bench.variable("x", [1.0, 2.0])]
    for name in ("a", "b", "c", "d"):
        made.append(bench.graph.addVariable(FLOAT, [2], name))
        bench.graph.setTileMapping(made[-1], 0)
    return bench, Sequence([*(Copy(one, other) for one, other in pairwise(made)), Copy(made[-1], made[0].reverse(0))])


def saved_and_loaded(executable):
    file = io.BytesIO()
    executable.save(file)
    file.seek(0)
    return Executable.load(file)


@pytest.mark.parametrize("change", [lambda one: one, saved_and_loaded], ids=["made", "loaded"])
def test_options_that_the_memory_depends_on_are_decided_when_the_graph_is_compiled(change):
    bench, program = chain()
    executable = change(compileGraph(bench.graph, program, {"debug.workerStackSizeInBytes": 1024}))
    for name in ("debug.workerStackSizeInBytes", "debug.supervisorStackSizeInBytes"):
        with pytest.raises(InvalidOption, match=rf"{name} is decided when the graph is compiled; pass it to compileGraph"):
            Engine(executable, {name: 2048})
    same = Engine(executable, {"debug.workerStackSizeInBytes": 1024, "pypoplar.threads": 1})
    kept = Engine(executable, {"pypoplar.threads": 1})
    assert same.executable.options.worker_stack_bytes == kept.executable.options.worker_stack_bytes == 1024


def test_reads_of_unwritten_memory_can_be_errors_only_where_nothing_is_shared():
    bench, program = chain()
    shared, apart = (compileGraph(bench.graph, program, {"pypoplar.uninitialised": one}) for one in ("poison", "error"))
    assert shared.shares_memory
    assert not apart.shares_memory
    with pytest.raises(InvalidOption, match=r"pypoplar\.uninitialised = 'error' needs .* share no memory; pass it to compileGraph"):
        Engine(shared, {"pypoplar.uninitialised": "error"})
    assert Engine(apart, {"pypoplar.threads": 1}).executable.options.uninitialised == "error"
    assert Engine(apart, {"pypoplar.uninitialised": "poison"}).executable.options.uninitialised == "poison"
    alone = compileGraph(bench.graph, Copy(bench.graph.addConstant(FLOAT, [0], []), bench.graph.addConstant(FLOAT, [0], [])))
    assert Engine(alone, {"pypoplar.uninitialised": "error"}).executable.options.uninitialised == "error"


def test_runs_one_after_another_find_what_they_need(mode):
    bench, program = chain()
    engine = bench.engine(program, mode)
    assert engine.executable.shares_memory
    for expected in ([2, 1], [1, 2], [2, 1]):
        engine.run()
        assert engine.readTensor("x").tolist() == expected


def test_lives_are_saved_and_loaded():
    bench, program = chain()
    executable = compileGraph(bench.graph, program)
    loaded = saved_and_loaded(executable)
    for name in ("always", "first_range", "range_begin", "range_end", "first", "tile", "bytes"):
        one, other = getattr(executable.lives, name), getattr(loaded.lives, name)
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
    assert executable.lives.begin.tolist() == loaded.lives.begin.tolist() == [-1, 1, 2, 3, 4]
    assert executable.lives.end.tolist() == loaded.lives.end.tolist() == [-1, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("part", "name", "change", "message"),
    [
        ("lives", "always", lambda one: one[:-1], r"lives\.always has the shape"),
        ("lives", "always", lambda one: ~one, r"lives\.always\[\d+\] is true of a variable that lives only at times"),
        ("lives", "range_end", lambda one: one * 0 + 1, r"lives\.range_end\[1\] comes before the range begins"),
        ("lives", "range_begin", lambda one: one + 1000, r"lives\.range_end\[0\] comes before the range begins"),
        ("lives", "tile", lambda one: one - 1, r"lives\.tile\[0\] is -1"),
        ("lives", "first", lambda one: one[::-1], r"lives\.first goes from 5 to 0"),
        ("memory", "always_live", lambda one: one + 8, r"memory\.always_live\[0\] and what is not always live are not the total"),
    ],
)
def test_damaged_lives_are_refused(part, name, change, message):
    bench, program = chain()
    executable = compileGraph(bench.graph, program)
    damaged = evolve(getattr(executable, part), **{name: change(getattr(getattr(executable, part), name))})
    with pytest.raises(FileLoadError, match=message):
        verify(evolve(executable, **{part: damaged}))
