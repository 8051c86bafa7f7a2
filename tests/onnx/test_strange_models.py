"""Odd names, axes, indices and sizes: they give what ONNX says, or are told, and nothing else is taken for them."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import pypoplar.onnx
from pypoplar.errors import FileLoadError, PoplarError

X = np.float32(np.arange(6).reshape(2, 3))


def model(kind, arrays, known, outputs=1, opset=21, name="x", **attributes):
    """One node of arrays, those from `known` on initializers; None is left out."""
    names = [name if not place else "" if one is None else f"{name}{place}" for place, one in enumerate(arrays)]
    pairs = [(label, one, place >= known) for place, (label, one) in enumerate(zip(names, arrays, strict=True)) if one is not None]
    inputs = [
        helper.make_tensor_value_info(label, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for label, one, fixed in pairs
        if not fixed
    ]
    results = [f"{name}_{place}" for place in range(outputs)]
    node = helper.make_node(kind, names, results, f"{name}/node", **attributes)
    weights = [numpy_helper.from_array(one, label) for label, one, fixed in pairs if fixed]
    graph = helper.make_graph([node], "strange", inputs, [onnx.ValueInfoProto(name=one) for one in results], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def known_results(kind, *arrays, **settings):
    """What a node of known operands gives, which the host computes."""
    return list(pypoplar.onnx.load(model(kind, arrays, 0, **settings))({}).values())


AXES = {
    "ReduceSum": ([X, np.int64([2])], {}),
    "ReduceMax": ([X, np.int64([-3])], {}),
    "ReduceProd": ([X, np.int64([0, -2])], {}),
    "CumSum": ([X, np.int64(2)], {}),
    "Slice": ([X, np.int64([0]), np.int64([1]), np.int64([2])], {}),
    "Squeeze": ([X[:1], np.int64([2])], {}),
    "Unsqueeze": ([X, np.int64([3])], {}),
    "Pad": ([X, np.int64([1, 1]), None, np.int64([2])], {}),
    "Flatten": ([X], {"axis": 3}),
    "OneHot": ([np.int64([1]), np.int64(3), np.float32([0, 1])], {"axis": -3}),
    "Compress": ([X, np.array([True])], {"axis": 2}),
}


@pytest.mark.parametrize("kind", AXES)
def test_axes_that_there_are_not_and_axes_twice_are_told(kind):
    arrays, attributes = AXES[kind]
    with pytest.raises(
        pypoplar.onnx.ModelError, match=rf"node x/node \({kind}\): .*(is none of a tensor with|named once each|axis is)"
    ):
        known_results(kind, *arrays, **attributes)


WRONG = {
    "an index outside": ("GatherND", [X, np.int64([[0, 3]])], {}, r"has the place \[0, 3\], of \[2, 3\]"),
    "an update outside": ("ScatterND", [X, np.int64([[-3]]), X[:1]], {}, r"has the place \[-3\], of \[2\]"),
    "parts that are not equal": ("Split", [X], {"axis": 1, "outputs": 2, "opset": 13}, "which 2 equal parts do not have"),
    "parts without outputs": ("Split", [X, np.int64([1, 1, 1])], {"axis": 1, "outputs": 2}, "3 parts and 2 outputs"),
    "no matrix": ("EyeLike", [X.reshape(1, 2, 3)], {}, r"a matrix is wanted, got \[1, 2, 3\]"),
    "a condition that is too long": ("Compress", [X, np.array([False, False, True])], {"axis": 0}, "chooses place 2, of 2"),
    "other ranks": ("Concat", [np.zeros(0, np.float32), X], {"axis": 0}, "operands have the same dimensions"),
    "another hidden size": (
        "RNN",
        [np.zeros((1, 1, 2), np.float32), np.zeros((1, 3, 2), np.float32), np.zeros((1, 3, 3), np.float32)],
        {"hidden_size": 4},
        "hidden_size is 4, and input 2",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_what_does_not_fit_is_told(mistake):
    kind, arrays, attributes, told = WRONG[mistake]
    with pytest.raises(pypoplar.onnx.ModelError, match=told):
        known_results(kind, *arrays, **attributes)


@pytest.mark.parametrize("kind", ["GatherND", "ScatterND"])
def test_an_index_that_is_data_is_checked_along_its_own_axis(kind):
    updates = [np.float32([9, 9])] if kind == "ScatterND" else []
    loaded = pypoplar.onnx.load(model(kind, [X, np.int64([[0, 2], [-1, -3]]), *updates], 3))
    given = {"x": X, "x1": np.int64([[0, 2], [-1, -3]])} | ({"x2": updates[0]} if updates else {})
    wanted = X.copy()
    wanted[0, 2] = wanted[1, 0] = 9
    assert loaded(given)["x_0"].tolist() == (wanted.tolist() if updates else [2, 3])
    with pytest.raises(PoplarError, match="is 3 at"):
        loaded({**given, "x1": np.int64([[0, 3], [0, 0]])})


def test_equal_elements_of_a_known_tensor_keep_their_order():
    x = np.int32([2, 1, 2, 2, 1, 2])
    assert [one.tolist() for one in known_results("TopK", x, np.int64([4]), outputs=2)] == [[2, 2, 2, 2], [0, 2, 3, 5]]
    assert [one.tolist() for one in known_results("TopK", x, np.int64([3]), outputs=2, largest=0)] == [[1, 1, 2], [1, 4, 0]]


def test_types_are_those_of_the_opset():
    (whole,) = known_results("Erf", np.int32([0, 3]), opset=9)
    assert (whole.dtype, whole.tolist()) == (np.int32, [0, 0])
    assert [known_results("Dropout", X, outputs=2, opset=opset)[1].dtype for opset in (7, 10)] == [np.float32, bool]
    (text,) = known_results("Cast", np.float32([1.5]), opset=5, to="INT32")
    assert (text.dtype, text.tolist()) == (np.int32, [1])


def test_numbers_of_activations_belong_to_those_that_take_one():
    generator = np.random.default_rng(1)
    x, w, r = (np.float32(generator.normal(size=shape)) for shape in ((1, 1, 2), (1, 12, 2), (1, 12, 3)))
    (outputs,) = known_results("LSTM", x, w, r, activations=["Sigmoid", "LeakyRelu", "Tanh"], activation_alpha=[0.5])
    gates = torch.tensor(w[0] @ x[0, 0]).chunk(4)
    cell = torch.sigmoid(gates[0]) * torch.nn.functional.leaky_relu(gates[3], 0.5)
    np.testing.assert_allclose(outputs.ravel(), (torch.sigmoid(gates[1]) * torch.tanh(cell)).numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["inputs", "a b\n\"'\\", *(pytest.param(one, marks=pytest.mark.slow) for one in ("self", "forward", "日/本"))]
)
def test_tensors_have_any_names(name):
    loaded = pypoplar.onnx.load(model("Add", [X, np.float32([1, 2, 3])], 1, name=name))
    assert loaded(**{name: X})[f"{name}_0"].tolist() == (X + np.float32([1, 2, 3])).tolist()


def test_data_of_a_function_is_not_read_outside_of_the_directory(tmp_path):
    value = numpy_helper.from_array(np.float32([1]), "c")
    value.ClearField("raw_data")
    value.data_location = TensorProto.EXTERNAL
    entry = value.external_data.add()
    entry.key, entry.value = "location", "../secret"
    nodes = [helper.make_node("Constant", [], ["c"], value=value), helper.make_node("Add", ["a", "c"], ["o"])]
    function = helper.make_function("own", "F", ["a"], ["o"], nodes, [helper.make_opsetid("", 21)])
    graph = helper.make_graph(
        [helper.make_node("F", ["x"], ["y"], domain="own")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [onnx.ValueInfoProto(name="y")],
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("own", 1)], functions=[function]
    )
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(FileLoadError, match="outside of the model's directory; not read"):
        pypoplar.onnx.load(tmp_path / "model.onnx")
