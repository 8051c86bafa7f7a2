"""The first runs have accounts and a trace of their own; those that follow are counted together."""

import io
from unittest.mock import patch

import numpy as np
import pytest
from engine_builder import Add, Bench, everywhere, traced
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import FLOAT, INT, Input, IPUModel, PoplarError, SyncType, Vector, Vertex
from pypoplar.engine import run_tables as account
from pypoplar.engine.events import EventLog
from pypoplar.engine.run_tables import RunTables
from pypoplar.engine.runs import LATER, MOST_NAMES
from pypoplar.interface.header_slots import Slot
from pypoplar.program import Call, Copy, Execute, If, PrintTensor, Repeat, Sequence, Switch, Sync

KEPT = "autoReport.executionProfileProgramRunCount"


class At(Vertex):
    """Fails if `index` is not within `values`."""

    values: Input[Vector[INT]]
    index: Input[INT]

    def compute(self):
        assert self.values[self.index] == 0


def busy(bench):
    """A program of every kind of step, with loops and calls."""
    x, y = bench.variable("x", np.arange(40), np.arange(40) % 16), bench.variable("y", np.zeros(40, np.int32), 3)
    value, flag = bench.variable("value", 0, 5), bench.variable("flag", True)
    stream = bench.graph.addHostToDeviceFIFO("in", INT, 40)
    add = bench.execute(Add, 9, value=value, amount=1)
    function = bench.graph.addFunction(Sequence([add, Copy(x, y)]))
    return Sequence(
        [
            Copy(stream, x),
            Repeat(5, Sequence([Call(function), add])),
            If(flag, add),
            Switch(value, [(11, Call(function))], add),
            Sync(SyncType.GLOBAL),
            PrintTensor("value", value),
        ]
    )


def ran(bench, program, mode, runs=1, options=None):
    engine = bench.engine(program, mode, options)
    engine.setPrintStream(io.StringIO())
    if "in" in [one.name for one in engine.executable.streams]:
        engine.connectStream("in", np.arange(40, dtype=np.int32))
    for _ in range(runs):
        engine.run()
    return engine


def test_the_first_runs_are_kept_apart_and_later_ones_together(mode):
    bench = Bench()
    engine = ran(bench, busy(bench), mode, 5)
    execution = engine.getReport().execution
    assert [(one.name, one.count) for one in execution.runs] == [("program 0", 1), ("program 0", 1), ("program 0", 3)]
    assert sum(one.cycles for one in execution.runs) == execution.totalCycles.total
    first, second, later = execution.runs
    assert first.cycles > second.cycles == later.cycles / 3  # the second one's switch goes another way


@pytest.mark.parametrize("kept", [0, 1, 4, 9])
def test_as_many_runs_are_kept_as_the_option_says(mode, kept):
    bench = Bench()
    execution = ran(bench, busy(bench), mode, 4, {KEPT: kept}).getReport().execution
    apart = min(kept, 4)
    assert [one.count for one in execution.runs] == [1] * apart + ([4 - apart] if apart < 4 else [])
    assert set(execution.trace.run.tolist()) == set(range(apart))
    assert sum(one.executions for one in execution.steps) == len(execution.trace) + execution.trace.missed
    assert (execution.trace.missed == 0) == (apart == 4)


def test_steps_are_the_sum_over_the_runs_however_many_are_kept(mode):
    def steps(kept):
        bench = Bench()
        found = ran(bench, busy(bench), mode, 4, {KEPT: kept}).getReport().execution
        arrays = ("cyclesByTile", "activeCyclesByTile", "exchange_cycles_by_tile", "bytesSentByTile", "bytesReceivedByTile")
        return [
            (one.name, one.number, one.executions, one.cycles, one.host_bytes, *(getattr(one, name).tolist() for name in arrays))
            for one in found.steps
        ], found.cycles_by_vertex_type

    assert steps(0) == steps(2) == steps(9)


def test_later_runs_are_called_by_their_name_if_it_is_one(mode):
    bench = Bench()
    engine = bench.engine(bench.execute(Add, value=bench.variable("value", 0), amount=1), mode)
    for name in ("a", "b", "c", "c"):
        engine.run(0, name)
    assert engine.getReport().execution.runs[-1].name == "c"
    engine.run(0, "d")
    execution = engine.getReport().execution
    assert [(one.name, one.count) for one in execution.runs] == [("a", 1), ("b", 1), (LATER, 3)]
    assert execution.programs == ("a", "b", "c", "d")


def test_names_of_runs_do_not_grow_without_end(mode):
    bench = Bench()
    engine = bench.engine(Sequence(), mode)
    for number in range(MOST_NAMES + 5):
        engine.run(0, f"run {number}")
    execution = engine.getReport().execution
    assert execution.programs == tuple(f"run {number}" for number in range(MOST_NAMES))
    assert execution.runs[-1].count == MOST_NAMES + 3


def test_the_trace_has_every_step_in_order(mode):
    bench = Bench()
    execution = ran(bench, busy(bench), mode, 2).getReport().execution
    trace = execution.trace
    assert trace.missed == 0
    assert trace.cycles.sum() == execution.totalCycles.total
    assert trace.begin[0] == 0
    assert (trace.begin[1:] == trace.begin[:-1] + trace.cycles[:-1]).all()
    for number, run in enumerate(execution.runs):
        steps = {one.number: one for one in run.steps}
        here = trace.run == number
        assert np.bincount(trace.step[here]).tolist() == [
            steps[one].executions if one in steps else 0 for one in range(max(steps) + 1)
        ]
        assert {one: int(trace.cycles[here & (trace.step == one)].sum()) for one in steps} == {
            one: steps[one].cycles for one in steps
        }


def test_the_trace_is_in_the_order_of_the_program(mode):
    bench = Bench()
    value = bench.variable("value", 0, 5)
    a, b, c = (bench.execute(Add, 5, value=value, amount=one) for one in (1, 2, 3))
    execution = ran(bench, Sequence([a, Repeat(2, Sequence([b, c]))]), mode).getReport().execution
    a, b, c = sorted(set(execution.trace.step.tolist()))
    assert execution.trace.step.tolist() == [a, b, c, b, c]


def test_both_engines_and_any_number_of_threads_write_the_same_trace():
    def work(mode, options):
        bench = Bench()
        return traced(ran(bench, busy(bench), mode, 3, options).getReport().execution.trace)

    everywhere(work, {KEPT: 3})


def test_what_is_beyond_the_limit_is_counted(mode):
    bench = Bench()
    value = bench.variable("value", 0, 5)
    engine = bench.engine(Repeat(5, bench.execute(Add, 5, value=value, amount=1)), mode)
    engine._runs.log = EventLog(7)
    for _ in range(3):
        engine.run()
    execution = engine.getReport().execution
    assert execution.trace.run.tolist() == [0] * 5 + [1] * 2
    assert execution.trace.missed == 8


def test_a_run_that_fails_is_in_no_run_and_no_trace(mode):
    bench = Bench()
    values, index = bench.variable("values", np.zeros(4, np.int32), 2), bench.variable("index", 0, 2)
    add = bench.execute(Add, 3, value=bench.variable("value", 0, 3), amount=1)
    engine = bench.engine(Sequence([add, bench.execute(At, 2, values=values, index=index), add]), mode, {KEPT: 1})
    reports = []
    for wrong in (True, False, True, False, True, True, False):
        engine.writeTensor("index", np.int32(9 if wrong else 0))
        if wrong:
            with pytest.raises(PoplarError):
                engine.run()
        else:
            engine.run()
        execution = engine.getReport().execution
        reports.append(execution and [(one.name, one.count, one.cycles) for one in execution.runs])
    once = reports[1][0][2]
    assert reports[0] is None
    assert reports[1] == reports[2] == [("program 0", 1, once)]
    assert reports[3] == reports[4] == reports[5] == [("program 0", 1, once), ("program 0", 1, once)]
    assert reports[6] == [("program 0", 1, once), ("program 0", 2, 2 * once)]
    assert execution.trace.cycles.sum() == once
    assert execution.trace.begin[0] == 0


@pytest.mark.parametrize("noted", [True, False])
def test_an_interrupt_while_a_run_is_noted_leaves_the_runs_before_as_they_are(mode, noted):
    begin_run = EventLog.begin_run

    def interrupted(log):
        if noted:
            begin_run(log)
        raise KeyboardInterrupt

    bench = Bench()
    value = bench.variable("value", 0, 5)
    engine = bench.engine(bench.execute(Add, 5, value=value, amount=1), mode, {KEPT: 4})
    for _ in range(2):
        engine.run()
    before = engine.getReport().execution.trace
    with patch.object(EventLog, "begin_run", interrupted), pytest.raises(KeyboardInterrupt):
        engine.run()
    after = engine.getReport().execution.trace
    assert (after.run.tolist(), after.begin.tolist()) == (before.run.tolist(), before.begin.tolist())
    engine.run()
    assert engine.getReport().execution.trace.run.tolist() == [0, 1, 2]


def test_a_report_from_within_a_run_leaves_that_run_out(mode):
    bench = Bench()
    x = bench.variable("x", np.zeros(4), 2)
    stream = bench.graph.addDeviceToHostFIFO("out", FLOAT, 4)
    engine = bench.engine(Repeat(2, Copy(x, stream)), mode, {KEPT: 1})
    seen = []

    def look(values):
        execution = engine.getReport().execution
        seen.append(None if execution is None else [one.count for one in execution.runs])

    engine.connectStreamToCallback("out", look)
    for _ in range(4):
        engine.run()
    assert seen == [None, None, [1], [1], [1, 1], [1, 1], [1, 2], [1, 2]]


@pytest.mark.parametrize("kept", [0, 1, 5])
@pytest.mark.parametrize("change", ["resetExecutionProfile", "disableExecutionProfiling", "enableExecutionProfiling"])
def test_a_callback_may_change_what_is_profiled(mode, change, kept):
    """A run counts if it is profiled from its beginning to its end."""
    bench = Bench()
    x = bench.variable("x", np.zeros(4), 2)
    stream = bench.graph.addDeviceToHostFIFO("out", FLOAT, 4)
    engine = bench.engine(Repeat(2, Copy(x, stream)), mode, {KEPT: kept})
    engine.connectStreamToCallback("out", lambda values: None)
    engine.run()
    once = engine.getReport().execution.totalCycles.total
    engine.run()
    if change == "enableExecutionProfiling":
        engine.disableExecutionProfiling()
    engine.connectStreamToCallback("out", lambda values: getattr(engine, change)())
    engine.run()
    engine.connectStreamToCallback("out", lambda values: None)
    engine.enableExecutionProfiling()
    engine.run()
    execution = engine.getReport().execution
    runs = 1 if change == "resetExecutionProfile" else 3
    assert sum(one.count for one in execution.runs) == runs
    assert execution.totalCycles.total == runs * once
    assert sum(one.executions for one in execution.steps) == len(execution.trace) + execution.trace.missed == 2 * runs


def test_runs_that_are_not_profiled_are_neither_kept_nor_traced(mode):
    bench = Bench()
    engine = ran(bench, busy(bench), mode)
    engine.disableExecutionProfiling()
    before = traced(engine.getReport().execution.trace)
    engine.run()
    engine.enableExecutionProfiling()
    assert str(traced(engine.getReport().execution.trace)) == str(before)
    engine.run()
    execution = engine.getReport().execution
    assert [one.count for one in execution.runs] == [1, 1]
    first, second = (execution.trace.begin[execution.trace.run == one] for one in (0, 1))
    assert second[0] == execution.runs[0].cycles > first[-1]


def test_resetting_the_profile_keeps_the_first_runs_anew(mode):
    bench = Bench()
    engine = ran(bench, busy(bench), mode, 5)
    engine.resetExecutionProfile()
    engine.run()
    execution = engine.getReport().execution
    assert [one.count for one in execution.runs] == [1]
    assert set(execution.trace.run.tolist()) == {0}
    assert execution.trace.cycles.sum() == execution.totalCycles.total


def test_traces_add_up_with_more_than_one_ipu(mode):
    model = IPUModel("tiny")
    model.numIPUs, model.tilesPerIPU = 2, 8
    bench = Bench(model.createDevice())
    x, y = bench.variable("x", np.zeros(100), 1), bench.variable("y", np.zeros(100), 14)
    engine = bench.engine(Sequence([Copy(x, y), Sync(SyncType.EXTERNAL), Copy(y, x)]), mode)
    engine.run()
    execution = engine.getReport().execution
    for ipu in (0, 1):
        assert execution.trace.of_ipu(ipu).cycles.sum() == execution.totalCycles.total > 0


def test_steps_know_their_place_in_the_program_tree(mode):
    bench = Bench()
    report = ran(bench, busy(bench), mode).getReport()
    for step in report.execution.steps:
        assert step.program is report.compilation.step_programs[step.number]
        assert step.program.name == step.name
        assert step.program.type == step.type


def test_several_programs_of_one_engine_have_their_own_runs(mode):
    bench = Bench()
    value = bench.variable("value", 0, 5)
    programs = [Execute(bench.execute(Add, 5, value=value, amount=one).compute_set, name=f"add {one}") for one in range(3)]
    engine = bench.engine(programs, mode, {KEPT: 2})
    for number in (2, 0, 1, 1, 2):
        engine.run(number)
    execution = engine.getReport().execution
    assert [(one.name, one.count, len(one.steps)) for one in execution.runs] == [
        ("program 2", 1, 1),
        ("program 0", 1, 1),
        (LATER, 3, 2),
    ]
    assert [one.executions for one in execution.steps] == [1, 2, 2]


@given(st.data())
def test_an_account_takes_over_what_runs_have_changed(data):
    """A run changes counts of the steps that it executes; it need not change their tiles' counts."""
    tiles = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=9))
    step_account = np.concatenate(([0], np.cumsum(tiles)))
    sizes = {
        Slot.EXECUTIONS: len(tiles),
        Slot.COMPUTE_CYCLES: len(tiles),
        Slot.TILE_CYCLES: sum(tiles),
        Slot.TILE_SLOTS: sum(tiles),
    }
    sizes |= {Slot.CODELET_SLOTS: 3, Slot.STEP_FLOPS: 2 * len(tiles), Slot.CODELET_FLOPS: 0}
    sizes |= {Slot.BLOCKS: 4, Slot.SLOWEST: 2}
    later, settled = RunTables.empty(sizes, step_account), RunTables.empty(sizes, step_account)
    for _ in range(3):
        for step in data.draw(st.lists(st.integers(0, len(tiles) - 1))):
            begin, end = step_account[step : step + 2]
            later.tables[Slot.EXECUTIONS][step] += 1
            later.tables[Slot.COMPUTE_CYCLES][step] += data.draw(st.integers(0, 9))
            later.tables[Slot.TILE_CYCLES][begin:end] += step + 1
            later.tables[Slot.TILE_SLOTS][begin:end] += 1
            later.tables[Slot.CODELET_SLOTS][1] += 5
            later.tables[Slot.STEP_FLOPS][2 * step] += 7
            later.tables[Slot.BLOCKS][3] += 2
        with patch.object(account, "SMALL", data.draw(st.sampled_from([0, 1 << 14]))):
            settled.take_over(later)
        assert settled.whole.tolist() == later.whole.tolist()


def test_large_and_small_accounts_agree(mode, monkeypatch):
    def reports():
        bench = Bench()
        engine = ran(bench, busy(bench), mode, 5)
        execution = engine.getReport().execution
        return [
            [(one.number, one.executions, one.cyclesByTile.tolist(), one.cycles) for one in run.steps] for run in execution.runs
        ]

    expected = reports()
    monkeypatch.setattr(account, "SMALL", 0)
    assert reports() == expected
