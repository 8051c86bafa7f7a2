"""PopART's Builder makes models of ONNX, with PopART's names and checks."""

import numpy as np
import onnx
import pytest

from pypoplar import popart


def test_nodes_names_shapes_and_types():
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 6]), "x")
    w = builder.addInitializedInputTensor(np.ones((6, 4), np.float32), "w")
    with builder.nameScope("layer"):
        y = builder.aiOnnx.matmul([x, w], debugContext="product")
    z = builder.reshape_const(builder.aiOnnx, [y], [4, 2])
    parts = builder.aiOnnx.split([z], num_outputs=2, axis=0)
    c = builder.aiOnnx.cast([parts[0]], "FLOAT16")
    assert (x, w, y) == ("x", "w", "layer/product:0")
    assert builder.getTensorShape(z) == [4, 2]
    assert builder.getTensorShape(parts[1]) == [2, 2]
    assert builder.getTensorDtypeString(c) == "float16"
    builder.addOutputTensor(c)
    model = onnx.ModelProto.FromString(builder.getModelProto())
    assert [one.name for one in model.graph.output] == [c]
    assert [(one.domain, one.version) for one in model.opset_import] == [("", 11)]


def test_the_opset_is_one_and_unknown_names_have_the_nearest():
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [2])
    builder.aiOnnxOpset9.relu([x])
    for make, message in (
        (lambda: builder.aiOnnxOpset10.relu([x]), "one opset of a domain"),
        (lambda: builder.aiOnnxOpset9.rellu([x]), "no operator 'rellu'.*relu"),
        (lambda: builder.aiOnnxOpset9.relu(["z"]), "no tensor 'z'"),
        (lambda: builder.aiOnnxOpset9.softmax([x], axes=1), "no attribute 'axes'.*axis"),
        (lambda: builder.aiGraphcore.replicatedallreduce([x]), "replicas are not there"),
        (lambda: builder.addOutputTensor("y"), "no tensor 'y'"),
        (lambda: popart.Builder("none.onnx"), "no such file"),
    ):
        with pytest.raises(popart.popart_exception, match=message):
            make()


def test_a_subgraph_is_the_body_of_a_loop():
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]), "x")
    count = builder.aiOnnx.constant(np.array(3, np.int64))
    on = builder.aiOnnx.constant(np.array(True))
    body = builder.createSubgraphBuilder()
    body.addInputTensor(popart.TensorInfo("INT64", []), "i")
    keep = body.addInputTensor(popart.TensorInfo("BOOL", []), "keep")
    a = body.addInputTensor(popart.TensorInfo("FLOAT", [2]), "a")
    out = body.aiOnnx.add([a, x])
    body.addOutputTensor(keep)
    body.addOutputTensor(out)
    (y,) = [builder.aiOnnx.loop([count, on, x], 1, body)]
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [y]), popart.DeviceManager().createCpuDevice())
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: np.float32([1, 2])}, anchors))
    assert anchors[y].tolist() == [4, 8]
