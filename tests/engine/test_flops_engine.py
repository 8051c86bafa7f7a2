"""The option profiler.includeFlopEstimates: what engines count by step and by codelet, and what estimates have to say in it."""

import io
from unittest.mock import patch

import numpy as np
import pytest
from engine_builder import Bench, counted, everywhere, tiny
from executable_damage import Opened, saved

from pypoplar import (
    FLOAT,
    CodeletRuntimeError,
    Executable,
    FileLoadError,
    InOut,
    Input,
    MultiVertex,
    Output,
    SupervisorVertex,
    Vector,
    Vertex,
    VertexPerfEstimate,
    compileGraph,
    ipu,
)
from pypoplar.engine.native import machine_code
from pypoplar.executable.graph_facts import PRICED_BY
from pypoplar.program import Execute, Repeat, Sequence

ON = {"profiler.includeFlopEstimates": "true"}


class Scale(Vertex):
    """3 flops and 8 bytes for each element."""

    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] = self.x[i] * 2.0 + 1.0 - 0.5


class Total(Vertex):
    """A flop and 4 bytes for each element, 4 bytes for the result."""

    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for value in self.x:
            total += value
        self.out = total


class Shared(MultiVertex):
    """A flop and 8 bytes for each element."""

    x: InOut[Vector[FLOAT]]

    def compute(self, worker):
        for i in range(worker, len(self.x), 6):
            self.x[i] *= 2.0


class Alone(SupervisorVertex):
    """A flop and 8 bytes."""

    x: InOut[FLOAT]

    def compute(self):
        self.x += 1.0


class Small(Vertex):
    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        self.out = self.x[0] * 2.0
        ipu.check(self.x[0] < 3.0, "too large")


class Estimated(Vertex):
    """Says what it takes; its code would be a flop and 8 bytes."""

    x: InOut[FLOAT]

    def compute(self):
        self.x += 1.0

    def cycles(self, vertex):
        return VertexPerfEstimate(50, 7)


def by_name(engine):
    """Flops and bytes of the codelets that have any, and the sums over steps."""
    steps, step_bytes, codelets, codelet_bytes = counted(engine)
    names = [one.name for one in engine.executable.codelets]
    assert (steps.sum(), step_bytes.sum()) == (codelets.sum(), codelet_bytes.sum())
    whole = zip(names, codelets.tolist(), codelet_bytes.tolist(), strict=True)
    return {name: (flops, size) for name, flops, size in whole if flops or size}


def ran(bench, program, runs=1):
    """What everybody counts in some runs of a program."""

    def work(mode, options):
        engine = bench.engine(program, mode, options)
        for _ in range(runs):
            engine.run()
        return by_name(engine)

    return everywhere(work, ON)


@pytest.fixture
def bench():
    return Bench(tiny(4))


def whole(bench):
    """All kinds of vertices, several of each on a tile, some of them six times."""
    scale, mixed = bench.graph.addComputeSet("scale"), bench.graph.addComputeSet("mixed")
    for tile in range(4):
        for number in range(3):
            x = bench.variable(f"x{tile}.{number}", np.ones(10 + number, np.float32), tile)
            bench.vertex(scale, Scale, tile, x=x)
            bench.vertex(mixed, Total, tile, x=x, out=bench.variable(f"out{tile}.{number}", [0.0], tile))
        bench.vertex(mixed, Shared, tile, x=bench.variable(f"shared{tile}", np.ones(20, np.float32), tile))
        bench.vertex(mixed, Alone, tile, x=bench.variable(f"alone{tile}", [1.0], tile))
    return Sequence([Execute(scale), Repeat(6, Execute(mixed))])


def test_all_vertices_of_all_kinds_count_each_time_they_run(bench):
    elements = 10 + 11 + 12
    assert ran(bench, whole(bench), runs=2) == {
        "Scale": (2 * 4 * 3 * elements, 2 * 4 * 8 * elements),
        "Total": (2 * 6 * 4 * elements, 2 * 6 * 4 * (4 * elements + 3 * 4)),
        "Shared": (2 * 6 * 4 * 20, 2 * 6 * 4 * 8 * 20),
        "Alone": (2 * 6 * 4, 2 * 6 * 4 * 8),
    }


def test_flops_are_known_by_step(bench):
    engine = bench.engine(whole(bench), options=ON)
    engine.run()
    flops, moved, _, _ = counted(engine)
    by_step = {
        one.name: (int(flops[number]), int(moved[number])) for number, one in enumerate(engine.executable.steps) if flops[number]
    }
    elements = 10 + 11 + 12
    assert by_step == {
        "scale": (4 * 3 * elements, 4 * 8 * elements),
        "mixed": (6 * 4 * (elements + 20 + 1), 6 * 4 * (4 * elements + 12 + 160 + 8)),
    }


def test_without_the_option_nothing_is_counted(bench, mode):
    engine = bench.engine(whole(bench), mode)
    engine.run()
    assert [len(one) for one in counted(engine)] == [0, 0, 0, 0]


def test_without_the_option_codelets_are_compiled_without_counters(bench):
    program, asked = whole(bench), []

    def compile_unpriced(codelet, pricing, checks):
        asked.append(checks.flops)
        return original(codelet, pricing, checks)

    original = machine_code.compile_unpriced
    with patch.object(machine_code, "compile_unpriced", compile_unpriced):
        bench.engine(program)
        assert asked == [False] * 4
        bench.engine(program, options=ON)
        assert asked[4:] == [True] * 4


def test_the_option_changes_no_cycles_and_no_results(bench):
    program = whole(bench)
    engines = [bench.engine(program, options=options) for options in ({}, ON)]
    for one in engines:
        one.run()
    reports = [one.getReport().execution for one in engines]
    assert reports[0].totalCycles.total == reports[1].totalCycles.total
    for one, other in zip(reports[0].steps, reports[1].steps, strict=True):
        assert one.compute_cycles == other.compute_cycles
        np.testing.assert_array_equal(one.cyclesByTile, other.cyclesByTile)
    np.testing.assert_array_equal(engines[0].readTensor("x2.1"), engines[1].readTensor("x2.1"))


# -- estimates -----------------------------------------------------------------------------------------------------------------


def five(bench, codelet=Total):
    """Five vertices of ten elements on one tile: 10 flops each; and the compute set."""
    compute_set = bench.graph.addComputeSet("five")
    x = bench.variable("x", np.ones(10, np.float32))
    return [bench.vertex(compute_set, codelet, x=x, out=bench.variable(f"out{i}", [0.0])) for i in range(5)], Execute(compute_set)


def test_given_flops_take_the_place_of_those_of_the_code_and_bytes_do_not(bench):
    vertices, program = five(bench)
    bench.graph.setPerfEstimate(vertices[1], 100, 1000)
    bench.graph.setPerfEstimate(vertices[2], 100, 0)
    bench.graph.setPerfEstimate(vertices[3], 100)  # cycles alone
    bench.graph.setCycleEstimate(vertices[4], 100)
    assert ran(bench, program) == {"Total": (10 + 1000 + 0 + 10 + 10, 5 * 44)}


def test_an_estimator_gives_flops_or_leaves_them_to_the_code(bench):
    _, program = five(bench)
    given = {
        500: VertexPerfEstimate(9, 100), 0: VertexPerfEstimate(9, 0), 50: VertexPerfEstimate(9), 55: 9, 60: (9, 12),
    }  # fmt: skip
    for flops, answer in given.items():
        bench.graph.registerPerfEstimator("Total", lambda vertex, target, answer=answer: answer)
        counted_by_code = answer in (VertexPerfEstimate(9), 9)
        assert ran(bench, program) == {"Total": (50 if counted_by_code else flops, 5 * 44)}


def test_a_codelets_own_estimator_may_give_flops(bench):
    assert ran(bench, bench.execute(Estimated, x=bench.variable("x", [1.0]))) == {"Estimated": (7, 8)}


def test_flops_of_a_multi_vertex_are_given_for_all_its_workers_together(bench):
    program = bench.execute(Shared, x=bench.variable("x", np.ones(20, np.float32)))
    assert ran(bench, program) == {"Shared": (20, 160)}
    bench.graph.registerPerfEstimator("Shared", lambda vertex, target: VertexPerfEstimate(9, 33))
    assert ran(bench, program) == {"Shared": (33, 160)}


# -- what the code takes -----------------------------------------------------------------------------------------------------------


def costs(engine):
    """Cycles, compiled cycles and bound of each vertex type."""
    types = engine.getReport().execution.cycles_by_vertex_type
    return {name: (one.cycles, one.compiled_cycles, one.bound_cycles) for name, one in types.items()}


def all_costs(bench, program, options=()):
    """The costs that everybody counts."""

    def ran_once(mode, others):
        engine = bench.engine(program, mode, {**others, **dict(options)})
        engine.run()
        return costs(engine)

    return everywhere(ran_once, ON)


def test_without_estimates_vertices_take_what_their_compiled_code_does_and_no_less_than_its_bound(bench):
    counts = all_costs(bench, whole(bench))
    assert set(counts) == {"Scale", "Total", "Shared", "Alone"}
    for cycles, compiled, bound in counts.values():
        assert cycles == compiled > bound > 0


def test_an_estimate_decides_the_cycles_and_the_codes_stand_beside_it(bench):
    vertices, program = five(bench)
    own = all_costs(bench, program)["Total"]
    assert own[0] == own[1]
    bench.graph.setPerfEstimate(vertices[0], 1000, 7)
    bench.graph.setCycleEstimate(vertices[3], 1)
    assert all_costs(bench, program)["Total"] == (own[0] // 5 * 3 + 1001, *own[1:])
    bench.graph.registerPerfEstimator("Total", lambda vertex, target: 9)
    assert all_costs(bench, program)["Total"] == (3 * 9 + 1001, *own[1:])


def test_an_estimate_of_each_kind_of_vertex_leaves_what_its_code_takes(bench):
    program = whole(bench)
    own = all_costs(bench, program)
    for name in own:
        bench.graph.registerPerfEstimator(name, lambda vertex, target: 17)
    for name, (cycles, compiled, bound) in all_costs(bench, program).items():
        assert (compiled, bound) == (own[name][1], min(own[name][2], cycles)), "nothing is bound by more than it is charged"


class Uneven(MultiVertex):
    """The third worker has the most to do."""

    x: InOut[Vector[FLOAT]]
    y: Output[FLOAT]

    def compute(self, worker):
        if worker == 2:
            for i in range(len(self.x)):
                self.x[i] *= 2.0
        elif worker == 5:
            self.y = 1.0


def test_a_multi_vertex_takes_all_workers_for_as_long_as_its_busiest_one_by_the_bound_too(bench):
    def of(size):
        x, y = bench.variable(f"x{size}", np.ones(size, np.float32)), bench.variable(f"y{size}", [0.0])
        return all_costs(bench, bench.execute(Uneven, x=x, y=y))["Uneven"]

    small, large = of(100), of(300)
    assert small[0] == small[1] > small[2] > 0
    assert large[2] - small[2] == 6 * 200 // 2 * 2  # by two, and of a pair's load and store one is beside its product
    assert large[1] - small[1] > large[2] - small[2]


def test_where_statements_have_prices_nothing_is_compiled_and_nothing_bounded(bench, mode):
    program = whole(bench)
    engine = bench.engine(program, mode, {**ON, "pypoplar.codelet_cost": "scalar"})
    engine.run()
    assert all(cycles > 0 and rest == [0, 0] for cycles, *rest in costs(engine).values())
    assert by_name(engine)


def test_without_the_option_reports_have_the_cycles_alone(bench, mode):
    engine = bench.engine(whole(bench), mode)
    engine.run()
    assert all(cycles > 0 and rest == [0, 0] for cycles, *rest in costs(engine).values())


def test_tiles_of_one_group_and_of_several_count_for_their_own_codelets(bench):
    mixed = bench.graph.addComputeSet("mixed")
    for tile in range(4):
        for number in range(1 + tile % 2 * 3):
            bench.vertex(mixed, Scale, tile, x=bench.variable(f"x{tile}.{number}", np.ones(10, np.float32), tile))
        if tile % 2:
            bench.vertex(mixed, Alone, tile, x=bench.variable(f"alone{tile}", [1.0], tile))
    assert ran(bench, Execute(mixed)) == {"Scale": (10 * 30, 10 * 80), "Alone": (2, 16)}
    scale, alone = (all_costs(bench, Execute(mixed))[name] for name in ("Scale", "Alone"))
    assert (scale[0], alone[0]) == (scale[1], alone[1])


# -- runs ----------------------------------------------------------------------------------------------------------------------


def test_runs_that_fail_or_are_not_profiled_count_nothing(bench, mode):
    x = bench.variable("x", [1.0, 1.0])
    engine = bench.engine(bench.execute(Small, x=x, out=bench.variable("out", [0.0])), mode, ON)
    engine.run()
    once = by_name(engine)
    assert once == {"Small": (2, 12)}
    engine.writeTensor("x", np.array([3.0, 3.0], np.float32))
    with pytest.raises(CodeletRuntimeError, match="too large"):
        engine.run()
    assert by_name(engine) == once
    engine.writeTensor("x", np.array([1.0, 3.0], np.float32))
    engine.disableExecutionProfiling()
    engine.run()
    assert by_name(engine) == once
    engine.enableExecutionProfiling()
    engine.run()
    assert by_name(engine) == {"Small": (4, 24)}
    engine.resetExecutionProfile()
    assert by_name(engine) == {}


# -- who prices vertices -------------------------------------------------------------------------------------------------------


def test_the_executable_counts_vertices_by_what_prices_them(bench):
    vertices, program = five(bench)
    bench.graph.setPerfEstimate(vertices[1], 100, 1000)
    unused = bench.graph.addComputeSet("unused")
    bench.vertex(unused, Alone, x=bench.variable("y", [1.0]))
    executables = [compileGraph(bench.graph, program)]
    bench.graph.registerPerfEstimator("Total", lambda vertex, target: 9)
    executables.append(compileGraph(bench.graph, [program, bench.execute(Estimated, x=bench.variable("z", [1.0]))]))
    found = []
    for one in executables:
        loaded = Executable.load(io.BytesIO(saved(one)))
        np.testing.assert_array_equal(loaded.priced_by, one.priced_by)
        np.testing.assert_array_equal(loaded.computes.flops, one.computes.flops)
        assert loaded.priced_by.dtype == np.int64
        rows = zip(one.codelets, loaded.priced_by.tolist(), strict=True)
        found.append({codelet.name: dict(zip(PRICED_BY, row, strict=True)) for codelet, row in rows})
    assert found[0] == {
        "Total": {"estimate": 1, "estimator": 0, "code": 4},
        "Alone": {"estimate": 0, "estimator": 0, "code": 0},
    }
    assert found[1]["Total"] == {"estimate": 1, "estimator": 4, "code": 0}
    assert found[1]["Estimated"] == {"estimate": 0, "estimator": 1, "code": 0}


@pytest.mark.parametrize(("path", "value"), [(("priced_by",), -1), (("priced_by",), 100), (("computes", "flops"), -2)])
def test_damaged_counts_are_refused(bench, path, value):
    vertices, program = five(bench)
    bench.graph.setPerfEstimate(vertices[1], 100, 1000)
    opened = Opened(saved(compileGraph(bench.graph, program)))
    opened.array(*path).flat[0] = value
    with pytest.raises(FileLoadError, match=r"\.".join(path)):
        Executable.load(io.BytesIO(opened.content()))
