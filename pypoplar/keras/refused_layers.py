"""Layers of Keras that have no form on the simulated IPU, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from pypoplar.errors import MissingFeature

_PICTURES = "it changes pictures at random or by their values, which belongs before the model: apply it to the data on the host"
_TEXTS = "it looks up texts or numbers in tables of the host: apply it to the data before the model"
_OTHERS = "it holds a model of another framework"
_SPECTRA = "there is no Fourier transform"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("AugMix", "AutoContrast", "ContrastLimitedAdaptiveHistogramEqualization", "CutMix", "Equalization", "MixUp"),
            *("RandAugment", "RandomBrightness", "RandomColorDegeneration", "RandomColorJitter", "RandomContrast", "RandomCrop"),
            *("RandomElasticTransform", "RandomErasing", "RandomFlip", "RandomGaussianBlur", "RandomGrayscale", "RandomHue"),
            *("RandomInvert", "RandomPerspective", "RandomPosterization", "RandomRotation", "RandomSaturation"),
            *("RandomSharpness", "RandomShear", "RandomTranslation", "RandomZoom", "Solarization", "MaxNumBoundingBoxes"),
        ),
        _PICTURES,
    ),
    **dict.fromkeys(
        ("Discretization", "HashedCrossing", "Hashing", "IntegerLookup", "StringLookup", "TextVectorization"),
        _TEXTS,
    ),
    **dict.fromkeys(("FlaxLayer", "JaxLayer", "TFSMLayer"), _OTHERS),
    **dict.fromkeys(("MelSpectrogram", "STFTSpectrogram"), _SPECTRA),
    "SpectralNormalization": "its forward pass sets the kernel, which is trained",
    "ConvLSTM3D": "convolutions have three dimensions of a field at most, and its steps one more",
}
"""By the names of their classes."""


def refuse_layer(layer: Any) -> None:
    """`MissingFeature` for a layer of Keras that the simulated IPU does not have."""
    name = type(layer).__name__
    if name in REFUSED and type(layer) is getattr(keras.layers, name, None):
        raise MissingFeature(f"the layer {layer.name} ({name}) is not there on the IPU: {REFUSED[name]}")
