"""`pypoplar predict` runs a script until it makes its first engine or calls its first model, stops it there and predicts."""

import json
import re
import sys

import pytest
from click.testing import CliRunner

from pypoplar.cli import main

GRAPH = """
import sys
from pypoplar import FLOAT, Engine, Executable, Graph, IPUModel, compileGraph, popops, predict
from pypoplar.poputil import mapTensorLinearly
from pypoplar.program import Copy, Sequence

size = int(sys.argv[sys.argv.index("--size") + 1]) if "--size" in sys.argv else 1000
device = IPUModel("tiny").createDevice()
graph = Graph(device)
popops.addCodelets(graph)
x = graph.addVariable(FLOAT, [size], "x")
mapTensorLinearly(graph, x)
program = Sequence([Copy(graph.addHostToDeviceFIFO("in", FLOAT, size), x, name="input")])
popops.expInPlace(graph, x, program, "layer")
print("built with", sys.argv[1:])
"""
MAKE_ENGINE = """
try:
    engine = Engine(graph, [program, Sequence()], {"autoReport.all": True})
except Exception as problem:
    print("went on after", problem)
print("never reached")
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(text, *arguments):
        path = tmp_path / "program.py"
        path.write_text(text, encoding="utf-8")
        return CliRunner().invoke(main, ["predict", str(path), *map(str, arguments)])

    return call


def test_a_script_is_stopped_at_its_first_engine_and_predicted(run, tmp_path):
    before = sys.argv[:], sys.path[:]
    result = run(GRAPH + MAKE_ENGINE, "--items", 1000, "--", "--size", "2000", "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].endswith(" items/s")
    assert "for 1,000 items" in result.stdout
    assert "layer" in result.stdout
    assert result.stderr == "built with ['--size', '2000', '--json']\n"
    assert (sys.argv, sys.path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]  # and no profile


def test_the_page_of_a_prediction_has_its_timeline_and_roofline(run, tmp_path):
    pytest.importorskip("plotly")
    result = run(GRAPH + MAKE_ENGINE, "--page", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0].endswith(" items/s")
    assert "The page is" in result.stderr
    data = re.search(r'id="data">(.*?)</script>', (tmp_path / "page.html").read_text(encoding="utf-8"), re.DOTALL)
    views = json.loads(data.group(1))
    assert views["summary"]["cost"][0] == "Priced without running."
    assert f"{views['total_cycles']:,} cycles" in result.stdout
    assert {"compute_sets", "execution", "target"} <= views.keys()  # of which a roofline and a timeline are drawn


def test_a_sweep_has_no_page(run, tmp_path):
    result = run(GRAPH + MAKE_ENGINE, "--sweep", "size=10,20", "--page", tmp_path / "page.html")
    assert result.exit_code == 2
    assert "--page shows one prediction" in result.output
    assert not (tmp_path / "page.html").exists()


def test_a_graph_that_is_only_compiled_is_predicted_too(run):
    result = run(GRAPH + "compileGraph(graph, program)\nprint('never reached')\n")
    assert (result.exit_code, result.stderr) == (0, "built with []\n")
    assert "for 1 item\n" in result.stdout


def test_json_has_all_that_a_prediction_has(run):
    whole = json.loads(run(GRAPH + MAKE_ENGINE, "--json").stdout)
    without = json.loads(run(GRAPH + MAKE_ENGINE, "--json", "--synthetic-data").stdout)
    assert whole["items"] == 1
    assert whole["shares"]["host"] > 0 == without["shares"]["host"]
    assert without["validity"] == f"{whole['validity']}; synthetic data: streams are left out"


def test_a_target_is_changed(run):
    usual, slow, full = (
        json.loads(run(GRAPH + MAKE_ENGINE, "--synthetic-data", "--json", *changes).stdout)
        for changes in ((), ("--target", "clock=1e9"), ("--target", "memory=100", "--target", "tiles=4"))
    )
    assert slow["step_cycles"] == usual["step_cycles"]
    assert slow["step_seconds"] == pytest.approx(slow["step_cycles"] / 1e9)
    assert full["fullest_tile"]["limit"] == 100
    assert full["fullest_tile"]["tiles_beyond"] == 4


def test_a_target_is_changed_also_where_the_script_changes_it(run):
    own = GRAPH.replace("graph = Graph(device)", "graph = Graph(device.getTarget().evolve(clock=2e9, memory=200_000))")
    assert own != GRAPH
    usual, slow = (json.loads(run(own + MAKE_ENGINE, "--json", *changes).stdout) for changes in ((), ("--target", "clock=1e9")))
    for prediction, clock in ((usual, 2e9), (slow, 1e9)):
        assert prediction["step_seconds"] == pytest.approx(prediction["step_cycles"] / clock)
        assert prediction["fullest_tile"]["limit"] == 200_000


def test_parts_of_a_changed_target_have_their_own_sizes(run):
    own = GRAPH.replace("graph = Graph(device)", "graph = Graph(device).createVirtualGraph(3)")
    assert own != GRAPH
    result = run(
        own + MAKE_ENGINE.replace("graph, [", "graph.getTopLevelGraph(), ["), "--json", "--target", "tiles=5", "--target", "ipus=2"
    )
    assert result.exit_code == 0, result.output


def test_a_sweep_has_all_combinations_and_reasons_of_those_that_fail(run):
    result = run(GRAPH + MAKE_ENGINE, "--sweep", "size=100,no", "--target", "clock=1e9,2e9", "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [row["case"] for row in rows] == [{"size": size, "clock": clock} for size in (100, "no") for clock in (1e9, 2e9)]
    assert rows[0]["result"]["step_seconds"] > rows[1]["result"]["step_seconds"]
    assert [row["failed"] for row in rows[:2]] == [None, None]
    assert rows[2]["failed"].startswith("ValueError: ")
    table = run(GRAPH + MAKE_ENGINE, "--sweep", "size=100,200").stdout.splitlines()
    assert table[0].startswith("size  items_per_second")
    assert table[-1].startswith("sampled: nothing")
    assert run(GRAPH + MAKE_ENGINE, "--sweep", "size=no").exit_code == 1


def test_a_script_without_engine_or_model_is_refused(run):
    result = run(GRAPH)
    assert result.exit_code == 1
    assert "program.py makes no Engine and calls no model: there is nothing to predict" in result.stderr
    assert "  at " not in result.stderr  # no line is at fault
    ended = run("import sys\nsys.exit(4)\n")
    assert (ended.exit_code, "ended with 4 before there was anything to predict" in ended.stderr) == (1, True)


def test_an_engine_of_an_executable_has_no_graph_to_predict(run):
    saved = "from pypoplar import Executable, Engine\nEngine(Executable.load('saved.npz'))\n"
    with open("saved.npz", "wb") as file:
        compiled(file)
    result = run(saved)
    assert result.exit_code == 1
    assert "makes an Engine of an Executable that was compiled before: a prediction needs its graph" in result.stderr


def compiled(file):
    from pypoplar import Graph, IPUModel, compileGraph
    from pypoplar.program import Sequence

    compileGraph(Graph(IPUModel("tiny").createDevice()), Sequence()).save(file)


def test_what_a_prediction_refuses_is_shown_at_the_scripts_line(run):
    result = run(GRAPH + "engine = Engine(graph, Sequence())\n")
    assert result.exit_code == 1
    assert "ApplicationRuntimeError: the program takes no cycles" in result.stderr
    assert "program.py:16  engine = Engine(graph, Sequence())" in result.stderr
    own = run("raise ValueError('mine')\n")
    assert (own.exit_code, "ValueError: mine" in own.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--items", 0), 2, "0 is not in the range"),
        (("--sweep", "size"), 2, "'size' is no name with values"),
        (("--sweep", "size=1,,2"), 2, "is no name with values"),
        (("--sweep", "size=1", "--sweep", "size=2"), 2, "--sweep size: given twice"),
        (("--target", "clok=1"), 1, "a Target has no attribute 'clok'; did you mean 'clock'?"),
        (("--target", "clock=1,2", "--sweep", "clock=3"), 1, "'clock' is swept twice"),
        (("--target", "clock=fast"), 1, "tile_clock_frequency must be a number"),
        (("--processes", 0), 2, "0 is not in the range"),
        (("--processes", 2), 2, "--processes share a sweep, and there is one prediction"),
        (("--processes", 2, "--target", "clock=1e9"), 2, "--processes share a sweep, and there is one prediction"),
        (("--model", 1), 1, "makes no model, of which --model 1 would be one"),
    ],
)
def test_what_is_no_option_is_refused(run, arguments, code, message):
    result = run(GRAPH + MAKE_ENGINE, *arguments)
    assert result.exit_code == code, result.output
    assert message in result.stderr


def test_each_case_of_a_sweep_has_modules_of_its_own(run, tmp_path):
    (tmp_path / "chosen.py").write_text("import sys\n\nsize = int(sys.argv[-1])\n", encoding="utf-8")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "chosen.py").write_text("from chosen import size\n", encoding="utf-8")
    for imported in ("from chosen import size", "from parts import chosen\nsize = chosen.size"):
        own = GRAPH.replace("graph = Graph(device)", f"{imported}\ngraph = Graph(device)")
        text = run(own + MAKE_ENGINE, "--sweep", "size=100,1000", "--json").stdout
        cycles = [row["result"]["step_cycles"] for row in json.loads(text)]
        assert cycles[0] < cycles[1]
    assert not {"chosen", "parts", "parts.chosen"} & {*sys.modules}


SETTINGS = """
import os, sys
import poptorch, torch

if sys.argv[-1] == "set":
    torch.set_default_dtype(torch.half)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)
    os.environ["POPTORCH_DEFAULT_OPTIONS"] = '{"deviceIterations": 4}'
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
print(torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled(), os.path.basename(os.getcwd()))
model = poptorch.inferenceModel(torch.nn.Linear(4, 2))
model(torch.ones(8, 4))
"""


def test_what_a_script_sets_for_its_process_is_not_set_for_the_next_case(run, tmp_path):
    pytest.importorskip("torch")
    result = run(SETTINGS, "--sweep", "how=no,set,no", "--target", "tiles=8", "--json")
    assert result.exit_code == 0, result.output
    first, other, last = json.loads(result.stdout)
    assert first == last
    assert first["result"]["step_cycles"] != other["result"]["step_cycles"]
    told = result.stderr.splitlines()
    assert told[0] == told[2] == f"torch.float32 cpu True {tmp_path.name}"
    assert told[1] == "torch.float16 meta False elsewhere"


@pytest.mark.no_cover
def test_processes_share_a_sweep(run):
    arguments = ("--sweep", "size=100,200", "--target", "clock=1e9", "--json")
    assert run(GRAPH + MAKE_ENGINE, *arguments, "--processes", 2).stdout == run(GRAPH + MAKE_ENGINE, *arguments).stdout


MODELS = """
import poptorch
import torch

class Net(torch.nn.Linear):
    pass

net = Net(4, 2)
training = poptorch.trainingModel(net)
"""
SECOND = "inference = poptorch.inferenceModel(net)\n"


@pytest.fixture
def of_models(monkeypatch):
    """What models would give: the prediction of a graph with as many items as their batch and as much to do as they have."""
    pytest.importorskip("torch")
    from pypoplar import FLOAT, Graph, IPUModel, popops, predict
    from pypoplar.poptorch import PoplarExecutor
    from pypoplar.poputil import mapTensorLinearly
    from pypoplar.program import Sequence

    def predicted(model, batch):
        graph, program = Graph(IPUModel("tiny").createDevice()), Sequence()
        popops.addCodelets(graph)
        x = graph.addVariable(FLOAT, [batch.numel()], "x")
        mapTensorLinearly(graph, x)
        popops.expInPlace(graph, x, program, type(model.model).__name__)
        return predict(graph, program, items=len(batch))

    monkeypatch.setattr(PoplarExecutor, "predict", predicted, raising=False)


def test_a_model_is_predicted_where_it_is_first_called(run, of_models):
    for call in ("training(torch.ones(8, 4))", "training.compile(torch.ones(8, 4))"):
        result = run(MODELS + call + "\nprint('never reached')\n", "--synthetic-data", "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        assert json.loads(result.stdout)["items"] == 8
        assert json.loads(result.stdout)["validity"].endswith("synthetic data: streams are left out")


def test_of_several_models_one_has_to_be_chosen(run, of_models):
    calls = "training(torch.ones(8, 4))\ninference(torch.ones(3, 4))\n"
    result = run(MODELS + SECOND + calls)
    assert result.exit_code == 1
    assert "program.py makes 2 models; say which with --model:\n  1: trainingModel of Net at " in result.stderr
    assert "\n  2: inferenceModel of Net at " in result.stderr
    assert "program.py:10" in result.stderr
    assert json.loads(run(MODELS + SECOND + calls, "--model", 1, "--json").stdout)["items"] == 8
    never = run(MODELS + SECOND, "--model", 2)
    assert "program.py never calls model 2 that is to be predicted; it makes\n  1: trainingModel of Net at" in never.stderr
    assert "never calls the model that" in run(MODELS).stderr


@pytest.mark.parametrize("called", ["first(torch.ones(8, 4))", "first.compile(torch.ones(8, 4))"])
def test_models_that_are_called_before_the_chosen_one_run(run, called):
    pytest.importorskip("torch")
    two = "import poptorch, torch\nfirst, second = (poptorch.inferenceModel(torch.nn.Linear(4, wide)) for wide in (2, 300))\n"
    script = GRAPH + MAKE_ENGINE + two + called + "\nprint('went on')\nsecond(torch.ones(3, 4))\nprint('came too far')\n"
    chosen = run(script, "--model", 2, "--json")
    assert (chosen.exit_code, "went on" in chosen.stderr, "came too far" in chosen.stderr) == (0, True, False), chosen.output
    assert json.loads(chosen.stdout)["items"] == 3
    missing = run(script, "--model", 3)
    assert (missing.exit_code, "never calls model 3 that is to be predicted" in missing.stderr) == (1, True)


def test_the_items_of_a_model_are_its_own(run, of_models):
    result = run(MODELS + "training(torch.ones(8, 4))\n", "--items", 3)
    assert (result.exit_code, "the items of a model are those of its batches" in result.stderr) == (1, True)


SCRIPT = """
import argparse

import poptorch
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
batch = parser.parse_args().batch


class WithLoss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x, labels):
        y = torch.relu(self.layer(x))
        return y, torch.nn.functional.cross_entropy(y, labels)


options = poptorch.Options().deviceIterations(3)
options.Training.gradientAccumulation(2)
model = WithLoss()
training = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1))
for step in range(10):
    training(torch.ones(6 * batch, 4), torch.zeros(6 * batch, dtype=torch.long))
    print("never reached")
"""


def test_a_script_of_pytorch_is_predicted_at_its_first_call(run):
    pytest.importorskip("torch")
    result = run(SCRIPT, "--synthetic-data", "--", "--batch", 2)
    assert (result.exit_code, "never reached" in result.stderr) == (0, False), result.output
    assert "for 12 items" in result.stdout
    assert "host 0.0%" in result.stdout
    assert "layer" in result.stdout


def test_a_sweep_of_a_script_of_pytorch_goes_over_batches_and_targets(run):
    pytest.importorskip("torch")
    result = run(SCRIPT, "--sweep", "batch=1,2", "--target", "clock=1e9", "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [row["failed"] for row in rows] == [None, None]
    assert [row["result"]["items"] for row in rows] == [6, 12]
    assert all(row["result"]["step_seconds"] == pytest.approx(row["result"]["step_cycles"] / 1e9) for row in rows)
