"""What a step is compiled for beside shapes: the attributes of layers and losses, which programs may change between calls."""

from __future__ import annotations

import types
import zlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import torch

PLAIN = (bool, int, float, str, type(None))
SMALL = 1 << 16  # bytes of an array that is compared by its values
BY_LOOPS = ("history", "stop_training", "stop_evaluating", "stop_predicting")  # what `fit` and its like set on a model
CHANGING = frozenset(("training", "built", *BY_LOOPS, *vars(keras.Sequential()), *vars(keras.Model()), *vars(keras.Layer())))
"""Attributes that Keras changes itself while models run, or that are a model's state and none of its layers'."""
CODE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, type)


def layer_settings(model: Any) -> tuple[Any, ...]:
    """The plain attributes of all layers and losses, and of the objects that they have; equal where a step stays the same."""
    layers = model._flatten_layers(include_self=True, recursive=True)
    found = [(id(layer), layer.trainable, *_own(layer)) for layer in layers]
    losses = keras.tree.flatten(getattr(getattr(model, "_compile_loss", None), "_user_loss", None))
    return (*found, *((id(one), *_own(one)) for one in losses if isinstance(one, keras.Loss)))


def _own(holder: Any) -> Iterator[tuple[str, Any]]:
    keras_own = type(holder).__module__.startswith("keras.")
    for name, value in vars(holder).items():
        if name in CHANGING or (keras_own and name.startswith("_")):
            continue
        known = _setting(value)
        if known is not None:
            yield name, known


def _setting(value: Any) -> Any:
    """What is compared of an attribute's value; None for what is compared elsewhere, or not known to stay."""
    if isinstance(value, PLAIN):
        return (value,)
    if isinstance(value, list | tuple | set | frozenset | dict):
        parts = [*value, *value.values()] if isinstance(value, dict) else [*value]
        return repr(parts) if all(isinstance(one, PLAIN) for one in parts) else None
    if isinstance(value, keras.Variable | keras.Layer | torch.nn.Module):
        return None
    if isinstance(value, torch.Tensor):
        return id(value), value._version
    if isinstance(value, np.ndarray):
        small = value.nbytes <= SMALL and not value.dtype.hasobject
        return (value.shape, str(value.dtype), zlib.crc32(np.ascontiguousarray(value).tobytes())) if small else id(value)
    if isinstance(value, CODE) or not hasattr(value, "__dict__"):
        return id(value)
    return id(value), [(name, one) for name, one in vars(value).items() if isinstance(one, PLAIN) and name not in CHANGING]
