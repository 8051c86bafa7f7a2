"""Replicas are priced as one, with their meetings: each figure is that of a run, of every replica."""

import random
from unittest.mock import patch

import numpy as np
import pytest
from engine_builder import Add, Bench, tiny
from hypothesis import given, reject
from hypothesis import strategies as st
from law_examples import examples
from priced_programs import PricedProgram, profile

from pypoplar import (
    FLOAT,
    INT,
    AtomicStoreError,
    ControlProgramError,
    Engine,
    Executable,
    Graph,
    PoplarIndexError,
    assume,
    compileGraph,
    gcl,
    poputil,
)
from pypoplar.gcl import CollectiveOperator, CommGroup, CommGroupType
from pypoplar.program import AssumeEqualAcrossReplicas, CrossReplicaCopy, If, Repeat, Sequence

SEEDS = st.integers(0, 2**32 - 1)


def alike(engine, cost, replicas, folder):
    """The profile of each replica of a run is that which was priced."""
    for replica in range(replicas):
        wanted, priced = (
            profile(one.getReport(replica), folder / f"{name}{replica}.pop") for name, one in (("run", engine), ("cost", cost))
        )
        assert priced == wanted


class MeetingProgram(PricedProgram):
    """A random program that can be priced, whose replicas meet here and there."""

    def _print(self, depth):
        """A meeting, where others print."""
        chosen, count = self.random, self.graph.getReplicationFactor()
        order = chosen.sample(range(count), count)
        receivers = {one: order[(place + 1) % count] for place, one in enumerate(order)}
        name = chosen.choice(sorted(self.variables))
        if chosen.random() < 0.2:
            return AssumeEqualAcrossReplicas(self._constant(INT, 3))
        return CrossReplicaCopy(self.variables[name], self.variables[name], receivers)


@pytest.mark.parametrize("timing", ["model", "hardware"])
@examples(40)
@given(seed=SEEDS, steps=st.integers(1, 8), tiles=st.sampled_from([1, 3]), replicas=st.integers(2, 4))
def test_the_profile_of_every_replica_is_that_of_a_run(tmp_path_factory, timing, seed, steps, tiles, replicas):
    made = MeetingProgram(random.Random(seed), tiny(tiles, timing, ipus=replicas), steps, replicas)
    try:
        executable = compileGraph(made.graph, made.programs)
    except AtomicStoreError:
        reject()
    engine = Engine(executable)
    engine.load(made.device)
    with patch.object(made, "arrays", {name: np.stack([array] * replicas) for name, array in made.arrays.items()}):
        made.connect(engine)
    cost = Engine(compileGraph(made.graph, made.programs, mode="cost", assumptions=made.assumptions), mode="cost")
    cost.load(made.device)
    for number in [*range(len(made.programs)), 0]:
        engine.run(number)
        cost.run(number)
    alike(engine, cost, replicas, tmp_path_factory.mktemp("profiles"))


def scattered(graph, x, prog, group, options):
    return gcl.reduceScatterCrossReplica(graph, x, CollectiveOperator.ADD, prog, group, options=options)


def reduced(graph, x, prog, group, options):
    return gcl.allReduceCrossReplica(graph, x, CollectiveOperator.ADD, prog, group, options=options)


def gathered(graph, x, prog, group, options):
    return gcl.allGatherCrossReplica(graph, x, prog, group, options=options)


def broadcast(graph, x, prog, group, options):
    return gcl.broadcastCrossReplica(graph, x, prog, group, options=options)


@pytest.mark.parametrize(
    ("collective", "method"),
    [
        (reduced, "clockwise_ring"),
        (reduced, "bidirectional_ring_pair"),
        (reduced, "meet_in_middle_ring"),
        (reduced, "broadcast"),
        (scattered, "meet_in_middle_ring"),
        (gathered, "meet_in_middle_ring"),
        (broadcast, "auto"),
    ],
)
@pytest.mark.parametrize("group", [None, CommGroup(CommGroupType.ORTHOGONAL, 2)])
def test_collectives_cost_what_they_cost_in_a_run(tmp_path, collective, method, group):
    device = tiny(3, ipus=4)
    graph, prog = Graph(device, 4), Sequence()
    gcl.addCodelets(graph)
    x = graph.addVariable(FLOAT, [23], "x")
    poputil.mapTensorLinearly(graph, x, 1, 4)
    graph.setInitialValue(x, np.arange(23, dtype=np.float32))
    collective(graph, x, prog, group, {"method": method})
    program = Repeat(1000, prog)
    engine, cost = Engine(graph, program), Engine(graph, program, mode="cost")
    for one in (engine, cost):
        one.load(device)
        one.run()
    alike(engine, cost, 4, tmp_path)


@pytest.fixture
def bench():
    return Bench(tiny(4, ipus=3), replicas=3)


def test_a_branch_by_the_number_of_the_replica_is_data_which_is_assumed(bench):
    index = bench.graph.addReplicationIndexConstant()
    bench.graph.setTileMapping(index, 0)
    x = bench.variable("x", [0])
    program = If(index, bench.execute(Add, value=x[0], amount=1), Sequence())
    with pytest.raises(ControlProgramError, match="does not know how If at"):
        bench.engine(program, "cost").run()
    engine = Engine(bench.graph, program, mode="cost", assumptions=[assume(index, 1)])
    engine.load(bench.device)
    engine.run()
    assert [step.executions for step in engine.getReport().execution.steps] == [1]


def test_every_replica_there_is_can_be_asked_for_its_report(bench):
    x = bench.variable("x", [0])
    engine = bench.engine(bench.execute(Add, value=x[0], amount=1), "cost")
    engine.run()
    assert engine.getReport(2).execution.totalCycles.total == engine.getReport().execution.totalCycles.total > 0
    assert engine.getReport().compilation.target.numReplicas == 3
    with pytest.raises(PoplarIndexError, match="getReport: replica 3 is out of range"):
        engine.getReport(3)


def test_an_executable_of_replicas_is_priced_from_a_file(bench, tmp_path):
    x = bench.variable("x", [0])
    program = Sequence([bench.execute(Add, value=x[0], amount=1), CrossReplicaCopy(x, x, {0: 1, 1: 2, 2: 0})])
    compileGraph(bench.graph, program, mode="cost").save(tmp_path / "priced.npz")
    again, engine = Engine(Executable.load(tmp_path / "priced.npz"), mode="cost"), bench.engine(program)
    again.load(bench.device)
    for one in (again, engine):
        one.run()
    alike(engine, again, 3, tmp_path)
