"""Models of Keras twice, with the same weights: on the host, where Keras runs them, and on the simulated IPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
pytest.importorskip("torch")
keras = pytest.importorskip("keras")

from pypoplar.keras import ipu  # noqa: E402 (where they are there)

Make = Callable[[], Any]


def scope() -> Any:
    """A strategy's."""
    return ipu.ipu_strategy.IPUStrategy().scope()


def twins(make: Make, optimizer: Make | None = None, loss: Any = "mse", **compiled: Any) -> tuple[Any, Any]:
    """A model on the IPU and the same on the host, compiled, with the same weights."""
    keras.utils.set_random_seed(3)
    chosen = optimizer or (lambda: keras.optimizers.SGD(0.1))
    host = make()
    host.compile(
        optimizer=chosen(), loss=loss, **{name: value for name, value in compiled.items() if name != "steps_per_execution"}
    )
    with scope():
        device = make()
        device.compile(optimizer=chosen(), loss=loss, **compiled)
    device.set_weights(host.get_weights())
    return device, host


def values_of(model: Any) -> list[np.ndarray]:
    """All that a model has: weights, and variables of its optimiser."""
    return [*model.get_weights(), *(np.asarray(one.numpy()) for one in model.optimizer.variables)]


def apart(some: Any, others: Any) -> float:
    """How far arrays are apart, relative to the largest of their elements, or to 0.001 where all are smaller."""
    pairs = zip(some, others, strict=True)
    return max((float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-3)) for a, b in pairs if np.size(a)), default=0.0)


def assert_near(device: Any, host: Any, within: float = 1e-6) -> None:
    """That both models have the same weights and variables of optimisers."""
    assert apart(values_of(device), values_of(host)) <= within


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers of float32."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def digits_network() -> Any:
    """The convolutional network of the talk, small."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="relu", name="conv"),
            layers.MaxPooling2D(name="pool"),
            layers.Flatten(),
            layers.Dense(10, activation="softmax", name="classes"),
        ]
    )
