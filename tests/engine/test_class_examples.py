"""Examples of classes of vertices: what each costs does not depend on which others run in the same native call."""

import numpy as np
import pytest
from engine_builder import Bench

from pypoplar import (
    INT,
    CodeletArithmeticError,
    Engine,
    MultiVertex,
    Output,
    SupervisorVertex,
    Vector,
    Vertex,
    compileGraph,
    ipu,
)
from pypoplar.engine.cost.class_examples import SEATS, ClassCost, ClassExamples
from pypoplar.engine.cost.class_runs import ClassRuns
from pypoplar.engine.cost.vertex_classes import find_classes
from pypoplar.engine.loaded_codelets import translate_codelets
from pypoplar.program import Execute, Sequence


class Rounds(Vertex):
    """As many rounds as a plain field says."""

    rounds: INT
    out: Output[INT]

    def compute(self) -> None:
        total = 0
        for i in range(self.rounds):
            total += i
        self.out = total


class Together(MultiVertex):
    """Rounds that workers share unevenly."""

    rounds: INT
    out: Output[Vector[INT]]

    def compute(self, worker: int) -> None:
        for i in range(worker, self.rounds, 4):
            self.out[worker] = i


class Alone(SupervisorVertex):
    """The rounds of a supervisor."""

    rounds: INT
    out: Output[INT]

    def compute(self) -> None:
        for i in range(self.rounds):
            self.out = i


class Drawing(Vertex):
    """Random numbers decide a branch."""

    rounds: INT
    out: Output[INT]

    def compute(self) -> None:
        count = 0
        for _ in range(self.rounds):
            if ipu.random_uint() & 7 == 0:
                count += 1
        self.out = count


class Dividing(Vertex):
    """What a plain field of 0 makes an error."""

    rounds: INT
    divisor: INT
    out: Output[INT]

    def compute(self) -> None:
        self.out = 100 // self.divisor


ROUNDS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55)


def many_classes(bench):
    """A compute set for each class, of all kinds in turn; an estimate where data decide."""
    programs = []
    for rounds in ROUNDS:
        for kind in (Rounds, Together, Alone, Drawing, Dividing):
            size = 6 if kind is Together else 1
            out = bench.variable(f"{kind.__name__}{rounds}", [0] * size)
            compute_set = bench.graph.addComputeSet(f"{kind.__name__}{rounds}")
            vertex = bench.vertex(compute_set, kind, out=out if size > 1 else out[0])
            bench.graph.setInitialValue(vertex["rounds"], rounds)
            if kind is Dividing:
                bench.graph.setInitialValue(vertex["divisor"], rounds % 3)
            if kind is Drawing:
                bench.graph.setPerfEstimate(vertex, 100)
            programs.append(Execute(compute_set))
    return programs


def examples_of(bench, programs):
    executable = compileGraph(bench.graph, Sequence(*programs), {"profiler.includeFlopEstimates": True}, mode="cost")
    translate_codelets(executable)
    computes = executable.computes
    classes = find_classes(executable, np.ones(len(computes.vertex), bool))
    return executable, classes


def told(cost):
    if not isinstance(cost, ClassCost):
        return str(cost)
    return cost.slots, cost.busy, cost.work.tolist(), cost.blocks.tolist()


@pytest.mark.parametrize("order", ["as they are", "backwards", "drawn"])
def test_an_example_costs_among_others_what_it_costs_alone(bench, order):
    executable, classes = examples_of(bench, many_classes(bench))
    numbers = list(range(len(classes.example)))
    assert len(numbers) < SEATS
    alone = [told(ClassExamples.of(executable, classes).run(number, {}, 0)) for number in numbers]
    if order == "backwards":
        numbers.reverse()
    if order == "drawn":
        numbers = np.random.default_rng(5).permutation(np.repeat(numbers, 3)).tolist()  # more than there are seats, some often
    examples = ClassExamples.of(executable, classes)
    together = [told(cost) for cost in examples.run_all(numbers)]
    assert together == [alone[number] for number in numbers]
    assert [told(cost) for cost in examples.run_all(numbers)] == together
    assert sum(isinstance(cost, str) for cost in alone) == sum(rounds % 3 == 0 for rounds in ROUNDS)
    assert len(set(map(str, alone))) > 3 * len(ROUNDS)


def test_a_fault_of_a_class_is_told_where_its_compute_set_is_priced():
    bench = Bench()
    programs = many_classes(bench)
    engine = Engine(bench.graph, programs, mode="cost")
    engine.load(bench.device)
    for number in range(len(programs)):
        faults = number % 5 == 4 and ROUNDS[number // 5] % 3 == 0
        if not faults:
            engine.run(number)
            continue
        where = f"in compute set 'Dividing{ROUNDS[number // 5]}'"
        with pytest.raises(CodeletArithmeticError, match=rf"division by zero[^$]* {where}"):
            engine.run(number)


def test_the_classes_of_a_compute_set_run_together_and_each_once(monkeypatch):
    bench = Bench()
    compute_set = bench.graph.addComputeSet("all")
    outs = bench.variable("outs", [0] * 80)
    for number in range(80):
        vertex = bench.vertex(compute_set, Rounds, tile=number % 4, out=outs[number])
        bench.graph.setInitialValue(vertex["rounds"], number // 2)
    calls = []
    seated = ClassExamples._seated
    monkeypatch.setattr(ClassExamples, "_seated", lambda *given: calls.append(given[1]) or seated(*given))
    engine = bench.engine(Sequence(Execute(compute_set), Execute(compute_set)), mode="cost")
    engine.run()
    assert len(calls) == 1
    assert len(calls[0]) == 40
    once = bench.engine(Sequence(Execute(compute_set), Execute(compute_set)))
    once.run()
    assert engine.getReport().execution.totalCycles == once.getReport().execution.totalCycles


def test_classes_whose_loops_data_decide_are_not_run_beforehand(bench):
    executable, classes = examples_of(bench, many_classes(bench))
    runs = ClassRuns(executable, classes, {"Drawing": {}})
    runs.run_beforehand(range(len(classes.example)))
    names = {executable.codelets[int(classes.codelet[number])].name for number in runs._ran}
    assert names == {"Rounds", "Together", "Alone", "Dividing"}
