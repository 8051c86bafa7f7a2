"""`fit`, `evaluate` and `predict` on the simulated IPU: what Keras' own run gives, and what it cost."""

from __future__ import annotations

import keras_rig as rig
import numpy as np
import pytest

keras = rig.keras


@pytest.fixture(scope="module")
def digits():
    """Images, labels, and the network on both sides."""
    images, labels = rig.drawn(24, 8, 8, 1), np.random.default_rng(1).integers(0, 10, 24)
    device, host = rig.twins(
        rig.digits_network, lambda: keras.optimizers.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    how = {"batch_size": 8, "epochs": 2, "verbose": 0, "validation_data": (images[:8], labels[:8])}
    keras.utils.set_random_seed(5)
    history = device.fit(images, labels, **how)
    keras.utils.set_random_seed(5)
    return images, labels, device, host, history, host.fit(images, labels, **how)


def test_fit_gives_the_history_of_keras(digits):
    _, _, _, _, history, expected = digits
    assert list(history.history) == list(expected.history)
    for name, values in expected.history.items():
        np.testing.assert_allclose(history.history[name], values, rtol=1e-5)


def test_weights_and_the_optimizers_variables_are_those_of_keras(digits):
    _, _, device, host, _, _ = digits
    assert int(device.optimizer.iterations.numpy()) == 6
    rig.assert_near(device, host, 1e-5)


def test_evaluate_and_predict_give_what_keras_gives(digits):
    images, labels, device, host, _, _ = digits
    np.testing.assert_allclose(
        device.evaluate(images, labels, batch_size=8, verbose=0), host.evaluate(images, labels, batch_size=8, verbose=0), rtol=1e-5
    )
    np.testing.assert_allclose(
        device.predict(images, batch_size=8, verbose=0), host.predict(images, batch_size=8, verbose=0), rtol=1e-4, atol=1e-6
    )


def test_the_report_has_the_layers_own_names(digits):
    images, labels, device, _, _, _ = digits
    device.train_on_batch(images[:8], labels[:8])
    names = {step.name for step in device.ipu_report().execution.steps}
    assert any(name.startswith("conv/forward/") for name in names)
    assert any(name.startswith("classes/backward/") for name in names)
    assert device.ipu_cycles() > 0


def test_what_is_compiled_once_is_not_compiled_again(digits):
    """A second `fit`, a new rate, weights that are set: there is one step for training, one for tests, one for predictions."""
    images, labels, device, _, _, _ = digits
    device.predict(images, batch_size=8, verbose=0)
    steps = dict(vars(device)["_ipu_device_model"].steps)
    device.optimizer.learning_rate = 0.05
    device.set_weights(device.get_weights())
    device.fit(images, labels, batch_size=8, verbose=0)
    device.evaluate(images, labels, batch_size=8, verbose=0)
    device.predict(images, batch_size=8, verbose=0)
    assert vars(device)["_ipu_device_model"].steps == steps
    assert len(steps) == 3


def test_what_is_set_on_the_host_is_on_the_device(digits):
    """Weights, momenta and the rate go to both sides, and both go on alike."""
    images, labels, device, host, _, _ = digits
    for model in (device, host):
        model.set_weights([value * np.float32(0.5) for value in digits[3].get_weights()] if model is host else device.get_weights())
    device.set_weights(host.get_weights())
    for momentum, other in zip(device.optimizer.momentums, host.optimizer.momentums, strict=True):
        momentum.assign(other * 0.25)
        other.assign(other * 0.25)
    for model in (device, host):
        model.optimizer.learning_rate = 0.02
        model.optimizer.iterations.assign(3)
        model.reset_metrics()  # older versions of Keras count on
    losses = [model.train_on_batch(images[:8], labels[:8])[0] for model in (device, host)]
    np.testing.assert_allclose(*losses, rtol=1e-6)
    rig.assert_near(device, host)


def test_a_model_outside_of_scopes_runs_on_the_host(digits):
    *_, host, _, _ = digits
    with pytest.raises(RuntimeError, match=r"ipu_cycles: Sequential runs on the host; make or compile it within IPUStrategy"):
        host.ipu_cycles()


@pytest.mark.slow
def test_each_step_of_a_run_is_that_of_keras_from_the_same_weights():
    """However far a run has gone: rounding adds up, and gradients of pools and ReLUs jump, but each step is right by itself."""
    device, host = rig.twins(
        rig.digits_network, lambda: keras.optimizers.SGD(0.05, momentum=0.9), "sparse_categorical_crossentropy"
    )
    for model in (device, host):
        model.optimizer.build(model.trainable_variables)
    for step in range(40):
        for ours, theirs in zip(
            (*device.variables, *device.optimizer.variables), (*host.variables, *host.optimizer.variables), strict=True
        ):
            theirs.assign(ours)
        images, labels = rig.drawn(8, 8, 8, 1, seed=step), np.random.default_rng(step).integers(0, 10, 8)
        losses = [model.train_on_batch(images, labels) for model in (device, host)]
        np.testing.assert_allclose(*losses, rtol=1e-6)
        rig.assert_near(device, host)
