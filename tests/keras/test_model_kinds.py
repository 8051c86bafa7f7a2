"""Models of all kinds, losses, weights of samples and classes, several inputs and outputs, random layers: as Keras has them."""

from __future__ import annotations

import inspect

import keras_rig as rig
import numpy as np
import pytest
import torch

keras = rig.keras
layers = keras.layers


class Own(keras.Model):
    """A model of a program's own, with dropout that drops nothing, moving statistics and regularizers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = layers.Dense(5, use_bias=False), layers.BatchNormalization()
        self.drop, self.last = layers.Dropout(0.0), layers.Dense(3, kernel_regularizer="l2", activity_regularizer="l1")

    def call(self, x, training=False):
        return self.last(self.drop(keras.ops.relu(self.norm(self.first(x), training=training)), training=training))


@pytest.mark.slow
def test_a_model_of_ones_own_keeps_its_statistics_and_regularizers():
    device, host = rig.twins(lambda: built(Own()), lambda: keras.optimizers.SGD(0.1, momentum=0.9))
    x, y = rig.drawn(8, 4), rig.drawn(8, 3, seed=1)
    for _ in range(2):
        losses = [model.train_on_batch(x, y) for model in (device, host)]
    np.testing.assert_allclose(*losses, rtol=1e-6)
    rig.assert_near(device, host)


def built(model: object) -> object:
    model(np.zeros((1, 4), np.float32))
    return model


def two_ways() -> object:
    first, second = keras.Input((4,), name="first"), keras.Input((3,), name="second")
    shared = layers.Dense(3, activation="tanh", name="shared")
    x = layers.Concatenate()([shared(layers.Dense(3)(first)), shared(second)])
    return keras.Model({"first": first, "second": second}, {"a": layers.Dense(2, name="a")(x), "b": layers.Dense(1, name="b")(x)})


@pytest.mark.slow
def test_several_inputs_and_outputs_with_losses_metrics_and_weights_of_their_own():
    how = {"loss": {"a": "mse", "b": "mae"}, "loss_weights": {"a": 0.5, "b": 2.0}, "metrics": {"a": ["mae"], "b": ["mse"]}}
    device, host = rig.twins(two_ways, **how)
    x = {"first": rig.drawn(8, 4), "second": rig.drawn(8, 3, seed=1)}
    y = {"a": rig.drawn(8, 2, seed=2).astype(np.float64), "b": rig.drawn(8, 1, seed=3)}
    histories = [
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0, validation_split=0.5).history for model in (device, host)
    ]
    assert list(histories[0]) == list(histories[1])
    for name, values in histories[1].items():
        np.testing.assert_allclose(histories[0][name], values, rtol=1e-5, err_msg=name)
    rig.assert_near(device, host)


def classifier() -> object:
    return keras.Sequential([keras.Input((4,)), layers.Dense(3)])


@pytest.mark.slow
def test_weights_of_samples_and_classes_weigh_as_in_keras():
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    device, host = rig.twins(classifier, loss=loss, weighted_metrics=["accuracy"])
    x, y = rig.drawn(8, 4), np.arange(8) % 3
    for model in (device, host):
        model.fit(x, y, batch_size=8, verbose=0, class_weight={0: 1.0, 1: 2.0, 2: 0.5})
    weights = np.linspace(0, 2, 8)
    logs = [model.train_on_batch(x, y, sample_weight=weights) for model in (device, host)]
    np.testing.assert_allclose(*logs, rtol=1e-6)
    rig.assert_near(device, host)


LOSSES = {
    "BinaryCrossentropy": ({"from_logits": True}, "01"),
    "BinaryFocalCrossentropy": ({"from_logits": True}, "01"),
    "CategoricalCrossentropy": ({"from_logits": True, "label_smoothing": 0.1}, "one"),
    "CategoricalFocalCrossentropy": ({"from_logits": True}, "one"),
    "CategoricalGeneralizedCrossEntropy": ({"q": 0.7}, "softmax"),
    "CategoricalHinge": ({}, "one"),
    "Circle": ({}, "number"),
    "CosineSimilarity": ({}, "real"),
    "Dice": ({}, "01"),
    "Hinge": ({}, "01"),
    "Huber": ({}, "real"),
    "KLDivergence": ({}, "one"),
    "LogCosh": ({}, "real"),
    "MeanAbsoluteError": ({}, "real"),
    "MeanAbsolutePercentageError": ({}, "real"),
    "MeanSquaredError": ({"reduction": "sum"}, "real"),
    "MeanSquaredLogarithmicError": ({}, "01"),
    "Poisson": ({}, "01"),
    "SparseCategoricalCrossentropy": ({"from_logits": True}, "number"),
    "SquaredHinge": ({}, "01"),
    "Tversky": ({}, "01"),
}
TARGETS = {
    "01": lambda: (rig.drawn(6, 3, seed=2) > 0).astype(np.float32),
    "one": lambda: np.eye(3, dtype=np.float32)[np.arange(6) % 3],
    "real": lambda: rig.drawn(6, 3, seed=2),
    "number": lambda: np.arange(6) % 3,
}


def test_every_loss_is_in_the_list():
    classes = inspect.getmembers(keras.losses, inspect.isclass)
    assert [name for name, _ in classes if name not in (*LOSSES, "CTC", "Loss")] == []


@pytest.mark.slow
def test_a_loss_of_sequences_is_that_of_keras():
    device, host = rig.twins(lambda: keras.Sequential([keras.Input((6, 4)), layers.Dense(5)]), loss=keras.losses.CTC())
    x, y = rig.drawn(4, 6, 4), np.array([[1, 2, 0], [3, 1, 2], [1, 0, 0], [4, 4, 0]], np.int32)
    losses = [model.train_on_batch(x, y) for model in (device, host)]
    np.testing.assert_allclose(*losses, rtol=1e-6)
    rig.assert_near(device, host)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LOSSES if hasattr(keras.losses, name)])
def test_losses_and_their_gradients_are_those_of_keras(name):
    arguments, targets = LOSSES[name]
    make = classifier if targets != "softmax" else lambda: keras.Sequential([keras.Input((4,)), layers.Dense(3, "softmax")])
    device, host = rig.twins(make, loss=getattr(keras.losses, name)(**arguments))
    x, y = rig.drawn(6, 4), TARGETS["number" if targets == "softmax" else targets]()
    losses = [model.train_on_batch(x, y) for model in (device, host)]
    np.testing.assert_allclose(*losses, rtol=1e-6, atol=1e-7)
    rig.assert_near(device, host)


@pytest.mark.slow
def test_random_layers_draw_from_the_devices_generator():
    """A seed gives the same numbers again, calls have others, and `predict` none; a mean is as it was."""

    def make():
        return keras.Sequential([keras.Input((400,)), layers.Dropout(0.5, seed=7), layers.GaussianNoise(1.0), layers.Dense(1)])

    device, _ = rig.twins(make, lambda: keras.optimizers.SGD(0.0))
    x, y = np.ones((8, 400), np.float32), np.zeros((8, 1), np.float32)
    losses = []
    for _ in range(2):
        rig.ipu.utils.reset_ipu_seed(11)
        device.reset_metrics()
        losses.append([device.train_on_batch(x, y) for _ in range(3)])
    assert losses[0] == losses[1]
    assert len(set(losses[0])) == 3
    assert np.array_equal(device.predict_on_batch(x), device.predict_on_batch(x))


@pytest.mark.slow
def test_a_loader_of_pytorch_is_read_as_keras_reads_it():
    device, host = rig.twins(classifier)
    data = torch.utils.data.TensorDataset(torch.from_numpy(rig.drawn(8, 4)), torch.from_numpy(rig.drawn(8, 3, seed=1)))
    histories = [
        model.fit(torch.utils.data.DataLoader(data, batch_size=4), shuffle=False, verbose=0).history for model in (device, host)
    ]
    np.testing.assert_allclose(histories[0]["loss"], histories[1]["loss"], rtol=1e-6)


@pytest.mark.slow
def test_a_smaller_last_batch_is_a_step_too():
    device, host = rig.twins(classifier, lambda: keras.optimizers.Adam(0.01))
    x, y = rig.drawn(10, 4), rig.drawn(10, 3, seed=1)
    for model in (device, host):
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    rig.assert_near(device, host)
    np.testing.assert_allclose(device.predict(x, batch_size=4, verbose=0), host.predict(x, batch_size=4, verbose=0), rtol=1e-5)


@pytest.mark.slow
def test_what_is_trained_may_change_between_compilations():
    device, host = rig.twins(lambda: built(Own()))
    x, y = rig.drawn(8, 4), rig.drawn(8, 3, seed=1)
    for model in (device, host):
        model.train_on_batch(x, y)
        model.first.trainable = False
        model.compile(keras.optimizers.SGD(0.1, momentum=0.5), "mse")
        model.train_on_batch(x, y)
    rig.assert_near(device, host)
