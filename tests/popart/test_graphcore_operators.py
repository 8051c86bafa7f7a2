"""Operators of ai.graphcore do what PyTorch's functions of the same meaning do, and say what they do not take."""

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from onnx import helper

import pypoplar.onnx
from pypoplar import popart
from pypoplar.errors import MissingFeature


def run(builder, outputs, inputs):
    device = popart.DeviceManager().createCpuDevice()
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, outputs), device)
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO(inputs, anchors))
    return [anchors[name] for name in outputs]


def test_parts_of_tensors(capfd):
    builder = popart.Builder()
    own = builder.aiGraphcore
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [3, 4]), "x")
    at = builder.addInputTensor(popart.TensorInfo("INT32", [1]), "at")
    row = builder.addInputTensor(popart.TensorInfo("FLOAT", [1, 4]), "row")
    where = builder.addInputTensor(popart.TensorInfo("INT32", [3]), "where")
    bounds = builder.aiOnnx.constant(np.float32([0.5, 3.5, 7.5]))
    callee = builder.createSubgraphBuilder()
    callee.addOutputTensor(callee.aiOnnx.sin([callee.addInputTensor(popart.TensorInfo("FLOAT", [3, 4]))]))
    values, places = own.sort([x], axis=1, descending=1)
    given = {x: np.float32(np.random.default_rng(2).normal(size=(3, 4))), at: np.int32([1])}
    given |= {row: np.full((1, 4), 9, np.float32), where: np.int32([0, 1, 0])}
    a, one = given[x], np.zeros((3, 4), np.float32)
    one[1] = 9
    cases = {
        own.slice([x], [2, -1], [0, 1]): a[0:2, 1:-1],
        own.dynamicslice([x, at], [0], [1]): a[1:2],
        own.dynamicupdate([x, at, row], [0], [1]): np.where(one, one, a),
        own.dynamicadd([x, at, row], axes=[0], sizes=[1]): a + one,
        own.dynamiczero([x, at], [0], [1]): np.where(one, 0, a),
        values: -np.sort(-a, 1),
        places: np.argsort(-a, 1),
        own.bucketize([x, bounds]): np.searchsorted([0.5, 3.5, 7.5], a),
        own.scatterreduce([x, where], axis_size=2, axis=0): np.stack([a[0] + a[2], a[1]]),
        own.shapeddropout([x], [3, 1]): a,
        own.printtensor([x], title="printed"): a,
        own.tensorremap([x], 0): a,
        own.call([x], 1, callee=callee): np.sin(a),
    }
    for name, got in zip(cases, run(builder, list(cases), given), strict=True):
        np.testing.assert_allclose(got, cases[name], rtol=1e-5, err_msg=name)
    assert "printed: [" in capfd.readouterr().err


def test_layers_and_losses():
    builder, generator = popart.Builder(), torch.Generator().manual_seed(1)
    x, w = torch.randn(2, 4, 6, 6, generator=generator), torch.randn(3, 4, 3, 3, generator=generator)
    logs, labels = torch.randn(5, 2, 4, generator=generator).log_softmax(2), torch.tensor([[1, 2], [3, 0]], dtype=torch.int32)
    times, lengths = torch.tensor([5, 4], dtype=torch.int32), torch.tensor([2, 1], dtype=torch.int32)
    ix, il = (builder.addInputTensor(popart.TensorInfo("FLOAT", list(one.shape))) for one in (x, logs))
    iw = builder.addInitializedInputTensor(w.numpy())
    tables = [builder.addInitializedInputTensor(np.float32([k, k + 1, k + 2, k + 3])) for k in (1, 0, 2, 3)]
    target, steps, sizes = (builder.aiOnnx.constant(one.numpy()) for one in (labels, times, lengths))
    first, second = builder.aiGraphcore.multiconv([[ix, iw], [ix, iw]], strides=[[1, 1], [2, 2]], pads=[[1, 1, 1, 1], [0, 0, 0, 0]])
    normal, mean, _ = builder.aiGraphcore.batchnormalization([ix, *tables], num_outputs=3)
    scale, shift, moved, _ = (torch.tensor([k, k + 1.0, k + 2, k + 3]) for k in (1, 0, 2, 3))
    cases = {
        first: F.conv2d(x, w, padding=1),
        second: F.conv2d(x, w, stride=2),
        normal: F.batch_norm(x, None, None, scale, shift, True),
        mean: moved * 0.9 + x.mean((0, 2, 3)) * 0.1,
        builder.aiGraphcore.batchnormalization([ix, *tables]): F.batch_norm(x, moved, moved + 1, scale, shift),
        builder.aiGraphcore.depthtospace([ix], 2): F.pixel_shuffle(x, 2),
        builder.aiGraphcore.ctcloss([il, target, steps, sizes], popart.ReductionType.Sum): F.ctc_loss(
            logs, labels.long(), times.long(), lengths.long(), reduction="sum"
        ),
    }
    for name, got in zip(cases, run(builder, list(cases), {ix: x.numpy(), il: logs.numpy()}), strict=True):
        np.testing.assert_allclose(got, cases[name].numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


def test_dropout_drops_in_a_session_that_trains_and_in_no_other():
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [8, 64]), "x")
    w = builder.addInitializedInputTensor(np.ones((8, 64), np.float32), "w")
    (y,) = [builder.aiOnnx.dropout([builder.aiOnnx.mul([x, w])], num_outputs=1, ratio=0.5)]
    loss = builder.aiGraphcore.l1loss([y], 1.0)
    device = popart.DeviceManager().createCpuDevice()
    for make, dropped in ((popart.TrainingSession, True), (popart.InferenceSession, False)):
        trained = {"loss": loss, "optimizer": popart.ConstSGD(0.0)} if dropped else {}
        session = make(builder.getModelProto(), popart.DataFlow(1, [y]), deviceInfo=device, **trained)
        session.prepareDevice()
        anchors = session.initAnchorArrays()
        session.run(popart.PyStepIO({x: np.ones((8, 64), np.float32)}, anchors))
        assert sorted(set(anchors[y].ravel().tolist())) == ([0, 2] if dropped else [1])


def test_what_operators_do_not_take_is_told_when_they_are_added():
    builder = popart.Builder()
    own, x = builder.aiGraphcore, builder.addInputTensor("FLOAT", [2, 3], "x")
    for make, message in (
        (lambda: own.scale([x]), "Scale of opset 1: the attribute scale is missing"),
        (lambda: own.scale([x], scal=2.0), "no attribute 'scal'.*scale"),
        (lambda: own.gelu([x, x]), "Gelu of opset 1 takes 1 tensors, got 2"),
        (lambda: own.dynamicslice([x], [0], [1]), "DynamicSlice of opset 1 takes 2 tensors, got 1"),
        (lambda: own.gelu(x), "a list of tensors, which are names, got 'x'"),
        (lambda: own.gelu([np.ones(3)]), "a list of tensors, which are names"),
        (lambda: builder.aiOnnx.conv([x]), "Conv of opset 11 takes 2 to 3 tensors, got 1"),
        (lambda: builder.aiOnnx.cast([x], "FLOTA"), "there is no type 'FLOTA'.*FLOAT"),
        (lambda: builder.aiOnnx.cast([x]), "the attribute to is missing"),
        (lambda: builder.aiOnnx.constant("one"), "constant takes numbers, got 'one'"),
        (lambda: own.multiconv([[x, x]], stride=[[1]]), "no attribute 'stride'.*strides"),
        (lambda: own.multiconv([[x, x]], strides=[[1], [1]]), "a row for each of 1 convolutions, got 2"),
    ):
        with pytest.raises(popart.popart_exception, match=message):
            make()
    with pytest.raises(MissingFeature, match=r"aiGraphcore\.lstm is not there yet"):
        own.lstm([x, x])
    with pytest.raises(MissingFeature, match="inDilations is not there"):
        own.multiconv([[x, x]], inDilations=[[2]])


def test_a_file_with_an_unknown_attribute_of_graphcore_s_is_told():
    node = helper.make_node("Scale", ["x"], ["y"], "/s", domain="ai.graphcore", scal=2.0)
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    graph = helper.make_graph([node], "g", [info], [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11), helper.make_opsetid("ai.graphcore", 1)])
    with pytest.raises(
        pypoplar.onnx.ModelError, match=r"(?s)no attribute scal in opset 1; the nearest is scale.*the attribute scale is missing"
    ):
        pypoplar.onnx.load(model)
