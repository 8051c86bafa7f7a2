"""Gradients of several batches for an update, and models in stages."""

from __future__ import annotations

import keras_rig as rig
import numpy as np
import pytest

from pypoplar.errors import InvalidOption, PoplarRuntimeError
from pypoplar.keras import PipelineStage

keras = rig.keras
layers = keras.layers


def stack() -> object:
    return keras.Sequential([keras.Input((4,)), layers.Dense(5, activation="tanh", name="a"), layers.Dense(3, name="b")])


def in_stages() -> object:
    given = keras.Input((4,))
    with PipelineStage(0):
        x = layers.Dense(5, activation="tanh", name="first")(given)
    with PipelineStage(1):
        out = layers.Dense(3, name="second")(x)
    return keras.Model(given, out)


def data(batches: int) -> tuple[np.ndarray, np.ndarray]:
    return rig.drawn(4 * batches, 4), rig.drawn(4 * batches, 3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mean", "sum"])
def test_accumulated_gradients_are_those_of_one_large_batch(method):
    device, host = rig.twins(stack, lambda: keras.optimizers.Adam(0.01), steps_per_execution=4)
    device.set_gradient_accumulation_options(2, method)
    if method == "sum":
        host.compile(optimizer=host.optimizer, loss=lambda y, predicted: 2 * keras.ops.mean((y - predicted) ** 2, -1))
    x, y = data(8)
    device.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    host.fit(x, y, batch_size=8, shuffle=False, verbose=0)
    assert int(device.optimizer.iterations.numpy()) == 4
    rig.assert_near(device, host, 2e-6)


@pytest.mark.slow
def test_what_is_left_of_an_execution_is_dropped_with_a_word(caplog):
    device, host = rig.twins(stack, steps_per_execution=2)
    device.set_gradient_accumulation_options(2, "mean")
    x, y = data(3)
    data_set = [(x[place : place + 4], y[place : place + 4]) for place in (0, 4, 8)]
    device.make_train_function()
    device._symbolic_build(data_batch=data_set[0])
    device.train_function(data_set)
    host.train_on_batch(x[:8], y[:8])
    assert "1 batches are left over" in caplog.text
    rig.assert_near(device, host)


@pytest.mark.slow
def test_a_pipeline_trains_as_keras_does():
    device, host = rig.twins(in_stages, steps_per_execution=4)
    device.set_pipelining_options(4, gradient_accumulation_reduction_method="mean")
    x, y = data(8)
    device.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    host.fit(x, y, batch_size=16, shuffle=False, verbose=0)
    rig.assert_near(device, host)
    tiles = device.ipu_report()
    assert tiles.compilation.target.numIPUs == 2
    np.testing.assert_allclose(device.predict(x, batch_size=4, verbose=0), host.predict(x, verbose=0), rtol=1e-5, atol=1e-6)


def test_stages_are_told_and_set():
    with rig.scope():
        model, line = in_stages(), stack()
    assert [one.pipeline_stage for one in model.get_pipeline_stage_assignment()] == [0, 1]
    assert [one.name for one in model.get_pipeline_stage_assignment()[1].inbound_layers] == ["first"]
    line.set_pipeline_stage_assignment([0, 1])
    assert line.get_pipeline_stage_assignment() == [0, 1]
    told = []
    line.print_pipeline_stage_assignment_summary(print_fn=told.append)
    assert told[0].splitlines()[-1].split() == ["b", "(0)", "1"]
    line.reset_pipeline_stage_assignment()
    assert line.get_pipeline_stage_assignment() == [None, None]
    with pytest.raises(InvalidOption, match=r"takes the stage of each layer in a list of 2, got 3: a, b"):
        line.set_pipeline_stage_assignment([0, 1, 2])


def compiled(make: object = stack, **how: object) -> object:
    with rig.scope():
        model = make()
        model.compile("sgd", "mse", **how)
    return model


def test_steps_that_accumulation_does_not_divide_are_refused():
    model = compiled(steps_per_execution=3)
    model.set_gradient_accumulation_options(2)
    with pytest.raises(InvalidOption, match=r"steps_per_execution is 3, and is to be a multiple of gradient_accumulation_steps"):
        model.fit(*data(6), batch_size=4, verbose=0)


def test_an_argument_that_is_not_there_has_the_nearest_name():
    with pytest.raises(InvalidOption, match=r"no argument 'gradient_accumulation_steps'.*_steps_per_replica'"):
        compiled().set_pipelining_options(gradient_accumulation_steps=4)


def test_one_batch_of_several_accumulated_ones_is_refused():
    model = compiled(steps_per_execution=2)
    model.set_gradient_accumulation_options(2)
    with pytest.raises(InvalidOption, match=r"one batch, and an update of the weights takes 2: so many are accumulated. Call fit"):
        model.train_on_batch(*data(1))
    assert np.isfinite(model.test_on_batch(*data(1)))


def test_one_batch_of_several_replicas_is_refused(two_ipus):
    model = compiled(steps_per_execution=2)
    with pytest.raises(InvalidOption, match=r"takes 2: 2 replicas take 1 each.*, or leave out auto_select_ipus$"):
        model.train_on_batch(*data(1))
    model.set_gradient_accumulation_options(2)
    with pytest.raises(InvalidOption, match=r"takes 4: 2 replicas.*auto_select_ipus and gradient_accumulation_steps_per_replica$"):
        model.train_on_batch(*data(1))


def test_a_pipeline_without_stages_and_one_with_a_gap_are_refused():
    model = compiled()
    model.set_pipelining_options(1)
    with pytest.raises(InvalidOption, match=r"the pipeline has no stage for a, b: call layers within PipelineStage"):
        model.train_on_batch(*data(1))
    model.set_pipeline_stage_assignment([0, 2])
    with pytest.raises(InvalidOption, match=r"no layer in stage 1, and some in stage 2"):
        model.train_on_batch(*data(1))
    model.set_pipeline_stage_assignment([0, 1])
    model.set_pipelining_options(1, device_mapping=[0])
    with pytest.raises(InvalidOption, match=r"device_mapping has 1 IPUs for 2 stages"):
        model.train_on_batch(*data(1))


def test_arguments_that_are_wrong_are_refused_by_name():
    model = compiled()
    with pytest.raises(InvalidOption, match=r"has no argument 'offload_activation'.*offload_activations"):
        model.set_pipelining_options(2, offload_activation=True)
    with pytest.raises(InvalidOption, match=r"reduction_method is one of SUM, MEAN, RUNNING_MEAN, got 'mode'"):
        model.set_gradient_accumulation_options(2, "mode")
    with pytest.raises(InvalidOption, match=r"steps_per_replica is a whole number from 1 on, got 0"):
        model.set_gradient_accumulation_options(0)
    with pytest.raises(PoplarRuntimeError, match=r"PipelineStage\(1\): this is within PipelineStage\(0\)"), PipelineStage(0):
        PipelineStage(1).__enter__()


@pytest.mark.parametrize(("ipus", "error", "message"), [(1, InvalidOption, "stages are on 2 IPUs")])
def test_other_numbers_of_ipus_than_the_pipeline_has_are_refused(ipus, error, message):
    config = rig.ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()
    try:
        model = compiled(in_stages)
        model.set_pipelining_options(1)
        with pytest.raises(error, match=message):
            model.train_on_batch(*data(1))
    finally:
        rig.ipu.config.reset_ipu_configuration()


REPLICAS = [(1, "sum", 1), (2, "mean", 1), (2, "sum", 2)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Your input ran out of data")  # as Keras tells of a last execution that is smaller
@pytest.mark.parametrize(("accumulated", "reduction", "weight"), REPLICAS)
def test_replicas_step_by_the_mean_of_their_gradients(two_ipus, accumulated, reduction, weight):
    """As one model that takes all of their batches at once; gradients that are summed over batches are so many times as large."""

    def make():
        return keras.Sequential([keras.Input((4,)), layers.Dense(5, activation="tanh"), layers.Dense(3)])

    device, host = rig.twins(make, lambda: keras.optimizers.SGD(0.1, momentum=0.5), steps_per_execution=2, metrics=["mae"])
    if accumulated > 1:
        device.set_gradient_accumulation_options(accumulated, reduction)
    host.optimizer.learning_rate = 0.1 * weight
    x, y = rig.drawn(32, 4), rig.drawn(32, 3, seed=1)
    how = {"shuffle": False, "verbose": 0, "epochs": 2}
    histories = [model.fit(x, y, batch_size=size, **how).history for model, size in ((device, 4), (host, 8 * accumulated))]
    for name, values in histories[1].items():
        np.testing.assert_allclose(histories[0][name], values, rtol=1e-5, err_msg=name)
    assert rig.apart(device.get_weights(), host.get_weights()) <= 1e-5
    assert int(device.optimizer.iterations.numpy()) == int(host.optimizer.iterations.numpy())
    host.set_weights(device.get_weights())
    expected = host.predict(x[:28], verbose=0)
    np.testing.assert_allclose(device.predict(x[:28], batch_size=4, verbose=0), expected, rtol=1e-5, atol=1e-6)


@pytest.fixture
def two_ipus():
    """A configuration of two IPUs."""
    config = rig.ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    config.configure_ipu_system()
    yield
    rig.ipu.config.reset_ipu_configuration()
