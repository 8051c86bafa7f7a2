"""Every layer of Keras, forward and backward: it gives what Keras gives, or is refused by name with the reason."""

from __future__ import annotations

import inspect

import keras_layers as tried
import keras_rig as rig
import numpy as np
import pytest

from pypoplar.errors import MissingFeature
from pypoplar.keras.refused_layers import REFUSED

keras = rig.keras
WITHIN_OTHERS = ("GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells")  # of RNN
NO_LAYERS = ("Input", "InputLayer", "InputSpec", "Layer", "Pipeline", "TorchModuleWrapper", "Wrapper")  # by themselves


def test_every_layer_is_in_the_list():
    known = {*tried.TRIED, *tried.ALIASES, *REFUSED, *WITHIN_OTHERS, *NO_LAYERS}
    assert [name for name, one in inspect.getmembers(keras.layers, inspect.isclass) if name not in known] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", tried.TRIED)
def test_a_layer_gives_what_keras_gives(name):
    one, inputs = tried.TRIED[name], tried.inputs_of(name)
    given = inputs if len(inputs) > 1 else inputs[0]
    device, host = rig.twins(lambda: tried.network(name))
    expected = host.predict_on_batch(given)
    assert rig.apart([device.predict_on_batch(given)], [expected]) <= one.within
    targets = np.random.default_rng(4).normal(size=expected.shape).astype(np.float32)
    loss = device.train_on_batch(given, targets)
    if one.training:
        np.testing.assert_allclose(loss, host.train_on_batch(given, targets), rtol=one.within)
        assert rig.apart(device.get_weights(), host.get_weights()) <= one.within
    else:
        assert np.isfinite(loss)


def test_a_layer_that_is_not_there_is_refused_with_the_reason():
    with rig.scope():
        model = keras.Sequential([keras.Input((4, 4, 3)), keras.layers.RandomFlip(name="flip"), keras.layers.Flatten()])
        model.compile("sgd", "mse")
    with pytest.raises(
        MissingFeature, match=r"the layer flip \(RandomFlip\) is not there on the IPU: it changes pictures at random"
    ):
        model.predict_on_batch(rig.drawn(2, 4, 4, 3))
