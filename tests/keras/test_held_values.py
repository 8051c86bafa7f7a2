"""What a compiled step holds of Keras: variables that no layer lists, attributes that programs change, masks, frozen weights."""

from __future__ import annotations

from typing import Any

import keras_rig as rig
import numpy as np
import pytest
import torch

from pypoplar.errors import InvalidOption
from pypoplar.keras.layer_settings import layer_settings

keras = rig.keras
layers, ops = keras.layers, keras.ops


def network() -> Any:
    return keras.Sequential([keras.Input((4,)), layers.Dense(5, activation="tanh"), layers.Dense(3)])


X, Y = rig.drawn(8, 4), rig.drawn(8, 3, seed=1)


def assert_alike(device: Any, host: Any) -> None:
    """A step of training gives the same on both sides."""
    losses = [model.train_on_batch(X, Y) for model in (device, host)]
    np.testing.assert_allclose(*losses, rtol=1e-5, atol=1e-6)
    rig.assert_near(device, host)


def test_a_variable_that_no_layer_lists_is_read_anew():
    """As one of a loss that a callback changes: nothing is compiled again."""
    share = keras.Variable(1.0, name="share")
    device, host = rig.twins(network, loss=lambda y, predicted: share * ops.mean((y - predicted) ** 2, -1))
    for value in (1.0, 3.0, 0.0):
        share.assign(value)
        assert_alike(device, host)
    assert len(vars(device)["_ipu_device_model"].steps) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
def test_states_of_recurrent_layers_go_on_from_batch_to_batch(kind):
    def make():
        return keras.Sequential([keras.Input((3, 2), batch_size=4), getattr(layers, kind)(3, stateful=True), layers.Dense(1)])

    device, host = rig.twins(make)
    x = rig.drawn(12, 3, 2)
    for reset in (False, False, True):
        for model in (device, host):
            if reset:
                model.layers[0].reset_state()
        found, expected = (model.predict(x, batch_size=4, verbose=0) for model in (device, host))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        states = [[one.numpy() for one in model.layers[0].states] for model in (device, host)]
        assert rig.apart(*states) <= 1e-5


@pytest.mark.slow
def test_masks_reach_metrics_as_in_keras():
    def make():
        recurrent = layers.LSTM(4, return_sequences=True), layers.TimeDistributed(layers.Dense(3))
        return keras.Sequential([keras.Input((5,), dtype="int32"), layers.Embedding(6, 4, mask_zero=True), *recurrent])

    device, host = rig.twins(make, metrics=["mae"], weighted_metrics=["mse"])
    x, y = np.random.default_rng(0).integers(0, 6, (8, 5)), rig.drawn(8, 5, 3)
    logs = [model.fit(x, y, batch_size=4, shuffle=False, verbose=0, validation_data=(x, y)).history for model in (device, host)]
    assert list(logs[0]) == list(logs[1])
    for name, values in logs[1].items():
        np.testing.assert_allclose(logs[0][name], values, rtol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The model does not have any trainable weights")
def test_a_model_that_trains_nothing_gives_its_losses():
    device, host = rig.twins(lambda: keras.Sequential([keras.Input((4,)), layers.BatchNormalization(), layers.Dense(3)]))
    for model in (device, host):
        model.trainable = False
    assert_alike(device, host)
    assert int(device.optimizer.iterations.numpy()) == int(host.optimizer.iterations.numpy())
    for model in (device, host):
        model.trainable = True
        model.compile(keras.optimizers.SGD(0.1), "mse")
    assert_alike(device, host)


class Scaled(layers.Layer):
    """A layer that scales by attributes of all kinds."""

    def __init__(self) -> None:
        super().__init__()
        self._own, self.listed, self.array, self.tensor = 1.0, [1.0], np.ones(4, np.float32), torch.ones(4)

    def call(self, x: Any) -> Any:
        return x * self._own * self.listed[0] * ops.convert_to_tensor(self.array) * self.tensor

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


class Weighed(keras.Loss):
    """A loss with a factor."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = 1.0

    def call(self, y: Any, predicted: Any) -> Any:
        return self.factor * ops.mean((y - predicted) ** 2, -1)


CHANGES = {
    "a private number": lambda model: setattr(model.layers[0], "_own", 2.0),
    "a number in a list": lambda model: model.layers[0].listed.__setitem__(0, 3.0),
    "an element of an array": lambda model: model.layers[0].array.__setitem__(1, 5.0),
    "an element of a tensor": lambda model: model.layers[0].tensor.__setitem__(0, 7.0),
    "a regularizer's number": lambda model: setattr(model.layers[1].kernel_regularizer, "l2", 1.0),
    "a constraint's number": lambda model: setattr(model.layers[1].kernel_constraint, "max_value", 0.1),
    "a loss's number": lambda model: setattr(model.loss, "factor", 3.0),
}


@pytest.mark.slow
def test_attributes_that_programs_change_hold_from_the_next_step_on():
    def make():
        dense = layers.Dense(3, kernel_regularizer=keras.regularizers.L2(0.1), kernel_constraint=keras.constraints.MaxNorm(2.0))
        return keras.Sequential([keras.Input((4,)), Scaled(), dense])

    host = make()
    host.compile(keras.optimizers.SGD(0.01), Weighed())
    with rig.scope():
        device = make()
        device.compile(keras.optimizers.SGD(0.01), Weighed())
    device.set_weights(host.get_weights())
    assert_alike(device, host)
    for change in CHANGES.values():
        for model in (device, host):
            change(model)
        assert_alike(device, host)


SETTINGS = {
    "a number of a list": ([1.0, 2.0], [1.0, 3.0]),
    "a key of a dictionary": ({"a": 1}, {"b": 1}),
    "a value of a dictionary": ({"a": 1}, {"a": 2}),
    "the shape of an array": (np.zeros((4, 1)), np.zeros((2, 2))),
    "the type of an array": (np.zeros(4, np.float32), np.zeros(4, np.int32)),
    "an element of an array": (np.array([1, 2]), np.array([1, 3])),
    "whether it is there": (None, 0),
}


@pytest.mark.parametrize("which", SETTINGS)
def test_settings_of_layers_differ_where_a_step_may(which):
    model, (before, now) = network(), SETTINGS[which]
    found = []
    for value in (before, now, before):
        vars(model.layers[0])["held"] = value
        found.append(layer_settings(model))
    assert found[0] != found[1]
    assert found[0] == found[2]


def test_a_norm_without_weights_is_frozen_from_the_next_step_on():
    def make():
        return keras.Sequential([keras.Input((4,)), layers.BatchNormalization(center=False, scale=False), layers.Dense(3)])

    device, host = rig.twins(make)
    for trainable in (True, False, True):
        for model in (device, host):
            model.layers[0].trainable = trainable
        assert_alike(device, host)


class Noting(layers.Layer):
    """A layer that sets a variable which it does not list, and does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = (keras.Variable(0.0, name="seen"),)
        self._untrack_variable(self.seen[0])

    def call(self, x: Any) -> Any:
        self.seen[0].assign(ops.sum(x))
        return x


def test_what_a_step_sets_of_a_variable_that_no_layer_lists_is_not_lost():
    device, host = rig.twins(lambda: keras.Sequential([keras.Input((4,)), Noting(), layers.Dense(3)]))
    for model in (device, host):
        model.predict(X, verbose=0)
        assert not model.layers[0].variables
    found, expected = (float(model.layers[0].seen[0].numpy()) for model in (device, host))
    assert expected != 0
    assert found == pytest.approx(expected, rel=1e-5)


def test_metrics_of_losses_stay_on_the_host_where_a_model_does_not_name_them():
    class Unmeasured(keras.Model):
        """A model that names no metrics."""

        @property
        def metrics(self) -> list[Any]:
            return []

    def make():
        x = keras.Input((4,))
        return Unmeasured(x, [layers.Dense(3)(x), layers.Dense(3)(x)])

    device, host = rig.twins(make, loss=["mse", "mae"])
    for model in (device, host):
        model.train_on_batch(X, [Y, Y])
    rig.assert_near(device, host)
    assert vars(device)["_ipu_device_model"].further == []


def test_each_mask_reaches_the_metrics_of_its_own_output():
    def make():
        x = keras.Input((5,), dtype="int32")
        embedded = layers.Embedding(6, 4, mask_zero=True)(x)
        doubled = layers.Lambda(lambda x: 2.0 * x, name="doubled")(ops.cast(x, "float32"))
        return keras.Model(x, [doubled, layers.Dense(3, name="dense")(embedded)])

    device, host = rig.twins(make, loss=["mse", "mse"], weighted_metrics=[["mae"], ["mae"]])
    x, y = np.random.default_rng(0).integers(0, 6, (8, 5)), rig.drawn(8, 5, 3)
    found, expected = (model.evaluate(x, [x.astype(np.float32), y], verbose=0, return_dict=True) for model in (device, host))
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("steps", ["auto", 0, -1, 2.5, None, True])
def test_steps_of_an_execution_are_a_number_of_them(steps):
    with rig.scope(), pytest.raises(InvalidOption, match=r"steps_per_execution is a whole number from 1 on, got"):
        network().compile("sgd", "mse", steps_per_execution=steps)
