"""Logistic regression on handwritten digits, trained on the simulated IPU.

The model is y = softmax(W x + b). It is trained by gradient descent, one image at a time: the weights are
updated after every image, and a program run by the engine takes `batch` images from the stream.

    pypoplar tutorial mnist_regression                         1,797 digits of 8 x 8 pixels that come with pypoplar
    pypoplar tutorial mnist_regression 10 50 --data mnist/     10 epochs on half of MNIST, from its IDX files

What to look at
- The whole step is library calls: `matMul`, `add`, `nonLinearity`, `calcLoss`, `scaledAddTo`. Each adds its
  vertices to the graph and its steps to the program; `Repeat` makes the loop over the images.
- The weights never leave the tiles. What crosses to the host for an image is the image, its label, and once a
  batch the count of right answers.
- `calcLoss` adds to numCorrect, so the program clears it before the loop. The count is of answers given before
  the weights saw the image.
- The accuracy on digits kept aside, by other people's hands, is what the model is worth.

Exercises
1. Run with `--profile`. Which step of an image takes most cycles? Is it computing, or waiting?
2. Try `--tiles 1` and `--tiles 1472`. What becomes faster, what becomes slower, and why is more not better
   here?
3. Try rates from 0.001 to 1. What does a rate that is too large look like?
4. Let the variables be HALF. How far does the accuracy get, and what does the loss of small updates have to do
   with it?
5. Add a hidden layer: another weight matrix, `nonLinearityInPlace` with RELU, and its gradient.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from _arguments import number
from _digits import mnist_digits, uci_digits
from tqdm import tqdm

from pypoplar import FLOAT, UNSIGNED_INT, Engine, FileLoadError, Graph, IPUModel, poplin, popnn, popops, poputil
from pypoplar.program import Copy, Repeat, Sequence

CLASSES = 10


class Model:
    """The compiled training program for images of `pixels` pixels, `batch` of them in a run."""

    def __init__(self, pixels, batch, rate, tiles):
        model = IPUModel()
        model.numIPUs = 1
        model.tilesPerIPU = tiles
        device = model.createDevice()
        graph = Graph(device.getTarget())
        for library in (popops, poplin, popnn):
            library.addCodelets(graph)

        def variable(type, shape, name):
            tensor = graph.addVariable(type, shape, name)
            poputil.mapTensorLinearly(graph, tensor)
            return tensor

        x = variable(FLOAT, [pixels, 1], "x")
        W = variable(FLOAT, [CLASSES, pixels], "W")
        b = variable(FLOAT, [CLASSES, 1], "b")
        numCorrect = variable(UNSIGNED_INT, [1], "numCorrect")
        expected = variable(UNSIGNED_INT, [1], "expected")
        for name, tensor in (("weights", W), ("biases", b)):
            graph.createHostWrite(name, tensor)
            graph.createHostRead(name, tensor)

        step = Sequence()
        logits = popops.add(graph, poplin.matMul(graph, W, x, step, "Wx"), b, step, "Wx+b")
        loss = variable(FLOAT, [1], "loss")
        delta = variable(FLOAT, [1, CLASSES], "delta")  # the gradient of the loss by the logits
        softmax = popnn.nonLinearity(graph, popnn.NonLinearityType.SOFTMAX, logits.transpose(), step, "softmax(Wx+b)")
        step.add(popnn.calcLoss(graph, softmax, expected, loss, delta, numCorrect, popnn.LossType.CROSS_ENTROPY_LOSS, "dE/d(Wx+b)"))
        popops.scaledAddTo(graph, b, delta.transpose(), -rate, step, "b += -eta * dE/db")
        gradient = poplin.matMul(graph, delta.transpose(), x.transpose(), step, "dE/dW")
        popops.scaledAddTo(graph, W, gradient, -rate, step, "W += -eta * dE/dW")

        dataIn = graph.addHostToDeviceFIFO("data", FLOAT, pixels)
        labelIn = graph.addHostToDeviceFIFO("labels", UNSIGNED_INT, 1)
        correctOut = graph.addDeviceToHostFIFO("hostNumCorrect", UNSIGNED_INT, 1)
        zero = graph.addConstant(UNSIGNED_INT, [1], 0)
        graph.setTileMapping(zero, 0)
        program = Sequence(
            [
                Copy(zero, numCorrect),
                Repeat(batch, Sequence([Copy(dataIn, x), Copy(labelIn, expected), step])),
                Copy(numCorrect, correctOut),
            ]
        )
        self.batch = batch
        self.engine = Engine(graph, program)
        self.engine.load(device)
        self.correct = np.zeros(1, np.uint32)
        self.engine.connectStream("hostNumCorrect", self.correct)

    def start(self, images, labels, seed):
        """Connect the training data and give the weights normally distributed random values."""
        self.engine.connectStream("data", images)
        self.engine.connectStream("labels", labels)
        random = np.random.default_rng(seed)
        self.engine.writeTensor("weights", random.standard_normal((CLASSES, images.shape[1]), np.float32))
        self.engine.writeTensor("biases", random.standard_normal((CLASSES, 1), np.float32))

    def run(self):
        """Train on the next batch; how many of its images were answered right."""
        self.engine.run(0)
        return int(self.correct[0])

    def weights(self):
        """W [10, pixels] and b [10]."""
        return self.engine.readTensor("weights"), self.engine.readTensor("biases")[:, 0]


def accuracy(W, b, images, labels):
    """The share of images whose largest logit is that of their label, computed on the host."""
    return float(np.mean(np.argmax(images @ W.T + b, axis=1) == labels))


def train(images, labels, epochs, batch, rate, tiles, seed=0, profile=False):
    """Train and print the accuracy of each epoch. Returns W, b and the accuracies."""
    batches = len(labels) // batch
    images, labels = (
        images[: batches * batch],
        labels[: batches * batch],
    )  # whole batches, so that epochs begin with the first image
    model = Model(images.shape[1], batch, rate, tiles)
    model.start(images, labels, seed)
    accuracies = []
    for epoch in range(1, epochs + 1):
        right = 0
        with tqdm(total=len(labels), desc=f"Epoch {epoch}", unit=" images", leave=False, disable=None) as bar:
            for number in range(1, batches + 1):
                right += model.run()
                bar.update(batch)
                bar.set_postfix(accuracy=f"{right / (number * batch):.1%}")
                if profile and epoch == number == 1:
                    bar.clear()
                    model.engine.printProfileSummary(sys.stdout, {"showExecutionSteps": "true"})
        accuracies.append(right / len(labels))
        print(f"Epoch {epoch} (100%), accuracy {accuracies[-1]:.1%}", flush=True)
    return *model.weights(), accuracies


def load(directory, percent):
    """Images and labels to train on, `percent` of what there is, and those kept aside."""
    if directory is None:
        images, labels = uci_digits()
        kept = (images[1500:], labels[1500:])
        images, labels = images[:1500], labels[:1500]
    else:
        images, labels = mnist_digits(directory)
        kept = mnist_digits(directory, "t10k") if any(Path(directory).glob("t10k-*")) else (images[:0], labels[:0])
        if kept[0].shape[1] != images.shape[1]:
            raise FileLoadError(
                f"the images in {directory} have {images.shape[1]} pixels, those kept aside (t10k) have {kept[0].shape[1]}"
            )
    count = max(1, int(percent / 100 * len(labels)))
    return images[:count], labels[:count], *kept


def arguments(given=None):
    parser = argparse.ArgumentParser(description="Learn handwritten digits on a simulated IPU.")
    parser.add_argument("epochs", type=number(int, 1), nargs="?", default=20, help="rounds over the images (20)")
    parser.add_argument("percent", type=number(float, 0.01, 100), nargs="?", default=100, help="part of the images to use (100)")
    parser.add_argument("--data", metavar="DIR", help="where MNIST's IDX files are, plain or .gz; without it, the UCI digits")
    parser.add_argument("--rate", type=number(float, 0), help="step of the descent (0.0009 for MNIST, 0.05 for the UCI digits)")
    parser.add_argument("--tiles", type=number(int, 1), default=4, help="tiles of the IPU (4)")
    parser.add_argument("--batch", type=number(int, 1), default=300, help="images of a run of the program (300)")
    parser.add_argument("--seed", type=number(int, 0), default=0, help="of the first weights (0)")
    parser.add_argument("--profile", action="store_true", help="print what the first batch cost")
    return parser.parse_args(given)


def main(given=None):
    chosen = arguments(given)
    images, labels, keptImages, keptLabels = load(chosen.data, chosen.percent)
    batch = min(chosen.batch, len(labels))
    rate = chosen.rate if chosen.rate is not None else (0.05 if chosen.data is None else 0.0009)
    print("Using the IPU Model")
    print(f"Training on {len(labels):,} images of {images.shape[1]} pixels with {chosen.tiles:,} tiles")
    W, b, _ = train(images, labels, chosen.epochs, batch, rate, chosen.tiles, chosen.seed, chosen.profile)
    if len(keptLabels):
        print(f"Accuracy on {len(keptLabels):,} images kept aside: {accuracy(W, b, keptImages, keptLabels):.1%}")


if __name__ == "__main__":
    try:
        main()
    except FileLoadError as problem:
        sys.exit(f"mnist_regression: {problem}")
