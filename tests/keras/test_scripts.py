"""Scripts for IPU TensorFlow run as they are: the names that they import, and what they take of TensorFlow."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import keras_rig as rig
import pytest

from pypoplar.errors import MissingFeature

SCRIPT = """
import argparse
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras.layers import Dense, Flatten
from tensorflow.python import ipu
from tensorflow.python.ipu.config import IPUConfig
from beside import CLASSES

config = IPUConfig()
config.auto_select_ipus = 2
config.configure_ipu_system()

images, labels = np.random.rand(48, 4, 4).astype(np.float32), np.arange(48) % CLASSES
data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(48).batch(4, drop_remainder=True)
data = data.map(lambda x, y: (tf.cast(x, tf.float32) / 2, tf.cast(y, tf.int32))).repeat().prefetch(16)

strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    given = keras.Input((4, 4))
    with keras.ipu.PipelineStage(0):
        x = Dense(8, activation="relu")(Flatten()(given))
    with keras.ipu.PipelineStage(1):
        out = Dense(CLASSES, activation="softmax")(x)
    model = keras.Model(given, out)
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=4, device_mapping=[0, 1])
    model.print_pipeline_stage_assignment_summary()
    model.compile(loss="sparse_categorical_crossentropy", optimizer=tf.keras.optimizers.SGD(0.1), steps_per_execution=8)
    history = model.fit(data, epochs=2, steps_per_epoch=8, verbose=0)
print("losses", len(history.history["loss"]), "iterations", int(model.optimizer.iterations.value))
"""


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script, encoding="utf-8")
    (folder / "beside.py").write_text("CLASSES = 3\n", encoding="utf-8")
    command = [sys.executable, "-m", "pypoplar.keras", str(folder / "script.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_script_of_a_pipeline_runs_as_it_is(tmp_path):
    ran = run(tmp_path, SCRIPT)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "losses 2 iterations 4"


INSTEAD = {
    "GradientTape": "tf.GradientTape: a loop over a tape is Python that runs step by step",
    "function": "tf.function: functions are not compiled by themselves",
    "compat": "tf.compat: TensorFlow 1 is not there",
    "raw_ops": "tf.raw_ops is not in the stand-in of TensorFlow",
}
MODULES = {
    "tensorflow.compat.v1": "tf.compat: TensorFlow 1 is not there",
    "tensorflow.python.ipu.loops": "ipu.loops is not there",
    "tensorflow.python.ipu.keras.optimizers": "ipu.keras is not there on the simulated IPU: layers and optimizers of Keras itself",
}
ASKING = """
import importlib
import tensorflow as tf
for name in {names}:
    try:
        getattr(tf, name)
    except AttributeError as missing:
        print(missing)
for name in {modules}:
    try:
        importlib.import_module(name)
    except ImportError as missing:
        print(missing)
"""


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is not None, reason="TensorFlow is there itself")
def test_what_is_not_there_says_what_to_use_instead(tmp_path):
    ran = run(tmp_path, ASKING.format(names=list(INSTEAD), modules=list(MODULES)))
    said = ran.stdout.splitlines()
    expected = [*INSTEAD.values(), *MODULES.values()]
    assert len(said) == len(expected), ran.stderr
    assert [message for message, line in zip(expected, said, strict=True) if not line.startswith(message)] == []


def test_data_sets_have_their_elements_in_order():
    from pypoplar.keras.tensorflow_data import Dataset

    numbers = Dataset.from_tensor_slices(list(range(7)))
    assert [int(one) for one in numbers.take(3).repeat(2)] == [0, 1, 2, 0, 1, 2]
    assert [one.tolist() for one in numbers.batch(3).as_numpy_iterator()] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [one.tolist() for one in numbers.skip(1).map(lambda x: x * 2).batch(4, drop_remainder=True)] == [[2, 4, 6, 8]]
    assert sorted(int(one) for one in numbers.shuffle(4, seed=1)) == list(range(7))
    assert [numbers.cardinality(), numbers.batch(3).cardinality(), numbers.repeat().cardinality()] == [7, 3, -1]
    assert [len(numbers.batch(3)), numbers.repeat().batch(2).num_batches] == [3, None]


@pytest.mark.parametrize(
    ("place", "name", "message"),
    [
        (
            "utils",
            "create_ipu_config",
            r"ipu.utils.create_ipu_config is not there.*: make an ipu.config.IPUConfig",
        ),
        ("utils", "reset_ipu_sed", r"did you mean 'reset_ipu_seed'"),
        ("", "ipu_infeed_queue", r"ipu.ipu_infeed_queue is not there.*compile a Keras model in IPUStrategy"),
        ("ops", "rnn_ops", r"ipu.ops.rnn_ops is not there.*keras.layers.LSTM"),
    ],
)
def test_names_of_ipu_tensorflow_that_are_not_there_say_what_to_use_instead(place, name, message):
    module = getattr(rig.ipu, place) if place else rig.ipu
    with pytest.raises(MissingFeature, match=message):
        getattr(module, name)


SEEDED = """
import tensorflow as tf
from tensorflow import keras

drawn = []
for seeded in (tf.random.set_seed, keras.utils.set_random_seed, tf.random.set_seed):
    seeded(3)
    drawn.append([float(number) for number in keras.random.uniform((2,))])
print(drawn[0] == drawn[1] == drawn[2], drawn[0] == [float(number) for number in keras.random.uniform((2,))])
"""


def test_seeds_by_either_name_begin_what_keras_draws_anew(tmp_path):
    ran = run(tmp_path, SEEDED)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "True False"
