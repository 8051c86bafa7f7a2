"""A prediction is what the report of a price says, in short: items in a second, where the time goes, what binds each module."""

import json
from html.parser import HTMLParser

import pytest
from engine_builder import Add, Bench, Less, tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    BOOL,
    FLOAT,
    INT,
    ApplicationRuntimeError,
    ControlProgramError,
    Engine,
    GraphMemoryAllocationError,
    Input,
    InvalidOption,
    Output,
    PoplarIndexError,
    Prediction,
    Vector,
    Vertex,
    assume_count,
    popops,
    predict,
)
from pypoplar.poputil import mapTensorLinearly
from pypoplar.prediction.prediction import prediction_of
from pypoplar.program import Copy, Execute, RepeatWhileTrue, Sequence


class Multiply(Vertex):
    """Many operations on what was loaded once."""

    x: Input[FLOAT]
    out: Output[FLOAT]
    rounds: INT

    def compute(self) -> None:
        x = self.x
        sum = 0.0
        for _ in range(self.rounds):
            sum = sum * x + x
        self.out = sum


class Find(Vertex):
    """What it takes depends on its data, and an estimate says what."""

    keys: Input[Vector[INT]]
    place: Output[INT]

    def compute(self) -> None:
        self.place = 0
        while self.keys[self.place] > 0:
            self.place += 1


def adding(bench, names=("first", "second"), tile=0):
    """A program of an execution under each name."""
    steps = []
    for name in names:
        x = bench.variable(f"x of {name}", [1], tile=tile)
        compute_set = bench.graph.addComputeSet(name)
        bench.vertex(compute_set, Add, tile, value=x[0], amount=1)
        steps.append(Execute(compute_set))
    return Sequence(steps)


def test_items_in_a_second_are_those_of_the_cycles_of_a_run():
    bench = Bench()
    program = adding(bench)
    engine = bench.engine(program)
    engine.run()
    execution = engine.getReport().execution
    prediction = predict(bench.graph, program, items=6)
    assert prediction.step_cycles == execution.totalCycles.total
    assert prediction.step_seconds == execution.seconds
    assert prediction.items_per_second == 6 / execution.seconds
    assert prediction.report.compilation.mode == "cost"
    assert prediction.validity == prediction.report.cost.validity


def test_another_program_is_predicted_if_its_number_is_given():
    bench = Bench()
    programs = [adding(bench), adding(bench, ("third", "fourth", "fifth"))]
    assert [len(predict(bench.graph, programs, program=number).modules) for number in (0, 1)] == [2, 3]
    with pytest.raises(PoplarIndexError):
        predict(bench.graph, programs, program=2)


@examples(30)
@given(
    names=st.lists(st.lists(st.sampled_from(["a", "b", "layer1", "layer2", "layer3", "0", "1", "2", ""]), max_size=4), min_size=1)
)
def test_shares_and_modules_add_up_to_the_step(names):
    bench = Bench(tiny(2))
    paths = list(dict.fromkeys("/".join(parts) for parts in names))
    x = bench.variable("x", [1, 2], tile=[0, 1])
    moves = [Copy(x[0], x[1], name=path) for path in paths]
    prediction = predict(bench.graph, Sequence([adding(bench, paths), *moves]))
    assert sum(prediction.shares.values()) == pytest.approx(1)
    assert sum(module.cycles for module in prediction.modules) == prediction.step_cycles
    assert sum(module.share for module in prediction.modules) == pytest.approx(1)
    assert [module.cycles for module in prediction.modules] == sorted((m.cycles for m in prediction.modules), reverse=True)


def test_modules_are_told_by_their_parts_where_they_are_dear():
    bench = Bench()
    blocks = [f"net/blocks/{number}/{part}/adds" for number in range(12) for part in ("one", "two")]
    prediction = predict(bench.graph, adding(bench, [*blocks, "net/head/adds", "loss/a", "loss/b"]))
    assert {module.name for module in prediction.modules} == {
        "net/blocks/*/one/adds",
        "net/blocks/*/two/adds",
        "net/head",
        "loss",
    }


def test_numbered_modules_stand_alone_where_one_of_them_is_dear():
    bench = Bench()
    prediction = predict(bench.graph, adding(bench, [f"layer{number}/adds" for number in range(4)]))
    assert {module.name for module in prediction.modules} == {f"layer{number}/adds" for number in range(4)}


def test_each_module_says_what_binds_it():
    bench = Bench(tiny(4))
    graph = bench.graph
    popops.addCodelets(graph)
    big, more, other = (graph.addVariable(FLOAT, [40_000], name) for name in ("big", "more", "other"))
    for spread in (big, more):
        mapTensorLinearly(graph, spread)
    graph.setTileMapping(other, 1)
    stream = graph.addHostToDeviceFIFO("images", FLOAT, 40_000)
    program = Sequence([Copy(stream, other, name="input"), Copy(big, other, name="move")])
    popops.addInPlace(graph, big, more, program, "memory")
    products = graph.addComputeSet("products")
    x, out = bench.variable("x", [1.0]), bench.variable("out", [0.0])
    bench.vertex(products, Multiply, x=x[0], out=out[0], rounds=10_000)
    program.add(Execute(products))
    bound = {module.name: module.bound_by for module in predict(graph, program).modules}
    assert bound == {"input": "host", "move": "exchange", "memory": "memory width", "products": "compute"}


def test_steps_of_syncs_are_bound_by_them():
    bench = Bench()
    (module,) = predict(bench.graph, adding(bench, ["small"])).modules
    assert module.bound_by == "sync"


def test_synthetic_data_leave_streams_out():
    bench = Bench()
    x = bench.variable("x", range(1000))
    program = Sequence([Copy(bench.graph.addHostToDeviceFIFO("in", INT, 1000), x), adding(bench)])
    whole, without = (predict(bench.graph, program, synthetic_data=synthetic) for synthetic in (False, True))
    assert whole.shares["host"] > 0
    assert without.shares["host"] == 0
    streams = [step.cycles for step in whole.report.execution.steps if step.type == "StreamCopy"]
    assert without.step_cycles == whole.step_cycles - sum(streams)
    assert "synthetic data" in without.validity
    assert "synthetic data" not in whole.validity


def test_the_share_of_the_peak_is_that_of_the_operations():
    bench = Bench(tiny(1))
    products = bench.graph.addComputeSet("products")
    x, out = bench.variable("x", [1.0]), bench.variable("out", [0.0])
    bench.vertex(products, Multiply, x=x[0], out=out[0], rounds=1000)
    prediction = predict(bench.graph, Execute(products))
    assert prediction.peak == "float, convolution units"
    assert prediction.share_of_peak == pytest.approx(2000 / 32 / prediction.step_cycles)
    half = prediction_of(prediction.report, peak=2 * 32 * prediction.report.execution.clockFrequency)
    assert half.share_of_peak == pytest.approx(prediction.share_of_peak / 2)


def test_what_does_not_fit_is_predicted_and_said():
    bench = Bench()
    x = bench.graph.addVariable(INT, [200_000], "x")
    bench.graph.setTileMapping(x, 3)
    program = Sequence([Copy(bench.graph.addHostToDeviceFIFO("x", INT, 200_000), x)])
    prediction = predict(bench.graph, program)
    assert (prediction.fullest_tile.tile, prediction.fullest_tile.fits) == (3, False)
    assert prediction.fullest_tile.bytes >= 800_000
    (sentence,) = prediction.does_not_fit
    assert sentence.startswith(f"1 tile holds more than {prediction.fullest_tile.limit:,} B; tile 3 is ")
    assert sentence in str(prediction)
    with pytest.raises(GraphMemoryAllocationError):
        predict(bench.graph, program, options={"pypoplar.run_out_of_memory": False})


def test_what_fits_says_nothing():
    bench = Bench()
    prediction = predict(bench.graph, adding(bench))
    assert prediction.fullest_tile.fits
    assert prediction.does_not_fit == ()
    assert "does not fit" not in str(prediction)


def test_operations_are_left_out_where_data_decide_them_and_an_estimate_the_cycles():
    bench = Bench()
    keys, place = bench.variable("keys", [1, 0]), bench.variable("place", [0])
    compute_set = bench.graph.addComputeSet("find")
    vertex = bench.vertex(compute_set, Find, keys=keys, place=place[0])
    with pytest.raises(ControlProgramError, match="Give an estimate"):
        predict(bench.graph, Execute(compute_set))
    bench.graph.setPerfEstimate(vertex, 100)
    prediction = predict(bench.graph, Execute(compute_set))
    assert prediction.share_of_peak is None
    assert prediction.validity.endswith("operations of 1 vertex type not counted, as data decide how many")
    assert "of the peak" not in str(prediction)
    assert "  operations not counted: Find" in prediction.report.cost.told()


def test_assumptions_and_samples_are_those_of_an_engine():
    bench = Bench()
    more, x = bench.variable("more", [1], type=BOOL), bench.variable("x", [0])
    check = bench.execute(Less, value=x[0], out=more[0], limit=5)
    loop = RepeatWhileTrue(check, more[0], bench.execute(Add, value=x[0], amount=1))
    with pytest.raises(ControlProgramError, match="assume_count"):
        predict(bench.graph, loop)
    prediction = predict(bench.graph, loop, assumptions=[assume_count(loop, 3)])
    assert "assumed: 1 assumption" in prediction.validity
    with pytest.raises(InvalidOption, match="no codelet of the program is called 'Ad'"):
        predict(bench.graph, loop, assumptions=[assume_count(loop, 3)], sample={"Ad": {}})


@pytest.mark.parametrize("items", [0, -1, 1.5, True, "2", None])
def test_a_number_of_items_that_is_none_is_refused(items):
    bench = Bench()
    with pytest.raises(InvalidOption, match="items must be an integer of at least 1"):
        predict(bench.graph, adding(bench), items=items)


def test_a_program_that_takes_no_cycles_is_refused():
    bench = Bench()
    x = bench.variable("x", [1])
    with pytest.raises(ApplicationRuntimeError, match="the program takes no cycles"):
        predict(bench.graph, Sequence())
    stream = Copy(bench.graph.addHostToDeviceFIFO("in", INT, 1), x)
    with pytest.raises(ApplicationRuntimeError, match="without its streams"):
        predict(bench.graph, stream, synthetic_data=True)
    with pytest.raises(ApplicationRuntimeError, match="no program has run"):
        prediction_of(Engine(bench.graph, stream, mode="cost").getReport())


def test_the_races_of_elements_need_a_run():
    bench = Bench()
    with pytest.raises(InvalidOption, match="judges what vertices touch as they run"):
        predict(bench.graph, adding(bench), options={"pypoplar.races": "elements"})


def test_the_text_has_what_a_reader_looks_for():
    bench = Bench()
    text = str(predict(bench.graph, adding(bench, [f"part {chr(97 + number)}" for number in range(12)]), items=2_000_000))
    first, *labels = (line.strip().split("  ")[0] for line in text.splitlines()[:5])
    assert first.endswith(" items/s")
    assert labels == ["step", "spent on", "fullest tile", "the dearest modules:"]
    assert "in 2 others" in text
    assert text.endswith("the host's own time")


def test_values_for_programs_are_those_of_the_attributes():
    bench = Bench()
    prediction = predict(bench.graph, adding(bench), items=3)
    values = json.loads(json.dumps(prediction.to_json()))
    assert values["items_per_second"] == prediction.items_per_second
    assert values["modules"][0] == {"name": "first", "cycles": prediction.modules[0].cycles, "share": 0.5, "bound_by": "sync"}
    assert values["fullest_tile"]["fits"] is True
    assert values["validity"] == prediction.validity
    assert "report" not in values


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("rect", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "path"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_notebooks_show_a_table_in_which_names_are_text():
    bench = Bench()
    prediction = predict(bench.graph, adding(bench, ["<script>", "plain"]))
    tags = Tags()
    tags.feed(prediction._repr_html_())
    assert tags.open == []
    assert "<script>" in tags.text
    assert any("items/s" in text for text in tags.text)
    assert prediction.validity in tags.text


def test_a_prediction_cannot_be_changed():
    bench = Bench()
    prediction: Prediction = predict(bench.graph, adding(bench))
    with pytest.raises(AttributeError):
        prediction.items = 3
    assert repr(prediction).startswith("<Prediction: ")
