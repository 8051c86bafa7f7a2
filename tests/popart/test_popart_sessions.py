"""PopART's sessions infer and train as PyTorch does, and anchors have PopART's shapes."""

import numpy as np
import pytest
import torch
from onnx import ModelProto, helper

from pypoplar import popart


def device():
    return popart.DeviceManager().createIpuModelDevice({"numIPUs": 1})


def simple_addition():
    """The first program of PopART's user guide."""
    builder = popart.Builder()
    data_shape = popart.TensorInfo("FLOAT", [2])
    a, b = builder.addInputTensor(data_shape), builder.addInputTensor(data_shape)
    o = builder.aiOnnx.add([a, b])
    builder.addOutputTensor(o)
    return builder.getModelProto(), a, b, o


def test_a_simple_addition():
    proto, a, b, o = simple_addition()
    session = popart.InferenceSession(proto, popart.DataFlow(1, {o: popart.AnchorReturnType("ALL")}), device())
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({a: np.float32([1, 2]), b: np.float32([3, 5])}, anchors))
    assert anchors[o].tolist() == [4, 7]
    assert session.getCycleCount() > 0


@pytest.mark.parametrize(
    ("kind", "shape", "rows"),
    [
        (("All",), (4, 2), [0, 1, 2, 3]),
        (("EveryN", 2), (2, 2), [1, 3]),
        (("Final",), (2,), [3]),
        (("Sum",), (2,), None),
    ],
)
def test_anchors_of_all_kinds_have_popart_s_shapes(kind, shape, rows):
    proto, a, b, o = simple_addition()
    session = popart.InferenceSession(proto, popart.DataFlow(4, {o: popart.AnchorReturnType(*kind)}), device())
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    assert anchors[o].shape == shape
    x, y = np.float32(np.arange(8).reshape(4, 2)), np.float32(np.ones((4, 2)))
    session.run(popart.PyStepIO({a: x, b: y}, anchors))
    np.testing.assert_array_equal(anchors[o], (x + y).sum(0) if rows is None else (x + y)[rows].reshape(shape))


def test_callbacks_give_and_take_batches():
    proto, a, b, o = simple_addition()
    session = popart.InferenceSession(proto, popart.DataFlow(2, [o]), device())
    session.prepareDevice()
    given = {a: iter(np.float32([[1, 2], [3, 4]])), b: iter(np.float32([[1, 1], [2, 2]]))}
    result = np.zeros(2, np.float32)
    taken = []
    session.run(
        popart.PyStepIOCallback(
            lambda name, is_prefetch: next(given[name]),
            lambda name: None,
            lambda name: result,
            lambda name: taken.append(result.tolist()),
        )
    )
    assert taken == [[2, 3], [5, 6]]


class Network:
    """Two layers, with PopART's builder and with PyTorch."""

    def __init__(self, batch=4):
        generator = np.random.default_rng(3)
        self.w1, self.w2 = (np.float32(generator.normal(size=shape) / 2) for shape in ((6, 8), (8, 3)))
        self.x = np.float32(generator.normal(size=(batch, 6)))
        self.labels = np.int32(generator.integers(0, 3, batch))
        builder = popart.Builder()
        self.ix = builder.addInputTensor(popart.TensorInfo("FLOAT", [batch, 6]), "x")
        self.il = builder.addInputTensor(popart.TensorInfo("INT32", [batch]), "labels")
        one, two = builder.addInitializedInputTensor(self.w1, "w1"), builder.addInitializedInputTensor(self.w2, "w2")
        hidden = builder.aiOnnx.relu([builder.aiOnnx.matmul([self.ix, one])])
        self.probabilities = builder.aiOnnx.softmax([builder.aiOnnx.matmul([hidden, two])], axis=1)
        self.loss = builder.aiGraphcore.nllloss([self.probabilities, self.il], popart.ReductionType.Mean)
        self.proto = builder.getModelProto()

    def session(self, optimizer, anchors, batches=1, options=None):
        flow = popart.DataFlow(batches, {name: popart.AnchorReturnType("All") for name in anchors})
        session = popart.TrainingSession(self.proto, flow, self.loss, optimizer, device(), userOptions=options)
        session.prepareDevice()
        session.weightsFromHost()
        return session, session.initAnchorArrays()

    def torch_losses(self, make, steps):
        w1, w2 = (torch.tensor(one, requires_grad=True) for one in (self.w1, self.w2))
        optimizer, losses = make([w1, w2]), []
        for _ in range(steps):
            logits = torch.relu(torch.from_numpy(self.x) @ w1) @ w2
            loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(self.labels).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, w1, w2


OPTIMIZERS = {
    "ConstSGD": (lambda: popart.ConstSGD(0.1), lambda weights: torch.optim.SGD(weights, lr=0.1)),
    "momentum": (
        lambda: popart.SGD({"defaultLearningRate": (0.05, False), "defaultMomentum": (0.9, True)}),
        lambda weights: torch.optim.SGD(weights, lr=0.05, momentum=0.9),
    ),
    "Adam": (
        lambda: popart.Adam({"defaultLearningRate": (0.01, False), "defaultEps": (1e-6, True)}),
        lambda weights: torch.optim.Adam(weights, lr=0.01, eps=1e-6),
    ),
    "AdaGrad": (
        lambda: popart.Adaptive({"defaultLearningRate": (0.05, False), "lossScaling": 8.0}, popart.AdaptiveMode.AdaGrad),
        lambda weights: torch.optim.Adagrad(weights, lr=0.05, eps=1e-6),
    ),
    "AdaDelta": (
        lambda: popart.Adaptive({"defaultLearningRate": 0.5, "defaultAlpha": 0.9}, popart.AdaptiveMode.AdaDelta),
        lambda weights: torch.optim.Adadelta(weights, lr=0.5, rho=0.9, eps=1e-6),
    ),
    "AdaMax": (
        lambda: popart.Adam({"defaultLearningRate": 0.01}, popart.AdamMode.AdaMax),
        lambda weights: torch.optim.Adamax(weights, lr=0.01, eps=1e-6),
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_are_those_of_pytorch(name):
    ours, theirs = OPTIMIZERS[name]
    network, steps = Network(), 100
    session, anchors = network.session(ours(), [network.loss], batches=steps)
    session.run(
        popart.PyStepIO({network.ix: np.stack([network.x] * steps), network.il: np.stack([network.labels] * steps)}, anchors)
    )
    wanted, w1, _ = network.torch_losses(theirs, steps)
    np.testing.assert_allclose(anchors[network.loss], wanted, rtol=1e-3)
    session.weightsToHost()
    weights = {"w1": np.zeros_like(network.w1)}
    session.readWeights(popart.PyWeightsIO(weights))
    np.testing.assert_allclose(weights["w1"], w1.detach().numpy(), rtol=1e-2, atol=1e-3)


def test_gradients_are_anchors_and_weights_are_written_to_a_file(tmp_path):
    network = Network()
    gradient = popart.reservedGradientPrefix() + "w2"
    session, anchors = network.session(popart.ConstSGD(0.1), [gradient, network.loss])
    session.run(popart.PyStepIO({network.ix: network.x, network.il: network.labels}, anchors))
    _, _, w2 = network.torch_losses(lambda weights: torch.optim.SGD(weights, lr=0.1), 1)
    np.testing.assert_allclose(anchors[gradient], w2.grad.numpy(), rtol=1e-4, atol=1e-6)
    session.modelToHost(tmp_path / "model.onnx")
    saved = ModelProto.FromString((tmp_path / "model.onnx").read_bytes())
    found = popart.Builder(saved)
    assert "w2" in found.getInputTensorIds()
    np.testing.assert_allclose(
        np.frombuffer(saved.graph.initializer[1].raw_data, np.float32).reshape(8, 3), w2.detach().numpy(), rtol=1e-4, atol=1e-6
    )


def test_gradients_are_accumulated_and_the_learning_rate_changes_without_a_compilation():
    network, options = Network(), popart.SessionOptions()
    options.enableGradientAccumulation, options.accumulationFactor = True, 2
    options.accumulationAndReplicationReductionType = popart.ReductionType.Mean
    session, anchors = network.session(popart.SGD({"defaultLearningRate": (0.1, False)}), [network.loss], options=options)
    assert anchors[network.loss].shape == (2,)
    given = {network.ix: np.stack([network.x] * 2), network.il: np.stack([network.labels] * 2)}
    wanted, *_ = network.torch_losses(lambda weights: torch.optim.SGD(weights, lr=0.1), 2)
    for loss in wanted:
        session.run(popart.PyStepIO(given, anchors))
        np.testing.assert_allclose(anchors[network.loss], [loss] * 2, rtol=1e-4)
    session.updateOptimizerFromHost(popart.SGD({"defaultLearningRate": (0.0, False)}))
    session.run(popart.PyStepIO(given, anchors))
    before = anchors[network.loss].copy()
    session.run(popart.PyStepIO(given, anchors))
    np.testing.assert_array_equal(anchors[network.loss], before)


def test_mistakes_are_told_as_popart_has_its_rules():
    proto, a, b, o = simple_addition()
    with pytest.raises(popart.popart_exception, match=r"there is no tensor 'Add:1' to anchor.*Add:0"):
        popart.InferenceSession(proto, popart.DataFlow(1, ["Add:1"]), device())
    session = popart.InferenceSession(proto, popart.DataFlow(3, [o]), device())
    with pytest.raises(popart.popart_exception, match="call prepareDevice first"):
        session.run(popart.PyStepIO({}, {}))
    session.prepareDevice()
    anchors, right = session.initAnchorArrays(), np.zeros((3, 2), np.float32)
    for given, taken, message in (
        ({a: right}, anchors, f"the input {b} is missing"),
        ({a: right, b: right[:2]}, anchors, r"shape \[3, 2\], which is batchesPerStep, .*got \[2, 2\]"),
        ({a: right, b: right, "c": right}, anchors, "no input 'c'"),
        ({a: right, b: np.zeros((3, 2))}, anchors, "is float, got float64"),
        ({a: right, b: right}, {}, "has no array; initAnchorArrays makes them"),
        ({a: right, b: right}, {o: np.zeros(2, np.float32)}, r"has shape \[3, 2\], got an array of \[2\]"),
    ):
        with pytest.raises(popart.popart_exception, match=message):
            session.run(popart.PyStepIO(given, taken))


def test_weights_go_both_ways_only_when_they_are_told_to():
    network = Network()
    session, anchors = network.session(popart.ConstSGD(0.1), [network.loss])
    there = {"w1": np.zeros_like(network.w1)}

    def step():
        session.run(popart.PyStepIO({network.ix: network.x, network.il: network.labels}, anchors))
        return float(anchors[network.loss])

    losses = [step() for _ in range(3)]
    session.readWeights(popart.PyWeightsIO(there))  # the device's were not taken yet
    np.testing.assert_array_equal(there["w1"], network.w1)
    session.weightsFromHost()
    assert step() == losses[0]
    session.weightsToHost()
    session.readWeights(popart.PyWeightsIO(there))
    assert (there["w1"] != network.w1).any()
    assert step() == losses[1]
    session.weightsFromHost()
    assert step() == losses[1]


def test_what_a_step_cannot_have_is_told():
    network = Network()
    proto = ModelProto.FromString(network.proto)
    proto.graph.input.append(helper.make_tensor_value_info("w1", 1, network.w1.shape))
    network.proto = proto.SerializeToString()
    session, anchors = network.session(popart.ConstSGD(0.1), [network.loss])
    given = {network.ix: network.x, network.il: network.labels}
    with pytest.raises(popart.popart_exception, match="no input 'w1'; it is a weight"):
        session.run(popart.PyStepIO({**given, "w1": network.w1}, anchors))
    network.loss = network.probabilities
    with pytest.raises(popart.popart_exception, match=r"the loss Softmax:0 is float \[4, 3\], and is to be one float: reduce it"):
        network.session(popart.ConstSGD(0.1), [network.loss])


def test_an_input_without_dimensions_and_numbers_of_outputs_by_position():
    builder = popart.Builder()
    x, y = builder.addInputTensor(popart.TensorInfo("FLOAT", [])), builder.addInputTensor(popart.TensorInfo("FLOAT", [1, 1, 4]))
    (dropped,), largest = [builder.aiOnnx.dropout([builder.aiOnnx.exp([x])], 1, 0.5)], builder.aiOnnx.maxpool([y], 1, [2])
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [dropped, largest]), device())
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: np.float32(1), y: np.float32([[[1, 3, 2, 5]]])}, anchors))
    assert (anchors[dropped].shape, largest, anchors[largest].tolist()) == ((), "MaxPool:0", [[[3, 3, 5]]])
    np.testing.assert_allclose(anchors[dropped], np.e, rtol=1e-6)
