"""One image of logistic regression, every operation a library call, against the same arithmetic in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, alternate
from pypoplar import FLOAT, UNSIGNED_INT, Engine, Graph, IPUModel, poplin, popnn, popops, poputil
from pypoplar.program import Copy, Repeat, Sequence

RATE = 0.0009
PIXELS = 784
Array = np.ndarray[Any, np.dtype[Any]]


def engine(tiles: int, batch: int, options: dict[str, Any] | None = None) -> Any:
    """The demo's program: `batch` images, one after the other, from streams."""
    model = IPUModel()
    model.tilesPerIPU = tiles
    device = model.createDevice()
    graph = Graph(device.getTarget())
    for library in (popops, poplin, popnn):
        library.addCodelets(graph)

    def variable(type: Any, shape: list[int], name: str) -> Any:
        tensor = graph.addVariable(type, shape, name)
        poputil.mapTensorLinearly(graph, tensor)
        return tensor

    x, W = variable(FLOAT, [PIXELS, 1], "x"), variable(FLOAT, [10, PIXELS], "W")
    b, delta = variable(FLOAT, [10, 1], "b"), variable(FLOAT, [1, 10], "delta")
    expected, correct = variable(UNSIGNED_INT, [1], "expected"), variable(UNSIGNED_INT, [1], "numCorrect")
    loss = variable(FLOAT, [1], "loss")
    for name, tensor in (("W", W), ("b", b)):
        graph.createHostWrite(name, tensor)
        graph.createHostRead(name, tensor)
    step = Sequence()
    logits = popops.add(graph, poplin.matMul(graph, W, x, step, "Wx"), b, step, "Wx+b")
    softmax = popnn.nonLinearity(graph, popnn.NonLinearityType.SOFTMAX, logits.transpose(), step, "softmax")
    kind = popnn.LossType.CROSS_ENTROPY_LOSS
    step.add(popnn.calcLoss(graph, softmax, expected, loss, delta, correct, kind, "loss"))
    popops.scaledAddTo(graph, b, delta.transpose(), -RATE, step, "b")
    gradient = poplin.matMul(graph, delta.transpose(), x.transpose(), step, "dW")
    popops.scaledAddTo(graph, W, gradient, -RATE, step, "W")
    images = graph.addHostToDeviceFIFO("images", FLOAT, PIXELS)
    labels = graph.addHostToDeviceFIFO("labels", UNSIGNED_INT, 1)
    zero = graph.addConstant(UNSIGNED_INT, [1], 0)
    graph.setTileMapping(zero, 0)
    body = Sequence([Copy(images, x), Copy(labels, expected), step])
    made = Engine(graph, Sequence([Copy(zero, correct), Repeat(batch, body)]), options)
    made.load(device)
    return made


def numpy_epoch(images: Array, labels: Array, W: Array, b: Array) -> int:
    """The same arithmetic as a loop over images."""
    right = 0
    rate = np.float32(RATE)
    for image, label in zip(images, labels, strict=True):
        logits = W @ image + b
        powers = np.exp(logits - logits.max())
        delta = powers / powers.sum()
        right += int(delta.argmax() == label)
        delta[label] -= 1
        b -= rate * delta
        W -= rate * np.outer(delta, image)
    return right


def measure(smoke: bool) -> list[Figure]:
    random = np.random.default_rng(0)
    batch = 5 if smoke else 500
    images = random.random((batch, PIXELS), np.float32)
    labels = random.integers(0, 10, batch, np.uint32)
    figures = []
    for tiles in (4, 1472):
        made = engine(tiles, batch)
        W, b = random.standard_normal((10, PIXELS), np.float32), random.standard_normal(10, np.float32)
        made.connectStream("images", images)
        made.connectStream("labels", labels)
        made.writeTensor("W", W)
        made.writeTensor("b", b.reshape(10, 1))
        repeats = 1 if smoke else 7
        ours, plain = alternate([made.run, lambda W=W, b=b: numpy_epoch(images, labels, W, b)], repeats)
        np.testing.assert_allclose(made.readTensor("W"), W, rtol=1e-3, atol=1e-4)
        details = {"seconds": ours / batch, "numpy_seconds": plain / batch}
        note = "aim at 1 x"
        figures.append(
            Figure(f"one image of the regression step, {tiles} tiles, against NumPy", ours / plain, "x", 2.0, note, details)
        )
    return figures


ROW = Row("regression", measure)
