"""Partial sums of single nodes have the type that the builder says, and gradients of any tensor are anchors."""

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("torch")
import torch

from pypoplar import popart


def device():
    return popart.DeviceManager().createIpuModelDevice({"numIPUs": 1})


class Layers:
    """Two products of one form, in halves."""

    def __init__(self, half=()):
        generator = np.random.default_rng(3)
        self.weights = [np.float16(generator.normal(size=(64, 64)) / 8) for _ in range(2)]
        self.given = np.float16(generator.normal(size=(8, 64)))
        self.builder = popart.Builder()
        self.x = self.builder.addInputTensor(popart.TensorInfo("FLOAT16", [8, 64]), "x")
        self.hidden, value = [], self.x
        for number, weight in enumerate(self.weights):
            name = self.builder.addInitializedInputTensor(weight, f"w{number}")
            value = self.builder.aiOnnx.matmul([value, name])
            if number in half:
                self.builder.setPartialsType(value, "HALF")
            self.hidden.append(value)
        self.loss = self.builder.aiGraphcore.l1loss([value], 1.0)

    def run(self, anchors, **trained):
        kind = popart.TrainingSession if trained else popart.InferenceSession
        session = kind(self.builder.getModelProto(), popart.DataFlow(1, list(anchors)), deviceInfo=device(), **trained)
        session.prepareDevice()
        arrays = session.initAnchorArrays()
        session.run(popart.PyStepIO({self.x: self.given}, arrays))
        return arrays, session.getCycleCount()


def test_partial_sums_of_single_products_are_halves():
    cycles, results = [], []
    for half in ((), (1,)):
        layers = Layers(half)
        arrays, taken = layers.run(layers.hidden)
        cycles.append(taken)
        results.append([arrays[name].astype(np.float32) for name in layers.hidden])
    assert cycles[0] != cycles[1]
    same = [[bool((one == other).all()) for one, other in zip(row, results[0], strict=True)] for row in results]
    assert same == [[True, True], [True, False]]


def test_gradients_of_inputs_and_of_what_nodes_make_are_anchors():
    layers = Layers()
    prefix = popart.reservedGradientPrefix()
    named = [layers.x, layers.hidden[0], layers.loss, "w1"]
    arrays, _ = layers.run([prefix + name for name in named], loss=layers.loss, optimizer=popart.ConstSGD(0.1, loss_scaling=4.0))
    x, first, second = (torch.tensor(one).float().requires_grad_() for one in (layers.given, *layers.weights))
    hidden = x @ first
    hidden.retain_grad()
    (hidden @ second).abs().mean().backward()
    wanted = dict(zip(named, [x.grad, hidden.grad, torch.tensor(1.0), second.grad], strict=True))
    for name, gradient in wanted.items():  # which the loss scaling is in, as in PopART
        np.testing.assert_allclose(arrays[prefix + name], 4 * gradient.numpy(), rtol=2e-2, atol=1e-4, err_msg=name)


def test_what_has_no_gradient_and_no_partial_sums_is_told():
    layers = Layers()
    builder = layers.builder
    for make, told in (
        (lambda: builder.setPartialsType(layers.loss, "HALF"), "is made by L1; partial sums have Conv, "),
        (lambda: builder.setPartialsType(layers.hidden[0], "DOUBLE"), "is FLOAT or HALF, got 'DOUBLE'"),
        (lambda: builder.setPartialsType("MatMul:1", "HALF"), "no node makes 'MatMul:1'; did you mean 'MatMul:0'"),
        (lambda: builder.setAvailableMemoryProportion(layers.hidden[0], 1.5), "a number above 0, at most 1, got 1.5"),
    ):
        with pytest.raises(popart.popart_exception, match=told):
            make()
    rows = builder.aiOnnx.argmax([layers.x], axis=1)
    constant = builder.aiOnnx.constant(np.float16([1.0]))
    builder.aiOnnx.add([layers.x, constant])
    for name, told in ((rows, "gradients are of tensors of floats"), (constant, "it depends on no input and no weight")):
        with pytest.raises(popart.popart_exception, match=told):
            layers.run([popart.reservedGradientPrefix() + name], loss=layers.loss, optimizer=popart.ConstSGD(0.1))
    beside = builder.aiOnnx.exp([layers.x])
    with pytest.raises(popart.popart_exception, match="the loss does not depend on"):
        layers.run([popart.reservedGradientPrefix() + beside], loss=layers.loss, optimizer=popart.ConstSGD(0.1))
    assert builder.getPartialsType(layers.hidden[0]) == "FLOAT"
