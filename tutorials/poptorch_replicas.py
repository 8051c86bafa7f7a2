"""The network of `mnist_cnn`, written in PyTorch, on four replicas of an IPU.

Each replica has the whole network on an IPU of its own and takes eight images of a step; before the update they add
up their gradients, going round in a ring, so that all of them make the same one. It needs PyTorch, the extra
``pytorch``.

    pypoplar tutorial poptorch_replicas                  4 epochs on the 1,797 digits that come with pypoplar
    pypoplar tutorial poptorch_replicas 10 --data mnist/ 10 epochs on MNIST, from its IDX files
    pypoplar tutorial poptorch_replicas 1 --replicas 2 --batch 16

What to look at
- Nothing in the module knows of replicas: `Options.replicationFactor` is all that is said. The model is captured,
  lowered and compiled once, however many replicas there are.
- `DataLoader` has batches for all of them: images of a step times steps of a call times replicas.
- `OutputMode.All` gives the loss of each replica in each step; the replicas of a step come one after the other.
- The cycles of a step have those of the sum: `optimizer/update/replicas`. They depend on how many weights there are,
  and hardly on the batch.

Exercises
1. Leave out the dropout, and train one replica with `--batch 32`. What differs from four with eight?
2. Let each replica add up the gradients of four batches before an update. What does an image cost then?
3. Give two replicas at a time the same images, with `inputReplicaGrouping`. How many are a call's then, and why do
   the two have other losses?
"""

import argparse
import sys

import torch
from _arguments import number
from _digits import mnist_digits, resized, uci_parts
from torch import nn

from pypoplar import FileLoadError, poptorch

CLASSES = 10
SIDE = 28  # pixels


class Network(nn.Module):
    """Two convolutions, each with a max pool and a ReLU, then two linear layers with dropout between them."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Conv2d(32, 64, 3), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(64 * 5 * 5, 128), nn.ReLU()),
        )
        self.dropout = nn.Dropout(0.5)
        self.classes = nn.Linear(128, CLASSES)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images, labels=None):
        scores = self.classes(self.dropout(self.features(images)))
        return scores if labels is None else (scores, self.loss(scores, labels))


def digits(directory):
    """Images and labels to train on, and those that are kept aside."""
    if directory is None:
        images, labels, kept_images, kept_labels = uci_parts()
        parts = resized(images.reshape(-1, 8, 8), SIDE), labels, resized(kept_images.reshape(-1, 8, 8), SIDE), kept_labels
    else:
        parts = *mnist_digits(directory), *mnist_digits(directory, "t10k")
    images, labels, kept_images, kept_labels = map(torch.from_numpy, parts)
    return normalised(images, labels), normalised(kept_images, kept_labels)


def normalised(images, labels):
    """Pixels with MNIST's mean of 0 and deviation of 1."""
    return (images.reshape(-1, 1, SIDE, SIDE) - 0.1307) / 0.3081, labels.to(torch.int64)


def accuracy(model, images, labels, chosen):
    """The share of digits that the replicas tell right, each some of them."""
    options = poptorch.Options().replicationFactor(chosen.replicas)
    inference = poptorch.inferenceModel(model.eval(), options)
    data = poptorch.DataLoader(options, torch.utils.data.TensorDataset(images, labels), batch_size=chosen.batch)
    right = [(inference(some).argmax(1) == wanted).float() for some, wanted in data]
    return float(torch.cat(right).mean())


def told_cycles(report, steps):
    """What a step costs, and how much of it the replicas need for their sums."""
    whole = sum(step.cycles for step in report.execution.steps)
    summing = sum(step.cycles for step in report.execution.steps if step.name.startswith("optimizer/update/replicas"))
    print(f"A step takes {whole / steps:,.0f} cycles, of them {summing / steps:,.0f} for the sums of gradients")


def arguments(given=None):
    parser = argparse.ArgumentParser(description="Train a convolutional network of PyTorch on replicas of a simulated IPU.")
    parser.add_argument("epochs", type=number(int, 1), nargs="?", default=4, help="rounds over the images (4)")
    parser.add_argument("--replicas", type=number(int, 1), default=4, help="copies of the network, a power of two (4)")
    parser.add_argument("--data", metavar="DIR", help="where MNIST's IDX files are, plain or .gz; without it, the UCI digits")
    parser.add_argument("--rate", type=number(float, 0), default=0.1, help="step of the descent (0.1)")
    parser.add_argument("--batch", type=number(int, 1), default=8, help="images of a step of each replica (8)")
    parser.add_argument("--steps", type=number(int, 1), default=5, help="steps of a call (5)")
    parser.add_argument("--seed", type=number(int, 0), default=0, help="of the first weights, the order and the dropout (0)")
    return parser.parse_args(given)


def main(given=None):
    chosen = arguments(given)
    (images, labels), kept = digits(chosen.data)
    torch.manual_seed(chosen.seed)
    model = Network()
    options = poptorch.Options().replicationFactor(chosen.replicas).deviceIterations(chosen.steps)
    options.outputMode(poptorch.OutputMode.All)
    data = poptorch.DataLoader(options, torch.utils.data.TensorDataset(images, labels), batch_size=chosen.batch, shuffle=True)
    training = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=chosen.rate))
    print(f"Training on {len(images):,} images, {data.combinedBatchSize} a call; replicas: {chosen.replicas}")
    for epoch in range(1, chosen.epochs + 1):
        losses = torch.cat([training(some, wanted)[1].reshape(-1) for some, wanted in data])
        print(f"Epoch {epoch}: loss {losses.mean():.4f}")
    told_cycles(training.getReport(), chosen.steps)
    print(f"Test accuracy: {100 * accuracy(model, *kept, chosen):.1f} %")


if __name__ == "__main__":
    try:
        main()
    except FileLoadError as problem:
        sys.exit(f"poptorch_replicas: {problem}")
