"""Each IPU has a clock: steps of several run at the same time, and wait for each other where something comes from another."""

import random
from unittest.mock import patch

import numpy as np
import pytest
from engine_builder import WAYS, Bench, tiny
from engine_random import ALL, PURE, RandomProgram
from hypothesis import given, reject
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import INT, AtomicStoreError, Device, Engine, InOut, InvalidOption, PoplarError, SupervisorVertex, compileGraph, pva
from pypoplar.engine import division
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import ComputeOperand, Opcode, ProgramRow
from pypoplar.program import Copy, Execute, If, Repeat, Sequence, Sync, SyncType, cycleCount

TILES = 4
SEEDS = st.integers(0, 2**32 - 1)
CONFIGURATIONS = ("intraReplicaAndAll", "ipuAndAll")


def device_of(ipus, timing="model", configuration=CONFIGURATIONS[0], tiles=TILES):
    target = tiny(tiles, timing, ipus).getTarget().evolve(sync_configuration=configuration)
    return Device.createSimulatorDevice(target)


class Idle(SupervisorVertex):
    """So many cycles of a tile, by its estimate."""

    out: InOut[INT]

    def compute(self):
        self.out = self.out


class Machine(Bench):
    """Variables on several IPUs, and work that takes given cycles on one of them."""

    def __init__(self, ipus, configuration=CONFIGURATIONS[0]):
        super().__init__(device_of(ipus, configuration=configuration))

    def on(self, ipu, name, elements=8):
        return self.variable(name, np.zeros(elements), ipu * TILES)

    def work(self, ipu, cycles, name):
        """A compute set of one vertex: no other IPU has anything to do with it."""
        compute_set = self.graph.addComputeSet(name)
        vertex = self.vertex(compute_set, Idle, ipu * TILES, out=self.variable(f"{name} of", [0], ipu * TILES)[0])
        self.graph.setPerfEstimate(vertex, cycles)
        return Execute(compute_set)


def facts(engine):
    """All that a report says of times."""
    execution = engine.getReport().execution
    trace = execution.trace
    events = zip(*(getattr(trace, name).tolist() for name in ("run", "step", "ipu", "begin", "cycles")), strict=True)
    return {
        "total": execution.totalCycles.total,
        "ipus": execution.ipus,
        "steps": [(step.name, step.executions, step.cycles, step.cycles_by_ipu.tolist()) for step in execution.steps],
        "runs": [(run.cycles, run.waiting_by_ipu.tolist()) for run in execution.runs],
        "events": sorted(events),
        "missed": trace.missed,
    }


def in_every_way(graph, programs, load, modes=("interpret", "native")):
    """What runs of all programs leave in reports, the same in every way of running them."""
    executable = compileGraph(graph, programs)
    found = []
    for mode, threads in WAYS:
        if mode in modes:
            with patch.object(division, "SERIAL", 0):
                engine = Engine(executable, {"pypoplar.threads": threads}, mode=mode)
                load(engine)
                for number in range(len(executable.entries)):
                    engine.run(number)
                found.append((facts(engine), engine.executable))
    assert all(one == found[0][0] for one, _ in found[1:])
    return found[0]


def cycles(machine, program):
    def load(engine):
        engine.load(machine.device)

    return in_every_way(machine.graph, [program], load)[0]


# What runs at the same time


def test_what_is_done_on_different_ipus_takes_as_long_as_the_longest():
    machine = Machine(3)
    works = [machine.work(ipu, 100 * (ipu + 1), f"work {ipu}") for ipu in range(3)]
    alone = []
    for work in works:
        alone.append(cycles(machine, Sequence([work]))["total"])
    assert alone[0] < alone[1] < alone[2]
    together = cycles(machine, Sequence(works))
    assert together["total"] == alone[2]
    assert [ipu.waiting_cycles for ipu in together["ipus"]] == [alone[2] - one for one in alone]


def test_what_is_done_on_one_ipu_is_done_one_after_the_other():
    machine = Machine(2)
    first, second = machine.work(1, 100, "first"), machine.work(1, 300, "second")
    single = [cycles(machine, Sequence([one]))["total"] for one in (first, second)]
    assert cycles(machine, Sequence([first, Sync(SyncType.INTERNAL), second]))["total"] >= sum(single)


def test_what_crosses_waits_for_both_ends_and_for_no_others():
    machine = Machine(3)
    source, target = machine.on(0, "source"), machine.on(1, "target")
    copy = Copy(source, target, name="crossing")
    long, longest = machine.work(0, 1000, "long"), machine.work(2, 5000, "longest")
    crossing = cycles(machine, Sequence([copy]))["total"]
    before = cycles(machine, Sequence([long]))["total"]
    whole = cycles(machine, Sequence([long, longest, copy]))
    assert before + crossing < whole["total"] == cycles(machine, Sequence([longest]))["total"]
    (step,) = [step for step in whole["steps"] if step[0] == "crossing"]
    by_ipu = dict(zip(("sync", "exchange", "copies", "between", "host", "compute", "waiting"), step[3], strict=True))
    assert by_ipu["waiting"] == [0, before, 0]
    assert by_ipu["between"][2] == by_ipu["sync"][2] == 0
    assert by_ipu["between"][0] == by_ipu["between"][1] > 0


def test_a_sync_between_ipus_joins_them_and_one_within_does_not():
    machine = Machine(2)
    work, other = machine.work(0, 2000, "work"), machine.work(1, 2000, "other")
    apart = cycles(machine, Sequence([work, Sync(SyncType.INTERNAL), other]))["total"]
    joined = cycles(machine, Sequence([work, Sync(SyncType.EXTERNAL), other]))["total"]
    assert joined > 1.5 * apart


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_who_waits_for_the_host_is_what_the_sync_configuration_says(configuration):
    machine = Machine(2, configuration)
    stream = machine.graph.addHostToDeviceFIFO("in", machine.on(0, "read").elementType(), 8)
    target = machine.on(0, "arrived")
    work = machine.work(1, 4000, "work")

    def load(engine):
        engine.connectStream("in", np.zeros(8, np.float32))
        engine.load(machine.device)

    found = in_every_way(machine.graph, [Sequence([work, Copy(stream, target)])], load)[0]
    (step,) = [step for step in found["steps"] if step[0] == "in"]
    waiting = step[3][-1]
    assert waiting[0] > 0 if configuration == "intraReplicaAndAll" else waiting == [0, 0]


def test_an_unknown_sync_configuration_is_refused_with_the_nearest_name():
    with pytest.raises(InvalidOption, match="syncConfiguration is 'intraReplicaAndAll' or 'ipuAndAll', got 'ipuAndal'"):
        device_of(2, configuration="ipuAndal")


def test_a_branch_is_waited_for_where_it_decides_and_nowhere_else():
    machine = Machine(3)
    predicate = machine.variable("predicate", [1], 0)
    slow = machine.work(0, 3000, "slow")
    decided, free = machine.work(1, 10, "decided"), machine.work(2, 10, "free")
    found = cycles(machine, Sequence([slow, If(predicate[0], Sequence([decided]), Sequence([])), free]))
    starts = {(step, ipu): begin for _, step, ipu, begin, _ in found["events"]}
    numbers = {name: number for number, (name, *_) in enumerate(found["steps"], 1)}
    assert starts[numbers["decided"], 1] == cycles(machine, Sequence([slow]))["total"]
    assert starts[numbers["free"], 2] == 0


def test_cycles_of_a_part_are_counted_until_all_ipus_are_done_with_it():
    machine = Machine(2)
    works = Sequence([machine.work(0, 100, "short"), machine.work(1, 900, "long")])
    whole = cycles(machine, works)["total"]
    counted = Sequence(list(works.programs))
    machine.graph.createHostRead("cycles", cycleCount(machine.graph, counted, 0))
    for mode in ("interpret", "native"):
        engine = machine.engine(counted, mode)
        engine.run()
        assert int(engine.readTensor("cycles")[0]) == whole


# Stages


@pytest.mark.parametrize(("stages", "batches"), [(2, 5), (4, 8), (3, 1)])
def test_equal_stages_with_a_batch_each_take_as_many_turns_as_a_pipeline_has(stages, batches):
    machine = Machine(stages)
    one = [machine.work(stage, 5000, f"stage {stage}") for stage in range(stages)]
    turn = cycles(machine, Sequence([one[0]]))["total"]
    program = Sequence()
    for slot in range(batches + stages - 1):
        for stage in range(stages):
            if 0 <= slot - stage < batches:
                program.add(Sequence([one[stage]]))
        program.add(Sync(SyncType.EXTERNAL))
    found = cycles(machine, program)
    syncs = sum(step[2] for step in found["steps"] if step[0] == "Sync")
    assert found["total"] - syncs == (batches + stages - 1) * turn
    assert sum(step[2] for step in found["steps"]) - syncs == stages * batches * turn


# Laws


def longest_path(executable, events):
    """When each event would begin if nothing but what it needs had to be before: the brute force of all of them, in their order.

    An event is a node; it comes behind the last one of its IPU, and what crosses behind the last ones of all IPUs that it joins.
    """
    steps = executable.ipu_steps
    last = [0] * steps.ipus
    begins = []
    for step, ipu_cycles in events:
        waits = [steps.ipu[share] for share in steps.shares_of(step) if steps.waits[share]]
        together = max((last[ipu] for ipu in waits), default=0)
        for ipu, taken in ipu_cycles:
            begin = together if ipu in waits else last[ipu]
            begins.append((step, ipu, begin))
            last[ipu] = begin + taken
    return begins, max(last)


@examples(40)
@given(SEEDS, st.integers(1, 8), st.integers(2, 6), st.sampled_from(["model", "hardware"]), st.sampled_from(CONFIGURATIONS))
def test_all_ways_of_running_and_pricing_agree_on_every_clock(seed, steps, ipus, timing, configuration):
    device = device_of(ipus, timing, configuration, tiles=2)
    made = RandomProgram(random.Random(seed), device, PURE, steps)

    def load(engine):
        engine.load(device)
        made.connect(engine)

    try:
        found, executable = in_every_way(made.graph, made.programs, load)
    except (AtomicStoreError, PoplarError):
        reject()
    assert {ipu.cycles for ipu in found["ipus"]} == {found["total"]}
    try:
        engine = Engine(made.graph, made.programs, mode="cost")
        engine.load(device)
        for number in range(len(executable.entries)):
            engine.run(number)
    except PoplarError:
        return  # data decide
    assert facts(engine) == found


@examples(30)
@given(SEEDS, st.integers(1, 8), st.integers(2, 6))
def test_no_event_begins_before_what_it_waits_for_and_each_as_soon_as_that_has_come(seed, steps, ipus):
    device = device_of(ipus, tiles=2)
    made = RandomProgram(random.Random(seed), device, PURE, steps)
    try:
        executable = compileGraph(made.graph, made.programs[:1])
        engine = Engine(executable, mode="native")
        engine.load(device)
        made.connect(engine)
        engine.run(0)
    except PoplarError:
        reject()
    if set(executable.program[:, ProgramRow.OPERATION].tolist()) & {
        Opcode.BRANCH,
        Opcode.UNLESS_EQUAL,
        Opcode.SERVICE,
        Opcode.STAMP,
    }:
        return  # rows that are no steps join clocks too; the law above has them
    results = executable.computes.result_tile
    trace = engine.getReport().execution.trace
    if trace.missed or (len(results) and (results != NOTHING).any()):
        return
    events, known = [], set()
    for step, ipu, taken in zip(trace.step.tolist(), trace.ipu.tolist(), trace.cycles.tolist(), strict=True):
        if not events or events[-1][0] != step or ipu in known:
            events.append((step, []))
            known = set()
        events[-1][1].append((ipu, taken))
        known.add(ipu)
    begins, latest = longest_path(executable, events)
    assert [begin for _, _, begin in begins] == trace.begin.tolist()
    assert latest == engine.getReport().execution.totalCycles.total


@examples(20)
@given(SEEDS, st.integers(1, 6), st.integers(2, 4))
def test_programs_of_all_kinds_count_alike_on_several_ipus(seed, steps, ipus):
    device = device_of(ipus, tiles=2)
    made = RandomProgram(random.Random(seed), device, ALL, steps)

    def load(engine):
        engine.load(device)
        made.connect(engine)

    try:
        found, _ = in_every_way(made.graph, made.programs, load)
    except PoplarError:
        reject()
    assert {ipu.cycles for ipu in found["ipus"]} == {found["total"]}


def test_a_file_and_later_runs_keep_what_each_ipu_spent(tmp_path):
    machine = Machine(2)
    works = [machine.work(ipu, 100 + 300 * ipu, f"work {ipu}") for ipu in range(2)]
    program = Sequence([Repeat(3, Sequence(works)), Copy(machine.on(0, "x"), machine.on(1, "y"))])
    engine = machine.engine(program, "native", {"autoReport.executionProfileProgramRunCount": 1})
    for _ in range(3):
        engine.run()
    report = engine.getReport()
    pva.save_report(report, tmp_path / "profile.pop")
    back = pva.openReport(tmp_path / "profile.pop")
    assert back.execution.ipus == report.execution.ipus
    assert back.execution.totalCycles == report.execution.totalCycles
    assert [run.cycles for run in back.execution.runs] == [run.cycles for run in report.execution.runs]
    first, later = (run.cycles for run in report.execution.runs)
    assert later == 2 * first
    assert [step.ipus for step in back.execution.steps] == [step.ipus for step in report.execution.steps]


def test_every_step_of_a_compute_set_has_the_ipus_of_its_exchange_before():
    device = device_of(3, tiles=2)
    for seed in range(12):
        made = RandomProgram(random.Random(seed), device, PURE, 6)
        try:
            executable = compileGraph(made.graph, made.programs)
        except AtomicStoreError:
            continue
        steps = executable.ipu_steps
        for row in executable.program[executable.program[:, ProgramRow.OPERATION] == Opcode.COMPUTE].tolist():
            before, own = (
                {int(steps.ipu[share]) for share in steps.shares_of(row[at])} for at in (ComputeOperand.BEFORE, ComputeOperand.STEP)
            )
            assert before <= own
