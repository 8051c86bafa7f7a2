"""The kinds of non-linearities."""

from __future__ import annotations

from enum import Enum

SOFTMAX_SCALING = 62000.0  # what SOFTMAX_SCALED's results are multiplied by: PopLibs' number, near the largest HALF


class NonLinearityType(Enum):
    """PopLibs' non-linearities. The softmaxes go over the last dimension, the others over every element.

    SOFTMAX takes powers as they come, SOFTMAX_STABLE first subtracts each row's largest element, and so does SOFTMAX_SCALED, whose
    results are 62,000 times as large: small HALFs keep more of their bits then.
    """

    SIGMOID = "SIGMOID"
    HARD_SIGMOID = "HARD_SIGMOID"
    RELU = "RELU"
    TANH = "TANH"
    GELU = "GELU"
    GELU_ERF = "GELU_ERF"
    SWISH = "SWISH"
    SOFTMAX = "SOFTMAX"
    SOFTMAX_STABLE = "SOFTMAX_STABLE"
    SOFTMAX_SCALED = "SOFTMAX_SCALED"

    @property
    def is_softmax(self) -> bool:
        """Whether it goes over rows."""
        return self.value.startswith("SOFTMAX")

    @property
    def scaling(self) -> float:
        """What results are multiplied by: 62,000 of SOFTMAX_SCALED, else 1."""
        return SOFTMAX_SCALING if self is NonLinearityType.SOFTMAX_SCALED else 1.0
