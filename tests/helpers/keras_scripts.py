"""Scripts for IPU Keras, in the form of Graphcore's: what they import, configure and call; data are generated, and small."""

from __future__ import annotations

_DATA = """
def load_data(examples):
    generator = np.random.default_rng(7)
    labels = generator.integers(0, CLASSES, examples)
    pictures = generator.normal(0.4, 0.1, (examples, *SHAPE))
    for picture, label in zip(pictures, labels):  # a bright square, whose place says the class
        row, column = divmod(int(label), 4)
        picture[8 * row : 8 * row + 8, 7 * column : 7 * column + 7] += 0.5
    return pictures.astype("float32"), labels
"""

_IMPORTS = """
import numpy as np
import tensorflow.keras as keras
from tensorflow.python import ipu

CLASSES, SHAPE, BATCH, EXAMPLES = 10, (28, 28, 1), 8, {examples}
"""

_CONFIGURED = """
images, labels = load_data(EXAMPLES)
labels = keras.utils.to_categorical(labels, CLASSES)
keras.utils.set_random_seed(1)

configuration = ipu.config.IPUConfig()
configuration.device_connection.type = ipu.config.DeviceConnectionType.ON_DEMAND
configuration.auto_select_ipus = {ipus}
configuration.configure_ipu_system()

with ipu.ipu_strategy.IPUStrategy().scope():
    model = keras.Model(*layers())
"""

_LAYERS = """
def layers():
    given = keras.Input(shape=SHAPE)
    x = keras.layers.Conv2D(8, kernel_size=(3, 3), activation="relu")(given)
    x = keras.layers.MaxPooling2D(pool_size=(2, 2))(x)
    x = keras.layers.Conv2D(16, kernel_size=(3, 3), activation="relu")(x)
    x = keras.layers.MaxPooling2D(pool_size=(2, 2))(x)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dropout(0.5)(x)
    return given, keras.layers.Dense(CLASSES, activation="softmax")(x)
"""

_LAYERS_IN_STAGES = """
def layers():
    given = keras.Input(shape=SHAPE)
    with keras.ipu.PipelineStage(0):
        x = keras.layers.Conv2D(8, kernel_size=(3, 3), activation="relu")(given)
        x = keras.layers.MaxPooling2D(pool_size=(2, 2))(x)
        x = keras.layers.Conv2D(16, kernel_size=(3, 3), activation="relu")(x)
    with keras.ipu.PipelineStage(1):
        x = keras.layers.MaxPooling2D(pool_size=(2, 2))(x)
        x = keras.layers.Flatten()(x)
        x = keras.layers.Dropout(0.5)(x)
        x = keras.layers.Dense(CLASSES, activation="softmax")(x)
    return given, x
"""

_TRAINED = """
    def compiled(steps):
        model.compile("sgd", "categorical_crossentropy", metrics=["accuracy"], steps_per_execution=steps)

    compiled({train})
    model.summary()
    history = model.fit(images, labels, epochs=2, batch_size=BATCH)
    updates = int(model.optimizer.iterations)
    compiled({test})
    loss, accuracy = model.evaluate(images, labels, batch_size=BATCH)
    predictions = model.predict(images, batch_size=BATCH)
print("ran", len(history.history["loss"]), updates, predictions.shape, bool(np.isfinite(loss)), loss < history.history["loss"][0])
"""

_ACCUMULATION = """
    model.set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=4)
"""

_PIPELINE = """
    model.set_pipelining_options(
        gradient_accumulation_steps_per_replica=4,
        device_mapping=[0, 1],
        pipeline_schedule=ipu.ops.pipelining_ops.PipelineSchedule.Grouped,
    )
    model.print_pipeline_stage_assignment_summary()
"""


def _script(examples: int, ipus: int, steps: tuple[int, int], further: str = "", layers: str = _LAYERS) -> str:
    parts = (_IMPORTS.format(examples=examples), _DATA, layers, _CONFIGURED.format(ipus=ipus), further)
    return "\n".join(part.rstrip() for part in parts) + "\n" + _TRAINED.format(train=steps[0], test=steps[1])


STAGES: dict[str, tuple[str, int]] = {
    "on an IPU": (_script(64, 1, (1, 1)), 16),
    "several steps an execution": (_script(64, 1, (8, 8)), 16),
    "accumulated gradients": (_script(64, 1, (8, 8), _ACCUMULATION), 4),
    "replicas": (_script(64, 2, (4, 4)), 8),
    "a pipeline with replicas": (_script(64, 4, (4, 4), _PIPELINE, _LAYERS_IN_STAGES), 2),
}
"""The tutorial's stages, and between them accumulation by itself: a script each, and the updates of its two epochs."""

TALK = """
import argparse

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras.layers import Activation, Conv2D, Dense, Dropout, Flatten, MaxPooling2D
from tensorflow.keras.models import Sequential
from tensorflow.python import ipu

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--filters", type=int, default=32)
parser.add_argument("--examples", type=int, default=256)
given = parser.parse_args()


def data_set(examples, batch):
    generator = np.random.default_rng(3)
    images = generator.integers(0, 256, (examples, 32, 32, 3)).astype(np.uint8)
    labels = generator.integers(0, 10, (examples, 1)).astype(np.uint8)
    images = images.astype("float32") / 255.0
    labels = keras.utils.to_categorical(labels, 10)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1000).batch(batch, drop_remainder=True)
    data = data.map(lambda d, l: (tf.cast(d, tf.float32), tf.cast(l, tf.float32)))
    return data.repeat().prefetch(16)


def network(filters):
    model = Sequential()
    for count in (filters, 2 * filters):
        first = {"input_shape": (32, 32, 3)} if count == filters else {}
        model.add(Conv2D(count, (3, 3), padding="same", **first))
        model.add(Activation("relu"))
        model.add(Conv2D(count, (3, 3)))
        model.add(Activation("relu"))
        model.add(MaxPooling2D(pool_size=(2, 2)))
        model.add(Dropout(0.25))
    model.add(Flatten())
    model.add(Dense(16 * filters))
    model.add(Activation("relu"))
    model.add(Dropout(0.5))
    model.add(Dense(10))
    model.add(Activation("softmax"))
    return model


configuration = ipu.config.IPUConfig()
configuration.auto_select_ipus = 1
configuration.configure_ipu_system()

with ipu.ipu_strategy.IPUStrategy().scope():
    model = network(given.filters)
    model.compile(
        loss="categorical_crossentropy", optimizer=tf.keras.optimizers.RMSprop(learning_rate=0.0001), metrics=["accuracy"]
    )
    steps = given.examples // given.batch_size
    history = model.fit(data_set(given.examples, given.batch_size), steps_per_epoch=steps, epochs=2)
    model.evaluate(data_set(given.examples, given.batch_size), steps=1)
print("ran", len(history.history["loss"]), int(model.optimizer.iterations), bool(np.isfinite(history.history["loss"]).all()))
"""
"""The network for CIFAR-10 with which Graphcore's talk on its software begins."""
