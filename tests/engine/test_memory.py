"""Tiles that hold more than their memory, and what a report says of memory."""

import re
from unittest.mock import patch

import numpy as np
import pytest
from engine_builder import Add, Bench, tiny

from pypoplar import FLOAT, INT, Graph, GraphMemoryAllocationError, IPUModel, PoplarError, compileGraph
from pypoplar.compiler import compile
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


@pytest.mark.parametrize("make", [lambda bench, program: compileGraph(bench.graph, program), Bench.engine])
def test_the_error_has_the_whole_report(make):
    bench, program = too_large()
    with pytest.raises(GraphMemoryAllocationError) as caught:
        make(bench, program)
    report = caught.value.report
    assert report.execution is None
    tiles = report.compilation.tiles
    over = [one.number for one in tiles if one.memory.total.includingGaps > report.compilation.target.bytesPerTile]
    assert over == [6]
    assert tiles[6].memory.category["variables"] >= report.compilation.target.bytesPerTile
    assert report.compilation.graph.numVertices == 1
    held = {one.name: (one.size, one.always_live) for one in report.compilation.loweredVariables.forTile(6)}
    steps = report.compilation.livenessProgramSteps
    assert [step.program.type for step in steps if step.program.name] == ["DoExchange", "OnTileExecute"]
    assert [program.type for _, program in report.compilation.programs[0].walk()] == ["Sequence", "DoExchange", "OnTileExecute"]
    assert held == {"large": (report.compilation.target.bytesPerTile, True), "small": (400, True), "value": (4, True)}


def test_the_report_of_what_does_not_fit_is_that_of_the_program_run_all_the_same():
    bench, program = too_large()
    with pytest.raises(GraphMemoryAllocationError) as caught:
        bench.engine(program)
    report, other = caught.value.report, bench.engine(program, options={"pypoplar.run_out_of_memory": True}).getReport()
    for part in ("programs", "step_programs", "vertex_types"):
        assert getattr(report.compilation, part) == getattr(other.compilation, part), part
    assert (
        caught.value.executable.program.tolist()
        == bench.engine(program, options={"pypoplar.run_out_of_memory": True}).executable.program.tolist()
    )


def test_a_program_that_does_not_fit_and_cannot_be_lowered_does_not_fit():
    """What else is wrong with it is told when it fits; the report has what was known until then."""
    bench, program = too_large()
    with (
        patch.object(compile, "_flatten", side_effect=PoplarError("something else")),
        pytest.raises(GraphMemoryAllocationError) as caught,
    ):
        bench.engine(program)
    assert caught.value.executable is None
    report = caught.value.report
    assert report.compilation.graph.numVertices == 1
    assert report.compilation.loweredVariables.names


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
    _, tiles, made, option = str(caught.value).splitlines()
    assert re.fullmatch(r"  variable 'x' was made at .*test_memory\.py:\d+", made)
    assert tiles.startswith("  tiles 0-1471: 638,984 bytes each, 8 too many: variable 'x' 638,980")
    assert option == "The option pypoplar.run_out_of_memory runs the program all the same."


def test_only_the_fullest_tiles_are_described():
    bench = Bench()
    share = bench.device.getTarget().getBytesPerTile() // 4 + 1
    copies = []
    single = [bench.graph.addVariable(FLOAT, [share + 100 * number], f"c{number}") for number in range(6)]
    for tile, x in enumerate(single, 8):
        bench.graph.setTileMapping(x, tile)
        copies.append(Copy(x, x))
    with pytest.raises(GraphMemoryAllocationError) as caught:
        bench.engine(Sequence(copies))
    first, *lines, _ = str(caught.value).splitlines()
    lines, rest, made = lines[:5], lines[5], lines[6:]
    assert [line.split(" was made at ")[0] for line in made] == [f"  variable 'c{number}'" for number in (5, 4, 3, 2, 1)]
    assert first.startswith("out of memory: 6 of 16 tiles hold more than the ")
    assert [line.split(":")[0] for line in lines] == [f"  tile {tile}" for tile in (13, 12, 11, 10, 9)]
    assert rest == "  and 1 more tile"


def test_equal_tiles_are_told_apart_by_what_they_hold():
    bench = Bench()
    share = bench.device.getTarget().getBytesPerTile() // 4 + 1
    copies = []
    for name, homes in {"a": [0, 1, 2, 5], "b": [3, 4]}.items():
        x = bench.graph.addVariable(FLOAT, [len(homes), share], name)
        for row, tile in enumerate(homes):
            bench.graph.setTileMapping(x[row], tile)
        copies.append(Copy(x, x))
    with pytest.raises(GraphMemoryAllocationError) as caught:
        bench.engine(Sequence(copies))
    _, *lines, first, second, _ = str(caught.value).splitlines()
    assert [line.split(" was made at ")[0] for line in (first, second)] == ["  variable 'a'", "  variable 'b'"]
    assert [line.split(" bytes")[0].split(":")[0] for line in lines] == ["  tiles 0-2, 5", "  tiles 3-4"]
    assert ["'a'" in line for line in lines] == [True, False]


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
