"""Gradients of norms: of their parameters, and of what goes into them."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.norms.batch_share import BatchShare, DistributedNormReduceCallback
from pypoplar.poplin.norms.channel_layout import ChannelLayout
from pypoplar.poplin.norms.channel_vertices import ChannelOperation
from pypoplar.poplin.norms.norm_arguments import check_activations, check_alike, check_channel_vector, check_partials
from pypoplar.poplin.norms.norm_parameters import channel_vector
from pypoplar.popops.elements.element_functions import mul
from pypoplar.popops.rearrange import regroupIfBeneficial
from pypoplar.popops.reduction.reduce_call import reduceMany
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams, SingleReduceOp
from pypoplar.poputil.arguments import check_call
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType


@public
def normParamGradients(
    graph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The gradients of gamma and beta of `normalise`: sums over each channel of ``actsWhitened * gradsIn`` and of `gradsIn`.

    `prog` is extended.

    Parameters
    ----------
    actsWhitened:
        FLOAT or HALF [N, C, ...].
    gradsIn:
        The gradient of the layer's output, of the same shape and type.
    partialsType:
        FLOAT, or HALF for HALF activations; it changes nothing.

    Returns
    -------
    tuple[Tensor, Tensor]
        Those of gamma and beta, new vectors [C] of the type of `gradsIn`.

    Raises
    ------
    PoplibsError
        For other shapes and types.

    Notes
    -----
    Products of HALFs are rounded to HALF, and summed in float.
    """
    call = "poplin.normParamGradients"
    _check(call, graph, actsWhitened, gradsIn, prog, partialsType, debugContext)
    debug = below(debugContext, "normParamGradients")
    grads = regroupIfBeneficial(graph, gradsIn, actsWhitened, prog, debug)
    return _sums(graph, actsWhitened, grads, 1.0, gradsIn.elementType(), prog, debug)


@public
def normGradients(graph: Graph, gradsIn: Tensor, gamma: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """The gradient of the whitened activations, ``gradsIn * gamma`` for each channel; `prog` is extended.

    Parameters
    ----------
    gradsIn:
        The gradient of the layer's output: FLOAT or HALF [N, C, ...].
    gamma:
        The factors [C], of its type.

    Returns
    -------
    Tensor
        A new tensor that lies as `gradsIn` does.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    call = "poplin.normGradients"
    check_call(call, graph, prog, debugContext)
    check_activations(call, graph, "gradsIn", gradsIn)
    check_channel_vector(call, graph, "gamma", gamma, gradsIn)
    operation = ChannelOperation(graph, "NormScale", (gradsIn.elementType(),), below(debugContext, "normGradients"))
    return operation.new_result(prog, {"acts": gradsIn}, {"gamma": gamma})


@public
def normStatisticsGradients(
    graph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
) -> Tensor:
    """The gradient of the activations from that of the whitened ones, as a new tensor; `prog` is extended.

    It is ``(gradsIn - mean(gradsIn) - actsWhitened * mean(actsWhitened * gradsIn)) * invStdDev`` for each channel: mean and
    deviation are functions of the activations, too, the latter with the biased variance.

    Parameters
    ----------
    actsWhitened:
        FLOAT or HALF [N, C, ...].
    gradsIn:
        The gradient of these, of the same shape and type.
    invStdDev:
        The inverse standard deviation [C], of the same type.
    partialsType:
        FLOAT, or HALF for HALF activations; it changes nothing.

    Returns
    -------
    Tensor
        It lies as `actsWhitened` does.

    Raises
    ------
    PoplibsError
        For other shapes and types.

    Notes
    -----
    Sums over channels, and what follows them, are in float; products of HALFs are rounded to HALF before they are summed up.
    """
    call = "poplin.normStatisticsGradients"
    _check(call, graph, actsWhitened, gradsIn, prog, partialsType, debugContext)
    check_channel_vector(call, graph, "invStdDev", invStdDev, actsWhitened)
    debug = below(debugContext, "normStatisticsGradients")
    return statistics_gradients(graph, actsWhitened, gradsIn, invStdDev, prog, debug, BatchShare.whole(actsWhitened))


def statistics_gradients(
    graph: Graph, actsWhitened: Tensor, gradsIn: Tensor, invStdDev: Tensor, prog: Sequence, debug: str, share: BatchShare
) -> Tensor:
    """The gradient of the activations, whose statistics are those of what has a share in them; see `normStatisticsGradients`."""
    if actsWhitened.numElements() == 0:
        return graph.clone(actsWhitened, debug)
    grads = regroupIfBeneficial(graph, gradsIn, actsWhitened, prog, debug)
    variance, mean = _sums(graph, actsWhitened, grads, -1 / share.elements, FLOAT, prog, debug)
    sums = share.together(graph, [variance, mean], FLOAT, prog, debug)
    variance, mean, deviation = share.spread(graph, actsWhitened, [*sums, invStdDev], prog, debug)
    vectors = {"varDelta": variance, "meanDelta": mean, "iStdDev": deviation}
    operation = ChannelOperation(graph, "NormStatisticsGradient", (actsWhitened.elementType(),), debug)
    return operation.new_result(prog, {"acts": actsWhitened, "grads": grads}, vectors)


@public
def distributedNormStatisticsGradients(  # noqa: PLR0913 (PopLibs' arguments)
    replicatedGraph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    reduceCallback: DistributedNormReduceCallback,
    normSize: int,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
) -> Tensor:
    """`normStatisticsGradients` where the batches of several replicas were normalised together.

    Parameters
    ----------
    replicatedGraph:
        The graph of a replica.
    actsWhitened:
        FLOAT or HALF [N, C, ...].
    gradsIn:
        The gradient of these, of the same shape and type.
    invStdDev:
        The inverse standard deviation [C], of the same type.
    reduceCallback:
        What adds up statistics over replicas, as `distributedNormStatistics` calls it, with FLOATs.
    normSize:
        How many samples the batches of these replicas have together, a multiple of N.
    partialsType:
        As for `normStatisticsGradients`.

    Returns
    -------
    Tensor
        A new tensor, which lies as `actsWhitened` does.

    Raises
    ------
    PoplibsError
        For other shapes and types, and a `normSize` that is no multiple of N.
    PoplarTypeError
        If the callback cannot be called so, or gives something else than tensors.
    """
    call, debug = "poplin.distributedNormStatisticsGradients", below(debugContext, "distributedNormStatisticsGradients")
    _check(call, replicatedGraph, actsWhitened, gradsIn, prog, partialsType, debugContext)
    check_channel_vector(call, replicatedGraph, "invStdDev", invStdDev, actsWhitened)
    share = BatchShare.of_replicas(call, actsWhitened, reduceCallback, normSize)
    return statistics_gradients(replicatedGraph, actsWhitened, gradsIn, invStdDev, prog, debug, share)


def _check(
    call: str, graph: Graph, acts: Tensor, grads: Tensor, prog: Sequence, partialsType: ElementType, debugContext: str | None
) -> None:
    check_call(call, graph, prog, debugContext)
    check_activations(call, graph, "actsWhitened", acts)
    check_alike(call, graph, "gradsIn", grads, acts)
    check_partials(call, partialsType, acts)


def _sums(
    graph: Graph, acts: Tensor, grads: Tensor, scale: float, type: ElementType, prog: Sequence, debug: str
) -> tuple[Tensor, Tensor]:
    """The sums over each channel of the products of both, and of the gradients, scaled: two vectors."""
    layout = ChannelLayout.of(graph, acts)
    whole, slopes = layout.ordered(acts), layout.ordered(grads)
    products = mul(graph, whole.flatten(), slopes.flatten(), prog, debug).reshape(whole.shape())
    vectors = [channel_vector(graph, acts, type, below(debug, name)) for name in ("ofProducts", "ofGradients")]
    factor = None
    if scale != 1:
        factor = graph.addConstant(FLOAT, [], scale, below(debug, "scale"))
        graph.setTileMapping(factor, 0)
    params = ReduceParams(Operation.ADD, False, factor)
    sums = [SingleReduceOp(tensor, layout.reduced, params) for tensor in (products, slopes)]
    reduceMany(graph, sums, [vector.reshape(layout.channel_shape) for vector in vectors], prog, debug)
    return vectors[0], vectors[1]
