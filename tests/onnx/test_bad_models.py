"""What is wrong with a model is told with its file, node, operator and the nearest name."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pypoplar.onnx
from pypoplar.errors import FileLoadError
from pypoplar.onnx import ModelError


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(*nodes, inputs=(("x", [2, 3]),), outputs=("y",), initializers=(), opset=21):
    given = [value(*one) for one in inputs]
    made = helper.make_graph(list(nodes), "bad", given, [value(one, None) for one in outputs], list(initializers))
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)])


def node(kind, inputs, outputs, name="", **attributes):
    return helper.make_node(kind, inputs, outputs, name, **attributes)


BEFORE_SHAPES = {
    "unknown operator": (model(node("Rellu", ["x"], ["y"], "/act")), r"node /act \(Rellu\): opset 21 .*; the nearest is Relu"),
    "unknown attribute": (
        model(node("Softmax", ["x"], ["y"], "s", axes=1)),
        r"node s \(Softmax\): it has no attribute axes in opset 21; the nearest is axis",
    ),
    "two at once": (
        model(node("Rellu", ["x"], ["a"], "one"), node("Tahn", ["a"], ["y"], "two")),
        r"(?s)bad cannot run.*node one \(Rellu\).*node two \(Tahn\).*nearest is Tan",
    ),
    "a cycle": (
        model(node("Add", ["x", "b"], ["a"], "one"), node("Neg", ["a"], ["b"], "two"), outputs=("b",)),
        r"node one \(Add\): its input b is computed by a later node, or from itself: a cycle",
    ),
    "missing input": (
        model(node("Add", ["x", "weigth"], ["y"], "sum"), initializers=[numpy_helper.from_array(np.float32([1]), "weight")]),
        r"node sum \(Add\): its input weigth is missing: .*; the nearest is weight",
    ),
    "newer opset": (
        model(node("Relu", ["x"], ["y"]), opset=99),
        r"opset 99 of ai.onnx is newer than the newest that is known, \d+",
    ),
    "too many inputs": (model(node("Relu", ["x", "x"], ["y"], "r")), r"node r \(Relu\): it takes 1 inputs, got 2"),
    "missing attribute": (model(node("Cast", ["x"], ["y"], "c")), r"node c \(Cast\): the attribute to is missing"),
    "given twice": (
        model(node("Relu", ["x"], ["y"], "r"), node("Neg", ["x"], ["y"], "n")),
        r"node n \(Neg\): its output y has a value already",
    ),
}
WITH_SHAPES = {
    "shapes that do not fit": (
        model(node("MatMul", ["x", "x"], ["y"], "/fc/MatMul")),
        r"bad: node /fc/MatMul \(MatMul\): .*inputs: x \[2, 3\] of float32, x \[2, 3\]",
    ),
    "rank of a convolution": (
        model(node("Conv", ["x", "x"], ["y"], "/conv")),
        r"node /conv \(Conv\): fields have one to three dimensions, got an input \[2, 3\]",
    ),
    "shapes of data": (
        model(node("NonZero", ["x"], ["a"], "/nz"), node("Relu", ["x"], ["y"])),
        r"node /nz \(NonZero\): what comes out depends on the data of its input x",
    ),
    "all that depends on data": (
        model(node("NonZero", ["x"], ["a"], "/one"), node("NonZero", ["x"], ["y"], "/two")),
        r"(?s)node /one \(NonZero\).*node /two \(NonZero\)",
    ),
    "a type within": (
        model(node("Cast", ["x"], ["y"], "/cast", to=TensorProto.DOUBLE)),
        r"node /cast \(Cast\): it gives y as double is no type of the device",
    ),
    "an axis that there is not": (
        model(node("Softmax", ["x"], ["y"], "/s", axis=5)),
        r"node /s \(Softmax\): axis is 5, and its input x has shape \[2, 3\]",
    ),
    "other types": (
        model(node("Add", ["x", "i"], ["y"], "/a"), initializers=[numpy_helper.from_array(np.int64([1, 2, 3]), "i")]),
        r"node /a \(Add\): its input 1 \(i\) is int64, and x is float; they are of one type",
    ),
    "a type that an operator does not take": (
        model(node("Cast", ["x"], ["i"], "/c", to=TensorProto.INT32), node("Sin", ["i"], ["y"], "/s")),
        r"node /s \(Sin\): its input 0 \(i\) is int32; Sin takes .*float",
    ),
    "an index that there is not": (
        model(node("Gather", ["x", "i"], ["y"], "/g", axis=1), initializers=[numpy_helper.from_array(np.int64([7]), "i")]),
        r"node /g \(Gather\): input 1 \(i\) has indices from 7 to 7, of 3",
    ),
    "a missing output": (model(node("Relu", ["x"], ["z"])), "the output y is computed by no node"),
}


@pytest.mark.parametrize("name", BEFORE_SHAPES)
def test_what_needs_no_shapes_is_told_by_load(name):
    bad, message = BEFORE_SHAPES[name]
    with pytest.raises(ModelError, match=message):
        pypoplar.onnx.load(bad)


@pytest.mark.parametrize("name", WITH_SHAPES)
def test_what_shapes_show_is_told_by_the_first_call(name):
    bad, message = WITH_SHAPES[name]
    with pytest.raises(ModelError, match=message):
        pypoplar.onnx.load(bad)(x=np.ones((2, 3), np.float32))


@pytest.mark.parametrize("end", [0, 5, 40, -1])
def test_a_file_that_is_cut_off_or_no_model_is_named(tmp_path, end):
    whole = model(node("Relu", ["x"], ["y"]), initializers=[numpy_helper.from_array(np.ones(100, np.float32), "w")])
    file = tmp_path / "cut.onnx"
    file.write_bytes(whole.SerializeToString()[:end])
    with pytest.raises(FileLoadError, match=r"cut\.onnx: this is no ONNX model"):
        pypoplar.onnx.load(file)


def test_files_that_are_not_there_and_other_files_are_named(tmp_path):
    with pytest.raises(FileLoadError, match=r"none\.onnx: No such file"):
        pypoplar.onnx.load(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("a text, and no model\n" * 9)
    with pytest.raises(FileLoadError, match=r"text\.onnx: this is no ONNX model"):
        pypoplar.onnx.load(tmp_path / "text.onnx")


@pytest.mark.parametrize("place", ["../weights.bin", "/etc/hostname", "", "inner/../../weights.bin"])
def test_external_data_outside_of_the_directory_is_not_read(tmp_path, place):
    bad = model(node("Add", ["x", "w"], ["y"]), initializers=[numpy_helper.from_array(np.ones(3, np.float32), "w")])
    weights = bad.graph.initializer[0]
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=place)
    (tmp_path / "weights.bin").write_bytes(np.ones(3, np.float32).tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "m.onnx").write_bytes(bad.SerializeToString())
    with pytest.raises(FileLoadError, match="outside of the model's directory"):
        pypoplar.onnx.load(folder / "m.onnx")
    with pytest.raises(FileLoadError, match="load the model by its path"):
        pypoplar.onnx.load(bad)


def test_a_file_of_2_gb_is_told_to_have_its_weights_beside_it(tmp_path):
    with (tmp_path / "large.onnx").open("wb") as file:
        file.truncate(2**31)  # of which the disk has nothing
    with pytest.raises(FileLoadError, match=r"large\.onnx: a file of ONNX has less than 2 GB, got 2,147,483,648.*external data"):
        pypoplar.onnx.load(tmp_path / "large.onnx")


def test_elements_that_are_missing_are_told_with_the_tensor():
    bad = model(node("Add", ["x", "w"], ["y"]), initializers=[numpy_helper.from_array(np.ones(3, np.float32), "w")])
    bad.graph.initializer[0].raw_data = b"1234567"
    with pytest.raises(FileLoadError, match=r"the elements of w \[3\] cannot be read"):
        pypoplar.onnx.load(bad)


def test_the_package_onnx_keeps_its_name():
    assert onnx.__name__ == "onnx"
    assert pypoplar.onnx.__name__ == "pypoplar.onnx"
    assert onnx is not pypoplar.onnx


def test_functions_that_call_themselves_are_told():
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    body = [helper.make_node("Again", ["a"], ["b"], domain="own")]
    function = helper.make_function("own", "Again", ["a"], ["b"], body, opsets)
    call = helper.make_node("Again", ["x"], ["y"], "/call", domain="own")
    graph = helper.make_graph([call], "g", [value("x", [2])], [value("y", [2])])
    bad = helper.make_model(graph, opset_imports=opsets, functions=[function])
    with pytest.raises(ModelError, match=r"node /call \(Again\).*functions call each other more than \d+ deep"):
        pypoplar.onnx.load(bad)(x=np.ones(2, np.float32))
