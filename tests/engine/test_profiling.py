"""Runs count in the report unless profiling is disabled."""

from pypoplar import INT, Engine, Graph, InOut, IPUModel, Vertex
from pypoplar.program import Execute


class Bump(Vertex):
    x: InOut[INT]

    def compute(self):
        self.x += 1


def test_runs_while_profiling_is_disabled_are_left_out_of_the_report(mode):
    device = IPUModel("tiny").createDevice()
    graph = Graph(device)
    x = graph.addVariable(INT, [], "x")
    graph.setTileMapping(x, 0)
    graph.setInitialValue(x, 0)
    graph.createHostRead("x", x)
    compute_set = graph.addComputeSet("bump")
    graph.setTileMapping(graph.addVertex(compute_set, Bump, {"x": x}), 0)
    engine = Engine(graph, Execute(compute_set), mode=mode)
    engine.load(device)
    engine.run()
    once = engine.getReport().execution
    engine.disableExecutionProfiling()
    engine.run()
    assert engine.getReport().execution.totalCycles == once.totalCycles
    assert engine.getReport().execution.programs == once.programs
    engine.enableExecutionProfiling()
    engine.run()
    assert engine.getReport().execution.totalCycles.total == 2 * once.totalCycles.total
    assert engine.readTensor("x") == 3
