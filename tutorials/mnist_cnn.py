"""A convolutional network for handwritten digits, trained on the simulated IPU.

Two convolutions, each with a max pool and a ReLU, then two linear layers with dropout between them: forward,
backward and update are library calls, eight images a step, spread over the 1,472 tiles of a Bow.

    pypoplar tutorial mnist_cnn                          1,797 digits of 8 x 8 pixels, drawn larger to 28 x 28
    pypoplar tutorial mnist_cnn 10 --data mnist/         10 epochs on MNIST, from its IDX files
    pypoplar tutorial mnist_cnn 1 --half --page cnn.html in half precision, with a page of what it cost

What to look at
- Every layer is a class with `forward` and `backward`. What the backward pass needs of the forward pass, a layer
  keeps as a tensor: on the IPU activations stay on the tiles where they were computed.
- `createInput`, `createWeights` and `createMatMulInputRHS` lay operands where the plan of the convolution or
  product wants them, so that little is exchanged before it starts.
- With `--half`, activations, weights and gradients are HALF, but every update is added to a FLOAT copy of the
  weights, the master: an update is often too small to change a HALF.
- One seed serves forward and backward pass of the dropout: the mask is drawn a second time and never stored.
- The forward pass is a function of the graph, called by the training step and by the test program.

Exercises
1. `--page` has a view Names. Which layer takes most cycles, and which of its passes? Is it compute or exchange?
2. Try `--tiles 64`. What becomes slower, and what does not?
3. Let the batch be 64. How many cycles does an image cost then, and why fewer?
4. Leave out the master weights of `--half`: what happens to the accuracy?
5. Replace the second pool by a stride of 2 of its convolution.
"""

import argparse
import sys

import numpy as np
from _arguments import number
from _digits import mnist_digits, resized, uci_parts
from _layers import CrossEntropy, Linear, NonLinearity, Shared, new_graph, variable
from _training import Parameters, Trainer, learn, print_prediction

from pypoplar import FLOAT, HALF, UNSIGNED_INT, FileLoadError, poplin, popnn, popops, poprand
from pypoplar.program import Call, Copy, Sequence

CLASSES = 10
SIDE = 28  # pixels
RELU = popnn.NonLinearityType.RELU


class Convolution:
    """3 x 3 kernels, no padding, and a bias for each channel."""

    def __init__(self, shared, name, channels, filters, side):
        self.shared, self.name = shared, name
        self.params = poplin.ConvParams(shared.type, shared.batch, [side, side], [3, 3], channels, filters, 1)
        graph, plans = shared.graph, shared.plans
        self.weights = shared.parameters.add(
            f"{name}/weights", poplin.createWeights(graph, self.params, f"{name}/weights", {}, plans)
        )
        self.biases = None

    def input(self):
        """A tensor for images that lies where the convolution wants it."""
        return poplin.createInput(self.shared.graph, self.params, f"{self.name}/input", {}, self.shared.plans)

    def forward(self, x, prog):
        graph, name = self.shared.graph, f"{self.name}/forward"
        self.x = x
        y = poplin.convolution(graph, x, self.weights, self.params, False, prog, name, {}, self.shared.plans)
        if self.biases is None:
            self.biases = self.shared.parameters.add(f"{self.name}/biases", poplin.createBiases(graph, y, f"{self.name}/biases"))
        poplin.addBias(graph, y, self.biases, prog, name)
        return y

    def backward(self, gradient, prog, first=False):
        graph, plans, name = self.shared.graph, self.shared.plans, f"{self.name}/backward"
        back = None
        if not first:  # nothing is trained before the first layer
            params = poplin.getGradientParams(self.params)
            back = poplin.convolution(graph, gradient, self.weights, params, True, prog, name, {}, plans)
        name = f"{self.name}/update"
        weights = poplin.calculateWeightDeltas(graph, gradient, self.x, self.params, prog, name, {}, plans)
        biases = popops.reduce(graph, gradient, FLOAT, [0, 2, 3], popops.ReduceParams(popops.Operation.ADD), prog, name)
        self.shared.parameters.update(f"{self.name}/weights", weights, prog)
        self.shared.parameters.update(f"{self.name}/biases", biases, prog)
        return back


class MaxPool:
    """The largest of each 2 x 2 elements; an odd last row or column is left out."""

    def __init__(self, shared, name, channels, side):
        self.shared, self.name = shared, name
        cut = [-(side % 2)] * 2
        self.params = popnn.pooling.PoolParams(
            popnn.PoolingType.MAX, [side, side], [2, 2], [2, 2], [0, 0], cut, channels, shared.batch, shared.type
        )

    def forward(self, x, prog):
        self.x = x
        self.pooled = popnn.pooling.pool(self.shared.graph, self.params, x, prog, f"{self.name}/forward")
        return self.pooled

    def backward(self, gradient, prog):
        graph, name = self.shared.graph, f"{self.name}/backward"
        return popnn.pooling.poolInputGradient(graph, self.params, self.x, self.pooled, gradient, True, prog, name)


class Dropout:
    """Half of the elements are set to 0, the others doubled; the mask changes from step to step with the seed."""

    def __init__(self, shared, name, seed):
        self.shared, self.name, self.seed = shared, name, seed

    def forward(self, x, prog):
        self.reference = x
        return self._masked(x, prog, f"{self.name}/forward")

    def backward(self, gradient, prog):
        return self._masked(gradient, prog, f"{self.name}/backward")

    def _masked(self, x, prog, name):
        return poprand.dropout(self.shared.graph, self.seed, 0, x, self.reference, 0.5, 2.0, prog, name)


class Network:
    """The layers up to the dropout (`features`) and after it (`head`), for images of one channel."""

    def __init__(self, shared):
        half = (SIDE - 2) // 2  # the side of an image after the first pool
        quarter = (half - 2) // 2
        self.entry = Convolution(shared, "conv1", 1, 32, SIDE)
        self.features = [
            self.entry,
            MaxPool(shared, "pool1", 32, SIDE - 2),
            NonLinearity(shared, RELU, "relu1"),
            Convolution(shared, "conv2", 32, 64, half),
            MaxPool(shared, "pool2", 64, half - 2),
            NonLinearity(shared, RELU, "relu2"),
            Linear(shared, "linear1", shared.batch, 64 * quarter * quarter, 128),
            NonLinearity(shared, RELU, "relu3"),
        ]
        self.head = Linear(shared, "linear2", shared.batch, 128, CLASSES)


def build(type, batch, steps, rate, tiles, dropout=True):
    """The compiled network with its training step and its test program."""
    device, graph = new_graph(tiles, popops, poplin, popnn, poprand)

    def descend(master, gradient, prog, name):  # the loss is the mean over the batch, gradients are sums over it
        popops.scaledAddTo(graph, master, gradient, -rate / batch, prog, name)

    shared = Shared(graph, type, batch, Parameters(graph, type, descend))
    network = Network(shared)

    images, seed = network.entry.input(), variable(graph, UNSIGNED_INT, [2], "seed")
    loss = CrossEntropy(shared, CLASSES)

    # The forward pass in two parts: the training step has the dropout between them, the test program a copy.
    features, head = Sequence(), Sequence()
    hidden = images
    for layer in network.features:
        hidden = layer.forward(hidden, features)
    kept = graph.clone(hidden, "kept")
    loss.forward(network.head.forward(kept, head), head)
    features, head = graph.addFunction(features), graph.addFunction(head)

    mask = Dropout(shared, "dropout", seed)
    train = Sequence([Call(features)])
    dropped = mask.forward(hidden, train) if dropout else hidden
    train.add(Sequence([Copy(dropped, kept, name="dropout/forward"), Call(head)]))
    back = network.head.backward(loss.gradient, train)
    back = mask.backward(back, train) if dropout else back
    for layer in reversed(network.features[1:]):
        back = layer.backward(back, train)
    network.entry.backward(back, train, first=True)
    popops.addInPlace(graph, seed, 1, train, "dropout/update")
    test = Sequence([Call(features), Copy(hidden, kept, name="dropout/forward"), Call(head)])

    graph.createHostWrite("seed", seed)
    inputs = {"images": images, "labels": loss.labels}
    return Trainer(device, shared.parameters, inputs, loss.outputs, train, test, steps)


def initial(shapes, seed):
    """Parameters drawn evenly from plus and minus 1 / sqrt(inputs of an output), as PyTorch draws them."""
    random = np.random.default_rng(seed)
    values = {}
    for name, shape in shapes.items():
        layer = name.partition("/")[0]
        fan = shapes[f"{layer}/weights"]  # [groups, filters, channels, 3, 3] or [inputs, outputs]
        bound = 1 / np.sqrt(np.prod(fan[2:]) if len(fan) > 2 else fan[0])
        values[name] = random.uniform(-bound, bound, shape).astype(np.float32)
    return values


def load(directory, percent):
    """Images and labels to train on, `percent` of what there is, and those kept aside, normalised as MNIST is."""
    if directory is None:
        images, labels, kept, keptLabels = uci_parts()
        parts = resized(images.reshape(-1, 8, 8), SIDE), labels, resized(kept.reshape(-1, 8, 8), SIDE), keptLabels
    else:
        parts = *mnist_digits(directory), *mnist_digits(directory, "t10k")
    for images in parts[::2]:
        if images.size != len(images) * SIDE * SIDE:
            raise FileLoadError(f"images of {SIDE} x {SIDE} pixels are needed, those in {directory} have {images[0].size} pixels")
    count = max(1, int(percent / 100 * len(parts[1])))
    images, labels, kept, keptLabels = parts
    return normalised(images[:count]), labels[:count], normalised(kept), keptLabels


def normalised(images):
    """Pixels with MNIST's mean of 0 and deviation of 1."""
    return (images.reshape(len(images), -1) - 0.1307) / 0.3081


def arguments(given=None):
    parser = argparse.ArgumentParser(description="Train a convolutional network on a simulated IPU.")
    parser.add_argument("epochs", type=number(int, 0), nargs="?", default=20, help="rounds over the images (20)")
    parser.add_argument("percent", type=number(float, 0.01, 100), nargs="?", default=100, help="part of the images to use (100)")
    parser.add_argument("--data", metavar="DIR", help="where MNIST's IDX files are, plain or .gz; without it, the UCI digits")
    parser.add_argument("--half", action="store_true", help="compute in half precision, with float master weights")
    parser.add_argument("--rate", type=number(float, 0), default=0.03, help="step of the descent (0.03)")
    parser.add_argument("--batch", type=number(int, 1), default=8, help="images of a step (8)")
    parser.add_argument("--steps", type=number(int, 1), default=25, help="steps of a run of the program (25)")
    parser.add_argument("--tiles", type=number(int, 1), default=1472, help="tiles of the IPU (1,472)")
    parser.add_argument("--seed", type=number(int, 0), default=0, help="of the first weights, the order and the dropout (0)")
    parser.add_argument("--page", metavar="FILE", help="write what a run cost as an HTML page")
    return parser.parse_args(given)


def main(given=None):
    chosen = arguments(given)
    parts = load(chosen.data, chosen.percent)
    type = HALF if chosen.half else FLOAT
    print(f"Training on {len(parts[1]):,} images with {chosen.tiles:,} tiles, in {type.spelling}")
    trainer = build(type, chosen.batch, chosen.steps, chosen.rate, chosen.tiles)
    shapes = {name: value.shape for name, value in trainer.read().items()}
    trainer.write({**initial(shapes, chosen.seed), "seed": np.array([chosen.seed, 1], np.uint32)})
    learn(trainer, "images", parts, chosen.epochs, chosen.batch, chosen.seed)
    print_prediction(trainer, chosen.batch, chosen.page)


if __name__ == "__main__":
    try:
        main()
    except FileLoadError as problem:
        sys.exit(f"mnist_cnn: {problem}")
