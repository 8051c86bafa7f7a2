"""Stochastic rounding: halves are rounded at random where a program turns it on, in both engines alike; else nothing changes."""

from typing import Generic, TypeVar

import numpy as np
import pytest
from codelet_rig import priced_codelet
from engine_builder import Bench, everywhere

from pypoplar import (
    FLOAT,
    HALF,
    UNSIGNED_INT,
    CodeletArithmeticError,
    Engine,
    Executable,
    FloatingPointBehaviour,
    InOut,
    Input,
    MultiVertex,
    Output,
    SupervisorVertex,
    Vector,
    VectorList,
    Vertex,
    compileGraph,
    ipu,
    setFloatingPointBehaviour,
    setSeed,
    setStochasticRounding,
)
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.llvm.codelet_code import assembly_text
from pypoplar.engine.native.machine_code import machine_code
from pypoplar.program import Call, Execute, If, Repeat, Sequence

T = TypeVar("T", FLOAT, HALF)
COUNT = 240
VALUES = (np.random.default_rng(1).standard_normal(COUNT) * 2.0 ** np.arange(-20, 4).repeat(10)).astype(np.float32)
QUIET = FloatingPointBehaviour(False, False, False, True)


class Cast(Vertex):
    x: Input[Vector[FLOAT]]
    out: Output[Vector[HALF]]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] = HALF(self.x[i])


class CastToNearest(Cast, rounding="nearest"):
    pass


class Sums(Vertex):
    """Sums that would run eight side by side."""

    x: Input[VectorList[FLOAT]]
    out: Output[Vector[HALF]]

    def compute(self):
        for row in range(len(self.out)):
            total = HALF(0)
            for i in range(len(self.x[row])):
                total += HALF(self.x[row][i])
            self.out[row] = total


class Share(MultiVertex, Generic[T]):
    """Several operations, and a draw of its own between them."""

    x: Input[Vector[T]]
    out: Output[Vector[HALF]]
    drawn: Output[Vector[FLOAT]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.out):
            y = HALF(self.x[i])
            self.out[i] = (y + HALF(0.3)) * y - ipu.exp(y)
            self.drawn[i] = ipu.random_float()


class Supervised(SupervisorVertex):
    x: Input[Vector[FLOAT]]
    out: InOut[Vector[HALF]]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] += HALF(self.x[i])


class Product(MultiVertex):
    a: Input[Vector[HALF]]
    b: Input[Vector[HALF]]
    out: InOut[Vector[HALF]]

    def compute(self, worker):
        if worker == 0:
            ipu.multiply_accumulate(self.out, self.a, self.b, 3, 16, 5)


def rounding(bench, enable, *programs):
    """Programs with the rounding set before them."""
    sequence = Sequence()
    setStochasticRounding(bench.graph, sequence, enable)
    for program in programs:
        sequence.add(program)
    return sequence


def built():
    """A bench with every kind of vertex on several tiles, and a program that runs them all."""
    bench = Bench()
    x = bench.variable("x", VALUES)
    halves = bench.variable("halves", VALUES.astype(np.float16))
    everything = bench.graph.addComputeSet("everything")
    names = []

    def out(name, count, tile, type=HALF):
        names.append(name)
        return bench.variable(name, np.zeros(count), tile, type)

    for tile in range(2):
        for number, codelet in enumerate((Cast, CastToNearest)):
            for piece in range(7):
                bench.vertex(everything, codelet, tile, x=x[:60], out=out(f"cast{tile}.{number}.{piece}", 60, tile))
        rows = [x[10 * i : 10 * i + 10] for i in range(20)]
        for piece in range(4):
            bench.vertex(everything, Sums, tile, x=rows, out=out(f"sums{tile}.{piece}", 20, tile))
        for number, (codelet, given) in enumerate(((Share[FLOAT], x), (Share[HALF], halves))):
            result, drawn = out(f"share{tile}.{number}", COUNT, tile), out(f"drawn{tile}.{number}", COUNT, tile, FLOAT)
            bench.vertex(everything, codelet, tile, x=given, out=result, drawn=drawn)
    bench.vertex(everything, Supervised, 4, x=x, out=out("supervised", COUNT, 4))
    bench.vertex(everything, Product, 5, a=halves[:48], b=halves[48:128], out=out("product", 15, 5))
    return bench, Execute(everything), names


@pytest.fixture(scope="module")
def world():
    return built()


def results(engine, names):
    return {name: engine.readTensor(name) for name in names}


def test_both_engines_round_alike_on_any_number_of_threads_and_other_draws_go_on_from_there(world):
    bench, execute, names = world
    on = rounding(bench, True, execute)

    def work(mode, options):
        engine = bench.engine([on, execute], mode, options)
        engine.run(0)
        first = results(engine, names)
        engine.run(1)
        return first, results(engine, names)

    first, second = everywhere(work)
    nearest = VALUES.astype(np.float16)
    for tile in range(2):
        assert (first[f"cast{tile}.0.0"] != nearest[:60]).any()
        np.testing.assert_array_equal(first[f"cast{tile}.1.0"], nearest[:60])
        assert (first[f"cast{tile}.0.0"] != second[f"cast{tile}.0.0"]).any()  # it holds from run to run
    casts = {first[f"cast{tile}.0.{piece}"].tobytes() for tile in range(2) for piece in range(7)}
    assert len(casts) > 10  # workers and tiles have streams of their own
    everything = np.concatenate([first[f"drawn{tile}.{number}"] for tile in range(2) for number in range(2)])
    assert len(np.unique(everything)) > 0.99 * len(everything)


def test_what_else_is_looked_after_changes_no_bit(world):
    bench, execute, names = world
    on = rounding(bench, True, execute)
    plain = bench.engine(on)
    plain.run()
    options = {"pypoplar.races": "elements", "pypoplar.uninitialised": "error"}
    options |= {"profiler.includeFlopEstimates": "true", "autoReport.outputExecutionProfile": "true"}
    for mode in ("native", "interpret"):
        engine = bench.engine(on, mode, options)
        engine.run()
        for name, value in results(plain, names).items():
            assert value.tobytes() == engine.readTensor(name).tobytes(), name


def test_engines_begin_with_it_off_and_turning_it_off_gives_what_is_nearest(world):
    bench, execute, names = world
    program = [execute, rounding(bench, True), rounding(bench, False)]
    never = bench.engine(execute)
    never.run()
    for mode in ("native", "interpret"):
        engine = bench.engine(program, mode)
        engine.run(0)
        for name in names:
            assert engine.readTensor(name).tobytes() == never.readTensor(name).tobytes()
        engine.run(1)
        engine.run(2)
        engine.run(0)
        assert engine.readTensor("cast0.0.0").tobytes() == never.readTensor("cast0.0.0").tobytes()
        engine.run(1)
        engine.load(bench.device)  # as a machine that was just switched on
        engine.run(0)
        assert engine.readTensor("cast0.0.0").tobytes() == never.readTensor("cast0.0.0").tobytes()


def test_cycles_are_the_same_on_and_off(world):
    bench, execute, _ = world
    cycles = []
    for program in (execute, rounding(bench, True, execute)):
        for mode in ("native", "interpret"):
            engine = bench.engine(program, mode)
            engine.run()
            cycles.append(engine._state.clock)
    assert len(set(cycles)) == 1


def test_it_is_switched_inside_of_repeats_branches_and_functions():
    bench = Bench()
    graph = bench.graph
    out = {name: bench.variable(name, np.zeros(64), 0, HALF) for name in ("before", "random", "nearest", "branch", "after")}
    x = bench.variable("x", np.full(64, 1 + 2.0**-11), 0, FLOAT)
    wanted = bench.variable("wanted", np.array([1], np.int32))
    steps = {name: bench.execute(Cast, x=x, out=tensor) for name, tensor in out.items()}
    turn_on = graph.addFunction(rounding(bench, True))
    body = Sequence([Call(turn_on), steps["random"], rounding(bench, False, steps["nearest"])])
    switch = If(wanted, rounding(bench, True), rounding(bench, False))
    program = Sequence([steps["before"], Repeat(3, body), switch, steps["branch"], rounding(bench, False), steps["after"]])

    def work(mode, options):
        engine = bench.engine(program, mode, options)
        engine.run()
        first = results(engine, out)
        engine.writeTensor("wanted", np.array([0], np.int32))
        engine.run()
        return first, results(engine, out)

    first, second = everywhere(work)
    for outcome, on in ((first, {"random", "branch"}), (second, {"random"})):
        for name, values in outcome.items():
            assert set(values.tolist()) == ({1.0, 1 + 2.0**-10} if name in on else {1.0}), name


def test_a_seed_gives_the_same_roundings_again():
    bench = Bench()
    x = bench.variable("x", VALUES)
    out = bench.variable("out", np.zeros(COUNT), 0, HALF)
    seed = bench.variable("seed", np.array([7, 1], np.uint32), 0, UNSIGNED_INT)
    cast, program = bench.execute(Cast, x=x, out=out), Sequence()
    setSeed(bench.graph, seed, 3, program)
    program.add(rounding(bench, True, cast))
    engine, found = bench.engine([program, cast]), []
    for number in (0, 1, 0):
        engine.run(number)
        found.append(engine.readTensor("out").tobytes())
    assert found[0] == found[2] != found[1]


def test_the_floating_point_behaviour_turns_it_on_and_setting_it_alone_keeps_the_exceptions():
    bench = Bench()
    x = bench.variable("x", np.full(300, 65530.0, np.float32))
    out = bench.variable("out", np.zeros(300), 0, HALF)
    cast = bench.execute(Cast, x=x, out=out)
    quiet, strict = Sequence(), Sequence()
    setFloatingPointBehaviour(bench.graph, quiet, QUIET)
    setFloatingPointBehaviour(bench.graph, strict, FloatingPointBehaviour(esr=False))
    quiet.add(cast)

    def gently(mode, options):
        engine = bench.engine(quiet, mode, options)
        engine.run()
        return engine.readTensor("out")

    values = everywhere(gently)
    assert set(values.tolist()) == {65504.0, np.inf}  # beyond the largest half the next is infinity, whose overflow oflo judges
    strict.add(rounding(bench, True, cast))

    def strictly(mode, options):
        bench.engine(strict, mode, options).run()

    with pytest.raises(CodeletArithmeticError, match="floating-point overflow"):
        everywhere(strictly)


def test_an_executable_that_was_saved_rounds_as_before(world, tmp_path):
    bench, execute, names = world
    executable = compileGraph(bench.graph, [rounding(bench, True, execute)])
    executable.save(tmp_path / "rounding")
    outcomes = []
    for source in (executable, Executable.load(tmp_path / "rounding")):
        engine = Engine(source)
        engine.load(bench.device)
        engine.run()
        outcomes.append({name: value.tobytes() for name, value in results(engine, names).items()})
    assert outcomes[0] == outcomes[1]
    assert not compileGraph(bench.graph, [rounding(bench, False, execute)]).may_round_at_random


def test_machine_code_of_a_program_that_never_turns_it_on_knows_nothing_of_it(world):
    bench, execute, _ = world
    programs = (execute, rounding(bench, False, execute), rounding(bench, True, execute))
    never, off, on = (compileGraph(bench.graph, [program]) for program in programs)
    addresses = [machine_code(executable).addresses.tolist() for executable in (never, off, on)]
    assert addresses[0] == addresses[1]
    same = {codelet.name for codelet, *two in zip(never.codelets, addresses[0], addresses[2], strict=True) if two[0] == two[1]}
    assert same == {"CastToNearest"}
    for codelet in (Cast, Sums):
        plain, random = (assembly_text(priced_codelet(codelet), Checks(stochastic=stochastic)) for stochastic in (False, True))
        assert "next_random" not in plain
        assert "next_random" in random
