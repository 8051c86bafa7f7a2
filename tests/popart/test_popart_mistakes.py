"""What a program does wrong with PopART's names is told in its own words, when it does it."""

import numpy as np
import pytest

from pypoplar import popart
from pypoplar.errors import MissingFeature

X = np.ones((2, 3), np.float32)
DEVICE = popart.DeviceManager().createCpuDevice()


def product():
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]), "x")
    y = builder.aiOnnx.matmul([x, builder.addInitializedInputTensor(np.ones((3, 2), np.float32), "w")], debugContext="y")
    return builder, y, builder.aiGraphcore.l1loss([y], 0.1)


BUILDER, Y, LOSS = product()
PROTO = BUILDER.getModelProto()
FLOW = popart.DataFlow(1, [Y])
MISTAKES = {
    "a type and a shape swapped": (lambda: popart.TensorInfo([2], "FLOAT"), r"there is no type \[2\]"),
    "no type": (lambda: popart.TensorInfo(None, [1]), "there is no type None"),
    "a size below 0": (lambda: popart.TensorInfo("FLOAT", [-1]), r"a list of whole numbers from 0 on, got \[-1\]"),
    "a size that is no whole number": (lambda: popart.TensorInfo("FLOAT", [1.5]), "a list of whole numbers"),
    "a shape that is a number": (lambda: popart.TensorInfo("FLOAT", 3), "a list of whole numbers from 0 on, got 3"),
    "a shape that is a text": (lambda: popart.TensorInfo("FLOAT", "ab"), "a list of whole numbers"),
    "one anchor that is no list": (lambda: popart.DataFlow(1, "abc"), "a list of tensors, which are names.*got 'abc'"),
    "anchors that are no names": (lambda: popart.DataFlow(1, [3]), "a list of tensors, which are names"),
    "no anchors": (lambda: popart.DataFlow(1, None), "a list of tensors, which are names"),
    "batches that are True": (lambda: popart.DataFlow(True, []), "a whole number from 1 on, got True"),
    "a kind of anchor that is a text": (lambda: popart.DataFlow(1, ["a"], "All"), "has an AnchorReturnType, got 'All'"),
    "a period of All": (lambda: popart.AnchorReturnType("All", 3), "All has no period, got 3"),
    "EveryN without a period": (lambda: popart.AnchorReturnType("EveryN"), "EveryN takes a whole number from 1 on, got None"),
    "an unknown domain": (lambda: popart.Builder(opsets={"ai.onx": 9}), "no domain 'ai.onx'.*ai.onnx"),
    "an unknown opset": (lambda: popart.Builder(opsets={"ai.onnx": 99}), "ai.onnx has the opsets 6, 7, 8, 9, 10, 11, got 99"),
    "bytes that are no model": (lambda: popart.Builder(b"junk"), "the bytes: this is no ONNX model"),
    "a model that is a number": (lambda: popart.Builder(3), "a model is bytes.*got 3"),
    "a name that is a number": (
        lambda: BUILDER.addInputTensor(popart.TensorInfo("FLOAT", [1]), 5),
        "a name behind the shape, got 5",
    ),
    "a weight that is a text": (lambda: BUILDER.addInitializedInputTensor("abc"), "an array of numbers, got 'abc'"),
    "a weight of objects": (lambda: BUILDER.addInitializedInputTensor([None]), r"an array of numbers, got \[None\]"),
    "a weight of unequal rows": (lambda: BUILDER.addInitializedInputTensor([[1], [1, 2]]), "an array of numbers"),
    "a list for a tensor": (lambda: BUILDER.addOutputTensor([Y]), "a tensor is a name"),
    "a tensor for a list": (lambda: BUILDER.reshape_const(BUILDER.aiOnnx, Y, [1]), "a list of tensors"),
    "an attribute of no kind": (lambda: BUILDER.addNodeAttribute("a", object(), Y), "addNodeAttribute: a: "),
    "a scope that is a number": (lambda: BUILDER.nameScope(3).__enter__(), "nameScope takes a name, got 3"),
    "an attribute that is a text": (lambda: BUILDER.aiOnnx.softmax(["x"], axis="a"), "axis is a whole number, got 'a'"),
    "an attribute that is a fraction": (lambda: BUILDER.aiOnnx.softmax(["x"], axis=1.5), "axis is a whole number, got 1.5"),
    "axes that are a number": (lambda: BUILDER.aiOnnx.transpose(["x"], perm=1), "perm is a list of whole numbers, got 1"),
    "no outputs": (lambda: BUILDER.aiOnnx.split(["x"], num_outputs=0), "the number of outputs is at least 1, got 0"),
    "a session of no model": (lambda: popart.InferenceSession(None, FLOW, DEVICE), "a model is bytes.*got None"),
    "shapes that are a dict": (lambda: popart.InferenceSession(PROTO, FLOW, DEVICE, {}), "takes an InputShapeInfo"),
    "patterns that are a text": (lambda: popart.InferenceSession(PROTO, FLOW, DEVICE, None, "x"), "takes Patterns"),
    "options that are a dict": (lambda: popart.InferenceSession(PROTO, FLOW, DEVICE, userOptions={}), "takes SessionOptions"),
    "a loss that is a number": (
        lambda: popart.TrainingSession(PROTO, FLOW, 5, popart.ConstSGD(0.1), DEVICE),
        "the loss is a tensor, which is a name, got 5",
    ),
    "a loss that there is not": (
        lambda: popart.TrainingSession(PROTO, FLOW, "Loss:0", popart.ConstSGD(0.1), DEVICE),
        "no tensor 'Loss:0'",
    ),
    "an optimiser that is a number": (lambda: popart.TrainingSession(PROTO, FLOW, LOSS, 0.1, DEVICE), "takes an optimizer"),
    "a rate for settings": (lambda: popart.SGD(0.1), "SGD takes a dict of settings.*got 0.1"),
    "an unknown setting": (lambda: popart.SGD({"defaultLearningRat": 0.1}), "no setting 'defaultLearningRat'.*defaultLearningRate"),
    "a rate that is a text": (lambda: popart.ConstSGD("a"), "defaultLearningRate is a number.*got 'a'"),
    "a rate that is NaN": (lambda: popart.ConstSGD(float("nan")), "defaultLearningRate is finite, got nan"),
    "a setting of three": (lambda: popart.Adam({"defaultEps": (1, 2, 3)}), r"defaultEps is a number.*got \(1, 2, 3\)"),
    "a mode that is a text": (lambda: popart.Adam({}, "Adam"), "an AdamMode and a WeightDecayMode, got 'Adam'"),
    "a number of IPUs that is a text": (lambda: popart.DeviceManager().acquireAvailableDevice("2"), "a power of two.*got '2'"),
    "options of a device in a list": (lambda: popart.DeviceManager().createIpuModelDevice([1]), "takes a dict of options"),
    "an option of another type": (
        lambda: setattr(popart.SessionOptions(), "accumulationFactor", "2"),
        "is a whole number, got '2'",
    ),
    "an option below its least": (lambda: setattr(popart.SessionOptions(), "accumulationFactor", 0), "is at least 1, got 0"),
    "a flag that is a number": (lambda: setattr(popart.SessionOptions(), "enablePipelining", 1), "is True or False, got 1"),
    "options of the engine in a list": (lambda: setattr(popart.SessionOptions(), "engineOptions", []), "is a dict of texts"),
    "arrays without names": (lambda: popart.PyStepIO([X], {}), "inputs are a dict by names of tensors"),
    "callbacks that are numbers": (lambda: popart.PyStepIOCallback(1, 2, 3, 4), "takes four functions, got 1"),
    "weights in a list": (lambda: popart.PyWeightsIO([1]), "weights are a dict by names"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_where_it_is_made(name):
    make, message = MISTAKES[name]
    with pytest.raises(popart.popart_exception, match=message):
        make()


@pytest.mark.parametrize("make", [lambda: popart.SGD({}, [1]), lambda: popart.Adam({}, accumType="FLOAT")])
def test_further_arguments_of_optimisers_are_missing_and_not_ignored(make):
    with pytest.raises(MissingFeature, match="beside the settings and modes there are no arguments yet"):
        make()


def test_a_device_says_that_tiles_are_those_of_a_bow(caplog):
    assert popart.DeviceManager().createIpuModelDevice({"numIPUs": "2", "tilesPerIPU": 4}).numIpus == 2
    assert "tilesPerIPU changes nothing: a Bow has 1472 tiles, got 4" in caplog.text


def test_an_opset_is_given_by_either_name_of_its_domain():
    assert popart.Builder(opsets={"ai.onnx": 9}).aiOnnx.relu is not None
    builder = popart.Builder(opsets={"ai.onnx": 9})
    with pytest.raises(popart.popart_exception, match="one opset of a domain"):
        builder.aiOnnxOpset11.relu([builder.addInputTensor("FLOAT", [1])])


def test_a_prepared_session_takes_arrays_of_its_types_and_names(tmp_path):
    session = popart.InferenceSession(PROTO, FLOW, DEVICE)
    for early in (session.initAnchorArrays, session.weightsFromHost, session.getCycleCount, session.weightsToHost):
        with pytest.raises(popart.popart_exception, match="the session is not prepared; call prepareDevice first"):
            early()
    session.prepareDevice()
    anchors, weights = session.initAnchorArrays(), np.zeros((3, 2), np.int32)

    def step(outputs, x=X):
        return lambda: session.run(popart.PyStepIO({"x": x}, outputs))

    for make, message in (
        (lambda: session.run(None), "run takes a PyStepIO or PyStepIOCallback, got None"),
        (step({Y: np.zeros((2, 2), np.int32)}), "is float32, got an array of int32"),
        (step({Y: [[0, 0], [0, 0]]}), "takes an array of NumPy, got list"),
        (step({Y: np.zeros(4, np.float32)}), r"has shape \[2, 2\], got an array of \[4\]"),
        (step({**anchors, "q": X}), "'q' is no anchor of the DataFlow"),
        (step(anchors, X.astype(np.float16)), "is float, got float16"),
        (step(anchors, X.T), r"the input x has shape \[2, 3\]"),
        (lambda: session.readWeights({"w": weights}), "takes a PyWeightsIO"),
        (lambda: session.readWeights(popart.PyWeightsIO({"v": weights})), "no weight 'v'"),
        (lambda: session.readWeights(popart.PyWeightsIO({"w": weights})), "w takes an array of float32, got int32"),
        (lambda: session.setRandomSeed("a"), "a whole number, got 'a'"),
        (lambda: session.modelToHost(tmp_path / "none" / "m.onnx"), "No such file or directory"),
    ):
        with pytest.raises(popart.popart_exception, match=message):
            make()


def test_a_model_that_is_wrong_is_told_by_prepare_device():
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]), "x")
    y = builder.aiOnnx.matmul([x, x], debugContext="square")
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), DEVICE)
    with pytest.raises(popart.popart_exception, match=r"node square \(MatMul\): .*x \[2, 3\] of float32"):
        session.prepareDevice()
