"""Activations without their channels' means and deviations, and with other ones."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.norms.channel_vertices import ChannelOperation
from pypoplar.poplin.norms.norm_arguments import check_activations, check_channel_vector
from pypoplar.poputil.arguments import check_call
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public


@public
def normWhiten(
    graph: Graph, acts: Tensor, mean: Tensor, iStdDev: Tensor, prog: Sequence, debugContext: str | None = None
) -> Tensor:
    """``(acts - mean) * iStdDev`` for each channel of activations, as a new tensor; `prog` is extended.

    HALFs are rounded after each of the two operations.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...].
    mean:
        The mean [C], of the type of `acts`, as of `normStatistics`.
    iStdDev:
        The inverse standard deviation [C], of the type of `acts`.

    Returns
    -------
    Tensor
        It lies as `acts` does.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    call = "poplin.normWhiten"
    check_call(call, graph, prog, debugContext)
    check_activations(call, graph, "acts", acts)
    check_channel_vector(call, graph, "mean", mean, acts)
    check_channel_vector(call, graph, "iStdDev", iStdDev, acts)
    operation = ChannelOperation(graph, "NormWhiten", (acts.elementType(),), below(debugContext, "normWhiten"))
    return operation.new_result(prog, {"acts": acts}, {"mean": mean, "iStdDev": iStdDev})


@public
def normalise(
    graph: Graph, actsWhitened: Tensor, gamma: Tensor, beta: Tensor, prog: Sequence, debugContext: str | None = None
) -> Tensor:
    """``actsWhitened * gamma + beta`` for each channel, as a new tensor; `prog` is extended.

    HALFs are rounded after each of the two operations.

    Parameters
    ----------
    actsWhitened:
        FLOAT or HALF [N, C, ...].
    gamma:
        The factors [C], of its type.
    beta:
        What is added [C], of its type.

    Returns
    -------
    Tensor
        It lies as `actsWhitened` does.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    call = "poplin.normalise"
    check_call(call, graph, prog, debugContext)
    check_activations(call, graph, "actsWhitened", actsWhitened)
    check_channel_vector(call, graph, "gamma", gamma, actsWhitened)
    check_channel_vector(call, graph, "beta", beta, actsWhitened)
    type = actsWhitened.elementType()
    operation = ChannelOperation(graph, "NormScaleAndShift", (type,), below(debugContext, "normalise"))
    return operation.new_result(prog, {"acts": actsWhitened}, {"gamma": gamma, "beta": beta})
