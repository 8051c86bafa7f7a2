"""What a step is compiled for beside shapes: the attributes of a model's layers, which programs may change between calls."""

from __future__ import annotations

from typing import Any

import keras
import torch

PLAIN = (bool, int, float, str, type(None))
BY_LOOPS = ("history", "stop_training", "stop_evaluating", "stop_predicting")  # what `fit` and its like set on a model
CHANGING = frozenset(("training", "built", *BY_LOOPS, *vars(keras.Sequential()), *vars(keras.Model())))
"""Attributes that Keras changes itself while models run, or that are a model's state and none of its layers'."""


def layer_settings(model: Any) -> tuple[Any, ...]:
    """The plain attributes of all layers, and which functions and objects they have besides; equal where a step stays the same."""
    return tuple((id(layer), layer.trainable, *_own(layer)) for layer in model._flatten_layers(include_self=True, recursive=True))


def _own(layer: Any) -> list[tuple[str, Any]]:
    found = []
    for name, value in vars(layer).items():
        if name.startswith("_") or name in CHANGING:
            continue
        if isinstance(value, PLAIN) or (isinstance(value, tuple) and all(isinstance(one, PLAIN) for one in value)):
            found.append((name, value))
        elif not isinstance(value, list | dict | set | tuple | keras.Variable | keras.Layer | torch.Tensor):
            found.append((name, id(value)))
    return found
