"""The kinds of non-linearities."""

from __future__ import annotations

from enum import Enum

SOFTMAX_SCALING = 62000.0  # what SOFTMAX_SCALED's results are multiplied by: PopLibs' number, near the largest HALF


class NonLinearityType(Enum):
    """PopLibs' non-linearities; the softmaxes go over the last dimension, the others over every element x.

    Attributes
    ----------
    SIGMOID:
        ``1 / (1 + exp(-x))``.
    HARD_SIGMOID:
        ``0.2 x + 0.5``, held between 0 and 1.
    RELU:
        x, or 0 where it is negative.
    TANH:
        The hyperbolic tangent of x.
    GELU:
        x times the normal distribution's share below x, by an approximation with a hyperbolic tangent.
    GELU_ERF:
        The same by the error function.
    SWISH:
        ``x / (1 + exp(-x))``.
    SOFTMAX:
        ``exp(x)`` over the sum of those of the row; powers are taken as they come.
    SOFTMAX_STABLE:
        The same once the largest element of its row is taken from each.
    SOFTMAX_SCALED:
        SOFTMAX_STABLE times 62,000: small HALFs keep more of their bits then.
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
        """Whether it goes over rows, as the softmaxes do."""
        return self.value.startswith("SOFTMAX")

    @property
    def scaling(self) -> float:
        """The factor of results, 62,000 of SOFTMAX_SCALED, else 1."""
        return SOFTMAX_SCALING if self is NonLinearityType.SOFTMAX_SCALED else 1.0
