"""Digits are learnt on the IPU as on the host: from the same weights and in the same order accuracies are as good."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import keras_rig as rig
import numpy as np
import pytest

keras = rig.keras
layers = keras.layers
TRAINED, BATCH = 1440, 16


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Those that come with pypoplar: images [n, 8, 8, 1] and labels."""
    folder = str(Path(__file__).parent.parent.parent / "tutorials")
    sys.path.insert(0, folder)
    try:
        from _digits import uci_digits
    finally:
        sys.path.remove(folder)
    images, labels = uci_digits()
    return images.reshape(-1, 8, 8, 1).astype(np.float32), labels.astype(np.int32)


def network() -> Any:
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(32, 2, activation="relu"),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_epochs_on_the_ipu_are_as_good_as_on_the_host(seed):
    images, labels = digits()
    order = np.random.default_rng(9).permutation(len(images))  # the last ones are of other writers
    images, labels = images[order], labels[order]
    keras.utils.set_random_seed(seed)
    host = network()
    with rig.scope():
        device = network()
    device.set_weights(host.get_weights())
    accuracies = []
    for model, steps in ((device, 3), (host, 1)):
        model.compile(
            keras.optimizers.SGD(0.05, momentum=0.9),
            "sparse_categorical_crossentropy",
            metrics=["accuracy"],
            steps_per_execution=steps,
        )
        keras.utils.set_random_seed(seed)
        model.fit(images[:TRAINED], labels[:TRAINED], batch_size=BATCH, epochs=2, verbose=0)
        accuracies.append(model.evaluate(images[TRAINED:], labels[TRAINED:], batch_size=17, verbose=0)[1])
    assert min(accuracies) > 0.8, accuracies
    assert abs(accuracies[0] - accuracies[1]) <= 0.01, accuracies
