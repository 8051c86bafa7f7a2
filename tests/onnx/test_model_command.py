"""`pypoplar run model.onnx` shows what comes out, what it costs, and whether that is right."""

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from pypoplar import pva
from pypoplar.cli import main


@pytest.fixture
def file(tmp_path):
    weight = numpy_helper.from_array(np.float32(np.linspace(-1, 1, 12).reshape(3, 4)), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"], "/fc/MatMul"), helper.make_node("Relu", ["h"], ["y"], "/act/Relu")],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [weight],
    )
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def run(*arguments):
    return CliRunner().invoke(main, ["run", *map(str, arguments)])


def test_the_command_shows_outputs_and_costs_and_checks_them(file):
    result = run(file, "--shape", "batch=2", "--check", "--profile", file.parent / "profile")
    assert result.exit_code == 0, result.output
    for part in ("[2, 3]", "[2, 4]", "cycles", "samples/s", "fullest tile", "node /fc/MatMul (MatMul)", "y: equal"):
        assert part in result.output
    assert pva.openReport(str(file.parent / "profile")).execution is not None


def test_inputs_are_files_zeros_or_random(file):
    np.save(file.parent / "x.npy", np.float32([[1, 2, 3]]))
    given = run(file, "--input", f"x={file.parent / 'x.npy'}").output
    assert [line.split()[-3:] for line in given.splitlines() if line.startswith("input")] == [["1", "2", "3"]]
    zeros = run(file, "--input", "x=zeros").output
    assert [line.split()[-3:] for line in zeros.splitlines() if line.startswith("output")] == [["0", "0", "0"]]
    assert run(file).output == run(file, "--input", "x=random").output


def test_several_batches_and_half_precision(file):
    result = run(file, "--device-iterations", 3, "--precision", "half", "--check")
    assert result.exit_code == 0, result.output
    assert "float16" in result.output
    assert "[3, 4]" in result.output


def test_what_differs_is_an_exit_code(file, monkeypatch):
    from pypoplar.onnx import reference_check

    monkeypatch.setattr(reference_check.ReferenceEvaluator, "run", lambda self, names, given: [np.zeros((1, 4), np.float32)])
    result = run(file, "--check")
    assert result.exit_code == 1
    assert "y: DIFFERS" in result.output


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--input", "z=zeros"], 1, "has no input 'z'"),
        (["--input", "x=none.npy"], 1, "it is zeros or random, or an array's file"),
        (["--input", "x"], 2, "write NAME=VALUE"),
        (["--shape", "x=a,b"], 2, "write NAME=1,3,224,224"),
        (["--shape", "x=2,5"], 1, "the input x has shape [batch, 3], got [2, 5]"),
        (["--shape", "z=2"], 1, "has no dimension or input 'z'"),
        (["--precision", "double"], 2, "is not one of 'float', 'half'"),
        (["--chek"], 2, "No such option"),
    ],
)
def test_mistakes_on_the_command_line_are_told(file, arguments, code, message):
    result = run(file, *arguments)
    assert result.exit_code == code
    assert message in result.output


def test_a_file_that_is_no_model_is_told(file):
    file.write_text("no model")
    result = run(file)
    assert result.exit_code == 1
    assert "small.onnx: this is no ONNX model" in result.output
