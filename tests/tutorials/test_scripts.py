"""The tutorials run as scripts and print what Poplar's own tutorials print."""

import gzip
import runpy
import struct
import subprocess
import sys

import numpy as np
import pytest
from tutorial_modules import printed

from pypoplar import Engine, Target, pva, resources


@pytest.fixture
def run(capsys, monkeypatch):
    return lambda name, *arguments: printed(capsys, monkeypatch, name, *arguments)


def test_all_tutorials_are_listed_with_what_they_are_about():
    known = {name: one for name, one in resources.tutorials().items() if not name.startswith("gallery/")}
    names = [
        "transformer",
        "tut1_variables",
        "tut2_operations",
        "tut3_vertices",
        "tut4_profiling",
        "tut5_matrix_vector",
        "tut6_matrix_vector_opt",
    ]
    torch = ["poptorch_bert", "poptorch_instances", "poptorch_lstm", "poptorch_pipeline", "poptorch_predict", "poptorch_replicas"]
    first = ["digits_lstm", "keras_digits", "mnist_cnn", "mnist_regression", *torch]
    assert list(known) == [*first, *names]
    assert known["tut3_vertices"].summary == "Tutorial 3: writing vertices"
    for one in known.values():
        text = one.path.read_text(encoding="utf-8")
        assert "What to look at\n" in text
        assert "Exercises\n" in text


def test_tutorial_2_exchanges_nothing_for_the_transposed_sum():
    module = runpy.run_path(str(resources.tutorial("tut2_operations").path))
    made = []

    def remember(*arguments):
        made.append(Engine(*arguments))
        return made[0]

    main = module["main"]
    main.__globals__["Engine"] = remember
    main()
    names = [one.name for one in made[0].executable.exchanges if one.messages.size]
    assert any("Add" in one for one in names)
    last = [one for one in made[0].executable.exchanges if one.name == made[0].executable.exchanges[-1].name]
    assert all(len(one.messages) == 0 for one in last)


def test_tutorial_4_writes_the_summary_and_a_profile_that_pva_reads(run, tmp_path):
    lines = run("tut4_profiling", 90, 60, 30, 20, "--summary", tmp_path / "summary.txt", "--report", tmp_path / "report")
    assert "Target:" not in lines
    assert "Memory Usage:" in (tmp_path / "summary.txt").read_text(encoding="utf-8").splitlines()
    report = pva.openReport(tmp_path / "report")
    place = lines.index("Example information from profile:")
    assert lines[place + 1 : place + 5] == [
        f"  Number of compute sets: {report.compilation.graph.numComputeSets}",
        "  Number of tiles on target: 1472",
        f"  Cycles: {report.execution.totalCycles.total:,}",
        f"  Version of pypoplar used: {report.poplarVersion.string}",
    ]


@pytest.mark.parametrize(
    ("device", "best", "costs", "worst"),
    [("ipu2", 7, (3996, 3696, 143, 49, 108), 53807), ("ipu1", 5, (4751, 4410, 200, 45, 96), 64373)],
)
def test_tutorial_6_estimates_the_published_costs(device, best, costs, worst, capsys):
    module = runpy.run_path(str(resources.tutorial("tut6_matrix_vector_opt").path))
    target = Target.createIPUTarget(1, device)
    assert module["calcOptimalColAxisSplit"](target, 10000, 1000) == best
    assert module["estimateCycles"](target, 10000, 1000, best) == costs
    printed = capsys.readouterr().out
    assert f"colsAxisSplit={best}, total cost={costs[0]}" in printed
    assert f"Worst cost seen: {worst}" in printed


@pytest.mark.parametrize("arguments", [("none",), ("0",), ("10", "10", "--device", "gpu")])
def test_tutorial_6_refuses_sizes_and_devices_that_there_are_not(run, arguments):
    with pytest.raises(pytest.fail.Exception, match=r"exit code 2: (.|\n)*error: argument"):
        run("tut6_matrix_vector_opt", *arguments)


def test_the_regression_prints_an_accuracy_for_each_epoch(run):
    lines = run("mnist_regression", 3, "--seed", 4)
    assert lines[:2] == ["Using the IPU Model", "Training on 1,500 images of 64 pixels with 4 tiles"]
    assert [one.split(",")[0] for one in lines[2:5]] == [f"Epoch {epoch} (100%)" for epoch in (1, 2, 3)]
    assert lines[5].startswith("Accuracy on 297 images kept aside: ")
    assert run("mnist_regression", 3, "--seed", 4) == lines


def test_the_regression_shows_what_the_first_batch_cost_if_asked(run):
    lines = run("mnist_regression", 1, 20, "--profile", "--batch", 100, "--tiles", 2)
    assert "Training on 300 images of 64 pixels with 2 tiles" in lines
    assert "    OnTileExecute: Wx/matMul (100 executions)" in [one.replace("      On", "    On") for one in lines]


def write_idx(path, array):
    path.write_bytes(gzip.compress(struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()))


@pytest.mark.parametrize("kept", [False, True])
def test_the_regression_reads_mnist_from_a_directory(run, tmp_path, kept):
    random = np.random.default_rng(0)
    for part in ("train", "t10k") if kept else ("train",):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", random.integers(0, 256, (40, 28, 28), np.uint8))
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", random.integers(0, 10, 40).astype(np.uint8))
    lines = run("mnist_regression", 2, 50, "--data", tmp_path, "--batch", 10)
    assert lines[1] == "Training on 20 images of 784 pixels with 4 tiles"
    assert lines[3].startswith("Epoch 2 (100%), accuracy ")
    assert ("Accuracy on 40 images kept aside" in lines[-1]) == kept


def test_the_regression_says_what_is_wrong_with_its_data(run, tmp_path):
    with pytest.raises(pytest.fail.Exception, match=r"mnist_regression: .*has no train-images-idx3-ubyte"):
        run("mnist_regression", "--data", tmp_path)
    with pytest.raises(pytest.fail.Exception, match=r"exit code 2: (.|\n)*expected a number, at least 1, got '0'"):
        run("mnist_regression", 0)


def test_a_tutorial_runs_as_a_script_of_its_own():
    path = resources.tutorial("tut3_vertices").path
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert "v2: [7.0000000 6.0000000 4.5000000 2.5000000]" in done.stdout


def test_the_digits_are_1797_images_of_ten_kinds():
    with np.load(resources.directory("tutorials") / "data" / "digits.npz") as data:
        assert data["images"].shape == (1797, 8, 8)
        assert data["images"].max() == 16
        assert np.bincount(data["labels"]).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
