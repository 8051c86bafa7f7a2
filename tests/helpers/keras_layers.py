"""Every layer of Keras: how it is made for a test, on which inputs, or why the simulated IPU refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras_rig as rig
import numpy as np

keras = rig.keras
layers = keras.layers

IMAGE, LINE, SPACE, ROW = (2, 6, 6, 3), (2, 6, 3), (2, 4, 4, 4, 2), (2, 5)


class Tried(NamedTuple):
    """A layer, the shapes of its inputs, and how it is called."""

    make: Callable[[], Any]
    shapes: tuple[tuple[int, ...], ...]
    together: bool = False  # its inputs are one argument, a list
    within: float = 1e-6
    training: bool = True  # it is compared in training, too


def _one(make: Callable[[], Any], *shapes: tuple[int, ...], **how: Any) -> Tried:
    return Tried(make, shapes, **how)


EVERY: dict[str, Tried] = {
    "Activation": _one(lambda: layers.Activation("gelu"), ROW),
    "ActivityRegularization": _one(lambda: layers.ActivityRegularization(l2=0.1), ROW),
    "AdaptiveAveragePooling1D": _one(lambda: layers.AdaptiveAveragePooling1D(2), LINE),
    "AdaptiveAveragePooling2D": _one(lambda: layers.AdaptiveAveragePooling2D(2), IMAGE),
    "AdaptiveAveragePooling3D": _one(lambda: layers.AdaptiveAveragePooling3D(2), SPACE),
    "AdaptiveMaxPooling1D": _one(lambda: layers.AdaptiveMaxPooling1D(2), LINE),
    "AdaptiveMaxPooling2D": _one(lambda: layers.AdaptiveMaxPooling2D(2), IMAGE),
    "AdaptiveMaxPooling3D": _one(lambda: layers.AdaptiveMaxPooling3D(2), SPACE),
    "Add": _one(lambda: layers.Add(), ROW, ROW, together=True),
    "AdditiveAttention": _one(lambda: layers.AdditiveAttention(), LINE, LINE, together=True),
    "AlphaDropout": _one(lambda: layers.AlphaDropout(0.5), ROW, training=False),
    "Attention": _one(lambda: layers.Attention(), LINE, LINE, together=True),
    "Average": _one(lambda: layers.Average(), ROW, ROW, together=True),
    "AveragePooling1D": _one(lambda: layers.AveragePooling1D(2), LINE),
    "AveragePooling2D": _one(lambda: layers.AveragePooling2D(2), IMAGE),
    "AveragePooling3D": _one(lambda: layers.AveragePooling3D(2), SPACE),
    "BatchNormalization": _one(lambda: layers.BatchNormalization(), IMAGE),
    "Bidirectional": _one(lambda: layers.Bidirectional(layers.GRU(3)), LINE, within=2e-6),
    "CategoryEncoding": _one(lambda: layers.CategoryEncoding(4, output_mode="one_hot"), (2, 1)),
    "CenterCrop": _one(lambda: layers.CenterCrop(4, 4), IMAGE),
    "Concatenate": _one(lambda: layers.Concatenate(), ROW, ROW, together=True),
    "Conv1D": _one(lambda: layers.Conv1D(4, 3), LINE),
    "Conv1DTranspose": _one(lambda: layers.Conv1DTranspose(4, 3, strides=2), LINE),
    "Conv2D": _one(lambda: layers.Conv2D(4, 3, padding="same", strides=2), IMAGE),
    "Conv2DTranspose": _one(lambda: layers.Conv2DTranspose(4, 3, strides=2, padding="same"), IMAGE),
    "Conv3D": _one(lambda: layers.Conv3D(2, 2), SPACE),
    "Conv3DTranspose": _one(lambda: layers.Conv3DTranspose(2, 2), SPACE),
    "ConvLSTM1D": _one(lambda: layers.ConvLSTM1D(2, 2), (2, 3, 5, 2)),
    "ConvLSTM2D": _one(lambda: layers.ConvLSTM2D(2, 2), (2, 3, 5, 5, 2)),
    "Cropping1D": _one(lambda: layers.Cropping1D(), LINE),
    "Cropping2D": _one(lambda: layers.Cropping2D(1), IMAGE),
    "Cropping3D": _one(lambda: layers.Cropping3D(), SPACE),
    "Dense": _one(lambda: layers.Dense(4, kernel_regularizer="l2"), ROW),
    "DepthwiseConv1D": _one(lambda: layers.DepthwiseConv1D(3), LINE),
    "DepthwiseConv2D": _one(lambda: layers.DepthwiseConv2D(3), IMAGE),
    "Dot": _one(lambda: layers.Dot(1), ROW, ROW, together=True),
    "Dropout": _one(lambda: layers.Dropout(0.5, seed=1), ROW, training=False),
    "ELU": _one(lambda: layers.ELU(), ROW),
    "EinsumDense": _one(lambda: layers.EinsumDense("abc,cd->abd", (None, 4)), LINE),
    "Embedding": _one(lambda: layers.Embedding(7, 3), (2, 5)),
    "Flatten": _one(lambda: layers.Flatten(), IMAGE),
    "GRU": _one(lambda: layers.GRU(3), LINE, within=2e-6),
    "GaussianDropout": _one(lambda: layers.GaussianDropout(0.5), ROW, training=False),
    "GaussianNoise": _one(lambda: layers.GaussianNoise(0.5), ROW, training=False),
    "GlobalAveragePooling1D": _one(lambda: layers.GlobalAveragePooling1D(), LINE),
    "GlobalAveragePooling2D": _one(lambda: layers.GlobalAveragePooling2D(), IMAGE),
    "GlobalAveragePooling3D": _one(lambda: layers.GlobalAveragePooling3D(), SPACE),
    "GlobalMaxPooling1D": _one(lambda: layers.GlobalMaxPooling1D(), LINE),
    "GlobalMaxPooling2D": _one(lambda: layers.GlobalMaxPooling2D(), IMAGE),
    "GlobalMaxPooling3D": _one(lambda: layers.GlobalMaxPooling3D(), SPACE),
    "GroupNormalization": _one(lambda: layers.GroupNormalization(3), IMAGE),
    "GroupQueryAttention": _one(lambda: layers.GroupQueryAttention(4, 2, 1), LINE, LINE, within=3e-6),
    "Identity": _one(lambda: layers.Identity(), ROW),
    "LSTM": _one(lambda: layers.LSTM(3, return_sequences=True), LINE, within=2e-6),
    "Lambda": _one(lambda: layers.Lambda(lambda x: x * 2 + 1), ROW),
    "LayerNormalization": _one(lambda: layers.LayerNormalization(), LINE),
    "LeakyReLU": _one(lambda: layers.LeakyReLU(), ROW),
    "Masking": _one(lambda: layers.Masking(), LINE),
    "MaxPooling1D": _one(lambda: layers.MaxPooling1D(), LINE),
    "MaxPooling2D": _one(lambda: layers.MaxPooling2D(2, padding="same"), IMAGE),
    "MaxPooling3D": _one(lambda: layers.MaxPooling3D(), SPACE),
    "Maximum": _one(lambda: layers.Maximum(), ROW, ROW, together=True),
    "Minimum": _one(lambda: layers.Minimum(), ROW, ROW, together=True),
    "MultiHeadAttention": _one(lambda: layers.MultiHeadAttention(2, 3), LINE, LINE),
    "Multiply": _one(lambda: layers.Multiply(), ROW, ROW, together=True),
    "Normalization": _one(lambda: layers.Normalization(mean=0.5, variance=2.0), ROW),
    "PReLU": _one(lambda: layers.PReLU(), ROW),
    "Permute": _one(lambda: layers.Permute((2, 1)), LINE),
    "RMSNormalization": _one(lambda: layers.RMSNormalization(), LINE),
    "RNN": _one(lambda: layers.RNN(layers.SimpleRNNCell(3)), LINE),
    "ReLU": _one(lambda: layers.ReLU(max_value=1.0, negative_slope=0.1), ROW),
    "RepeatVector": _one(lambda: layers.RepeatVector(3), ROW),
    "Rescaling": _one(lambda: layers.Rescaling(0.5, 1.0), ROW),
    "Reshape": _one(lambda: layers.Reshape((3, 6)), LINE),
    "Resizing": _one(lambda: layers.Resizing(4, 4), IMAGE),
    "ReversibleEmbedding": _one(lambda: layers.ReversibleEmbedding(7, 3), (2, 5)),
    "SeparableConv1D": _one(lambda: layers.SeparableConv1D(4, 3), LINE),
    "SeparableConv2D": _one(lambda: layers.SeparableConv2D(4, 3), IMAGE),
    "SimpleRNN": _one(lambda: layers.SimpleRNN(3), LINE),
    "Softmax": _one(lambda: layers.Softmax(), ROW),
    "SpatialDropout1D": _one(lambda: layers.SpatialDropout1D(0.5), LINE, training=False),
    "SpatialDropout2D": _one(lambda: layers.SpatialDropout2D(0.5), IMAGE, training=False),
    "SpatialDropout3D": _one(lambda: layers.SpatialDropout3D(0.5), SPACE, training=False),
    "StackedRNNCells": _one(lambda: layers.RNN(layers.StackedRNNCells([layers.GRUCell(2), layers.LSTMCell(3)])), LINE),
    "Subtract": _one(lambda: layers.Subtract(), ROW, ROW, together=True),
    "TimeDistributed": _one(lambda: layers.TimeDistributed(layers.Dense(2)), LINE),
    "UnitNormalization": _one(lambda: layers.UnitNormalization(), ROW),
    "UpSampling1D": _one(lambda: layers.UpSampling1D(), LINE),
    "UpSampling2D": _one(lambda: layers.UpSampling2D(), IMAGE),
    "UpSampling3D": _one(lambda: layers.UpSampling3D(), SPACE),
    "ZeroPadding1D": _one(lambda: layers.ZeroPadding1D(), LINE),
    "ZeroPadding2D": _one(lambda: layers.ZeroPadding2D(), IMAGE),
    "ZeroPadding3D": _one(lambda: layers.ZeroPadding3D(), SPACE),
}
TRIED = {name: one for name, one in EVERY.items() if hasattr(layers, name)}
"""Those that the installed Keras has."""
ALIASES = {
    f"{beginning}{short}{rest}": f"{beginning}{long}{rest}"
    for short, long in (("MaxPool", "MaxPooling"), ("AvgPool", "AveragePooling"), ("Convolution", "Conv"))
    for beginning in ("", "Global", "Separable", "Depthwise")
    for rest in ("1D", "2D", "3D", "1DTranspose", "2DTranspose", "3DTranspose")
}
INTEGERS = {"Embedding": 7, "ReversibleEmbedding": 7, "CategoryEncoding": 4}


def inputs_of(name: str) -> list[np.ndarray]:
    """Inputs for a layer, drawn."""
    if name in INTEGERS:
        return [np.random.default_rng(1).integers(0, INTEGERS[name], shape).astype(np.int32) for shape in TRIED[name].shapes]
    return [rig.drawn(*shape, seed=place) for place, shape in enumerate(TRIED[name].shapes)]


def network(name: str) -> Any:
    """A network of a layer and, where there are numbers before it, one that has weights, so that gradients go through it."""
    keras.utils.set_random_seed(2)
    tried = TRIED[name]
    given = [keras.Input(shape[1:], dtype="int32" if name in INTEGERS else "float32") for shape in tried.shapes]
    entered = given if name in INTEGERS else [layers.Dense(one.shape[-1], use_bias=False)(one) for one in given]
    layer = tried.make()
    out = layer(entered) if tried.together else layer(*entered)
    if name == "CategoryEncoding":
        out = layers.Dense(2)(out)
    return keras.Model(given if len(given) > 1 else given[0], out)
