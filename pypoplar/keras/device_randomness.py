"""Random numbers of Keras while a model is captured: they are the device's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from keras.src.backend.config import floatx
from keras.src.backend.torch import random as keras_random
from keras.src.backend.torch.core import to_torch_dtype

from pypoplar.errors import MissingFeature

Draw = Callable[..., torch.Tensor]


def _normal(shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None) -> torch.Tensor:
    return torch.randn(tuple(shape), dtype=to_torch_dtype(dtype or floatx())) * stddev + mean


def _uniform(shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Any = None) -> torch.Tensor:
    return torch.rand(tuple(shape), dtype=to_torch_dtype(dtype or floatx())) * (maxval - minval) + minval


def _dropout(inputs: torch.Tensor, rate: float, noise_shape: Any = None, seed: Any = None) -> torch.Tensor:
    if rate == 0:
        return inputs
    if rate == 1:
        return torch.zeros_like(inputs)
    if noise_shape is None:
        return torch.nn.functional.dropout(inputs, p=rate, training=True)
    shape = [inputs.shape[place] if size is None else size for place, size in enumerate(noise_shape)]
    kept = torch.bernoulli(torch.full(shape, 1 - rate, dtype=inputs.dtype))
    return inputs * kept / (1 - rate)


def _randint(shape: Any, minval: int, maxval: int, dtype: Any = "int32", seed: Any = None) -> torch.Tensor:
    drawn = torch.floor(torch.rand(tuple(shape)) * (maxval - minval)).clamp(max=maxval - minval - 1) + minval
    return drawn.to(to_torch_dtype(dtype))


def _missing(name: str) -> Draw:
    def refuse(*_: Any, **__: Any) -> torch.Tensor:
        raise MissingFeature(f"keras.random.{name} is not there on the IPU; normal, uniform, randint and dropout are")

    return refuse


DRAWS: dict[str, Draw] = {
    "normal": _normal,
    "uniform": _uniform,
    "dropout": _dropout,
    "randint": _randint,
    **{name: _missing(name) for name in ("categorical", "truncated_normal", "shuffle", "gamma", "binomial", "beta")},
}


@contextlib.contextmanager
def device_draws() -> Iterator[None]:
    """Let Keras draw from the device's generator: seeds decide nothing there, and `SeedGenerator`s stay as they are."""
    with contextlib.ExitStack() as stack:
        for name, draw in DRAWS.items():
            stack.enter_context(mock.patch.object(keras_random, name, draw))
        yield
