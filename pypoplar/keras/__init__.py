"""Keras on the simulated IPU: `fit`, `evaluate` and `predict` of models that are made in a strategy's scope.

It needs the packages keras and PyTorch, which the extra ``keras`` has. Import it before Keras, or let Keras have the backend
"torch".
"""

from __future__ import annotations

from pypoplar.keras.keras_backend import choose_torch as _choose_torch

_choose_torch()

from pypoplar.keras import ipu  # noqa: E402 (Keras is imported by what is below)
from pypoplar.keras.model_hooks import install as _install  # noqa: E402
from pypoplar.keras.pipeline_stages import PipelineStage, PipelineStageAssignment  # noqa: E402

_install()

__all__ = ["PipelineStage", "PipelineStageAssignment", "ipu"]
