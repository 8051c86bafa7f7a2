"""Steps of a function stand under the names of its calls, in which their costs add up to those of the steps."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from library_programs import variable

from pypoplar import FLOAT, Engine, Graph, IPUModel, popops
from pypoplar.called_names import name_in_call, names_told, told
from pypoplar.program import Call, Copy, Repeat, Sequence
from pypoplar.report.execution import COSTS, COSTS_BY_TILE
from pypoplar.report.naming.called_steps import steps_by_call, steps_of
from pypoplar.report.page.name_data import name_data

words = st.text("abc/01", min_size=1, max_size=6)


@given(st.dictionaries(words, words, max_size=4), st.sampled_from(["", "copies 12 B"]))
def test_names_that_are_told_are_read(names, note):
    assert names_told(told(names, note)) == names


def test_texts_that_tell_no_names_have_none():
    for text in ("", "host function f", "3 times", "; copies 12 B of arguments"):
        assert names_told(text) == {}


def test_the_longest_beginning_of_a_name_is_replaced_by_whole_parts():
    names = {"layer1": "layer2", "layer1/out": "last"}
    assert name_in_call("layer1/in/add", names) == "layer2/in/add"
    assert name_in_call("layer1/out/add", names) == "last/add"
    assert name_in_call("layer10/in", names) == "layer10/in"


def engine_of(told_names, times=(2, 3)):
    """A function that adds, in two loops with a call each, and copies beside the calls."""
    model = IPUModel("tiny")
    model.tilesPerIPU = 4
    device = model.createDevice()
    graph = Graph(device.getTarget())
    popops.addCodelets(graph)
    x, y = variable(graph, FLOAT, [64], "x"), variable(graph, FLOAT, [64], "y")
    body = Sequence()
    popops.addInPlace(graph, x, y, body, "layer0/add")
    function, whole = graph.addFunction(body), Sequence()
    for count, names in zip(times, told_names, strict=True):
        whole.add(Repeat(count, Sequence(Copy(x, y, name="arguments"), Call(function, names=names))))
    engine = Engine(graph, whole)
    engine.load(device)
    engine.run(0)
    return engine


def test_a_function_costs_under_the_names_of_its_calls_as_often_as_they_run():
    report = engine_of([{"layer0": "layer0"}, {"layer0": "layer1"}]).getReport()
    whole = [step for step in report.execution.steps if step.name.startswith("layer0")]
    parts = [step for step in steps_of(report) if step.name.startswith("layer")]
    assert {step.executions for step in whole} == {5}
    assert {(step.name.partition("/")[0], step.executions) for step in parts} == {("layer0", 2), ("layer1", 3)}
    for cost in COSTS:
        assert sum(getattr(step, cost) for step in parts) == sum(getattr(step, cost) for step in whole), cost
    for cost in COSTS_BY_TILE:
        np.testing.assert_array_equal(sum(getattr(step, cost).sum() for step in parts), sum(getattr(s, cost).sum() for s in whole))
    assert [step.compute_cycles * 3 for step in parts if step.name.startswith("layer0")] == [
        step.compute_cycles * 2 for step in parts if step.name.startswith("layer1")
    ]


def test_vertices_of_a_function_are_there_once():
    data = name_data(engine_of([{"layer0": "layer0"}, {"layer0": "layer1"}]).getReport())
    assert {"layer0", "layer1"} <= set(data["name"])
    plain = name_data(engine_of([{}, {}]).getReport())
    assert sum(data["vertices"]) == sum(plain["vertices"]) > 0
    assert sum(data["compute"]) == sum(plain["compute"])


def test_functions_whose_calls_tell_no_names_stand_under_their_own():
    report = engine_of([{}, {}]).getReport()
    steps = {step.number: step for step in report.execution.steps}
    assert steps_by_call(report.compilation.programs, steps) == list(steps.items())
    assert "layer1" not in name_data(report)["name"]
