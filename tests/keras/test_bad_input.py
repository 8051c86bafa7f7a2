"""What Keras models ask that the simulated IPU does not do: each is refused in words that say what to do."""

from __future__ import annotations

import subprocess
import sys

import keras_rig as rig
import numpy as np
import pytest

from pypoplar.errors import InvalidOption, MissingFeature, PoplarRuntimeError, PoplarTypeError, TensorShapeError
from pypoplar.poptorch.capture import CaptureError

keras = rig.keras


def dense() -> object:
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])


def compiled(optimizer: object = "sgd", loss: object = "mse", make: object = dense, **how: object) -> object:
    with rig.scope():
        model = make()
        model.compile(optimizer=optimizer, loss=loss, **how)
    return model


def trained(model: object, rows: int = 4) -> object:
    return model.train_on_batch(rig.drawn(rows, 4), rig.drawn(rows, 3))


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("import os; os.environ['KERAS_BACKEND'] = 'jax'", "KERAS_BACKEND is 'jax'"),
        ("import sys, types; sys.modules['keras'] = keras = types.ModuleType('keras'); "
         "keras.backend = types.SimpleNamespace(backend=lambda: 'tensorflow')", "Keras runs on the backend 'tensorflow'"),
    ],
)  # fmt: skip
def test_another_backend_is_refused_with_how_to_set_it(before, message):
    ran = subprocess.run([sys.executable, "-c", f"{before}\nimport pypoplar.keras"], capture_output=True, text=True, check=False)
    assert ran.returncode
    assert message in ran.stderr
    assert 'set the environment variable KERAS_BACKEND="torch" before Keras is imported' in ran.stderr


def test_run_eagerly_is_refused():
    with pytest.raises(InvalidOption, match=r"run_eagerly=True runs Python step by step"):
        trained(compiled(run_eagerly=True))


def test_an_unknown_optimizer_is_refused_by_name():
    with pytest.raises(
        MissingFeature, match=r"the optimizer Lion is not there on the IPU; there are SGD, Adam, AdamW, RMSprop, Adagrad"
    ):
        trained(compiled(keras.optimizers.Lion()))


def test_what_an_optimizer_does_beside_its_formula_is_refused_by_name():
    with pytest.raises(MissingFeature, match=r"gradient_accumulation_steps is not there.*set_gradient_accumulation_options acc"):
        trained(compiled(keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)))


def test_constraints_of_a_programs_own_are_refused_by_name():
    class Even(keras.constraints.Constraint):
        def __call__(self, w):
            return w

    def make():
        return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, kernel_constraint=Even())])

    with pytest.raises(MissingFeature, match=r"the constraint Even of sequential\S*/dense\S*/kernel is not there.*are MaxNorm"):
        trained(compiled(make=make))


def test_a_train_step_of_the_users_is_refused():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(3)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            return {}

    with pytest.raises(MissingFeature, match=r"Own has a train_step of its own, which is Python that runs step by step"):
        trained(compiled(make=Own))


def test_a_loss_that_asks_for_values_is_refused_with_its_line():
    def asks(y, predicted):
        return predicted.mean() if float(predicted.mean()) > 0 else -predicted.mean()

    with pytest.raises(
        CaptureError, match=r"Sequential cannot run on the IPU as it is:\n.*test_bad_input.py:\d+: `return predicted.mean\(\) if"
    ):
        trained(compiled(loss=asks))


def test_a_layer_of_loops_over_data_is_refused_with_its_line():
    class Loops(keras.layers.Layer):
        def call(self, x):
            total = x
            while float(total.sum()) < 10:
                total = total + 1
            return total

        def compute_output_shape(self, shape):
            return shape

    def make():
        return keras.Sequential([keras.Input((4,)), Loops(), keras.layers.Dense(3)])

    with pytest.raises(CaptureError, match=r"Sequential cannot run on the IPU as it is:\n.*test_bad_input.py:\d+: `while float"):
        trained(compiled(make=make))


@pytest.mark.slow
def test_shapes_that_change_with_each_batch_are_refused():
    model = compiled()
    with pytest.raises(
        TensorShapeError, match=r"8 executions in a row had other shapes than those before them.*now \(13, 4\), \(13, 3\)"
    ):
        for rows in range(5, 14):
            trained(model, rows)


def test_a_scope_within_a_scope_is_refused():
    with rig.scope(), pytest.raises(PoplarRuntimeError, match=r"this is within another scope of an IPUStrategy"), rig.scope():
        pass


def test_an_option_of_the_configuration_has_the_nearest_name():
    config = rig.ipu.config.IPUConfig()
    with pytest.raises(InvalidOption, match=r"IPUConfig has no option 'auto_select_ipu'.*auto_select_ipus"):
        config.auto_select_ipu = 1
    with pytest.raises(InvalidOption, match=r"did you mean 'norms.use_stable_statistics'"):
        config.use_stable_statistics = True
    with pytest.raises(InvalidOption, match=r"floating_point_behaviour.divo.*div0"):
        config.floating_point_behaviour.divo = True
    with pytest.raises(InvalidOption, match=r"norms has options of its own"):
        config.norms = True
    with pytest.raises(PoplarTypeError, match=r"norms.use_stable_statistics is True or False, got 1"):
        config.norms.use_stable_statistics = 1


def test_what_was_not_executed_has_no_cycles():
    with pytest.raises(PoplarRuntimeError, match=r"ipu_cycles: nothing was executed yet"):
        compiled().ipu_cycles()


def test_data_that_are_no_numbers_are_refused():
    with pytest.raises(PoplarTypeError, match=r"data of a model are arrays and tensors of numbers"):
        compiled().predict_on_batch(np.array(["a", "b"]))


def test_a_forward_pass_that_sets_what_is_trained_is_refused():
    class Sets(keras.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(), name="scale")

        def call(self, x):
            self.scale.assign(self.scale * 0.5)
            return x * self.scale

    with pytest.raises(MissingFeature, match=r"the forward pass sets \S*/scale, which is trained"):
        trained(compiled(make=lambda: keras.Sequential([keras.Input((4,)), Sets(), keras.layers.Dense(3)])))
