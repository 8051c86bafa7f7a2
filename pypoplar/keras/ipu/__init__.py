"""Graphcore's names around Keras: `config`, `ipu_strategy` and `utils`, as ``from tensorflow.python import ipu`` has them."""

from __future__ import annotations

from pypoplar.keras.ipu import config, gradient_accumulation, ipu_strategy, ops, utils

__all__ = ["config", "gradient_accumulation", "ipu_strategy", "ops", "utils"]
