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


class Built:
    """A model whose inputs are arrays."""

    def __init__(self):
        self.builder, self.given = popart.Builder(), {}
        self.own = self.builder.aiGraphcore

    def add(self, array):
        names = {"float32": "FLOAT", "int32": "INT32", "uint8": "UINT8", "float16": "FLOAT16"}
        name = self.builder.addInputTensor(popart.TensorInfo(names[str(array.dtype)], list(array.shape)))
        self.given[name] = array
        return name

    def check(self, cases, **tolerance):
        for name, got in zip(cases, run(self.builder, list(cases), self.given), strict=True):
            assert got.dtype == cases[name].dtype, name
            np.testing.assert_allclose(got, cases[name], err_msg=name, **tolerance)


def normal(*shape, seed=0):
    return np.float32(np.random.default_rng(seed).normal(size=shape))


def lstm_steps(x, weight, bias, state):
    """PopART's gates: forget, in, cell, out."""
    h, c = state
    outputs = []
    for one in x:
        forget, entered, cell, out = (np.concatenate([one, h], 1) @ weight[gate] + bias[gate] for gate in range(4))
        c = c / (1 + np.exp(-forget)) + np.tanh(cell) / (1 + np.exp(-entered))
        h = np.tanh(c) / (1 + np.exp(-out))
        outputs.append(h)
    return np.float32(outputs), np.float32(c)


@pytest.mark.parametrize("known", [pytest.param(False, marks=pytest.mark.slow), True])
def test_lstm_has_popart_s_gates_and_weights(known):
    built, steps, items, inputs, hidden = Built(), 4, 2, 3, 5
    arrays = normal(steps, items, inputs), normal(4, inputs + hidden, hidden, seed=1), normal(4, hidden, seed=2)
    state = normal(2, items, hidden, seed=3)
    x = built.add(arrays[0])
    weight, bias = (built.builder.aiOnnx.constant(one) if known else built.add(one) for one in arrays[1:])
    whole, cells = built.own.lstm([x, weight, bias, built.add(state)])
    last, _ = built.own.lstm([x, weight], 0)
    bare, _ = lstm_steps(*arrays[:2], np.zeros((4, hidden)), np.zeros((2, items, hidden)))
    outputs, end = lstm_steps(*arrays, state)
    built.check({whole: outputs, cells: end, last: bare[-1]}, rtol=1e-4, atol=1e-5)


def test_slices_of_sequences_and_scatters_in_groups():
    built = Built()
    source, target = normal(6, 3), normal(5, 3, seed=1)
    slices = [np.int32([2, 1]), np.int32([3, 0]), np.int32([0, 4])]
    names = [built.add(one) for one in (source, target, *slices)]
    filled = target.copy()
    filled[0:2], filled[4] = source[3:5], source[0]
    zeroed = np.where(np.arange(5)[:, None] % 4 < 2, filled, 0)
    zeroed[[2, 3]] = 0
    data, start = normal(2, 3, 4, seed=2), normal(2, 3, 2, seed=3)
    index = np.int32([[0, 1, 1, 0], [1, 1, 1, 0]])
    d, i, s = built.add(data), built.add(index), built.add(start)
    sums, largest = np.zeros_like(start), start.copy()
    for group, column in np.ndindex(2, 4):
        sums[group, :, index[group, column]] += data[group, :, column]
        row = largest[group, :, index[group, column]]
        row[:] = np.maximum(row, data[group, :, column])
    built.check(
        {
            built.own.sequenceslice(names): filled,
            built.own.sequenceslice(names, 1): zeroed,
            built.own.groupedscatterreduce([d, i], axis_size=2, axis=2, group_size=2): sums,
            built.own.groupedscatterreduce(
                [d, i, s], axis_size=2, axis=-1, group_size=2, reduction=popart.ScatterReduction.Max
            ): largest,
        },
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("kind", [pytest.param(np.float32, marks=pytest.mark.slow), np.uint8])
def test_pictures_get_a_fourth_channel(kind):
    built, floats = Built(), np.float16 if kind is np.uint8 else np.float32
    image = np.random.default_rng(4).integers(0, 255, (2, 3, 3)).astype(kind)
    offsets, scales = np.array([0.25, 0.5, 1], floats), np.array([2, 3, 4], floats)
    name = built.own.normalize_image([built.add(one) for one in (image, offsets, scales)], scale=1 / 255)
    wanted = (image.astype(np.float64) / 255 - offsets) * scales
    built.check({name: np.concatenate([wanted, np.zeros((2, 3, 1))], 2).astype(floats)}, rtol=5e-3, atol=5e-3)


def spline(x, degree):
    """The uniform B-spline from 0 to degree + 1, by the recursion of Cox and de Boor."""
    if degree == 0:
        return ((x >= 0) & (x < 1)).astype(np.float64)
    return (x * spline(x, degree - 1) + (degree + 1 - x) * spline(x - 1, degree - 1)) / degree


@pytest.mark.parametrize("degree", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(3, marks=pytest.mark.slow)])
def test_splines_are_those_of_cox_and_de_boor(degree):
    built, generator = Built(), np.random.default_rng(degree)
    sizes, opened = np.int32([6, 5]), np.uint8([1, 0])
    places = np.float32(generator.uniform(0.01, 0.99, (7, 2)))
    kernel = [built.builder.aiOnnx.constant(one) for one in (sizes, opened)]
    basis, numbers = built.own.splinebasis([built.add(places), *kernel], degree=degree)
    x, weight = normal(7, 4), normal(30, 4, 3, seed=1)
    out = built.own.splineweighting([built.add(x), built.add(weight), basis, numbers])
    pieces = (degree + 1) ** 2
    wanted, index, sums = np.zeros((7, pieces)), np.zeros((7, pieces), np.int32), np.zeros((7, 3))
    for edge, piece in np.ndindex(7, pieces):
        wanted[edge, piece] = 1
        for axis, part in enumerate((piece % (degree + 1), piece // (degree + 1))):
            place = float(places[edge, axis]) * (sizes[axis] - degree * opened[axis])
            wanted[edge, piece] *= spline(place - np.floor(place) + degree - part, degree)
            index[edge, piece] += (int(place) + part) % sizes[axis] * (1, sizes[0])[axis]
        sums[edge] += wanted[edge, piece] * (x[edge] @ weight[index[edge, piece]])
    built.check({basis: np.float32(wanted), numbers: index, out: np.float32(sums)}, rtol=1e-4, atol=1e-5)


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
    for name in ("abort", "copyvarupdate", "packedDataBlock"):
        with pytest.raises(MissingFeature, match=rf"aiGraphcore\.{name} is not there yet"):
            getattr(own, name)([x])
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
