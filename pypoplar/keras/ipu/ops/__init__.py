"""Names of operations that scripts for IPU Keras take: those of pipelines."""

from __future__ import annotations

from pypoplar.keras.ipu.ops import pipelining_ops

__all__ = ["pipelining_ops"]
