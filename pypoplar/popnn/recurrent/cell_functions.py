"""Non-linearities of cells as expressions, and gradients through them from their results."""

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
BACKWARD: dict[NonLinearityType, Callable[[Expr, Expr], Expr]] = {  # of a gradient and a result: constants take the gradient's type
    NonLinearityType.SIGMOID: lambda gradient, y: gradient * (y * (1.0 - y)),
    NonLinearityType.TANH: lambda gradient, y: gradient * (1.0 - y * y),
    NonLinearityType.RELU: lambda gradient, y: Select(gradient, 0.0, Gt(y, 0.0)),
    NonLinearityType.HARD_SIGMOID: lambda gradient, y: Select(gradient * HARD_SLOPE, 0.0, And(Gt(y, 0.0), Lt(y, 1.0))),
}


def check_activation(call: str, name: str, kind: object) -> None:
    """`MissingFeature` for a non-linearity whose derivative does not follow from its result, or that goes over rows."""
    if not isinstance(kind, NonLinearityType):
        raise PoplarTypeError(f"{call}: {name} is a popnn.NonLinearityType such as popnn.NonLinearityType.TANH, got {kind!r}")
    if kind not in FUNCTIONS:
        known = ", ".join(function.value for function in FUNCTIONS)
        raise MissingFeature(f"{call}: {name} is one of {known} in recurrent layers; {kind.value} is not there")
