"""What is on two sides, in Keras' variables and on the device, is the same after loading, saving, schedules and callbacks."""

from __future__ import annotations

import itertools

import keras_rig as rig
import numpy as np
import pytest

keras = rig.keras
layers = keras.layers


def network() -> object:
    return keras.Sequential([keras.Input((4,)), layers.Dense(5, activation="tanh"), layers.Dense(3)])


def data() -> tuple[np.ndarray, np.ndarray]:
    return rig.drawn(16, 4), rig.drawn(16, 3, seed=1)


def fitted(model: object, **how: object) -> object:
    return model.fit(*data(), batch_size=8, shuffle=False, verbose=0, **how)


@pytest.mark.slow
def test_a_model_that_is_saved_goes_on_on_either_side(tmp_path):
    """Saved after training on the IPU, it is loaded on both sides with its optimiser's momenta, and both go on alike."""
    device, host = rig.twins(network, lambda: keras.optimizers.Adam(0.01))
    for model in (device, host):
        fitted(model)
    device.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    with rig.scope():
        again = keras.saving.load_model(tmp_path / "model.keras")
    assert int(again.optimizer.iterations.numpy()) == 2
    for model in (device, host, loaded, again):
        fitted(model)
    for model in (device, loaded, again):
        rig.assert_near(model, host, 2e-6)
    assert again.ipu_cycles() > 0


@pytest.mark.slow
def test_weights_that_are_loaded_are_trained_further(tmp_path):
    device, host = rig.twins(network, lambda: keras.optimizers.SGD(0.1, momentum=0.9))
    fitted(host)
    host.save_weights(tmp_path / "before.weights.h5")
    for model in (device, host):
        fitted(model)
        model.load_weights(tmp_path / "before.weights.h5")
        fitted(model)
    rig.assert_near(device, host)


@pytest.mark.slow
def test_rates_of_schedules_and_callbacks_change_without_compiling():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    device, host = rig.twins(network, lambda: keras.optimizers.SGD(schedule, momentum=0.5))
    for model in (device, host):
        fitted(model, epochs=3)
    rig.assert_near(device, host)
    steps = vars(device)["_ipu_device_model"].steps
    assert len(steps) == 1
    assert all(one.executor.isCompiled() for one in steps.values())


@pytest.mark.slow
def test_callbacks_come_as_in_keras(tmp_path):
    """The usual ones work, and a program's own are called in the same order with the same logs."""

    class Noting(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.noted = []

        def on_train_batch_end(self, batch, logs=None):
            self.noted.append(("train", batch, sorted(logs)))

        def on_test_batch_end(self, batch, logs=None):
            self.noted.append(("test", batch, sorted(logs)))

        def on_epoch_end(self, epoch, logs=None):
            self.noted.append(("epoch", epoch, sorted(logs)))

    device, host = rig.twins(network, metrics=["mae"])
    histories, noted = [], []
    for name, model in (("device", device), ("host", host)):
        noting = Noting()
        used = [
            noting,
            keras.callbacks.ModelCheckpoint(tmp_path / f"{name}.keras", save_best_only=True),
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
            keras.callbacks.ReduceLROnPlateau(patience=1, min_delta=10.0),
            keras.callbacks.EarlyStopping(patience=3, min_delta=10.0, restore_best_weights=True),
            keras.callbacks.TerminateOnNaN(),
            keras.callbacks.CSVLogger(tmp_path / f"{name}.csv"),
        ]
        histories.append(fitted(model, epochs=8, validation_data=data(), callbacks=used).history)
        noted.append(noting.noted)
    assert noted[0] == noted[1]
    assert list(histories[0]) == list(histories[1])
    for key, values in histories[1].items():
        np.testing.assert_allclose(histories[0][key], values, rtol=1e-5, err_msg=key)
    rig.assert_near(device, host)
    assert (tmp_path / "device.keras").exists()


@pytest.mark.slow
def test_an_execution_of_several_steps_calls_callbacks_once():
    device, host = rig.twins(network, lambda: keras.optimizers.Adam(0.01), steps_per_execution=2, metrics=["mae"])
    called = []
    history = fitted(
        device, callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: called.append(batch))]
    )
    expected = fitted(host)
    assert len(called) == 1
    np.testing.assert_allclose(history.history["mae"], expected.history["mae"], rtol=1e-6)
    rig.assert_near(device, host)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "within"), [("float16", 1e-3), ("mixed_float16", 1e-3)])
def test_halves_are_near_keras(policy, within):
    def make():
        return keras.Sequential(
            [keras.Input((4,)), layers.Dense(5, activation="tanh", dtype=policy), layers.Dense(3, dtype=policy)]
        )

    device, host = rig.twins(make)
    x, y = data()
    losses = [model.train_on_batch(x, y) for model in (device, host)]
    np.testing.assert_allclose(*losses, rtol=within)
    rig.assert_near(device, host, within)


@pytest.mark.slow
def test_a_loss_that_is_scaled_trains_as_one_that_is_not():
    def make():
        keras.config.set_dtype_policy("mixed_float16")
        try:
            return network()
        finally:
            keras.config.set_dtype_policy("float32")

    device, host = rig.twins(
        make, lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1, momentum=0.5), initial_scale=8.0)
    )
    x, y = data()
    for _ in range(2):
        losses = [model.train_on_batch(x, y) for model in (device, host)]
    np.testing.assert_allclose(*losses, rtol=1e-3)
    assert rig.apart(device.get_weights(), host.get_weights()) <= 1e-3


OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, weight_decay=0.01),
    "Nesterov": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, clipvalue=0.02),
    "Adam": lambda: keras.optimizers.Adam(0.01, amsgrad=True, global_clipnorm=0.1),
    "AdamW": lambda: keras.optimizers.AdamW(0.01),
    "RMSprop": lambda: keras.optimizers.RMSprop(0.01, momentum=0.5, centered=True),
    "Adagrad": lambda: keras.optimizers.Adagrad(0.05),
    "clipnorm": lambda: keras.optimizers.SGD(0.1, momentum=0.9, clipnorm=0.05),
    "averages": lambda: keras.optimizers.AdamW(0.01, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ten_steps_of_an_optimizer_are_those_of_keras(name):
    device, host = rig.twins(network, OPTIMIZERS[name])
    x, y = data()
    for step in range(10):
        losses = [model.train_on_batch(x, y) for model in (device, host)]
        np.testing.assert_allclose(*losses, rtol=1e-5)
        rig.assert_near(device, host, 1e-6 if step == 0 else 1e-5)
        for model in (device, host):
            model.optimizer.learning_rate = 0.01 / (step + 1)


CONSTRAINTS = {
    "MaxNorm": lambda: keras.constraints.MaxNorm(0.8),
    "MinMaxNorm": lambda: keras.constraints.MinMaxNorm(0.9, 1.1, rate=0.5, axis=1),
    "NonNeg": lambda: keras.constraints.NonNeg(),
    "UnitNorm": lambda: keras.constraints.UnitNorm(axis=[0, 1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_weights_keep_their_constraints_as_in_keras(name):
    def make():
        first = layers.Dense(5, activation="tanh", kernel_constraint=CONSTRAINTS[name](), bias_constraint="non_neg")
        return keras.Sequential([keras.Input((4,)), first, layers.Dense(3)])

    device, host = rig.twins(make, lambda: keras.optimizers.Adam(0.05))
    for _ in range(4):
        for model in (device, host):
            model.train_on_batch(*data())
    rig.assert_near(device, host)


@pytest.mark.parametrize(
    "inner", [lambda: keras.optimizers.Adam(0.01), pytest.param(lambda: keras.optimizers.SGD(0.01), marks=pytest.mark.slow)]
)
def test_a_scale_of_losses_grows_and_shrinks_as_in_keras(inner):
    """Steps whose gradients have no room in halves are left out, and the scale is halved; behind two that have it is doubled."""

    def make():
        keras.config.set_dtype_policy("mixed_float16")
        try:
            return network()
        finally:
            keras.config.set_dtype_policy("float32")

    device, host = rig.twins(
        make,
        lambda: keras.optimizers.LossScaleOptimizer(inner(), initial_scale=2.0**17, dynamic_growth_steps=2),
    )
    seen = []
    for _ in range(6):
        for model in (device, host):
            model.train_on_batch(*data())
        states = [
            (float(one.dynamic_scale.numpy()), int(one.step_counter.numpy()), int(one.inner_optimizer.iterations.numpy()))
            for one in (device.optimizer, host.optimizer)
        ]
        assert states[0] == states[1]
        seen.append(states[0])
    assert {later[2] - earlier[2] for earlier, later in itertools.pairwise(seen)} == {0, 1}
    assert rig.apart(device.get_weights(), host.get_weights()) <= 1e-3


@pytest.mark.slow
def test_what_is_changed_of_layers_and_optimizers_holds_from_the_next_call_on():
    def make():
        return keras.Sequential(
            [keras.Input((4,)), layers.Dense(5, activation="tanh"), layers.BatchNormalization(), layers.Dense(3)]
        )

    device, host = rig.twins(make, lambda: keras.optimizers.SGD(0.1, momentum=0.5))
    changes = (
        lambda model: setattr(model.layers[0], "activation", keras.activations.relu),
        lambda model: setattr(model.layers[1], "momentum", 0.5),
        lambda model: setattr(model.layers[1], "trainable", False),
        lambda model: setattr(model.optimizer, "nesterov", True),
        lambda model: setattr(model.optimizer, "clipvalue", 0.01),
        lambda model: setattr(model.optimizer, "weight_decay", 0.1),
    )
    for change in (lambda model: None, *changes):
        for model in (device, host):
            change(model)
            model.train_on_batch(*data())
        rig.assert_near(device, host, 1e-5)  # the gradient before a normalization is next to nothing
