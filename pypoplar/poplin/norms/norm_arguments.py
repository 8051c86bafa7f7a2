"""Checks of what the calls on norms are given, before the graph changes."""

from __future__ import annotations

import math

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_float, check_operands, check_own, element_type
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import fits
from pypoplar.types import FLOAT, HALF, ElementType

REALS = (FLOAT, HALF)


def check_activations(call: str, graph: Graph, name: str, acts: Tensor) -> None:
    """`PoplibsError` unless `acts` are FLOATs or HALFs [N, C, ...] of this graph, with a tile each."""
    check_own(call, graph, **{name: acts})
    if acts.elementType() not in REALS or acts.rank() < 2:
        raise PoplibsError(f"{call}: {name} is FLOAT or HALF [N, C, ...], batch, channels and field, got {acts!r}")
    check_operands(call, graph, **{name: acts})


def check_alike(call: str, graph: Graph, name: str, tensor: Tensor, acts: Tensor) -> None:
    """`PoplibsError` unless a tensor has the shape and type of the activations, and a tile for each element."""
    check_own(call, graph, **{name: tensor})
    if (tensor.shape(), tensor.elementType()) != (acts.shape(), acts.elementType()):
        raise PoplibsError(f"{call}: {name} has the shape and type of the activations, {acts!r}, got {tensor!r}")
    check_operands(call, graph, **{name: tensor})


def check_channel_vector(call: str, graph: Graph, name: str, vector: Tensor, acts: Tensor) -> None:
    """`PoplibsError` unless a tensor has an element for each channel, of the activations' type, and a tile for each."""
    check_own(call, graph, **{name: vector})
    channels, type = acts.dim(1), acts.elementType()
    if vector.numElements() != channels or vector.elementType() is not type:
        raise PoplibsError(
            f"{call}: {name} has an element of {type!r} for each of the {channels} channels of {acts!r}, got {vector!r}"
        )
    check_operands(call, graph, **{name: vector})


def check_epsilon(call: str, eps: float) -> None:
    """`PoplarTypeError` unless `eps` is a number, `PoplibsError` unless it is finite and not negative."""
    if not fits(eps, float):
        raise PoplarTypeError(f"{call}: eps is a number, got {eps!r}")
    check_float(call, "eps", eps)
    if not 0 <= eps < math.inf:
        raise PoplibsError(f"{call}: eps is added to a variance, a finite number of 0 at least, got {eps!r}")


def check_partials(call: str, partialsType: ElementType, acts: Tensor) -> None:
    """`PoplibsError` for a type of partial results that does not go with the activations."""
    if element_type(call, partialsType) not in REALS or (partialsType is HALF and acts.elementType() is FLOAT):
        raise PoplibsError(f"{call}: partialsType is FLOAT, or HALF for HALF activations, got {partialsType!r} for {acts!r}")
