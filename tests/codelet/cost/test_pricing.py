"""The pricing pass: a codelet is translated once and priced for each target; nothing without a price passes."""

import re

import numpy as np
import pytest
from attrs import evolve, frozen
from codelet_rig import BOW, codelet_of, priced_codelet, vertex
from native_rig import compile_codelet, run_interpreted, run_native
from written_codelets import DOT, codelet, i32

from pypoplar import FLOAT, Engine, Graph
from pypoplar.codelet.cost import scalar_prices as prices
from pypoplar.codelet.cost.pricing import COMPILED, SCALAR, Pricing, priced
from pypoplar.codelet.cost.scalar_prices import AddedPrices, StatementPrices
from pypoplar.codelet.ir.typed import Apply, Literal, Local, Price, Span, SpanList, Special, TypedField
from pypoplar.codelet.ir.walk import inner_blocks, sets, walk
from pypoplar.codelet.llvm.codelet_code import assembly_text
from pypoplar.codelet.operations.tile_readings import READINGS
from pypoplar.codelet.python.python_form import PythonForm
from pypoplar.errors import InvalidOption
from pypoplar.program import Execute
from pypoplar.target import Target

BODY = "t = 0.0\nfor i in range(len(self.x)):\n    if self.x[i] > 0.0:\n        t += self.x[i] * self.x[i]\nself.out = t"
FIELDS = "x: Input[Vector[FLOAT]]\nout: Output[FLOAT]"
SUM_OF_SQUARES = vertex(BODY, fields=FIELDS)


class Slow(AddedPrices):
    """A chip that schedules nothing and takes a slot more for every straight run."""

    def run(self, statements):
        slots, bound = super().run(statements)
        return slots + bool(statements), bound


@pytest.fixture
def another(monkeypatch):
    """A target of another architecture, whose loads and branches cost more."""
    costly = Slow("ipu2", StatementPrices(load=7, branch=3, loop_round=5))
    monkeypatch.setitem(prices.PRICES, "ipu9", costly)
    return BOW.evolve(architecture="ipu9")


def test_translation_knows_no_price():
    assert not any(isinstance(statement, Price) for statement in walk(codelet_of(SUM_OF_SQUARES).typed.body))


def test_a_codelet_that_is_translated_once_costs_what_each_target_asks_for_in_both_engines(another):
    typed = codelet_of(SUM_OF_SQUARES).typed
    x = [1.0, -1.0, 2.0]
    slots = {}
    for target in (BOW, another):
        form = priced(typed, target, SCALAR)
        native, interpreted = (run(form, [{"x": np.float32(x), "out": 0}]) for run in (run_native, run_interpreted))
        assert native.slots == interpreted.slots
        assert native.fields[0]["out"][0] == interpreted.fields[0]["out"][0] == 5.0
        slots[target.architecture] = native.slots[0]
    assert slots["ipu2"] == 12 + 2 + 3 * (3 + 1 + 1 + 1) + 2 * (2 + 2) + 1
    # Straight runs: before the loop, the loop's test in each round, what the condition guards, after the loop.
    assert slots["ipu9"] == 12 + 2 + 1 + 3 * (5 + 7 + 1 + 3 + 1) + 2 * (14 + 2 + 1) + (1 + 1)


def cycles_of(target, mode, cls=SUM_OF_SQUARES):
    """What a program with one vertex costs in compute."""
    graph = Graph(target)
    x, out = graph.addVariable(FLOAT, [9], "x"), graph.addVariable(FLOAT, [1], "out")
    compute_set = graph.addComputeSet("squares")
    squares = graph.addVertex(compute_set, cls, {"x": x, "out": out[0]})
    for mapped in (x, out, squares):
        graph.setTileMapping(mapped, 0)
    graph.createHostWrite("x", x)
    engine = Engine(graph, Execute(compute_set), {"pypoplar.codelet_cost": SCALAR}, mode=mode)
    engine.load()
    engine.writeTensor("x", np.arange(9, dtype=np.float32))
    engine.run(0)
    return sum(step.compute_cycles for step in engine.getReport().execution.steps)


def test_an_engine_runs_with_the_prices_of_its_executables_target(another):
    cycles = {target.architecture: {cycles_of(target, mode) for mode in ("native", "interpret")} for target in (BOW, another)}
    assert {architecture: len(of_modes) for architecture, of_modes in cycles.items()} == {"ipu2": 1, "ipu9": 1}
    assert max(cycles["ipu2"]) < min(cycles["ipu9"])


def test_machine_code_is_made_again_for_other_prices(another):
    typed = codelet_of(SUM_OF_SQUARES).typed
    assert assembly_text(priced(typed, BOW, SCALAR)) != assembly_text(priced(typed, another, SCALAR))
    assert assembly_text(priced(typed, BOW, SCALAR)) == assembly_text(priced(typed, BOW.evolve(architecture="ipu1"), SCALAR))


COUNTING = "while self.i < 100:\n    self.i += 1"
"""A round: load, compare, branch; load, add, store."""


def supervised(body, fields, target=BOW, **values):
    """Cycles of a SupervisorVertex, the same in both engines."""
    form = priced(codelet_of(vertex(body, fields=fields, base="SupervisorVertex")).typed, target, SCALAR)
    native, interpreted = (run(form, [values]) for run in (run_native, run_interpreted))
    assert native.slots == interpreted.slots
    return native.slots[0]


def test_supervisor_code_takes_six_cycles_an_instruction():
    test, round = 3, 6
    assert supervised(COUNTING, "i: InOut[INT]", i=np.int32(0)) == 6 * (100 * round + test)
    assert supervised(COUNTING, "i: InOut[INT]", i=np.int32(90)) == 6 * (10 * round + test)
    slow = BOW.evolve(supervisor_instruction_cycles=7)
    assert supervised(COUNTING, "i: InOut[INT]", slow, i=np.int32(90)) == 7 * (10 * round + test)


def test_the_supervisor_has_no_hardware_repeat():
    body, fields = "for i in range(len(self.x)):\n    self.x[i] += 1.5", "x: InOut[Vector[FLOAT]]"
    cycles = [supervised(body, fields, x=np.zeros(rounds, np.float32)) for rounds in (10, 11)]
    assert cycles[1] - cycles[0] == 6 * (3 + 3)  # load, add, store; add, compare, branch


def test_other_cycles_of_an_instruction_are_other_machine_code_of_supervisors_alone():
    slow = BOW.evolve(supervisor_instruction_cycles=7)
    for base, same in (("SupervisorVertex", False), ("Vertex", True)):
        typed = codelet_of(vertex(COUNTING, fields="i: InOut[INT]", base=base)).typed
        assert (assembly_text(priced(typed, BOW, SCALAR)) == assembly_text(priced(typed, slow, SCALAR))) == same


def test_an_architecture_without_prices_is_refused_by_name():
    with pytest.raises(InvalidOption, match="no prices are known for the architecture 'ipu3'; there are prices for ipu1"):
        priced(codelet_of(SUM_OF_SQUARES).typed, BOW.evolve(architecture="ipu3"), SCALAR)


def test_a_codelet_is_priced_once():
    with pytest.raises(ValueError, match="has a price already"):
        priced(priced_codelet(SUM_OF_SQUARES), BOW, SCALAR)


@frozen
class Fence:
    """A statement that nobody knows."""

    where: int = 0


FENCED = codelet(["out output scalar f32"], Fence())


def test_a_statement_that_nobody_knows_is_refused_by_name_wherever_it_comes():
    for walked in (
        lambda: priced(FENCED, BOW, SCALAR),
        lambda: list(walk(FENCED.body)),
        lambda: inner_blocks(Fence()),
        lambda: sets(Fence()),
        lambda: run_interpreted(FENCED, [{"out": 0}]),
        lambda: run_native(FENCED, [{"out": 0}]),
    ):
        with pytest.raises(AssertionError, match="Fence"):
            walked()


def test_an_operation_or_reading_that_nobody_knows_is_not_priced(monkeypatch):
    x = Local("x", "i32")
    monkeypatch.setitem(READINGS, "temperature", READINGS["cycle_count"])
    reading = Special(x, "temperature", 0)
    monkeypatch.undo()
    for body, name in ((Apply(x, "halve_i32", (i32(1),), 0), "halve_i32"), (reading, "temperature")):
        with pytest.raises(LookupError, match=name):
            priced(evolve(DOT, body=(body,)), BOW, SCALAR)


HALF_OF = "def half_of(x):\n    return x / 2.0"
UNPRICED = {
    "in a straight run": ("x = self.x[0]\nself.out = x * 2.0", 1, "device operation mul_f32"),
    "in a loop": ("for i in range(len(self.x)):\n    self.out = self.x[i] + 1.0", 1, "device operation add_f32"),
    "in a condition": ("if len(self.x) > 3:\n    self.out = 2.0", 0, "device operation less_i32"),
    "in a helper": ("self.out = half_of(self.x[0])", None, "device operation div_f32"),
    "a reading": ("x = self.x[0]\nself.out = x\nself.out = ipu.random_float()", 2, "random_f32"),
}


@pytest.mark.parametrize(("body", "line", "what"), UNPRICED.values(), ids=UNPRICED)
@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_what_a_chip_has_no_price_for_is_refused_with_the_codelet_and_the_users_line(body, line, what, mode, monkeypatch):
    monkeypatch.setitem(prices.PRICES, "ipu9", AddedPrices("ipu9"))
    cls = vertex(body, fields=FIELDS, prelude=HALF_OF)
    code = (cls.compute if line is not None else cls.compute.__globals__["half_of"]).__code__
    place = f"{code.co_filename}:{code.co_firstlineno + 1 + (line or 0)}: Test.{code.co_name}"
    with pytest.raises(InvalidOption, match=f"^{re.escape(place)}: {what} has no price for architecture 'ipu9'$"):
        cycles_of(BOW.evolve(architecture="ipu9"), mode, cls)


def test_a_codelet_without_prices_runs_in_no_engine():
    typed = codelet_of(SUM_OF_SQUARES).typed
    with pytest.raises(TypeError, match="codelet Test has no prices yet: engines run what"):
        PythonForm(typed)
    with pytest.raises(TypeError, match="codelet Test has no prices yet"):
        compile_codelet(typed)


WORDS = {
    "a register type": (lambda: Local("x", "q9"), "Local.type is 'q9', expected one of f32, f16, i32"),
    "a literal's type": (lambda: Literal(1, "i31"), "Literal.type is 'i31', expected one of f32.*; did you mean 'i32'"),
    "a memory type": (lambda: Span("x", "f64"), "Span.element is 'f64', expected one of f32"),
    "a memory type of rows": (lambda: SpanList("x", "f64"), "SpanList.element is 'f64', expected one of f32"),
    "a reading": (
        lambda: Special(Local("x", "u32"), "temperature", 0),
        "Special.name is 'temperature', expected one of cycle_count",
    ),
    "a field's access": (lambda: TypedField("x", "given", "scalar", "f32"), "TypedField.access is 'given', expected one of input"),
    "a field's form": (lambda: TypedField("x", "input", "heap", "f32"), "TypedField.form is 'heap', expected one of scalar"),
    "a field's element": (lambda: TypedField("x", "input", "scalar", "f64"), "TypedField.element is 'f64', expected one of f32"),
    "a codelet's kind": (lambda: codelet([], kind="odd"), "PricedCodelet.kind is 'odd', expected one of vertex, multi, supervisor"),
}


@pytest.mark.parametrize(("made", "message"), WORDS.values(), ids=WORDS)
def test_a_word_that_nobody_knows_is_refused_by_name_where_the_form_is_made(made, message):
    with pytest.raises(ValueError, match=message):
        made()


def test_the_key_of_pricings_is_equal_where_their_prices_are():
    for other in (Pricing(BOW, SCALAR), Pricing(BOW, COMPILED, (("x", "y"),)), Pricing(Target.of_preset("ipu1"), COMPILED)):
        assert Pricing(BOW, COMPILED).key == Pricing(BOW, COMPILED).key != other.key
