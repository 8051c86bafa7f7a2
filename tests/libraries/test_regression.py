"""The regression step: every library call together, against the same arithmetic in NumPy."""

import functools

import numpy as np
import pytest
from library_programs import new_graph, variable
from tutorial_modules import tutorial_module

from pypoplar import FLOAT, HALF, UNSIGNED_INT, Engine, poplin, popnn, popops
from pypoplar.program import Copy, Repeat, Sequence

RATE = 0.05


@pytest.fixture(scope="module")
def tutorial():
    """The module of the regression tutorial."""
    return tutorial_module("mnist_regression")


def twin(images, labels, rate, W, b):
    """One epoch of gradient descent in float32: W, b and the right answers given on the way."""
    right = 0
    for x, label in zip(images, labels, strict=True):
        logits = W @ x + b
        p = np.exp(logits)
        p = p * (np.float32(1) / p.sum())
        right += int(p.argmax() == label)
        p[label] -= 1
        b = b - np.float32(rate) * p
        W = W - np.float32(rate) * np.outer(p, x)
    return W, b, right


def first_weights(pixels, seed):
    random = np.random.default_rng(seed)
    return random.standard_normal((10, pixels), np.float32), random.standard_normal((10, 1), np.float32)[:, 0]


@pytest.mark.parametrize("tiles", [1, 4, 7, 100])
def test_learned_weights_are_those_of_a_numpy_loop(tutorial, tiles):
    images, labels = tutorial.uci_digits()
    images, labels = images[:600], labels[:600]
    model = tutorial.Model(64, 300, RATE, tiles)
    model.start(images, labels, seed=3)
    right = model.run() + model.run()
    W, b, expected = twin(images, labels, RATE, *first_weights(64, 3))
    assert right == expected
    learned = model.weights()
    np.testing.assert_allclose(learned[0], W, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(learned[1], b, rtol=1e-4, atol=1e-5)


def test_weights_of_large_images_are_those_of_a_numpy_loop_too(tutorial):
    random = np.random.default_rng(0)
    images = random.random((60, 784), np.float32)
    labels = random.integers(0, 10, 60).astype(np.uint32)
    for tiles in (4, 1472):
        model = tutorial.Model(784, 60, 0.0009, tiles)
        model.start(images, labels, seed=1)
        model.run()
        W, b, _ = twin(images, labels, 0.0009, *first_weights(784, 1))
        np.testing.assert_allclose(model.weights()[0], W, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(model.weights()[1], b, rtol=1e-4, atol=1e-5)


def test_digits_are_learned_to_97_percent_in_ten_epochs(tutorial, capsys):
    images, labels = tutorial.uci_digits()
    W, b, accuracies = tutorial.train(images[:1500], labels[:1500], 10, 300, RATE, 4)
    assert accuracies[0] > 0.6
    assert accuracies[-1] > 0.97
    assert tutorial.accuracy(W, b, images[1500:], labels[1500:]) > 0.88
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Epoch 1 (100%), accuracy {accuracies[0]:.1%}"
    assert len(lines) == 10


def test_both_engines_learn_the_same_bits_in_the_same_cycles(tutorial, monkeypatch):
    images, labels = tutorial.uci_digits()
    learned = []
    for mode in ("native", "interpret"):
        monkeypatch.setattr(tutorial, "Engine", functools.partial(Engine, mode=mode))
        model = tutorial.Model(64, 4, RATE, 3)
        model.start(images[:8], labels[:8], seed=5)
        right = model.run() + model.run()
        W, b = model.weights()
        execution = model.engine.getReport().execution
        steps = [(one.name, one.type, one.executions, one.cycles, one.cyclesByTile.tolist()) for one in execution.steps]
        learned.append((right, W.tobytes(), b.tobytes(), steps, execution.cycles_by_vertex_type))
    assert learned[0] == learned[1]


def test_an_image_takes_few_steps_and_few_vertices(tutorial):
    graph = tutorial.Model(784, 300, 0.0009, 4).engine.getReport().compilation.graph
    assert graph.numComputeSets <= 8
    assert graph.numVertices <= 60


@pytest.mark.parametrize("tiles", [4, 60])
@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_batches_of_halves_or_floats_learn_as_well(tutorial, type, tiles):
    images, labels = tutorial.uci_digits()
    count, batch, rate = 500, 25, 0.25
    graph, device = new_graph(tiles)
    x, W, b = (variable(graph, type, shape, name) for name, shape in (("x", [batch, 64]), ("W", [64, 10]), ("b", [10])))
    loss, delta = variable(graph, type, [batch], "loss"), variable(graph, type, [batch, 10], "delta")
    expected, correct = variable(graph, UNSIGNED_INT, [batch], "expected"), variable(graph, UNSIGNED_INT, [1], "correct")
    graph.createHostRead("correct read", correct)
    step = Sequence()
    logits = popops.add(graph, poplin.matMul(graph, x, W, step, "xW"), b, step, "xW+b")
    p = popnn.nonLinearity(graph, popnn.NonLinearityType.SOFTMAX_STABLE, logits, step)
    step.add(popnn.calcLoss(graph, p, expected, loss, delta, correct, popnn.LossType.CROSS_ENTROPY_LOSS))
    popops.scaledAddTo(graph, W, poplin.matMul(graph, x.transpose(), delta, step, "dW"), -rate / batch, step)
    ones = graph.addConstant(type, [1, batch], 1.0)
    graph.setTileMapping(ones, 0)
    popops.scaledAddTo(graph, b, poplin.matMul(graph, ones, delta, step, "db")[0], -rate / batch, step)
    imagesIn = graph.addHostToDeviceFIFO("images", type, batch * 64)
    labelsIn = graph.addHostToDeviceFIFO("labels", UNSIGNED_INT, batch)
    body = Sequence([Copy(imagesIn, x), Copy(labelsIn, expected), step])
    engine = Engine(graph, Repeat(count // batch, body))
    engine.load(device)
    engine.connectStream("images", images[:count].astype(type.dtype))
    engine.connectStream("labels", labels[:count])
    engine.writeTensor("W", np.zeros((64, 10), type.dtype))
    engine.writeTensor("b", np.zeros(10, type.dtype))
    for _ in range(4):
        engine.writeTensor("correct", np.zeros(1, np.uint32))
        engine.run()
    assert int(engine.readTensor("correct read")[0]) > 0.9 * count
