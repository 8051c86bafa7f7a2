"""Constraints of weights, which hold behind each step: Keras' own, formula by formula."""

from __future__ import annotations

from typing import Any

import keras
from attrs import frozen

from pypoplar import popops
from pypoplar.errors import MissingFeature
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Max, Min, Sqrt
from pypoplar.poptorch.update.element_update import ElementUpdate
from pypoplar.program import Sequence
from pypoplar.types import FLOAT

KINDS = ("MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm")


@frozen
class WeightConstraint:
    """A constraint by the name of its class in Keras, with what it has of its arguments."""

    kind: str
    axes: tuple[int, ...] = ()
    lowest: float = 0.0
    highest: float = 0.0
    rate: float = 1.0
    epsilon: float = 0.0


def constraint_of(variable: Any) -> WeightConstraint | None:
    """That of a variable of Keras, if it has one; `MissingFeature` for others than Keras' four of weights by themselves."""
    given = variable.constraint
    if given is None:
        return None
    kind = type(given).__name__
    if kind not in KINDS or type(given) is not getattr(keras.constraints, kind):
        raise MissingFeature(f"the constraint {kind} of {variable.path} is not there on the IPU; there are {', '.join(KINDS)}")
    if kind == "NonNeg":
        return WeightConstraint(kind)
    axis = given.axis
    axes = range(len(variable.shape)) if axis is None else axis if isinstance(axis, list | tuple) else [axis]
    return WeightConstraint(
        kind,
        tuple(sorted(one % len(variable.shape) for one in axes)),
        float(getattr(given, "min_value", 0.0)),
        float(getattr(given, "max_value", 0.0)),
        float(getattr(given, "rate", 1.0)),
        float(keras.config.epsilon()),
    )


def constrain(graph: Graph, weight: Tensor, constraint: WeightConstraint, prog: Sequence, name: str) -> None:
    """Let a weight be what its constraint says."""
    update = ElementUpdate(graph, [weight])
    own = update.leaf(weight)
    if constraint.kind == "NonNeg":
        update.replace(weight, Max(own, 0.0))
    else:
        update.replace(weight, own * update.leaf(_factor(graph, weight, constraint, prog, name)))
    update.add_to(prog, name)


def _factor(graph: Graph, weight: Tensor, constraint: WeightConstraint, prog: Sequence, name: str) -> Tensor:
    """What vectors of a weight are multiplied by, given their squares' sums."""
    sums = popops.reduce(graph, weight, FLOAT, list(constraint.axes), popops.ReduceParams(popops.Operation.SQUARE_ADD), prog, name)
    update = ElementUpdate(graph, [sums])
    norms = Sqrt(update.leaf(sums))
    wanted: Any = 1.0
    if constraint.kind != "UnitNorm":
        clipped = Min(Max(norms, constraint.lowest), constraint.highest)
        wanted = clipped if constraint.rate == 1 else constraint.rate * clipped + (1.0 - constraint.rate) * norms
    update.replace(sums, wanted / (constraint.epsilon + norms))
    update.add_to(prog, name)
    return sums.reshape([1 if place in constraint.axes else size for place, size in enumerate(weight.shape())])
