"""Graphs that are there several times: their targets, factors and numbers, and what cannot be divided."""

import numpy as np
import pytest
from engine_builder import Add, Bench, tiny

from pypoplar import (
    FLOAT,
    INT,
    Engine,
    Graph,
    InvalidOption,
    MissingFeature,
    PoplarTypeError,
    VariableMappingMethod,
)
from pypoplar.graph.tiles import NonReplicatedTensor
from pypoplar.program import CrossReplicaCopy, Execute, Sequence


@pytest.mark.parametrize(("factor", "ipus"), [(1, 6), (2, 3), (3, 2), (6, 1)])
def test_the_target_of_a_replicated_graph_is_that_of_one_replica(factor, ipus):
    device = tiny(4, ipus=6)
    for graph in (Graph(device, factor), Graph(device.getTarget(), replication_factor=factor)):
        assert graph.getTarget() == device.getTarget().evolve(num_ipus=ipus)
        assert graph.getReplicationFactor() == factor
        assert graph.getTopLevelGraph() is graph
        assert graph.createVirtualGraph(0, 2).getReplicationFactor() == factor


@pytest.mark.parametrize(
    ("factor", "error", "text"),
    [
        (4, InvalidOption, r"Graph\(target, 4\): 6 IPUs cannot be divided into 4 replicas of equal size"),
        (12, InvalidOption, r"Graph\(target, 12\): 12 replicas need 12 IPUs at least, the target has 6"),
        (0, InvalidOption, "the replication factor of a Graph is at least 1, got 0"),
        (2.0, PoplarTypeError, "the replication factor of a Graph is a whole number, got 2.0"),
        (True, PoplarTypeError, "is a whole number, got True"),
    ],
)
def test_what_does_not_divide_the_ipus_is_refused(factor, error, text):
    with pytest.raises(error, match=text):
        Graph(tiny(ipus=6), factor)
    if factor not in (4, 12):
        with pytest.raises(error):
            Graph(tiny(ipus=6)).createReplicatedGraph(factor)


def test_a_graph_is_divided_into_replicas_whose_factors_multiply():
    top = Graph(tiny(4, ipus=12), 2)
    replicated = top.createReplicatedGraph(3)
    assert replicated.getReplicationFactor() == 6
    assert replicated.getTarget().getNumIPUs() == 2
    assert replicated.getTopLevelGraph() is top
    assert top.getReplicationFactor() == 2
    assert top.getTarget().getNumIPUs() == 6
    with pytest.raises(InvalidOption, match="createReplicatedGraph: 6 IPUs cannot be divided into 4 replicas"):
        Graph(tiny(4, ipus=12), 2).createReplicatedGraph(4)


def test_a_graph_that_is_divided_runs_as_one_that_is_replicated_from_the_start(mode):
    clocks = []
    for nested in (False, True):
        device = tiny(4, ipus=4)
        top = Graph(device, 2 if nested else 4)
        graph = top.createReplicatedGraph(2) if nested else top
        index = graph.addReplicationIndexConstant()
        x = graph.addVariable(INT, [4], VariableMappingMethod.LINEAR, "x")
        graph.setTileMapping(index, 1)
        graph.setInitialValue(x, [1, 2, 3, 4])
        add = graph.addComputeSet("add")
        graph.setTileMapping(graph.addVertex(add, Add, {"value": x[0], "amount": 2}), 3)
        top.createHostRead("x", graph.getNonReplicatedTensor(x))
        graph.createHostRead("index", index)
        program = Sequence([Execute(add), CrossReplicaCopy(x, x, {0: 1, 1: 2, 2: 3, 3: 0})])
        engine = Engine(top, program, mode=mode)
        engine.loadAndRun(device)
        assert engine.readTensor("x").tolist() == [[3, 2, 3, 4]] * 4
        assert engine.readTensor("index").tolist() == [0, 1, 2, 3]
        clocks.append([replica.state.clock for replica in engine._replicas])
    assert clocks[0] == clocks[1]


def test_nothing_is_placed_beside_the_replicas_of_a_divided_graph():
    top = Graph(tiny(4, ipus=2))
    replicated = top.createReplicatedGraph(2)
    x = replicated.addVariable(FLOAT, [4], "x")
    for place in (
        lambda: top.setTileMapping(x, 0),
        lambda: top.setTileMapping(x, [[(0, 4)]]),
        lambda: top.addVariable(FLOAT, [4], VariableMappingMethod.LINEAR),
        lambda: top.createVirtualGraph(0, 2),
    ):
        with pytest.raises(MissingFeature, match="divided by createReplicatedGraph, and pypoplar has nothing beside its replicas"):
            place()
    replicated.setTileMapping(x, 3)
    assert len(replicated.getTileMapping(x)) == 4


def test_a_graph_is_divided_once_and_before_there_is_anything_in_it():
    top = Graph(tiny(4, ipus=4))
    with pytest.raises(MissingFeature, match="divides a top-level graph; this one sees a part of it"):
        top.createVirtualGraph(0, 2).createReplicatedGraph(2)
    top.createReplicatedGraph(2)
    with pytest.raises(MissingFeature, match="divided into 2 replicas already"):
        top.createReplicatedGraph(2)
    for fill in (lambda graph: graph.addVariable(FLOAT, [1]), lambda graph: graph.addComputeSet("a")):
        full = Graph(tiny(4, ipus=4))
        fill(full)
        with pytest.raises(MissingFeature, match="takes a graph without variables and compute sets"):
            full.createReplicatedGraph(2)


def test_a_graph_of_one_replica_has_plain_indices_and_tensors_of_all_replicas(mode):
    bench = Bench()
    index = bench.graph.addReplicationIndexConstant()
    assert bench.graph.getConstantValue(index) == 0
    x = bench.variable("x", [1, 2])
    whole = bench.graph.getNonReplicatedTensor(x)
    assert whole == NonReplicatedTensor(x, 1)
    bench.graph.createHostWrite("whole", whole)
    engine = bench.engine(Sequence(), mode)
    engine.writeTensor("whole", np.array([3, 4], np.int32))
    assert engine.readTensor("x").tolist() == [3, 4]
    assert engine.executable.replication is None
    with pytest.raises(PoplarTypeError, match="another graph"):
        Bench().graph.getNonReplicatedTensor(x)
