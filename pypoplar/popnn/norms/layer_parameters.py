"""Parameters of norm layers: vectors with an element for each channel."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.norms import norm_parameters
from pypoplar.poplin.norms.norm_arguments import check_activations
from pypoplar.poputil.arguments import check_debug, check_graph
from pypoplar.poputil.naming import below
from pypoplar.tracebacks import public


@public
def createNormGamma(graph: Graph, acts: Tensor, debugContext: str | None = None) -> Tensor:
    """A new vector with a factor for each channel of activations, on tiles that hold that channel; it holds nothing yet.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...], with tiles.

    Returns
    -------
    Tensor
        [C] of the type of `acts`.

    Raises
    ------
    PoplibsError
        For another type or rank.
    """
    return _vector("popnn.createNormGamma", graph, acts, debugContext, "gamma")


@public
def createNormBeta(graph: Graph, acts: Tensor, debugContext: str | None = None) -> Tensor:
    """A new vector with what is added to each channel of activations, on tiles that hold that channel; it holds nothing yet.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...], with tiles.

    Returns
    -------
    Tensor
        [C] of the type of `acts`.

    Raises
    ------
    PoplibsError
        For another type or rank.
    """
    return _vector("popnn.createNormBeta", graph, acts, debugContext, "beta")


@public
def createNormParams(graph: Graph, acts: Tensor, debugContext: str | None = None) -> tuple[Tensor, Tensor]:
    """Two new vectors, gamma and beta, as of `createNormGamma` and `createNormBeta`.

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
        For another type or rank.
    """
    call = "popnn.createNormParams"
    return _vector(call, graph, acts, debugContext, "gamma"), _vector(call, graph, acts, debugContext, "beta")


def _vector(call: str, graph: Graph, acts: Tensor, debugContext: str | None, name: str) -> Tensor:
    check_graph(call, graph)
    check_debug(call, debugContext)
    check_activations(call, graph, "acts", acts)
    return norm_parameters.channel_vector(graph, acts, acts.elementType(), below(debugContext, name))
