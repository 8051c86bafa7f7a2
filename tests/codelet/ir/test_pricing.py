"""The pricing pass: a codelet is translated once and priced for each target; nothing without a price passes."""

import numpy as np
import pytest
from attrs import evolve, frozen
from codelet_rig import BOW, codelet_of, priced_codelet, vertex
from native_rig import run_interpreted, run_native
from written_codelets import DOT, codelet, i32

from pypoplar import FLOAT, Engine, Graph
from pypoplar.codelet.ir import prices
from pypoplar.codelet.ir.prices import AddedPrices, StatementPrices
from pypoplar.codelet.ir.pricing import priced
from pypoplar.codelet.ir.typed import Apply, Local, Price, Special
from pypoplar.codelet.ir.walk import inner_blocks, sets, walk
from pypoplar.codelet.llvm.codelet_code import assembly_text
from pypoplar.errors import InvalidOption
from pypoplar.program import Execute

BODY = "t = 0.0\nfor i in range(len(self.x)):\n    if self.x[i] > 0.0:\n        t += self.x[i] * self.x[i]\nself.out = t"
FIELDS = "x: Input[Vector[FLOAT]]\nout: Output[FLOAT]"
SUM_OF_SQUARES = vertex(BODY, fields=FIELDS)


class Slow(AddedPrices):
    """A chip that schedules nothing and takes a slot more for every straight run."""

    def run(self, statements):
        return super().run(statements) + bool(statements)


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
        form = priced(typed, target)
        native, interpreted = (run(form, [{"x": np.float32(x), "out": 0}]) for run in (run_native, run_interpreted))
        assert native.slots == interpreted.slots
        assert native.fields[0]["out"][0] == interpreted.fields[0]["out"][0] == 5.0
        slots[target.architecture] = native.slots[0]
    assert slots["ipu2"] == 12 + 2 + 3 * (3 + 1 + 1 + 1) + 2 * (2 + 2) + 1
    # Straight runs: before the loop, the loop's test in each round, what the condition guards, after the loop.
    assert slots["ipu9"] == 12 + 2 + 1 + 3 * (5 + 7 + 1 + 3 + 1) + 2 * (14 + 2 + 1) + (1 + 1)


def cycles_of(target, mode):
    """What a program with one vertex costs in compute."""
    graph = Graph(target)
    x, out = graph.addVariable(FLOAT, [9], "x"), graph.addVariable(FLOAT, [1], "out")
    compute_set = graph.addComputeSet("squares")
    squares = graph.addVertex(compute_set, SUM_OF_SQUARES, {"x": x, "out": out[0]})
    for mapped in (x, out, squares):
        graph.setTileMapping(mapped, 0)
    graph.createHostWrite("x", x)
    engine = Engine(graph, Execute(compute_set), mode=mode)
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
    assert assembly_text(priced(typed, BOW)) != assembly_text(priced(typed, another))
    assert assembly_text(priced(typed, BOW)) == assembly_text(priced(typed, BOW.evolve(architecture="ipu1")))


def test_an_architecture_without_prices_is_refused_by_name():
    with pytest.raises(InvalidOption, match="no prices are known for the architecture 'ipu3'; there are prices for ipu1"):
        priced(codelet_of(SUM_OF_SQUARES).typed, BOW.evolve(architecture="ipu3"))


def test_a_codelet_is_priced_once():
    with pytest.raises(ValueError, match="has a price already"):
        priced(priced_codelet(SUM_OF_SQUARES), BOW)


@frozen
class Fence:
    """A statement that nobody knows."""

    where: int = 0


FENCED = codelet(["out output scalar f32"], Fence())


def test_a_statement_that_nobody_knows_is_refused_by_name_wherever_it_comes():
    for walked in (
        lambda: priced(FENCED, BOW),
        lambda: list(walk(FENCED.body)),
        lambda: inner_blocks(Fence()),
        lambda: sets(Fence()),
        lambda: run_interpreted(FENCED, [{"out": 0}]),
        lambda: run_native(FENCED, [{"out": 0}]),
    ):
        with pytest.raises(AssertionError, match="Fence"):
            walked()


def test_an_operation_or_reading_that_nobody_knows_is_not_priced():
    x = Local("x", "i32")
    for body, name in ((Apply(x, "halve_i32", (i32(1),), 0), "halve_i32"), (Special(x, "temperature", 0), "temperature")):
        with pytest.raises(LookupError, match=name):
            priced(evolve(DOT, body=(body,)), BOW)
