"""Tiles that hold more than their memory, and what a report says of memory."""

import numpy as np
import pytest
from engine_builder import Add, Bench, tiny

from pypoplar import FLOAT, INT, Graph, GraphMemoryAllocationError, IPUModel, compileGraph
from pypoplar.program import Copy, Sequence


def too_large():
    """A variable that overfills tile 6, with a smaller one beside it."""
    bench = Bench()
    size = bench.device.getTarget().getBytesPerTile()
    large = bench.graph.addVariable(FLOAT, [size // 4], "large")
    small = bench.graph.addVariable(INT, [100], "small")
    for tensor in (large, small):
        bench.graph.setTileMapping(tensor, 6)
    bench.graph.setInitialValue(small, 7)
    bench.handles("small", small)
    value = bench.variable("value", 1, 6)
    return bench, Sequence([Copy(large, large), bench.execute(Add, 6, value=value, amount=1)])


def test_a_tile_over_its_memory_is_refused_with_its_largest_users():
    bench, program = too_large()
    with pytest.raises(GraphMemoryAllocationError) as caught:
        bench.engine(program)
    assert isinstance(caught.value, MemoryError)
    text = str(caught.value)
    assert "tile 6" in text
    assert "'large'" in text
    assert f"{bench.device.getTarget().getBytesPerTile():,}" in text or str(bench.device.getTarget().getBytesPerTile()) in text
    assert text.index("'large'") < (text.index("'small'") if "'small'" in text else len(text))


@pytest.mark.parametrize("compile", [lambda bench, program: compileGraph(bench.graph, program), Bench.engine])
def test_the_error_has_the_whole_report(compile):
    bench, program = too_large()
    with pytest.raises(GraphMemoryAllocationError) as caught:
        compile(bench, program)
    report = caught.value.report
    assert report.execution is None
    tiles = report.compilation.tiles
    over = [one.number for one in tiles if one.memory.total.includingGaps > report.compilation.target.bytesPerTile]
    assert over == [6]
    assert tiles[6].memory.category["variables"] >= report.compilation.target.bytesPerTile
    assert report.compilation.graph.numVertices == 1
    held = {one.name: (one.size, one.always_live) for one in report.compilation.loweredVariables.forTile(6)}
    assert held == {"large": (report.compilation.target.bytesPerTile, True), "small": (400, True), "value": (4, True)}


def test_it_runs_all_the_same_where_asked_for(mode):
    bench, program = too_large()
    engine = bench.engine(program, mode, {"pypoplar.run_out_of_memory": True})
    engine.run()
    assert engine.readTensor("value") == 2
    assert (engine.readTensor("small") == 7).all()
    assert engine.getReport().execution.totalCycles.total > 0


def test_a_full_tile_fits_and_one_element_more_does_not():
    def build(elements):
        bench = Bench()
        x = bench.graph.addVariable(FLOAT, [elements], "x")
        bench.graph.setTileMapping(x, 3)
        return compileGraph(bench.graph, Copy(x, x))

    memory = build(1).memory
    free = tiny().getTarget().getBytesPerTile() - int(memory.total()[3]) + int(memory.variables[3] + memory.gaps[3])
    build(free // 8 * 2)
    with pytest.raises(GraphMemoryAllocationError):
        build(free // 8 * 2 + 1)


def test_many_full_tiles_make_one_message():
    graph = Graph(IPUModel().createDevice())
    share = graph.getTarget().getBytesPerTile() // 4 + 1
    x = graph.addVariable(FLOAT, [1472, share], "x")
    graph.setTileMapping(x, [[(tile * share, (tile + 1) * share)] for tile in range(1472)])
    with pytest.raises(GraphMemoryAllocationError) as caught:
        compileGraph(graph, Copy(x, x))
    assert "1472 of 1472 tiles hold more than" in str(caught.value)
    assert len(str(caught.value)) < 3000


def test_the_model_may_be_given_more_memory(mode):
    model = IPUModel("tiny")
    model.memoryBytesPerTile = 4 * 1024 * 1024
    bench = Bench(model.createDevice())
    x = bench.graph.addVariable(FLOAT, [800_000], "x")
    bench.graph.setTileMapping(x, 2)
    bench.graph.setInitialValue(x, 1.5)
    bench.handles("x", x)
    engine = bench.engine(Copy(x, x), mode)
    engine.run()
    assert (engine.readTensor("x") == 1.5).all()


def test_what_a_program_does_not_use_takes_no_memory():
    bench, _ = too_large()
    engine = bench.engine(Sequence())
    assert engine.executable.memory.variables[6] < 1000


def test_exchange_buffers_are_as_large_as_the_largest_step_needs():
    def buffers(steps):
        bench = Bench()
        x = bench.variable("x", np.zeros(1000, np.int32), 3)
        programs = [bench.execute(Add, 9, value=x[number], amount=1) for number in range(steps)]
        return bench.engine(Sequence(programs)).getReport().compilation.tiles[9].memory.category["exchange_buffers"]

    assert buffers(1) == buffers(20) > 0
