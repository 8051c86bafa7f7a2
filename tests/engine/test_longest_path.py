"""On several IPUs a program takes its longest path, told from how it was made and not from tables of the engine."""

import random

import numpy as np
import pytest
from engine_builder import Bench, tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import FLOAT, INT, Device, Engine, Graph, InOut, IPUModel, SupervisorVertex, Target, concat, gcl
from pypoplar.program import Copy, Execute, If, Repeat, Sequence, Sync, SyncType

TILES = 2


class Idle(SupervisorVertex):
    """So many cycles of a tile, by its estimate."""

    out: InOut[INT]

    def compute(self):
        self.out = self.out


class Drawn:
    """A random program, and the events that it is made of: a name with the IPUs that have a share, and those that wait for others.

    A branch has no name: IPUs wait for each other there, and nothing takes time.
    """

    def __init__(self, seed, ipus, length, configuration):
        self.random, self.ipus = random.Random(seed), ipus
        target = tiny(TILES, ipus=ipus).getTarget().evolve(sync_configuration=configuration)
        self.joins = configuration == "intraReplicaAndAll"
        self.bench = Bench(Device.createSimulatorDevice(target))
        self.graph = self.bench.graph
        self.streams, self.events, self.made = [], [], 0
        self.program = Sequence()
        for _ in range(length):
            program, events = self._one()
            self.program.add(program)
            self.events += events

    def on(self, ipu, values):
        self.made += 1
        return self.bench.variable(f"x{self.made}", values, ipu * TILES + self.random.randrange(TILES))

    def _one(self, depth=2):
        kinds = [self._work, self._work, self._work, self._copy, self._stream, self._sync]
        if depth:
            kinds += [self._branch, self._repeat]
        kind = self.random.choice(kinds)
        return kind(depth) if kind in (self._branch, self._repeat) else kind()

    def _ipu(self):
        return self.random.randrange(self.ipus)

    def _work(self):
        some = sorted({self._ipu() for _ in range(self.random.choice([1, 1, 2]))})
        self.made += 1
        compute_set = self.graph.addComputeSet(name := f"work{self.made}")
        for ipu in some:
            vertex = self.bench.vertex(
                compute_set, Idle, ipu * TILES, out=self.bench.variable(f"of{self.made} {ipu}", [0], ipu * TILES)[0]
            )
            self.graph.setPerfEstimate(vertex, self.random.randrange(1, 3000))
        return Execute(compute_set), [(name, some, [])]

    def _copy(self):
        source, *to = (self._ipu() for _ in range(self.random.choice([2, 3])))
        size = self.random.randrange(1, 300)
        self.made += 1
        read, written = self.on(source, np.zeros(size, np.int64)), [self.on(ipu, np.zeros(size, np.int64)) for ipu in to]
        if set(to) == {source}:
            return Sequence(), []
        crossing = sorted({source, *(ipu for ipu in to if ipu != source)})
        copy = Copy(concat([read] * len(to)), concat(written), name=(name := f"copy{self.made}"))
        return copy, [(name, crossing, crossing)]

    def _stream(self):
        ipu, self.made = self._ipu(), self.made + 1
        self.streams.append(name := f"stream{self.made}")
        everyone = list(range(self.ipus)) if self.joins else [ipu]
        copy = Copy(self.graph.addHostToDeviceFIFO(name, INT, 8), self.on(ipu, np.zeros(8, np.int64)))
        return copy, [(name, everyone, everyone)]

    def _sync(self):
        self.made += 1
        everyone = list(range(self.ipus))
        return Sync(SyncType.EXTERNAL, name=(name := f"sync{self.made}")), [(name, everyone, everyone)]

    def _branch(self, depth):
        decides, taken = self._ipu(), self.random.random() < 0.5
        predicate = self.on(decides, [int(taken)])
        parts, waiting = [], {decides}
        for _ in range(2):
            program, events = self._one(depth - 1)
            parts.append((program, events))
            waiting |= {ipu for _, ipus, joined in events for ipu in (*ipus, *joined)}
        chosen = parts[0 if taken else 1][1]
        return If(predicate[0], parts[0][0], parts[1][0]), [("", [], sorted(waiting)), *chosen]

    def _repeat(self, depth):
        program, events = self._one(depth - 1)
        times = self.random.randrange(1, 4)
        return Repeat(times, program), events * times


def longest_path(drawn, taken):
    """When each event begins on each of its IPUs, by a walk through all events before it, and how long all takes."""
    before = [[] for _ in drawn.events]  # the events that it follows, by the IPUs on which it waits
    last = [-1] * drawn.ipus
    for number, (_, has, joined) in enumerate(drawn.events):
        before[number] = list(last)
        for ipu in {*has, *joined}:
            last[ipu] = number
    known = {}

    def ends(number, ipu):
        """When an IPU is done with an event."""
        if number < 0:
            return 0
        if (number, ipu) not in known:
            known[number, ipu] = begins(number, ipu) + taken(drawn.events[number][0], ipu)
        return known[number, ipu]

    def begins(number, ipu):
        _, _, joined = drawn.events[number]
        return max(ends(before[number][one], one) for one in (joined if ipu in joined else [ipu]))

    found = [(name, ipu, begins(number, ipu)) for number, (name, has, _) in enumerate(drawn.events) if name for ipu in has]
    return found, max((ends(last[ipu], ipu) for ipu in range(drawn.ipus)), default=0)


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 12), st.sampled_from(["intraReplicaAndAll", "ipuAndAll"]))
def test_random_programs_take_their_longest_path_and_no_step_begins_sooner(seed, ipus, length, configuration):
    drawn = Drawn(seed, ipus, length, configuration)
    engine = drawn.bench.engine(drawn.program, "native", {"pypoplar.merge_copies": "false"})
    for name in drawn.streams:
        engine.connectStream(name, np.zeros(8, np.int32))
    engine.run()
    execution = engine.getReport().execution
    if execution is None:
        return
    steps = {step.name: step for step in execution.steps}

    def taken(name, ipu):
        return int(steps[name].cycles_by_ipu[:-1, ipu].sum()) // steps[name].executions if name in steps else 0

    begins, latest = longest_path(drawn, taken)
    assert execution.totalCycles.total == latest
    names = {step.number: step.name for step in execution.steps}
    trace = execution.trace
    if not trace.missed:
        told = zip(trace.step.tolist(), trace.ipu.tolist(), trace.begin.tolist(), trace.cycles.tolist(), strict=True)
        shown = sorted((names[step], ipu, begin) for step, ipu, begin, cycles in told if cycles)
        assert shown == sorted(one for one in begins if taken(*one[:2]))
    for ipu in execution.ipus:
        phases = ipu.sync_cycles + ipu.exchange_cycles + ipu.copy_cycles + ipu.global_exchange_cycles
        assert phases + ipu.host_exchange_cycles + ipu.compute_cycles + ipu.waiting_cycles == latest, "to the cycle"


@pytest.mark.parametrize("version", ["ipu2", "bow"])
def test_two_ipus_of_a_machine_exchange_423_gigabits_a_second_both_ways_together(version):
    target = Target.createIPUTarget(2, 16, version)
    graph = Graph(target)
    elements = 400_000
    ends = [[graph.addVariable(FLOAT, [elements], f"{what}{ipu}") for what in ("from", "to")] for ipu in range(2)]
    for ipu in range(2):
        for tensor in ends[ipu]:
            for tile in range(16):
                graph.setTileMapping(tensor.slice(tile * elements // 16, (tile + 1) * elements // 16), ipu * 16 + tile)
    both = Sequence([Copy(ends[0][0], ends[1][1]), Copy(ends[1][0], ends[0][1])])
    engine = Engine(graph, both, {"pypoplar.run_out_of_memory": "true"}, mode="cost")
    engine.load(Device.createSimulatorDevice(target))
    engine.run()
    execution = engine.getReport().execution
    (step,) = execution.steps
    assert step.cycles == execution.totalCycles.total
    bits = 2 * 32 * elements * target.getTileClockFrequency() / step.cycles
    assert bits == pytest.approx(423e9, rel=0.1)


def test_sixteen_replicas_reduce_51_megabytes_in_3_milliseconds_over_links_of_32_gigabytes_each_way():
    model = IPUModel()
    model.numIPUs, model.tilesPerIPU = 16, 32
    target = model.createDevice().getTarget().evolve(links=64e9)
    graph = Graph(target, 16)
    elements = 51_000_000 // 4
    data = graph.addVariable(FLOAT, [elements], "gradients")
    ends = [elements * tile // 32 for tile in range(33)]
    for tile in range(32):
        graph.setTileMapping(data.slice(ends[tile], ends[tile + 1]), tile)
    program = Sequence()
    gcl.addCodelets(graph)
    gcl.allReduceInPlaceCrossReplica(graph, data, gcl.CollectiveOperator.ADD, program)
    engine = Engine(graph, program, {"pypoplar.run_out_of_memory": "true"}, mode="cost")
    engine.load(Device.createSimulatorDevice(target))
    engine.run()
    execution = engine.getReport().execution
    between = sum(step.global_exchange_cycles for step in execution.steps)
    assert between / target.getTileClockFrequency() == pytest.approx(3.0e-3, rel=0.1)
