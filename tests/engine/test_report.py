"""What a report says of runs: steps, totals, averages, cycles by vertex type."""

import io

import numpy as np
import pytest
from attrs import evolve
from engine_builder import Add, Bench
from page_reports import exchange

from pypoplar import (
    FLOAT,
    INT,
    Engine,
    Input,
    MultiVertex,
    Output,
    SupervisorVertex,
    SyncType,
    Vector,
    Vertex,
    VertexPerfEstimate,
    concat,
    cycleCount,
)
from pypoplar.program import Call, Copy, Execute, If, Repeat, Sequence, Sync
from pypoplar.report.slowest_tile import busiest_tile


class Dot(Vertex):
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for i in range(len(self.a)):
            total += self.a[i] * self.b[i]
        self.out = total


class Work(Vertex):
    """Costs in proportion to `rounds`."""

    out: Output[INT]
    rounds: INT

    def compute(self):
        total = 0
        for i in range(self.rounds):
            total += i * i
        self.out = total


class TogetherWork(MultiVertex):
    """Worker 4 has the most to do."""

    out: Output[Vector[INT]]
    rounds: INT

    def compute(self, worker):
        total = 0
        for i in range(self.rounds if worker == 4 else 1):
            total += i
        self.out[worker] = total


class SupervisorWork(SupervisorVertex):
    out: Output[INT]
    rounds: INT

    def compute(self):
        total = 0
        for i in range(self.rounds):
            total += i * i
        self.out = total


def works(bench, rounds, tiles, name="work", codelet=Work, estimates=None):
    """A compute set of vertices with so many rounds, each with its result on its own tile."""
    out = bench.variable(f"{name} out", np.zeros(len(rounds), np.int32), tiles)
    compute_set = bench.graph.addComputeSet(name)
    for number, (one, tile) in enumerate(zip(rounds, tiles, strict=True)):
        vertex = bench.vertex(compute_set, codelet, tile, out=out[number], rounds=one)
        if estimates is not None:
            bench.graph.setPerfEstimate(vertex, estimates[number])
    return Execute(compute_set)


def execution(bench, program, mode, runs=1):
    engine = bench.engine(program, mode)
    for _ in range(runs):
        engine.run()
    return engine.getReport().execution


def compute_step(bench, program, mode, name="work"):
    return next(one for one in execution(bench, program, mode).steps if one.name == name and one.type == "OnTileExecute")


def test_nothing_has_run_before_the_first_run(mode):
    bench = Bench()
    engine = bench.engine(works(bench, [1], [0]), mode)
    assert engine.getReport().execution is None


def test_steps_add_up_to_the_total_and_to_the_cycle_counter(mode):
    bench = Bench()
    x, y = bench.variable("x", np.arange(10.0), 3), bench.variable("y", np.zeros(10), np.arange(10))
    stream = bench.graph.addHostToDeviceFIFO("in", FLOAT, 10)
    work = works(bench, [5, 9], [3, 8])
    sequence = Sequence([work, Copy(stream, x), Repeat(7, Sequence([work, Copy(x, y)])), Sync(SyncType.GLOBAL)])
    bench.handles("cycles", cycleCount(bench.graph, sequence, 0))
    engine = bench.engine(sequence, mode)
    engine.connectStream("in", np.zeros(10, np.float32))
    for runs in (1, 2):
        engine.run()
        report = engine.getReport().execution
        total = report.totalCycles.total
        assert total == sum(one.cycles for one in report.steps)
        assert total == runs * int(engine.readTensor("cycles")[0])
    assert report.programs == ("program 0",)
    assert {one.type for one in report.steps} == {"OnTileExecute", "DoExchange", "StreamCopy", "Sync"}


def test_a_loop_is_one_step_with_many_executions(mode):
    bench = Bench()
    flag = bench.variable("flag", True)
    work, other, never = (works(bench, [4], [2], name) for name in ("work", "other", "never"))
    function = bench.graph.addFunction(other)
    program = Sequence([Repeat(3, Repeat(4, work)), work, Repeat(2, Call(function)), Call(function), If(flag, other, never)])
    found = [(one.name, one.executions) for one in execution(bench, program, mode).steps]
    assert sorted(found) == [("other", 1), ("other", 3), ("work", 1), ("work", 12)]


def test_a_steps_cycles_are_those_of_its_slowest_tile(mode):
    bench = Bench()
    step = compute_step(bench, Repeat(3, works(bench, [10, 20, 400, 30], [1, 4, 4, 9])), mode)
    assert step.executions == 3
    assert np.flatnonzero(step.cyclesByTile).tolist() == [1, 4, 9]
    assert step.cyclesByTile.max() == step.cyclesByTile[4] == step.compute_cycles
    assert step.activeTiles == 3
    assert step.tileBalance == pytest.approx(step.cyclesByTile.mean() / step.cyclesByTile.max())
    assert (step.activeCyclesByTile <= step.cyclesByTile).all()


@pytest.mark.parametrize("times", [1, 3])
def test_an_exchange_is_balanced_by_its_ports_which_send_and_receive_at_once(mode, times):
    """Tile 5 moves the most bytes, both ways; tiles 9 and 11 are busy for longer."""
    bench = Bench()
    places = {"a": (2000, 5), "b": (2000, 7), "c": (2000, 3), "d": (2000, 5), "e": (3000, 11), "f": (3000, 9)}
    tensors = {name: bench.variable(name, np.zeros(size), tile) for name, (size, tile) in places.items()}
    move = Copy(concat([tensors[name] for name in "ace"]), concat([tensors[name] for name in "bdf"]))
    (step,) = execution(bench, Repeat(times, move), mode).steps
    assert step.exchange_cycles_by_tile[[3, 5, 7, 9, 11]].tolist() == [2000 * times] * 3 + [3000 * times] * 2
    assert step.tileBalance == pytest.approx(12000 / 16 / 3000)
    assert step.activeTileBalance == pytest.approx(12000 / 5 / 3000)


def test_the_balance_of_a_broadcast_is_that_of_the_slowest_tile_beside_it(mode):
    """All ports move as many bytes, but those who share their bus with a tile that hears the same hear it in half the time."""
    bench = Bench()
    source, copies = (
        bench.variable("source", np.zeros(64), 3),
        bench.variable("copies", np.zeros((16, 64)), np.repeat(range(16), 64)),
    )
    step = execution(bench, Copy(source.expand([0]).broadcast(16, 0), copies), mode).steps[0]
    slowest = busiest_tile(step)
    assert slowest.mean < slowest.cycles
    assert step.tileBalance == pytest.approx(slowest.mean / slowest.cycles)


def test_copies_on_the_tile_alone_are_balanced_by_their_cycles():
    moved = exchange("move", 0, [0] * 4, [0] * 4, [0] * 4)
    assert evolve(moved, copy_cycles=8, copy_cycles_by_tile=np.array([8, 4, 0, 0])).tileBalance == pytest.approx(3 / 8)


def test_what_goes_between_ipus_is_balanced_by_the_busier_way_of_each_port():
    over = evolve(exchange("over", 0, [1, 0, 0, 0], [8, 0, 0, 2], [8, 4, 0, 0]), global_exchange_cycles=5)
    assert over.tileBalance == pytest.approx((8 + 4 + 2) / 4 / 8)
    assert over.activeTileBalance == pytest.approx((8 + 4 + 2) / 3 / 8)


def test_the_slowest_tile_of_each_execution_counts(mode):
    """Two tiles take turns in being the slower one."""
    bench = Bench()
    slow = bench.variable("slow", [100, 0], [1, 2])

    class Alternate(Vertex):
        rounds: Input[INT]
        out: Output[INT]

        def compute(self):
            total = 0
            for i in range(self.rounds):
                total += i
            self.out = total

    out = bench.variable("out", [0, 0], [1, 2])
    compute_set = bench.graph.addComputeSet("alternate")
    for number in range(2):
        bench.vertex(compute_set, Alternate, number + 1, rounds=slow[number], out=out[number])
    swap = bench.variable("swap", [0, 0], [1, 2])
    program = Repeat(2, Sequence([Execute(compute_set), Copy(slow.reverse(0), swap), Copy(swap, slow)]))
    step = compute_step(bench, program, mode, "alternate")
    assert step.cyclesByTile[1] == step.cyclesByTile[2]
    assert step.compute_cycles > step.cyclesByTile[1]


def test_steps_of_a_compute_set_share_what_tiles_do_as_far_as_it_is_the_same(mode):
    """Four steps, between the second and third of which the vertex gets more to do."""
    bench = Bench()
    rounds = bench.variable("rounds", [10], [1])

    class Take(Vertex):
        rounds: Input[INT]
        out: Output[INT]

        def compute(self):
            total = 0
            for i in range(self.rounds):
                total += i
            self.out = total

    compute_set = bench.graph.addComputeSet("take")
    bench.vertex(compute_set, Take, 1, rounds=rounds[0], out=bench.variable("out", [0], [1])[0])
    take, more = Execute(compute_set), bench.execute(Add, 1, value=rounds[0], amount=100)
    steps = execution(bench, Sequence([take, take, more, take, take]), mode).steps
    cycles = [one.cyclesByTile for one in steps if one.name == "take" and one.type == "OnTileExecute"]
    assert cycles[0] is cycles[1]
    assert cycles[2] is cycles[3]
    assert cycles[0][1] < cycles[2][1]
    assert [np.flatnonzero(one).tolist() for one in cycles] == [[1]] * 4


def test_averages_are_over_all_tiles(mode):
    bench = Bench()
    program = Repeat(3, works(bench, [0] * 7, [3] * 7, estimates=[10, 20, 30, 10, 10, 10, 50]))
    average = execution(bench, program, mode).tile_average
    # The seventh vertex follows the first on its worker.
    assert average.compute_including_idle == 3 * 6 * (10 + 50) / 16
    assert average.compute_excluding_idle == 3 * (10 + 20 + 30 + 10 + 10 + 10 + 50) / 16


def test_sync_is_what_is_left_of_the_mean_tiles_time_as_poplar_has_it(mode):
    bench = Bench()
    x, y = bench.variable("x", np.arange(10.0), 3), bench.variable("y", np.zeros(10), np.arange(10))
    report = execution(bench, Sequence([works(bench, [5, 9], [3, 8]), Copy(x, y)]), mode)
    average = report.tile_average
    busy = average.compute_including_idle + average.exchange + average.copies + average.global_exchange + average.host_exchange
    assert average.sync == report.totalCycles.total - busy
    assert average.sync - average.waiting == sum(one.sync_cycles for one in report.steps) > 0
    assert average.waiting > 0


def test_estimates_are_summed_by_vertex_type_without_idle_threads(mode):
    bench = Bench()
    a = bench.variable("a", np.ones((50, 4)), np.repeat(np.arange(50) % 16, 4))
    out = bench.variable("out", np.zeros(50), np.arange(50) % 16)
    multiply = bench.graph.addComputeSet("multiply")
    for row in range(50):
        vertex = bench.vertex(multiply, Dot, row % 16, a=a[row], b=a[row], out=out[row])
        bench.graph.setPerfEstimate(vertex, 105)
    program = Sequence([Repeat(10, Execute(multiply)), works(bench, [0] * 8, [5] * 8, estimates=[8] * 8)])
    by_type = execution(bench, program, mode, runs=2).cycles_by_vertex_type
    assert (by_type["Dot"].instances, by_type["Dot"].cycles) == (50, 50 * 105 * 10 * 2)
    assert (by_type["Work"].instances, by_type["Work"].cycles) == (8, 8 * 8 * 2)


def test_vertices_are_counted_once_however_often_their_set_is_executed(mode):
    bench = Bench()
    work = works(bench, [1, 2, 3], [0, 1, 2])
    first, second = bench.variable("first", False), bench.variable("second", False)
    program = Sequence([work, Execute(work.compute_set, first), Execute(work.compute_set, second), Repeat(3, work)])
    report = execution(bench, program, mode)
    assert report.cycles_by_vertex_type["Work"].instances == 3


def test_the_tutorials_segments_cost_what_it_says():
    """8 rounds of 77 and 2 rounds of 9 cycles on six workers are 3804 cycles of a full tile."""
    bench = Bench()
    multiply = works(bench, [0] * 48, [3] * 48, "multiply", estimates=[77] * 48)
    reduce = works(bench, [0] * 12, [3] * 12, "reduce", estimates=[9] * 12)
    report = execution(bench, Sequence([multiply, reduce]), "native")
    assert sum(int(one.cyclesByTile.sum()) for one in report.steps if len(one.cyclesByTile)) == 3804


def test_an_estimator_prices_vertices_that_have_no_estimate_of_their_own(mode):
    bench = Bench()
    work = works(bench, [3, 4], [1, 2])
    bench.graph.registerPerfEstimator("Work", lambda vertex, target: 1000)
    step = compute_step(bench, work, mode)
    assert step.cyclesByTile[1] == step.cyclesByTile[2] == 6000

    bench = Bench()
    work = works(bench, [3, 4], [1, 2], estimates=[7, 9])
    bench.graph.registerPerfEstimator("Work", lambda vertex, target: VertexPerfEstimate(1000))
    assert compute_step(bench, work, mode).cyclesByTile[1:3].tolist() == [42, 54]


@pytest.mark.parametrize(("small", "large"), [(0, 50), (50, 100), (1, 2)])
def test_code_costs_in_proportion_to_what_it_does(mode, small, large):
    bench = Bench()
    rounds = [small, large, 2 * large]
    cycles = compute_step(bench, works(bench, rounds, [1, 2, 3]), mode).cyclesByTile[1:4]
    per_round = (cycles[2] - cycles[1]) / large
    assert per_round > 0
    assert cycles[1] - cycles[0] == per_round * (large - small)
    assert (cycles % 6 == 0).all()


def test_a_multi_vertex_takes_all_workers_for_its_slowest(mode):
    bench = Bench()
    out = bench.variable("out", np.zeros((2, 6), np.int32), [2] * 12)
    compute_set = bench.graph.addComputeSet("work")
    for row, rounds in enumerate((50, 70)):
        bench.vertex(compute_set, TogetherWork, 2, out=out[row], rounds=rounds)
    step = compute_step(bench, Execute(compute_set), mode)
    alone = []
    for rounds in (50, 70):
        other = Bench()
        out = other.variable("out", np.zeros(6, np.int32), 2)
        compute_set = other.graph.addComputeSet("work")
        other.vertex(compute_set, TogetherWork, 2, out=out, rounds=rounds)
        alone.append(int(compute_step(other, Execute(compute_set), mode).cyclesByTile[2]))
    assert alone[1] - alone[0] >= 20 * 6
    assert step.cyclesByTile[2] == sum(alone)


def test_a_supervisors_code_takes_six_cycles_an_instruction_and_an_estimate_of_it_is_in_cycles(mode):
    bench = Bench()
    by_code = [works(bench, [rounds], [1], f"{rounds} rounds", SupervisorWork) for rounds in (100, 101)]
    estimated = works(bench, [100], [1], "estimated", SupervisorWork, estimates=[100])
    steps = {one.name: one for one in execution(bench, Sequence([*by_code, estimated]), mode).steps}
    round = steps["101 rounds"].cyclesByTile[1] - steps["100 rounds"].cyclesByTile[1]
    assert round == 6 * 5  # multiply and add; add, compare, branch
    assert steps["estimated"].cyclesByTile[1] == 100


def test_exchange_costs_four_bytes_a_cycle_and_three_cycles_a_piece(mode):
    bench = Bench()
    x, y = bench.variable("x", np.zeros(1000), 3), bench.variable("y", np.zeros(1000), 9)
    engine = bench.engine(
        Sequence([Copy(x, y, name="long"), Copy(x[0:10].subSample(2, 0), y[0:10].subSample(2, 0), name="bits")]), mode
    )
    engine.run()
    long, bits = engine.getReport().execution.steps
    assert (long.exchange_cycles, long.exchange_cycles_by_tile[[3, 9]].tolist()) == (1000, [1000, 1000])
    assert bits.exchange_cycles == 15
    assert long.bytesSentByTile[3] == long.bytesReceivedByTile[9] == 4000
    assert long.sync_cycles == engine.executable.target.getMaxIPUSyncDelay()
    assert engine.getReport().execution.tile_average.exchange == (2 * 1000 + bits.exchange_cycles_by_tile.sum()) / 16


def test_copies_on_the_tile_are_told_apart_from_the_exchange(mode):
    bench = Bench()
    x, y = bench.variable("x", np.zeros(1000), 3), bench.variable("y", np.zeros(1000), 3)
    z = bench.variable("z", np.zeros(1000), 9)
    both = Copy(concat([x, x]), concat([y, z]), name="both")
    engine = bench.engine(Repeat(2, Sequence([Copy(x, y, name="alone"), both])), mode)
    engine.run()
    alone, together = engine.getReport().execution.steps
    assert (alone.exchange_cycles, alone.bytesSentByTile.sum()) == (0, 0)
    assert alone.copy_cycles == alone.copy_cycles_by_tile[3] == alone.copy_cycles_by_tile.sum() > 1000
    assert together.exchange_cycles == together.exchange_cycles_by_tile[3] == together.exchange_cycles_by_tile[9] == 2000
    assert together.copy_cycles == together.copy_cycles_by_tile[3] == alone.copy_cycles  # after the exchange of the same tile
    assert together.cycles == together.sync_cycles + 2000 + together.copy_cycles
    average = engine.getReport().execution.tile_average
    assert average.copies == 2 * alone.copy_cycles / 16


def test_streams_cost_host_bytes(mode):
    bench = Bench()
    x = bench.variable("x", np.zeros(100), np.arange(100) % 16)
    stream = bench.graph.addDeviceToHostFIFO("out", FLOAT, 100)
    engine = bench.engine(Repeat(3, Copy(x, stream, name="give")), mode)
    engine.connectStream("out", np.zeros(100, np.float32))
    engine.run()
    (step,) = engine.getReport().execution.steps
    assert (step.name, step.type, step.executions, step.host_bytes) == ("give", "StreamCopy", 3, 1200)
    assert step.host_exchange_cycles == engine.getReport().execution.tile_average.host_exchange > 0


def test_handles_cost_nothing(mode):
    bench = Bench()
    bench.variable("x", np.zeros(100), np.arange(100) % 16)
    engine = bench.engine(Sequence(), mode)
    engine.run()
    engine.writeTensor("x", np.ones(100, np.float32))
    engine.readTensor("x")
    assert engine.getReport().execution.totalCycles.total == 0


def test_resetting_and_loading_forget_what_runs_cost(mode):
    bench = Bench()
    engine = bench.engine(works(bench, [4], [2]), mode)
    engine.run(0, "mine")
    once = engine.getReport().execution
    assert once.programs == ("mine",)
    for forget in (engine.resetExecutionProfile, engine.load):
        forget()
        assert engine.getReport().execution is None
        engine.run()
        again = engine.getReport().execution
        assert again.totalCycles == once.totalCycles
        assert again.programs == ("program 0",)
        assert again.cycles_by_vertex_type == once.cycles_by_vertex_type


def test_a_report_is_not_changed_by_later_runs(mode):
    bench = Bench()
    engine = bench.engine(works(bench, [4], [2]), mode)
    engine.run()
    report = engine.getReport().execution
    before = (report.totalCycles, report.steps[0].cyclesByTile.tolist())
    engine.run()
    assert (report.totalCycles, report.steps[0].cyclesByTile.tolist()) == before


def test_engines_of_one_executable_have_their_own_accounts(mode):
    bench = Bench()
    first = bench.engine(works(bench, [4], [2]), mode)
    second = Engine(first.executable, mode=mode)
    second.load()
    first.run()
    first.run()
    second.run()
    assert first.getReport().execution.totalCycles.total == 2 * second.getReport().execution.totalCycles.total


def test_the_summary_shows_totals_and_steps(mode):
    bench = Bench()
    x, y = bench.variable("x", np.zeros(100), 1), bench.variable("y", np.zeros(100), 2)
    engine = bench.engine(Sequence([works(bench, [4], [2], "heavy work"), Copy(x, y, name="to y")]), mode)
    engine.run()
    out = io.StringIO()
    engine.printProfileSummary(out, {"showExecutionSteps": "true"})
    text = out.getvalue()
    assert f"{engine.getReport().execution.totalCycles.total:,}" in text
    for part in ("Memory Usage", "Execution", "heavy work", "to y", "Work"):
        assert part in text


def test_derived_cycles_do_not_depend_on_where_data_is(mode):
    """What a vertex costs is its own; how its data came is exchange."""
    cycles = []
    for tile in (5, 9):
        bench = Bench()
        value = bench.variable("value", 0, tile)
        cycles.append(compute_step(bench, bench.execute(Add, 5, value=value, amount=1), mode, "Add").cyclesByTile[5])
    assert cycles[0] == cycles[1] > 0


def test_workers_of_a_multivertex_that_wait_for_its_slowest_are_idle(mode):
    """Also beside a vertex on one worker; an estimate says nothing of workers."""
    bench = Bench()
    out, alone = bench.variable("out", np.zeros((4, 6), np.int32), np.repeat(range(4), 6)), bench.variable("alone", 0, 1)
    compute_set = bench.graph.addComputeSet("work")
    for tile in range(4):
        vertex = bench.vertex(compute_set, TogetherWork, tile, out=out[tile], rounds=100 if tile < 3 else 1)
        if tile == 2:
            bench.graph.setPerfEstimate(vertex, 1000)
    bench.vertex(compute_set, Work, 1, out=alone, rounds=1)
    step = compute_step(bench, Execute(compute_set), mode)
    least, most = (int(step.cyclesByTile[tile]) // 6 for tile in (3, 0))
    assert step.cyclesByTile[2] == step.activeCyclesByTile[2] == 6000
    assert step.activeCyclesByTile[3] == 6 * least  # all have as much to do
    assert step.activeCyclesByTile[0] == most + 5 * least < 0.4 * step.cyclesByTile[0]
    on_one = int(step.activeCyclesByTile[1] - step.activeCyclesByTile[0])
    assert step.cyclesByTile[1] == step.cyclesByTile[0] + 6 * on_one > step.cyclesByTile[0]
    costs = execution(bench, Execute(compute_set), mode).cycles_by_vertex_type
    assert costs["TogetherWork"].cycles == 6 * (2 * most + least + 1000)  # what a vertex takes is what its tile has to wait
