"""What tiles do is recorded in the first and last executions of a step, as it was."""

import numpy as np
import pytest
from engine_builder import Bench, tiny

from pypoplar import INT, Engine, InOut, Vector, Vertex, pva
from pypoplar.engine import run_tables
from pypoplar.engine.run_tables import recorded_executions, recorded_place
from pypoplar.program import Execute, Repeat, Sequence
from pypoplar.report.making import make_recorded

MODES = ["native", "interpret"]


class Growing(Vertex):
    """Each execution takes longer than the one before."""

    n: InOut[INT]
    x: InOut[Vector[INT]]

    def compute(self):
        self.n += 1
        for _ in range(self.n):
            for i in range(len(self.x)):
                self.x[i] = self.x[i] + 1


class Steady(Vertex):
    x: InOut[INT]

    def compute(self):
        self.x += 1


def built(rounds, tiles=(1, 3), codelet=Growing):
    """A loop of so many rounds, in which the tiles have ever more to do, each of them more than the one before."""
    bench = Bench(tiny())
    counts = bench.variable("counts", np.zeros(len(tiles), int), tiles)
    compute_set = bench.graph.addComputeSet("work")
    for place, tile in enumerate(tiles):
        if codelet is Growing:
            values = bench.variable(f"values{place}", np.zeros(place + 1, int), tile)
            bench.vertex(compute_set, codelet, tile, n=counts[place], x=values)
        else:
            bench.vertex(compute_set, codelet, tile, x=counts[place])
    return bench, Sequence(Repeat(rounds, Execute(compute_set)))


def ran(bench, program, mode="native", runs=1, **options):
    engine = Engine(bench.graph, program, options, mode=mode)
    engine.load(bench.device)
    for _ in range(runs):
        engine.run()
    return engine.getReport()


def times(report, run=0):
    """By number of the execution, what the tiles did in it."""
    trace = report.execution.trace
    rows = {int(trace.tiles.execution[place]): trace.tiles.by_tile(place, 16) for place in np.flatnonzero(trace.tiles.run == run)}
    return {number: row[[1, 3]].tolist() for number, row in rows.items()}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("rounds", "kept"), [(2, [0, 1]), (20, range(20)), (33, [*range(10), *range(23, 33)])])
def test_the_first_and_last_ten_executions_are_recorded_as_they_were(mode, rounds, kept):
    found = times(ran(*built(rounds), mode))
    assert list(found) == list(kept)
    step = (found[1][0] - found[0][0], found[1][1] - found[0][1])
    assert step[1] > step[0] > 0
    assert found == {number: [found[0][0] + number * step[0], found[0][1] + number * step[1]] for number in kept}


@pytest.mark.parametrize("mode", MODES)
def test_recorded_times_add_up_to_the_steps_and_the_longest_is_the_events(mode):
    report = ran(*built(15), mode)
    trace, (step,) = report.execution.trace, report.execution.steps
    found = times(report)
    assert np.sum(list(found.values()), 0).tolist() == step.cyclesByTile[[1, 3]].tolist()
    events = trace.events_of_tiles()
    fixed = step.sync_cycles // step.executions
    assert trace.cycles[events].tolist() == [max(row) + fixed for row in found.values()]


def test_both_engines_and_any_number_of_threads_record_the_same():
    programs = [
        ran(*built(25), mode, runs=2, **{"pypoplar.threads": threads}).execution.trace
        for mode, threads in (("native", 1), ("native", 2), ("interpret", 1))
    ]
    for other in programs[1:]:
        for name in ("step", "run", "execution", "first", "tile", "cycles"):
            assert getattr(other.tiles, name).tolist() == getattr(programs[0].tiles, name).tolist()


def test_each_kept_run_has_its_own_and_later_runs_none():
    report = ran(*built(4), runs=3, **{"autoReport.executionProfileProgramRunCount": 2})
    first, second, third = (times(report, run) for run in range(3))
    assert list(first) == list(second) == [0, 1, 2, 3]
    assert first[3] < second[0]
    assert third == {}


def test_executions_that_are_all_alike_are_told_by_their_mean():
    trace = ran(*built(30, codelet=Steady)).execution.trace
    assert (len(trace.tiles), trace.recorded, trace.unrecorded) == (0, 10, 0)


class Failing(Vertex):
    """Counts down, each time faster, to a division by 0."""

    n: InOut[INT]

    def compute(self):
        count = 0
        for _ in range(self.n):
            count = count + 1
        self.n = self.n - 12 // self.n - count // count


def test_a_run_that_fails_leaves_no_times_of_its_own():
    bench = Bench(tiny())
    program = Repeat(3, bench.execute(Failing, 1, n=bench.variable("n", 20, 1)))
    engine = Engine(bench.graph, program)
    engine.load(bench.device)
    engine.run()
    before = times(engine.getReport())
    assert list(before) == [0, 1, 2]
    engine.writeTensor("n", np.array(1, np.int32))
    with pytest.raises(ArithmeticError):
        engine.run()
    assert times(engine.getReport()) == before
    assert times(engine.getReport(), 1) == {}


def test_a_program_of_many_tiles_records_fewer_executions(monkeypatch):
    monkeypatch.setattr(run_tables, "LIMIT", 12)
    trace = ran(*built(10)).execution.trace
    assert (trace.recorded, trace.tiles.execution.tolist()) == (3, [0, 1, 2, 7, 8, 9])
    monkeypatch.setattr(run_tables, "LIMIT", 3)
    trace = ran(*built(10)).execution.trace
    assert (trace.recorded, len(trace.tiles)) == (0, 0)


def test_no_more_is_kept_than_there_is_room_for_and_the_longest_steps_first(monkeypatch):
    bench, program = built(5)
    other = bench.variable("other", 0, 5)
    few = bench.execute(Growing, 5, n=bench.variable("few", 0, 5), x=bench.variable("one", [0], 5))
    whole = Sequence(program, Repeat(5, Sequence(few, bench.execute(Steady, 5, x=other))))
    assert len(set(ran(bench, whole).execution.trace.tiles.step.tolist())) == 2
    monkeypatch.setattr(make_recorded, "MOST_TILES", 5 * 16)
    report = ran(bench, whole)
    longest = max(report.execution.steps, key=lambda step: step.compute_cycles)
    assert set(report.execution.trace.tiles.step.tolist()) == {longest.number}
    assert report.execution.trace.unrecorded == 5


def test_a_price_without_a_run_has_the_rows_of_one_where_data_decide_nothing(tmp_path):
    for mode in ("native", "cost"):
        pva.save_report(ran(*built(30, codelet=Steady), mode), tmp_path / f"{mode}.pop")
    run, cost = (pva.openReport(tmp_path / f"{mode}.pop").execution.trace for mode in ("native", "cost"))
    assert (run.recorded, len(run.tiles), run.unrecorded) == (cost.recorded, len(cost.tiles), cost.unrecorded)


def test_places_of_a_recorder_never_meet():
    account = np.array([0, 3, 3, 8], np.int64)
    kept = recorded_executions(account)
    places = {
        place + tile
        for step, tiles in ((0, 3), (2, 5))
        for execution in range(2 * kept)
        for place in [recorded_place(account, step, execution, kept)]
        for tile in range(tiles)
    }
    assert places == set(range(2 * kept * 8))
