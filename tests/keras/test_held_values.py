"""What a compiled step holds of Keras: variables that no layer lists, attributes that programs change, masks, frozen weights."""

from __future__ import annotations

from typing import Any

import keras_rig as rig
import numpy as np
import pytest
import torch

from pypoplar.errors import InvalidOption

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


@pytest.mark.parametrize("steps", ["auto", 0, -1, 2.5, None, True])
def test_steps_of_an_execution_are_a_number_of_them(steps):
    with rig.scope(), pytest.raises(InvalidOption, match=r"steps_per_execution is a whole number from 1 on, got"):
        network().compile("sgd", "mse", steps_per_execution=steps)
