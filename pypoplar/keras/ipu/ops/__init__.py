"""Names of operations that scripts for IPU Keras take: those of pipelines."""

from __future__ import annotations

from typing import Any

from pypoplar.keras.ipu.missing_names import missing
from pypoplar.keras.ipu.ops import pipelining_ops

__all__ = ["pipelining_ops"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise missing("ipu.ops", name, __all__)
