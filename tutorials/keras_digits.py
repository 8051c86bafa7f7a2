"""A Keras network for digits by `fit`: on the host, on an IPU, several steps a call, and as a pipeline of two IPUs.

The network, its loss and its data stay what they are; what changes is the scope in which it is made. It needs PyTorch and Keras,
the extra ``keras``.

    pypoplar tutorial keras_digits                       an epoch of each: 800 of the digits that come with pypoplar
    pypoplar tutorial keras_digits 2 --images 1440       two epochs of each, of more digits
    pypoplar tutorial keras_digits --data DIR            MNIST's digits, from its four files

What to look at
- On the host and on the IPU losses are the same: Keras shuffles, counts and calls back, and the IPU makes the steps.
- `steps_per_execution` is how many batches the IPU takes in a call. A step costs the same cycles and gives the same losses; the
  host is asked, and calls Keras' callbacks back, once in so many steps.
- A pipeline's update takes the gradients of several batches, their mean here: it makes fewer updates than the network did
  before, and has learnt less.
- `model.ipu_report()` has the layers' names: the lines say which of them take the cycles of a step.

Exercises
1. Put a `Dropout` of 0.25 before the last layer. Are the losses on both sides still the same?
2. Let the second stage begin with the second convolution. Does a step take more cycles, or fewer?
"""

import argparse
import sys

from _arguments import number
from _digits import mnist_digits, uci_digits

from pypoplar import FileLoadError
from pypoplar.keras import PipelineStage, ipu

import keras  # isort: skip (behind pypoplar.keras, which lets it run on PyTorch)
import numpy as np
from keras import layers

SIZES = {64: 8, 784: 28}
BATCHES = 5  # of an update of the pipeline
STAGES = {"conv1": 0, "pool": 0, "conv2": 0, "flatten": 1, "hidden": 1, "classes": 1}


def digits(chosen):
    """Images [n, side, side, 1] and labels, of whole updates of the pipeline."""
    images, labels = mnist_digits(chosen.data) if chosen.data else uci_digits()
    side, update = SIZES[images.shape[1]], chosen.batch * BATCHES
    whole = min(len(images), chosen.images) // update * update
    if not whole:
        sys.exit(f"keras_digits: an update of the pipeline takes {update} images, got {chosen.images}")
    return images[:whole].reshape(-1, side, side, 1), labels[:whole].astype(np.int32)


def network(shape, stages):
    """The network, its layers called in their stages where it is to be a pipeline."""
    parts = [
        layers.Conv2D(16, 3, activation="relu", name="conv1"),
        layers.MaxPooling2D(2, name="pool"),
        layers.Conv2D(32, 2, activation="relu", name="conv2"),
        layers.Flatten(name="flatten"),
        layers.Dense(64, activation="relu", name="hidden"),
        layers.Dense(10, activation="softmax", name="classes"),
    ]
    x = given = keras.Input(shape)
    for layer in parts:
        if stages:
            with PipelineStage(STAGES[layer.name]):
                x = layer(x)
        else:
            x = layer(x)
    return keras.Model(given, x)


def fit(model, chosen, data, steps):
    """Train a model, always in the same order and from new momenta, and tell how it went."""
    optimizer = keras.optimizers.SGD(chosen.rate, momentum=0.9)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"], steps_per_execution=steps)
    keras.utils.set_random_seed(chosen.seed)  # of the order
    history = model.fit(*data, batch_size=chosen.batch, epochs=chosen.epochs, verbose=0).history
    for epoch, (loss, accuracy) in enumerate(zip(history["loss"], history["accuracy"], strict=True), 1):
        print(f"  Epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.1%}")


def tell_cycles(model, steps, batch):
    """The cycles of one of the steps of the last call."""
    a_step = model.ipu_cycles() / steps
    print(f"  A step takes {a_step:,.0f} cycles, {a_step / batch:,.0f} for an image")


def tell_layers(model, steps):
    """What the supersteps of each layer take, forward and backward."""
    cycles = dict.fromkeys(STAGES, 0.0)
    for step in model.ipu_report().execution.steps:
        layer = step.name.partition("/")[0]
        if layer in cycles:
            cycles[layer] += step.cycles / steps
    for layer, taken in cycles.items():
        print(f"    {layer:8} {taken:10,.0f} cycles")


def arguments(given=None):
    parser = argparse.ArgumentParser(description="Train a Keras network on the host, on a simulated IPU, and on two.")
    parser.add_argument("epochs", type=number(int, 1), nargs="?", default=1, help="of each (1)")
    parser.add_argument("--data", metavar="DIR", help="where MNIST's IDX files are, plain or .gz; without it, the UCI digits")
    parser.add_argument("--rate", type=number(float, 0), default=0.05, help="step of the descent (0.05)")
    parser.add_argument("--batch", type=number(int, 1), default=16, help="images of a batch (16)")
    parser.add_argument("--images", type=number(int, 1), default=800, help="how many of them to train on, at most (800)")
    parser.add_argument("--seed", type=number(int, 0), default=0, help="of the first weights and the order (0)")
    return parser.parse_args(given)


def main(given=None):
    chosen = arguments(given)
    data = digits(chosen)
    shape = data[0].shape[1:]
    keras.utils.set_random_seed(chosen.seed)
    first = network(shape, stages=False)
    weights = first.get_weights()

    print(f"On the host: {len(data[0]):,} images")
    fit(first, chosen, data, 1)

    print("On an IPU")
    with ipu.ipu_strategy.IPUStrategy().scope():
        model = network(shape, stages=False)
        model.set_weights(weights)
        fit(model, chosen, data, 1)
    tell_cycles(model, 1, chosen.batch)

    print(f"On an IPU, {BATCHES} steps a call")
    with ipu.ipu_strategy.IPUStrategy().scope():
        model.set_weights(weights)
        fit(model, chosen, data, BATCHES)
    tell_cycles(model, BATCHES, chosen.batch)
    tell_layers(model, BATCHES)

    print("On two IPUs, in stages")
    with ipu.ipu_strategy.IPUStrategy().scope():
        staged = network(shape, stages=True)
        staged.set_pipelining_options(BATCHES, gradient_accumulation_reduction_method="mean")
        staged.set_weights(weights)
        fit(staged, chosen, data, BATCHES)
    tell_cycles(staged, BATCHES, chosen.batch)


if __name__ == "__main__":
    try:
        main()
    except FileLoadError as problem:
        sys.exit(f"keras_digits: {problem}")
