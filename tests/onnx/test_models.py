"""A model of ONNX is loaded, run and compiled for shapes and values."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import pypoplar.onnx
from pypoplar import poptorch
from pypoplar.errors import PoplarRuntimeError, PoplarTypeError, TensorShapeError
from pypoplar.onnx import ModelError


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def graph(nodes, inputs, outputs, initializers=(), opset=21, **more):
    made = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers))
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], **more)


def layer(batch="batch"):
    """relu(x W + b), with the names of a layer."""
    weights = np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32)
    nodes = [
        helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["h"], "/fc/Gemm"),
        helper.make_node("Relu", ["h"], ["y"], "/act/Relu"),
    ]
    bias = constant("fc.bias", np.float32([0, 1, 2, 3]))
    return graph(nodes, [value("x", [batch, 3])], [value("y", [batch, 4])], [constant("fc.weight", weights), bias])


def expected(model, **inputs):
    return ReferenceEvaluator(model).run(None, inputs)


def test_a_model_gives_what_the_reference_evaluator_gives_and_costs_cycles():
    model, x = layer(), np.float32(np.random.default_rng(1).normal(size=(5, 3)))
    loaded = pypoplar.onnx.load(model.SerializeToString())
    (wanted,) = expected(model, x=x)
    for given in (loaded(x=x), loaded([x]), loaded({"x": x})):
        np.testing.assert_allclose(given["y"], wanted, rtol=1e-6)
    assert loaded.cycleCount() > 0
    assert [one.shape for one in (*loaded.inputs, *loaded.outputs)] == [(5, 3), (5, 4)]
    assert any(step.name.startswith("fc/Gemm") for step in loaded.getReport().execution.steps)


def test_a_named_size_is_given_or_taken_from_the_first_call():
    model = layer()
    assert pypoplar.onnx.load(model, shapes={"batch": 2}).inputs[0].shape == (2, 3)
    loaded = pypoplar.onnx.load(model)
    assert loaded.inputs[0].shape == ("batch", 3)
    loaded(x=np.zeros((4, 3), np.float32))
    with pytest.raises(TensorShapeError, match=r"the input x was compiled with shape \[4, 3\], got \[5, 3\]"):
        loaded(x=np.zeros((5, 3), np.float32))


def test_compile_without_arrays_takes_shapes_that_are_known():
    loaded = pypoplar.onnx.load(layer(), shapes={"batch": 2})
    loaded.compile()
    assert loaded.outputs[0].shape == (2, 4)
    with pytest.raises(TensorShapeError, match=r"the shape of the input x, \[batch, 3\], is not known"):
        pypoplar.onnx.load(layer()).compile()


def test_values_that_shapes_depend_on_are_compiled_for_once_each(monkeypatch):
    compiled = []
    original = poptorch.PoplarExecutor.compile
    monkeypatch.setattr(poptorch.PoplarExecutor, "compile", lambda self, *args: (compiled.append(1), original(self, *args)))
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("Relu", ["r"], ["y"])]
    model = graph(nodes, [value("x", [2, 6]), value("s", [2], TensorProto.INT64)], [value("y", None)])
    loaded, x = pypoplar.onnx.load(model), np.float32(np.arange(12).reshape(2, 6) - 5)
    for shape in ([3, 4], [4, 3], [3, 4], [-1, 2]):
        np.testing.assert_array_equal(loaded(x=x, s=np.int64(shape))["y"], np.maximum(x, 0).reshape(shape))
    assert len(compiled) == 3
    with pytest.raises(ModelError, match="shapes depend on the values of s"):
        pypoplar.onnx.load(model).compile()


def test_shapes_may_be_computed_from_shapes():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "first"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["r"]),
        helper.make_node("Neg", ["r"], ["y"]),
    ]
    given = [constant("first", np.int64([0])), constant("rest", np.int64([-1]))]
    model = graph(nodes, [value("x", ["n", 2, 3])], [value("y", ["n", "m"])], given)
    x = np.float32(np.arange(24).reshape(4, 2, 3))
    np.testing.assert_array_equal(pypoplar.onnx.load(model)(x=x)["y"], -x.reshape(4, 6))


def test_integers_of_64_bits_come_back_so_and_have_to_fit_into_32():
    model = graph(
        [helper.make_node("Add", ["x", "x"], ["y"])], [value("x", [2], TensorProto.INT64)], [value("y", [2], TensorProto.INT64)]
    )
    loaded = pypoplar.onnx.load(model)
    result = loaded(x=np.int64([3, -4]))["y"]
    assert result.dtype == np.int64
    assert result.tolist() == [6, -8]
    with pytest.raises(pypoplar.PoplarError, match="32 bits"):
        loaded(x=np.int64([2**40, 0]))


@pytest.mark.parametrize("kind", [TensorProto.DOUBLE, TensorProto.BFLOAT16])
def test_floats_that_the_device_does_not_have_are_refused_or_converted(kind):
    model = graph([helper.make_node("Exp", ["x"], ["y"], "e")], [value("x", [3], kind)], [value("y", [3], kind)])
    x = np.array([0, 1, 2], helper.tensor_dtype_to_np_dtype(kind))
    with pytest.raises(ModelError, match=r"no type of the device.*precision='float' or 'half' converts it"):
        pypoplar.onnx.load(model)(x=x)
    for precision, wanted, tolerance in (("float", np.float32, 1e-6), ("half", np.float16, 2e-3)):
        result = pypoplar.onnx.load(model, precision=precision)(x=x)["y"]
        assert result.dtype == wanted
        np.testing.assert_allclose(result, np.exp([0.0, 1.0, 2.0]), rtol=tolerance)


def test_loops_scans_and_branches_of_known_counts_are_run():
    step = helper.make_graph(
        [helper.make_node("Add", ["carry", "x"], ["next"]), helper.make_node("Identity", ["on"], ["on_out"])],
        "body",
        [value("i", [], TensorProto.INT64), value("on", [], TensorProto.BOOL), value("carry", [2])],
        [value("on_out", [], TensorProto.BOOL), value("next", [2])],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], "loop", body=step)]
    model = graph(nodes, [value("n", [], TensorProto.INT64), value("x", [2])], [value("y", [2])])
    loaded = pypoplar.onnx.load(model)
    for count in (3, 5):
        assert loaded(n=np.int64(count), x=np.float32([1, 2]))["y"].tolist() == [count + 1, 2 * count + 2]


def test_a_function_of_the_model_is_expanded():
    function = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 21)]
    )
    made = helper.make_graph([helper.make_node("Twice", ["x"], ["y"], domain="mine")], "g", [value("x", [2])], [value("y", [2])])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    model = helper.make_model(made, opset_imports=opsets, functions=[function])
    assert pypoplar.onnx.load(model)(x=np.float32([1, 2]))["y"].tolist() == [2, 4]


def test_what_is_known_needs_no_device():
    model = graph([helper.make_node("Shape", ["x"], ["y"])], [value("x", [2, 3])], [value("y", [2], TensorProto.INT64)])
    loaded = pypoplar.onnx.load(model)
    assert loaded(x=np.zeros((2, 3), np.float32))["y"].tolist() == [2, 3]
    assert loaded.cycleCount() == 0
    with pytest.raises(PoplarRuntimeError, match="known without the device"):
        loaded.getReport()


def test_device_iterations_take_so_many_batches():
    loaded = pypoplar.onnx.load(layer(2), options=poptorch.Options().deviceIterations(3))
    x = np.float32(np.random.default_rng(1).normal(size=(6, 3)))
    np.testing.assert_allclose(loaded(x=x)["y"], expected(layer("n"), x=x)[0], rtol=1e-6)


def test_an_executable_that_was_saved_is_taken_up(tmp_path):
    x = np.float32(np.random.default_rng(1).normal(size=(2, 3)))
    first = pypoplar.onnx.load(layer(2))
    wanted = first(x=x)["y"]
    first.save(tmp_path / "layer.poptorch")
    second = pypoplar.onnx.load(layer(2))
    second.loadExecutable(tmp_path / "layer.poptorch", [x])
    np.testing.assert_array_equal(second(x=x)["y"], wanted)


def test_a_trained_model_has_pytorch_s_losses():
    generator = torch.Generator().manual_seed(1)
    x, labels = torch.randn(8, 3, generator=generator), torch.randint(4, (8,), generator=generator)
    made = pypoplar.onnx.training(
        layer(), torch.nn.functional.cross_entropy, lambda weights: torch.optim.SGD(weights, lr=0.1), shapes={"batch": 8}
    )
    weight = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    bias = torch.arange(4.0).requires_grad_()
    optimizer = torch.optim.SGD([weight, bias], lr=0.1)
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(torch.relu(x @ weight + bias), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        _, ours = made(x, labels)
        torch.testing.assert_close(ours, loss.detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(made.state_dict()["fc.bias"], bias.detach(), rtol=1e-5, atol=1e-6)


def test_inputs_that_are_not_the_model_s_are_named():
    loaded = pypoplar.onnx.load(layer(2))
    for given, message in (
        ({"z": np.zeros(1)}, "no input 'z'"),
        ({}, r"x was not given; its inputs are x \(float \[2, 3\]\)"),
        ({"x": np.zeros((2, 3))}, r"the input x is float, got double \[2, 3\]: call astype\(np.float32\)"),
        ({"x": np.array(["a"])}, "the input x is float, got <U1"),
    ):
        with pytest.raises(PoplarTypeError, match=message):
            loaded(**given)
    with pytest.raises(TensorShapeError, match=r"the input x has shape \[2, 3\], got \[2, 4\]"):
        loaded(x=np.zeros((2, 4), np.float32))
    with pytest.raises(PoplarRuntimeError, match="not compiled yet"):
        loaded.cycleCount()


def test_arguments_that_are_wrong_are_told():
    loaded, x = pypoplar.onnx.load(layer()), np.ones((1, 3), np.float32)
    for make, message in (
        (lambda: pypoplar.onnx.load(layer(), shapes=3), "shapes are a dict by names.*got 3"),
        (lambda: pypoplar.onnx.load(layer(), shapes={"batch": "a"}), "batch is the size of a dimension, got 'a'"),
        (lambda: pypoplar.onnx.load(layer(), shapes={"bach": 1}), "no dimension or input 'bach'.*batch"),
        (lambda: pypoplar.onnx.load(layer(), options={}), "options are poptorch.Options"),
        (lambda: pypoplar.onnx.load(3), "a model is a path, a ModelProto or bytes, got int"),
        (lambda: loaded([x], x=x), "the input x was given twice"),
        (lambda: loaded(x=[[1], [1, 2]]), "the input x is float, got what is no array"),
        (lambda: loaded(x), "takes a list of arrays, or arrays by name, got ndarray"),
    ):
        with pytest.raises(PoplarTypeError, match=message):
            make()
    with pytest.raises(pypoplar.FileLoadError, match=r"no file none\.poptorch"):
        pypoplar.onnx.load(layer(2)).loadExecutable("none.poptorch")


def test_external_data_beside_the_model_is_read_and_no_other(tmp_path):
    inner = tmp_path / "model"
    inner.mkdir()
    onnx.save(layer(2), inner / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    x = np.float32(np.random.default_rng(1).normal(size=(2, 3)))
    np.testing.assert_allclose(pypoplar.onnx.load(inner / "m.onnx")(x=x)["y"], expected(layer(2), x=x)[0], rtol=1e-6)
    (inner / "weights.bin").rename(tmp_path / "weights.bin")
    with pytest.raises(pypoplar.FileLoadError, match="which is not there"):
        pypoplar.onnx.load(inner / "m.onnx")
    (inner / "weights.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(pypoplar.FileLoadError, match="outside of the model's directory"):
        pypoplar.onnx.load(inner / "m.onnx")
