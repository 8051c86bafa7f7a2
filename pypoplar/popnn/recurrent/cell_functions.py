"""Non-linearities of cells as expressions, and their derivatives from their results."""

from __future__ import annotations

from collections.abc import Callable

from pypoplar.errors import MissingFeature, PoplarTypeError
from pypoplar.popnn.nonlinearities.nonlinearity_type import NonLinearityType
from pypoplar.popops.expr import And, Clamp, Expr, Gt, Lt, Max, Select, Sigmoid, Tanh

HARD_SLOPE, HARD_MIDDLE = 0.2, 0.5  # of the hard sigmoid

FUNCTIONS: dict[NonLinearityType, Callable[[Expr], Expr]] = {
    NonLinearityType.SIGMOID: Sigmoid,
    NonLinearityType.TANH: Tanh,
    NonLinearityType.RELU: lambda x: Max(x, 0.0),
    NonLinearityType.HARD_SIGMOID: lambda x: Clamp(x * HARD_SLOPE + HARD_MIDDLE, 0.0, 1.0),
}
SLOPES: dict[NonLinearityType, Callable[[Expr], Expr]] = {
    NonLinearityType.SIGMOID: lambda y: y * (1.0 - y),
    NonLinearityType.TANH: lambda y: 1.0 - y * y,
    NonLinearityType.RELU: lambda y: Select(1.0, 0.0, Gt(y, 0.0)),
    NonLinearityType.HARD_SIGMOID: lambda y: Select(HARD_SLOPE, 0.0, And(Gt(y, 0.0), Lt(y, 1.0))),
}


def check_activation(call: str, name: str, kind: object) -> None:
    """`MissingFeature` for a non-linearity whose derivative does not follow from its result, or that goes over rows."""
    if not isinstance(kind, NonLinearityType):
        raise PoplarTypeError(f"{call}: {name} is a popnn.NonLinearityType such as popnn.NonLinearityType.TANH, got {kind!r}")
    if kind not in FUNCTIONS:
        known = ", ".join(function.value for function in FUNCTIONS)
        raise MissingFeature(f"{call}: {name} is one of {known} in recurrent layers; {kind.value} is not there")
