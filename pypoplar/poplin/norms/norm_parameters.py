"""Vectors with an element for each channel, mapped beside the activations."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.norms.norm_arguments import REALS, check_activations
from pypoplar.poputil.arguments import check_debug, element_type
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.placement.broadcast_operand import createBroadcastOperand
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


@overload
def createNormGamma(graph: Graph, acts: Tensor, type: ElementType, debugContext: str | None = None) -> Tensor: ...
@overload
def createNormGamma(graph: Graph, acts: Tensor, debugContext: str | None = None) -> Tensor: ...
@overloaded("poplin.createNormGamma")
def createNormGamma(graph: Graph, acts: Tensor, type: ElementType | None = None, debugContext: str | None = None) -> Tensor:
    """A new vector with a factor for each channel of activations, on tiles that hold that channel; it holds nothing yet.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...], with tiles.
    type:
        The type of the vector, FLOAT or HALF; by default that of `acts`.

    Returns
    -------
    Tensor
        [C].

    Raises
    ------
    PoplibsError
        For other types and ranks.
    """
    return _parameter("poplin.createNormGamma", graph, acts, type, below(debugContext, "gamma"))


@overload
def createNormBeta(graph: Graph, acts: Tensor, type: ElementType, debugContext: str | None = None) -> Tensor: ...
@overload
def createNormBeta(graph: Graph, acts: Tensor, debugContext: str | None = None) -> Tensor: ...
@overloaded("poplin.createNormBeta")
def createNormBeta(graph: Graph, acts: Tensor, type: ElementType | None = None, debugContext: str | None = None) -> Tensor:
    """A new vector with what is added to each channel of activations, on tiles that hold that channel; it holds nothing yet.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...], with tiles.
    type:
        The type of the vector, FLOAT or HALF; by default that of `acts`.

    Returns
    -------
    Tensor
        [C].

    Raises
    ------
    PoplibsError
        For other types and ranks.
    """
    return _parameter("poplin.createNormBeta", graph, acts, type, below(debugContext, "beta"))


@public
def createNormParams(graph: Graph, acts: Tensor, debugContext: str | None = None) -> tuple[Tensor, Tensor]:
    """Two new vectors, gamma and beta, for `normalise`; see `createNormGamma` and `createNormBeta`.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...], with tiles.

    Returns
    -------
    tuple[Tensor, Tensor]
        Gamma and beta [C], of the type of `acts`.

    Raises
    ------
    PoplibsError
        For other types and ranks.
    """
    call = "poplin.createNormParams"
    check_debug(call, debugContext)
    return (
        _parameter(call, graph, acts, None, below(debugContext, "gamma")),
        _parameter(call, graph, acts, None, below(debugContext, "beta")),
    )


def _parameter(call: str, graph: Graph, acts: Tensor, type: ElementType | None, debug: str) -> Tensor:
    check_activations(call, graph, "acts", acts)
    chosen = acts.elementType() if type is None else element_type(call, type)
    if chosen not in REALS:
        raise PoplibsError(f"{call} makes a FLOAT or HALF vector, got the type {chosen!r}")
    return channel_vector(graph, acts, chosen, debug)


def channel_vector(graph: Graph, acts: Tensor, type: ElementType, debug: str) -> Tensor:
    """A new vector with an element for each channel."""
    return createBroadcastOperand(graph, acts, type, 1, True, debug)
