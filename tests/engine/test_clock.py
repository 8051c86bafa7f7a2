"""The cycle counter and the random numbers of a machine."""

import numpy as np
import pytest
from attrs import define

from pypoplar import (
    FLOAT,
    INT,
    UNSIGNED_INT,
    ApplicationRuntimeError,
    MultiVertex,
    Output,
    PoplarTypeError,
    SyncType,
    Vector,
    VectorList,
    Vertex,
    cycleCount,
    cycleStamp,
    ipu,
    setSeed,
)
from pypoplar.engine.engine_state import DEFAULT_SEED, seeded_generators
from pypoplar.program import Abort, Execute, Repeat, Sequence, Sync


class Spin(Vertex):
    """Some cycles' work."""

    out: Output[INT]
    rounds: INT

    def compute(self):
        total = 0
        for i in range(self.rounds):
            total += i
        self.out = total


class Clock(Vertex):
    out: Output[Vector[UNSIGNED_INT]]

    def compute(self):
        self.out[0] = ipu.cycle_count()
        self.out[1] = ipu.cycle_count()


class DrawMany(Vertex):
    out: Output[Vector[UNSIGNED_INT]]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] = ipu.random_uint()


@define
class Stream:
    """xoroshiro128aox, written from its authors' article."""

    s0: int
    s1: int

    def next(self):
        def rotated(value, bits):
            return (value << bits | value >> 64 - bits) % 2**64

        either, both = self.s0 ^ self.s1, self.s0 & self.s1
        self.s0, self.s1 = rotated(self.s0, 55) ^ either ^ either << 14 & 2**64 - 1, rotated(either, 36)
        return either ^ (rotated(both, 1) | rotated(both, 2))


class Draw(Vertex):
    out: Output[Vector[UNSIGNED_INT]]
    uniform: Output[FLOAT]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] = ipu.random_uint()
        self.uniform = ipu.random_float()


@pytest.fixture
def bench(bench):
    bench.x = bench.variable("x", np.zeros(16, np.int32), np.arange(16))
    bench.spin = bench.execute(Spin, 5, out=bench.x[5], rounds=1000)
    return bench


def pair(low_high):
    return int(low_high[0]) + (int(low_high[1]) << 32)


def test_cycle_count_counts_what_is_in_its_sequence_and_nothing_else(bench, mode):
    sequence = Sequence([bench.spin, Repeat(3, bench.spin)])
    bench.handles("count", cycleCount(bench.graph, sequence, 3))
    empty = Sequence()
    bench.handles("nothing", cycleCount(bench.graph, empty, 15, SyncType.EXTERNAL))
    engine = bench.engine([Sequence([bench.spin, sequence, bench.spin, empty]), bench.spin], mode)
    engine.run(1)
    one = engine.getReport().execution.totalCycles.total
    engine.run(0)
    assert pair(engine.readTensor("count")) == 4 * one
    assert engine.readTensor("nothing").tolist() == [0, 0]


def test_counts_nest(bench, mode):
    inner = Sequence([bench.spin])
    bench.handles("inner", cycleCount(bench.graph, inner, 0))
    outer = Sequence([inner, Sync(SyncType.GLOBAL), inner])
    bench.handles("outer", cycleCount(bench.graph, outer, 0))
    engine = bench.engine(outer, mode)
    engine.run()
    total = engine.getReport().execution.totalCycles.total
    assert pair(engine.readTensor("outer")) == total
    assert 0 < 2 * pair(engine.readTensor("inner")) < total


def test_stamps_go_on_from_run_to_run_and_start_anew_with_load(bench, mode):
    sequence = Sequence([bench.spin])
    bench.handles("stamp", cycleStamp(bench.graph, sequence, 0))
    engine = bench.engine(sequence, mode)
    stamps = []
    for _ in range(3):
        engine.run()
        stamps.append(pair(engine.readTensor("stamp")))
    first = stamps[0]
    assert stamps == [first, 2 * first, 3 * first]
    engine.load()
    engine.run()
    assert pair(engine.readTensor("stamp")) == first


def test_a_run_that_fails_takes_no_time(bench, mode):
    sequence = Sequence([bench.spin])
    bench.handles("stamp", cycleStamp(bench.graph, sequence, 0))
    engine = bench.engine([sequence, Sequence([bench.spin, Abort()])], mode)
    with pytest.raises(ApplicationRuntimeError):
        engine.run(1)
    assert engine.getReport().execution is None
    engine.run(0)
    assert pair(engine.readTensor("stamp")) == engine.getReport().execution.totalCycles.total


def test_the_high_word_of_a_long_count(bench, mode):
    sequence = Sequence([bench.execute(Spin, 5, out=bench.x[5], rounds=2)])
    bench.handles("count", cycleCount(bench.graph, sequence, 0))
    vertex = bench.graph.addVertex(compute_set := bench.graph.addComputeSet("long"), Spin, {"out": bench.x[0], "rounds": 1})
    bench.graph.setTileMapping(vertex, 0)
    bench.graph.setPerfEstimate(vertex, 1 << 31)
    long = Sequence([Execute(compute_set), Execute(compute_set)])
    bench.handles("long", cycleCount(bench.graph, long, 0))
    engine = bench.engine([sequence, long], mode)
    engine.run(0)
    engine.run(1)
    short = pair(engine.readTensor("count"))
    assert 0 < short < 1 << 20
    total = engine.getReport().execution.totalCycles.total
    assert pair(engine.readTensor("long")) == total - short > 12 << 31


def test_a_vertex_reads_the_counter_while_it_runs(bench, mode):
    clock = bench.variable("clock", np.zeros(2, np.uint32), 3)
    read = bench.execute(Clock, 3, out=clock)
    sequence = Sequence([bench.spin, read])
    bench.handles("count", cycleCount(bench.graph, sequence, 0))
    engine = bench.engine(sequence, mode)
    engine.run()
    first, second = engine.readTensor("clock").tolist()
    assert 6000 < first < second < pair(engine.readTensor("count"))
    assert (second - first) % 6 == 0
    engine.run()
    assert engine.readTensor("clock")[0] > second


# Random numbers


def draws(bench, mode, program, options=None):
    """Numbers of two tiles."""
    engine = bench.engine(program, mode, options)
    engine.run()
    return engine


def drawing(bench):
    numbers = bench.variable("numbers", np.zeros((2, 4), np.uint32), [3] * 4 + [9] * 4)
    uniform = bench.variable("uniform", np.zeros(2, np.float32), [3, 9])
    compute_set = bench.graph.addComputeSet("draw")
    for row, tile in enumerate((3, 9)):
        bench.vertex(compute_set, Draw, tile, out=numbers[row], uniform=uniform[row])
    return Execute(compute_set)


def test_tiles_draw_different_numbers_that_go_on_and_repeat_after_load(bench, mode):
    engine = bench.engine(drawing(bench), mode)
    engine.run()
    first = engine.readTensor("numbers")
    assert len(np.unique(first)) == 8
    assert ((engine.readTensor("uniform") >= 0) & (engine.readTensor("uniform") < 1)).all()
    engine.run()
    assert not (engine.readTensor("numbers") == first).any()
    engine.load()
    engine.run()
    assert (engine.readTensor("numbers") == first).all()


def test_both_engines_draw_the_same_numbers(bench):
    draw = drawing(bench)
    found = [draws(bench, mode, Repeat(2, draw)).readTensor("numbers") for mode in ("native", "interpret")]
    np.testing.assert_array_equal(*found)


class DrawTogether(MultiVertex):
    out: Output[VectorList[UNSIGNED_INT]]

    def compute(self, worker):
        for i in range(len(self.out[worker])):
            self.out[worker][i] = ipu.random_uint()


@pytest.mark.parametrize("threads", [1, 3])
def test_all_workers_of_all_tiles_have_streams_of_their_own(bench, mode, threads):
    tiles, workers = 4, bench.graph.getTarget().getNumWorkerContexts()
    numbers = bench.variable("numbers", np.zeros((2, tiles, workers, 50), np.uint32), 0)
    together, apart = bench.graph.addComputeSet("together"), bench.graph.addComputeSet("apart")
    for tile in range(tiles):
        bench.graph.setTileMapping(numbers[:, tile], tile)
        vertex = bench.graph.addVertex(together, DrawTogether, {"out": list(numbers[0, tile])})
        bench.graph.setTileMapping(vertex, tile)
        for worker in range(workers):
            vertex = bench.graph.addVertex(apart, DrawMany, {"out": numbers[1, tile, worker]})
            bench.graph.setTileMapping(vertex, tile)
    engine = bench.engine(Sequence([Execute(together), Execute(apart)]), mode, options={"pypoplar.threads": threads})
    engine.run()
    drawn = engine.readTensor("numbers")
    assert len(np.unique(drawn)) >= drawn.size - 3  # of 32 bits, few are drawn twice by chance
    generators = seeded_generators(DEFAULT_SEED, 0, bench.graph.getTarget().getNumTiles(), workers)
    for tile in range(tiles):
        for worker in range(workers):
            stream = Stream(*(int(word) for word in generators[tile, worker]))
            assert drawn[:, tile, worker].ravel().tolist() == [stream.next() >> 32 for _ in range(100)]


def test_a_seed_and_its_modifier_are_not_added():
    states = [seeded_generators(seed, modifier, 2, 6).ravel().tolist() for seed, modifier in ((7, 5), (12, 0), (5, 7), (7, -5))]
    assert len({word for state in states for word in state}) == 4 * 24


def test_a_seed_decides_the_numbers(bench, mode):
    seed = bench.variable("seed", np.array([7, 1], np.uint32), 2)
    draw = drawing(bench)
    seeded, modified = Sequence(), Sequence()
    setSeed(bench.graph, seed, 0, seeded)
    setSeed(bench.graph, seed, 5, modified)
    engine = bench.engine([Sequence([seeded, draw]), Sequence([modified, draw]), draw], mode)
    found = []
    for number, value in ((0, [7, 1]), (1, [7, 1]), (0, [8, 1]), (0, [7, 2]), (0, [7, 1]), (2, [7, 1])):
        engine.writeTensor("seed", np.array(value, np.uint32))
        engine.run(number)
        found.append(engine.readTensor("numbers").tolist())
    assert found[4] == found[0]
    del found[4]
    assert len({str(one) for one in found}) == 5


def test_a_seed_is_two_unsigned_ints(bench):
    with pytest.raises(PoplarTypeError, match="the seed of setSeed"):
        setSeed(bench.graph, bench.x[0:2], 0, Sequence())
    with pytest.raises(ValueError, match="has 2 elements"):
        setSeed(bench.graph, bench.variable("seed", np.zeros(3, np.uint32)), 0, Sequence())
