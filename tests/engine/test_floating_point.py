"""Floating-point results that stop a program, where they are asked to."""

import numpy as np
import pytest
from engine_builder import Bench, everywhere

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    ApplicationRuntimeError,
    CodeletArithmeticError,
    FloatingPointBehaviour,
    InOut,
    Input,
    Output,
    PoplarTypeError,
    Vector,
    Vertex,
    compileGraph,
    setFloatingPointBehaviour,
)
from pypoplar.program import Execute, Sequence

STRICT = {"debug.floatPointOpException": "true"}
INVALID, OVERFLOW, DIVISION = "invalid floating-point operation", "floating-point overflow", "floating-point division by zero"


class Operate(Vertex):
    a: Input[FLOAT]
    b: Input[FLOAT]
    out: Output[FLOAT]
    kind: INT

    def compute(self):
        if self.kind == 0:
            self.out = self.a * self.b
        elif self.kind == 1:
            self.out = self.a - self.b
        elif self.kind == 2:
            self.out = self.a / self.b
        else:
            self.out = self.a**0.5


class OperateHalf(Vertex):
    a: Input[HALF]
    b: Input[HALF]
    out: Output[HALF]
    kind: INT

    def compute(self):
        if self.kind == 0:
            self.out = self.a * self.b
        elif self.kind == 1:
            self.out = self.a - self.b
        elif self.kind == 2:
            self.out = self.a / self.b
        else:
            self.out = self.a**0.5


class Square(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] *= self.x[i]


INFINITE = float("inf")
CASES = [
    (Operate, 0, 1e30, 1e30, OVERFLOW, INFINITE),
    (OperateHalf, 0, 60000, 60000, OVERFLOW, INFINITE),
    (Operate, 0, 0.0, INFINITE, INVALID, None),
    (Operate, 1, INFINITE, INFINITE, INVALID, None),
    (OperateHalf, 1, INFINITE, INFINITE, INVALID, None),
    (Operate, 2, 1.0, 0.0, DIVISION, INFINITE),
    (OperateHalf, 2, -1.0, 0.0, DIVISION, -INFINITE),
    (Operate, 2, 0.0, 0.0, INVALID, None),
    (Operate, 3, -1.0, 0.0, INVALID, None),
]


def operated(codelet, kind, a, b, options, behaviour=None):
    def work(mode, options):
        bench = Bench()
        type = HALF if codelet is OperateHalf else FLOAT
        given = {name: bench.variable(name, value, 3, type) for name, value in (("a", a), ("b", b), ("out", 0))}
        program = Sequence()
        if behaviour is not None:
            setFloatingPointBehaviour(bench.graph, program, behaviour)
        program.add(bench.execute(codelet, 3, kind=kind, **given))
        engine = bench.engine(program, mode, options)
        engine.run()
        return engine.readTensor("out")

    return everywhere(work, options)


@pytest.mark.parametrize(("codelet", "kind", "a", "b", "message", "result"), CASES)
def test_results_flow_on_unless_the_option_says_otherwise(codelet, kind, a, b, message, result):
    found = operated(codelet, kind, a, b, None)
    assert np.isnan(found) if result is None else found == result
    with pytest.raises(CodeletArithmeticError, match=message) as caught:
        operated(codelet, kind, a, b, STRICT)
    assert isinstance(caught.value, ApplicationRuntimeError | ArithmeticError)
    assert "self.out = self.a" in str(caught.value)


@pytest.mark.parametrize(("codelet", "kind", "a", "b", "message", "result"), CASES)
def test_a_program_decides_which_of_them_stop_it(codelet, kind, a, b, message, result):
    only = {INVALID: "inv", OVERFLOW: "oflo", DIVISION: "div0"}[message]
    names = ("inv", "oflo", "div0")
    with pytest.raises(ArithmeticError, match=message):
        operated(codelet, kind, a, b, None, FloatingPointBehaviour(**{name: name == only for name in names}))
    operated(codelet, kind, a, b, STRICT, FloatingPointBehaviour(**{name: name != only for name in names}))


@pytest.mark.parametrize(("a", "b"), [(INFINITE, 1.0), (float("nan"), 1.0), (1e38, 1e-38), (1e-45, 1e-45), (-0.0, 0.0)])
@pytest.mark.parametrize("kind", [0, 1])
def test_what_comes_in_and_what_vanishes_is_not_blamed_on_the_operation(a, b, kind):
    operated(Operate, kind, a, b, STRICT)


def test_the_behaviour_holds_from_its_step_on_until_it_is_set_again():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", [1e30, 2.0], 5)
        square = bench.execute(Square, 5, x=x)
        on, off = Sequence(), Sequence()
        setFloatingPointBehaviour(bench.graph, on, FloatingPointBehaviour(inv=False, div0=False, oflo=True))
        setFloatingPointBehaviour(bench.graph, off, FloatingPointBehaviour(False, False, False))
        engine = bench.engine([Sequence([square, on]), square, Sequence([off, square])], mode, options)
        engine.run(0)  # overflows before the step
        first = engine.readTensor("x")
        engine.writeTensor("x", [1e30, 2.0])
        with pytest.raises(ArithmeticError, match=OVERFLOW):
            engine.run(1)  # the machine stays as it was set
        engine.run(2)
        second = engine.readTensor("x")
        engine.run(1)
        engine.load()
        engine.run(1)
        return first, second, engine.readTensor("x")

    first, second, third = everywhere(work)
    assert first.tolist() == [INFINITE, 4]
    assert second[0] == INFINITE
    assert third.tolist() == [INFINITE, 4]


def test_a_vertex_stops_where_it_overflows_and_others_do_not():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", [[2.0, 1e30, 3.0], [4.0, 5.0, 6.0]], 5)
        compute_set = bench.graph.addComputeSet("square")
        for row in range(2):
            bench.vertex(compute_set, Square, 5 + row, x=x[row])
        engine = bench.engine(Execute(compute_set), mode, options)
        with pytest.raises(ArithmeticError, match=OVERFLOW):
            engine.run()
        return engine.readTensor("x")

    assert everywhere(work, STRICT).tolist() == [[4, np.float32(1e30), 3], [16, 25, 36]]


def test_the_behaviour_is_a_behaviour():
    bench = Bench()
    with pytest.raises(PoplarTypeError, match="expected a FloatingPointBehaviour, got True"):
        setFloatingPointBehaviour(bench.graph, Sequence(), True)


@pytest.mark.parametrize(
    ("behaviour", "options", "looks"),
    [
        (FloatingPointBehaviour(False, False, False, True), {}, False),  # rounds at random alone, as models of PyTorch do
        (FloatingPointBehaviour(False, False, True, True), {}, True),
        (FloatingPointBehaviour(False, False, False), STRICT, True),  # the option holds until it is set
    ],
)
def test_machine_code_looks_for_exceptions_where_some_may_stop_the_program_alone(behaviour, options, looks):
    bench = Bench()
    square = bench.execute(Square, 5, x=bench.variable("x", [2.0], 5))
    program = Sequence()
    setFloatingPointBehaviour(bench.graph, program, behaviour)
    assert compileGraph(bench.graph, [Sequence([program, square])], options).floating_point_checks is looks


def test_exceptions_are_looked_for_where_a_program_before_lets_none_stop_it():
    bench = Bench()
    square = bench.execute(Square, 5, x=bench.variable("x", [1e30], 5))
    quiet, strict = Sequence(), Sequence()
    setFloatingPointBehaviour(bench.graph, quiet, FloatingPointBehaviour(False, False, False))
    setFloatingPointBehaviour(bench.graph, strict, FloatingPointBehaviour())
    engine = bench.engine([Sequence([strict, quiet, square]), Sequence([quiet, strict, square])])
    engine.run(0)
    engine.writeTensor("x", [1e30])
    with pytest.raises(ArithmeticError, match=OVERFLOW):
        engine.run(1)
