"""Models of Keras: `fit` beside `poptorch.trainingModel` of the same network, and what the first step of the talk's takes."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, alternate, in_new_process
from benchmarks.networks import BATCH
from benchmarks.torch_models import images, trained

STEPS = 8  # of an execution
EXECUTIONS = 4  # of a `fit`
RATE = 0.03
FIRST_STEP = """
import json, time
from benchmarks.keras_models import talk
import numpy as np
model = talk({filters})
pixels = np.random.default_rng(0).normal(size=({batch}, 32, 32, 3)).astype(np.float32)
labels = np.random.default_rng(0).integers(0, 10, ({batch}, 1))
begin = time.process_time()
model.train_on_batch(pixels, labels)
first = time.process_time()
model.train_on_batch(pixels, labels)
print(json.dumps({{"first": first - begin, "then": time.process_time() - first}}))
"""


def measure(smoke: bool) -> list[Figure]:
    missing = [name for name in ("torch", "keras") if importlib.util.find_spec(name) is None]
    if missing:
        return [Figure("models of Keras", 0, "", note=f"{' and '.join(missing)} not installed")]
    import pypoplar.keras  # noqa: F401 (before Keras)
    from pypoplar.poptorch.executor import building

    building.TILES = 16 if smoke else 1472
    return [*step_figures(smoke), *capture_figures(smoke), *talk_figures(smoke)]


def convolutional() -> Any:
    """The network of `benchmarks.networks.convolutional` in Keras, which has channels last."""
    from keras import Input, Sequential, layers

    first = [Input((28, 28, 1)), layers.Conv2D(32, 3), layers.MaxPooling2D(2), layers.ReLU()]
    second = [layers.Conv2D(64, 3), layers.MaxPooling2D(2), layers.ReLU(), layers.Flatten()]
    return Sequential([*first, *second, layers.Dense(128, activation="relu"), layers.Dropout(0.5), layers.Dense(10)])


def compiled(make: Any, loss: Any, steps: int, metrics: list[str]) -> Any:
    """A model of Keras on the IPU."""
    import keras

    from pypoplar.keras import ipu

    with ipu.ipu_strategy.IPUStrategy().scope():
        model = make()
        model.compile(keras.optimizers.SGD(RATE), loss, metrics=metrics, steps_per_execution=steps)
    return model


def digits(metrics: list[str], steps: int = STEPS) -> Any:
    import keras

    return compiled(convolutional, keras.losses.SparseCategoricalCrossentropy(from_logits=True), steps, metrics)


def step_figures(smoke: bool) -> list[Figure]:
    """A step of `fit` with accuracy as its metric, beside PopTorch's at the same batch and device iterations."""
    import torch

    from benchmarks import networks
    from pypoplar import poptorch

    executions = 1 if smoke else EXECUTIONS
    module = trained(torch, networks.convolutional(torch))
    options = poptorch.Options().deviceIterations(STEPS).outputMode(poptorch.OutputMode.All)
    theirs = poptorch.trainingModel(module, options, torch.optim.SGD(module.parameters(), lr=RATE))
    pixels, labels = images(torch, BATCH * STEPS * executions, 10)
    given = list(zip(pixels.split(BATCH * STEPS), labels.split(BATCH * STEPS), strict=True))
    model = digits(["accuracy"])
    arrays = (pixels.permute(0, 2, 3, 1).contiguous().numpy(), labels.numpy().astype(np.int32))
    calls = [
        lambda: model.fit(*arrays, batch_size=BATCH, verbose=0),
        lambda: [theirs(*one) for one in given],
    ]
    own, poptorchs = (taken / STEPS / executions for taken in alternate(calls, repeats=1 if smoke else 7))
    cycles, others = model.ipu_cycles() / STEPS, theirs.cycleCount() / STEPS
    return [
        Figure("CNN: a step of fit", own * 1e3, "ms"),
        Figure("  against poptorch.trainingModel of the same network", own / poptorchs, "x", 1.15),
        Figure("  predicted cycles", cycles, "cycles"),
        Figure("  against poptorch.trainingModel of the same network", cycles / others, "x"),
    ]


def capture_figures(smoke: bool) -> list[Figure]:
    """Capture of the step alone, beside that of PyTorch's module."""
    import torch

    from benchmarks import networks
    from pypoplar.keras.captured_step import Capture, StepKind, step_of
    from pypoplar.keras.keras_batches import StepBatch
    from pypoplar.poptorch.capture import capture

    module = trained(torch, networks.convolutional(torch))
    pixels, labels = images(torch, BATCH, 10)
    model = digits([], 1)
    batch = StepBatch.of((pixels.permute(0, 2, 3, 1).contiguous(), labels.int()), with_targets=True)
    calls = [
        lambda: capture(step_of(model, StepKind.TRAIN, batch.structure, Capture()), batch.tensors, {}, True),
        lambda: capture(module, (pixels, labels), {}, True),
    ]
    own, theirs = alternate(calls, repeats=1 if smoke else 5)
    return [
        Figure("CNN: capture of a step", own, "s"),
        Figure("  against that of the same network in PyTorch", own / theirs, "x", 1.5),
    ]


def talk(filters: int) -> Any:
    """The network for CIFAR-10 with which Graphcore's talk on its software begins; 32 filters there."""
    from keras import Input, Sequential, layers

    def make() -> Any:
        parts: list[Any] = [Input((32, 32, 3))]
        for count in (filters, 2 * filters):
            parts += [layers.Conv2D(count, 3, padding="same", activation="relu"), layers.Conv2D(count, 3, activation="relu")]
            parts += [layers.MaxPooling2D(2), layers.Dropout(0.25)]
        parts += [layers.Flatten(), layers.Dense(16 * filters, activation="relu"), layers.Dropout(0.5)]
        return Sequential([*parts, layers.Dense(10, activation="softmax")])

    return compiled(make, "sparse_categorical_crossentropy", 1, ["accuracy"])


def talk_figures(smoke: bool) -> list[Figure]:
    """Processor time of the talk's first step and of the one after it, in a new process."""
    batch = 4 if smoke else 64
    tiles = "from pypoplar.poptorch.executor import building; building.TILES = 16\n" if smoke else ""
    code = f"import pypoplar.keras\n{tiles}{FIRST_STEP.format(filters=4 if smoke else 32, batch=batch)}"
    taken = in_new_process(code)
    return [
        Figure(f"CIFAR-10 network of the talk, batch {batch}: first step, processor time", taken["first"], "s", 30),
        Figure("  a step after it", taken["then"], "s"),
    ]


ROW = Row("keras_models", measure)
