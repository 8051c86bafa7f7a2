"""Graphcore's names around Keras: `config`, `ipu_strategy` and `utils`, as ``from tensorflow.python import ipu`` has them."""

from __future__ import annotations

from typing import Any

from pypoplar.keras.ipu import config, gradient_accumulation, ipu_strategy, ops, utils
from pypoplar.keras.ipu.missing_names import missing

__all__ = ["config", "gradient_accumulation", "ipu_strategy", "ops", "utils"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise missing("ipu", name, __all__)
