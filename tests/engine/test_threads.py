"""Host threads share the work of a step, and change nothing."""

import numpy as np
import pytest
from engine_builder import Bench

from pypoplar import FLOAT, INT, Engine, InOut, Input, InvalidOption, IPUModel, Output, Vector, Vertex, compileGraph, concat
from pypoplar.engine import division
from pypoplar.engine.division import MoveSums, divide
from pypoplar.program import Copy, Execute, Repeat, Sequence

TILES = 1472
LENGTH = 50


class Smooth(Vertex):
    """A row from itself and its neighbours."""

    left: Input[FLOAT]
    row: Input[Vector[FLOAT]]
    right: Input[FLOAT]
    out: Output[Vector[FLOAT]]

    def compute(self):
        last = len(self.row) - 1
        for i in range(len(self.row)):
            before = self.row[i - 1] if i > 0 else self.left
            after = self.row[i + 1] if i < last else self.right
            self.out[i] = 0.25 * before + 0.5 * self.row[i] + 0.25 * after


class Positive(Vertex):
    row: Input[Vector[FLOAT]]
    passes: InOut[INT]

    def compute(self):
        self.passes += 1
        return self.row[0] > 0.0


def smoothed(values, rounds):
    for _ in range(rounds):
        before, after = np.roll(values, 1), np.roll(values, -1)
        values = (np.float32(0.25) * before + np.float32(0.5) * values) + np.float32(0.25) * after
    return values


@pytest.fixture(scope="module")
def bench():
    """A ring over all tiles of a Bow, smoothed in place in two steps a round."""
    bench = Bench(IPUModel().createDevice())
    graph = bench.graph
    ring, other = (graph.addVariable(FLOAT, [TILES, LENGTH], name) for name in ("ring", "other"))
    passes = graph.addVariable(INT, [TILES], "passes")
    for tensor in (ring, other):
        graph.setTileMapping(tensor, [[(tile * LENGTH, (tile + 1) * LENGTH)] for tile in range(TILES)])
    graph.setTileMapping(passes, 17)
    graph.setInitialValue(passes, 0)
    bench.agreed = bench.variable("agreed", False, 99)

    def step(source, target):
        compute_set = graph.addComputeSet("smooth")
        left, right = source[:, LENGTH - 1], source[:, 0]
        fields = {"row": source, "out": target, "left": concat(left[TILES - 1 :], left[: TILES - 1])}
        fields["right"] = concat(right[1:], right[:1])
        graph.add_vertices(compute_set, Smooth, fields, np.arange(TILES))
        return Execute(compute_set)

    check = graph.addComputeSet("check")
    graph.add_vertices(check, Positive, {"row": ring, "passes": passes}, np.arange(TILES)[::-1])
    bench.handles("ring", ring)
    bench.handles("passes", passes)
    turn = Sequence([step(ring, other), step(other, ring), Execute(check, bench.agreed)])
    rotate = Sequence([Copy(ring.flatten().reverse(0), other.flatten()), Copy(other, ring)])
    bench.executable = compileGraph(graph, [Repeat(3, turn), Repeat(2, Sequence([rotate, turn]))])
    return bench


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_number_of_threads_gives_what_numpy_gives(bench, threads):
    engine = Engine(bench.executable, {"pypoplar.threads": threads})
    values = np.random.default_rng(1).standard_normal((TILES, LENGTH)).astype(np.float32)
    for start, agreed in ((values, False), (abs(values) + 1, True)):
        engine.load()
        engine.writeTensor("ring", start)
        engine.run(0)
        np.testing.assert_array_equal(engine.readTensor("ring").ravel(), smoothed(start.ravel(), 6))
        assert engine.readTensor("agreed") == agreed
        assert (engine.readTensor("passes") == 3).all()
        engine.run(1)
        expected = smoothed(start.ravel(), 6)
        for _ in range(2):
            expected = smoothed(expected[::-1], 2)
        np.testing.assert_array_equal(engine.readTensor("ring").ravel(), expected)


def test_the_account_does_not_depend_on_the_number_of_threads(bench):
    accounts = []
    for threads in (1, 2, 3):
        engine = Engine(bench.executable, {"pypoplar.threads": threads})
        engine.load()
        engine.writeTensor("ring", np.ones((TILES, LENGTH), np.float32))
        engine.run(1)
        steps = engine.getReport().execution.steps
        accounts.append([(one.name, one.executions, one.cycles, one.cyclesByTile.tolist()) for one in steps])
    assert accounts[0] == accounts[1] == accounts[2]
    assert any(one[0] == "smooth" and one[1] == 2 for one in accounts[0])


def test_threads_are_used_only_where_a_step_is_worth_it(bench):
    assert divide(bench.executable, 3).threads == 3
    small = Bench()
    x = small.variable("x", [1, 2])
    assert divide(compileGraph(small.graph, Copy(x[0], x[1])), 3).threads == 1


def test_tiles_are_divided_without_gaps(bench, monkeypatch):
    computes, moves = bench.executable.computes, bench.executable.moves
    for threads, most in ((1, 1 << 20), (1, 100), (2, 1000), (3, 1 << 20), (7, 100)):
        monkeypatch.setattr("pypoplar.engine.division.BATCH_BYTES", most)
        division = divide(bench.executable, threads)
        assert (division.compute_batches.max() > 1) == (most < 1 << 20)
        for split, begins, first, last in (
            (division.compute_split, division.compute_first_split, computes.first_active[:-1], computes.first_active[1:]),
            (division.list_split, division.list_first_split, moves.first[:-1], moves.first[1:]),
        ):
            for row, begin, end in zip(np.split(split, begins[1:]), first, last, strict=True):
                assert row[0] == begin
                assert row[-1] == end
                assert (np.diff(row) >= 0).all()
        shares = np.diff(np.append(division.compute_first_split, len(division.compute_split))) - 1
        assert (shares == threads * division.compute_batches).all()


def test_a_tile_costs_what_its_vertices_and_all_moves_of_its_own_take_on_several_ipus(monkeypatch):
    model = IPUModel("tiny")
    model.numIPUs, model.tilesPerIPU = 3, 4
    bench = Bench(model.createDevice())
    rows, other = (bench.variable(name, np.zeros((12, LENGTH)), np.repeat(range(12), LENGTH), FLOAT) for name in ("rows", "other"))
    step = bench.graph.addComputeSet("step")
    for tile in (0, 1, 3, 4, 7, 10):  # none on some tiles
        ends = {"left": rows[tile - 1][1], "row": rows[(tile + 5) % 12], "right": rows[(tile + 1) % 12][0], "out": other[tile]}
        bench.graph.setTileMapping(bench.graph.addVertex(step, Smooth, ends), tile)
    executable = compileGraph(bench.graph, Execute(step))
    moves, computes, expected, given = executable.moves, executable.computes, executable.computes.cost.copy(), []
    sums = MoveSums(moves)
    lists = [entry for move in computes.moves[0] for entry in moves.lists_of(int(move))]
    assert len(lists) > 6
    for record in (record for entry in lists for record in moves.records_of(entry)):
        expected[computes.active_tile == moves.tile[record]] += sums.of(record, record + 1)[0][1]
    monkeypatch.setattr("pypoplar.engine.division.SERIAL", 0)
    shared = division._shared_evenly
    monkeypatch.setattr(division, "_shared_evenly", lambda cost, threads: given.append(cost) or shared(cost, threads))
    divide(executable, 2)
    assert [cost.tolist() for cost in given] == [expected.tolist()]


def test_sums_over_the_records_of_a_move_are_the_same_however_many_are_looked_at_together(bench, monkeypatch):
    moves = bench.executable.moves
    records = moves.first[moves.first_list]
    whole = int(np.diff(records).argmax())
    begin, end = int(records[whole]), int(records[whole + 1])
    assert end - begin > 10
    bytes = moves.count[begin:end].astype(np.int64) * moves.bytes[begin:end]
    sums = MoveSums(moves)
    for at_once in (1, 7, 1 << 16):
        monkeypatch.setattr("pypoplar.engine.division.AT_ONCE", at_once)
        sums.of(0, end - begin)  # leaves other sums in the memory
        work, moved = (one.copy() for one in sums.of(begin, end))
        assert moved.tolist() == [0, *np.cumsum(bytes)]
        assert work[0] == 0
        assert (np.diff(work) >= bytes // division.BYTES_PER_UNIT).all()


def test_where_there_are_many_lists_batches_are_larger(bench, monkeypatch):
    monkeypatch.setattr("pypoplar.engine.division.BATCH_BYTES", 100)
    few = divide(bench.executable, 2).compute_batches
    monkeypatch.setattr("pypoplar.engine.division.BATCH_LISTS", 1)
    many = divide(bench.executable, 2).compute_batches
    assert (many <= few).all()
    assert many.max() <= few.max() // 2 + 1


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_of_tiles_change_nothing(bench, threads, monkeypatch):
    values = np.random.default_rng(1).standard_normal((TILES, LENGTH)).astype(np.float32)
    results = []
    for most in (1 << 20, 100):
        monkeypatch.setattr("pypoplar.engine.division.BATCH_BYTES", most)
        engine = Engine(bench.executable, {"pypoplar.threads": threads})
        engine.load()
        engine.writeTensor("ring", values)
        engine.run(1)
        steps = engine.getReport().execution.steps
        results.append((engine.readTensor("ring").tobytes(), [(one.name, one.cycles, one.cyclesByTile.tolist()) for one in steps]))
    assert results[0] == results[1]


@pytest.mark.parametrize("threads", [-1, "many", 1.5])
def test_the_number_of_threads_is_a_number(threads):
    bench = Bench()
    with pytest.raises(InvalidOption, match=r"pypoplar\.threads"):
        bench.engine(Sequence(), options={"pypoplar.threads": threads})
