"""How stages of a pipeline run, by Graphcore's names; on the simulated IPU they overlap as far as they can, whatever is said."""

from __future__ import annotations

from enum import Enum


class PipelineSchedule(Enum):
    """The order of the stages' passes."""

    Grouped = 0
    Interleaved = 1
    Sequential = 2


class RecomputationMode(Enum):
    """How stages compute again what their gradients need."""

    Auto = 0
    RecomputeThenBackpropagate = 1
    RecomputeAndBackpropagateInterleaved = 2


__all__ = ["PipelineSchedule", "RecomputationMode"]
