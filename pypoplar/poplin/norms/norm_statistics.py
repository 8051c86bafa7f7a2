"""Mean and inverse standard deviation of each channel."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.norms.batch_share import BatchShare, DistributedNormReduceCallback
from pypoplar.poplin.norms.channel_layout import ChannelLayout
from pypoplar.poplin.norms.channel_vertices import ChannelOperation
from pypoplar.poplin.norms.norm_arguments import check_activations, check_epsilon, check_partials
from pypoplar.poplin.norms.norm_parameters import channel_vector
from pypoplar.popops.elements.cast import cast
from pypoplar.popops.elements.element_vertices import add_element_vertices
from pypoplar.popops.reduction.reduce_call import reduceMany, reduceWithOutput
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams, SingleReduceOp
from pypoplar.poputil.arguments import check_call, check_flag
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType


@public
def normStatistics(
    graph: Graph,
    actsUngrouped: Tensor,
    eps: float,
    prog: Sequence,
    unbiasedVarEstimate: bool,
    stableAlgo: bool = False,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and inverse standard deviation of each channel of activations, over all else; `prog` is extended.

    The deviation is ``1 / sqrt(variance + eps)``. Channels without elements have mean 0 and variance 0.

    Parameters
    ----------
    actsUngrouped:
        FLOAT or HALF [N, C, ...].
    eps:
        What is added to the variance, a number of 0 at least.
    unbiasedVarEstimate:
        Whether the variance is divided by one less than the number of elements, else by that number.
    stableAlgo:
        Whether the variance is the mean of the squares of what is left of the activations without the mean: that takes a copy
        of them, and is right also where the mean is much larger than the deviation. Else it is the mean of the squares less the
        mean's square, and 0 at least.
    partialsType:
        The type of both vectors until they get that of the activations: FLOAT, or HALF for HALF activations. Sums are taken in
        float in any case.

    Returns
    -------
    tuple[Tensor, Tensor]
        Mean and inverse standard deviation, new vectors [C] of the type of the activations.

    Raises
    ------
    PoplibsError
        For another type or rank, a negative `eps`, and another `partialsType`.
    InvalidTileMapping
        If an element of the activations has no tile.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import poplin, program, testing
    >>> def compute(graph, x):
    ...     poplin.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     mean, deviation = poplin.normStatistics(graph, x, 0.0, prog, False)
    ...     return prog, {"mean": mean, "deviation": deviation}
    >>> result = testing.run(compute, {"x": np.float32([[0, 10], [4, 18]])})
    >>> result["mean"].tolist(), result["deviation"].tolist()
    ([2.0, 14.0], [0.5, 0.25])
    """
    call, debug = "poplin.normStatistics", below(debugContext, "normStatistics")
    _check(call, graph, actsUngrouped, eps, prog, unbiasedVarEstimate, stableAlgo, partialsType, debugContext)
    share = BatchShare.whole(actsUngrouped)
    return statistics_over(graph, actsUngrouped, eps, prog, unbiasedVarEstimate, stableAlgo, partialsType, debug, share)


@public
def distributedNormStatistics(  # noqa: PLR0913 (PopLibs' arguments)
    replicatedGraph: Graph,
    actsUngrouped: Tensor,
    eps: float,
    prog: Sequence,
    unbiasedVarEstimate: bool,
    allReduceCallback: DistributedNormReduceCallback,
    normSize: int,
    stableAlgo: bool = False,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
) -> tuple[Tensor, Tensor]:
    """`normStatistics` over the batches of several replicas, each of which has activations of this shape.

    Parameters
    ----------
    replicatedGraph:
        The graph of a replica.
    actsUngrouped:
        FLOAT or HALF [N, C, ...].
    eps:
        What is added to the variance, a number of 0 at least.
    unbiasedVarEstimate:
        Whether the variance is divided by one less than the number of elements of all these batches, else by that number.
    allReduceCallback:
        What adds up statistics over replicas, called as ``f(graph, tensors, prog, replicas, debugContext, options)``, the number
        of replicas being that of those that are taken together; it gives as many tensors.
        `gcl.allReduceCrossReplica` with a CONSECUTIVE group of so many does it.
    normSize:
        How many samples the batches of these replicas have together, a multiple of N.
    stableAlgo, partialsType:
        As for `normStatistics`; the sums that cross are of `partialsType`.

    Returns
    -------
    tuple[Tensor, Tensor]
        Mean and inverse standard deviation, new vectors [C] of the type of the activations.

    Raises
    ------
    PoplibsError
        For another type or rank, a negative `eps`, another `partialsType`, and a `normSize` that is no multiple of N.
    PoplarTypeError
        If the callback cannot be called so, or gives something else than tensors.
    """
    call, debug = "poplin.distributedNormStatistics", below(debugContext, "distributedNormStatistics")
    _check(call, replicatedGraph, actsUngrouped, eps, prog, unbiasedVarEstimate, stableAlgo, partialsType, debugContext)
    share = BatchShare.of_replicas(call, actsUngrouped, allReduceCallback, normSize)
    return statistics_over(replicatedGraph, actsUngrouped, eps, prog, unbiasedVarEstimate, stableAlgo, partialsType, debug, share)


def _check(  # noqa: PLR0913 (PopLibs' arguments)
    call: str,
    graph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    unbiased: bool,
    stable: bool,
    type: ElementType,
    debugContext: str | None,
) -> None:
    check_call(call, graph, prog, debugContext)
    check_activations(call, graph, "actsUngrouped", acts)
    check_epsilon(call, eps)
    check_flag(call, "unbiasedVarEstimate", unbiased)
    check_flag(call, "stableAlgo", stable)
    check_partials(call, type, acts)


def statistics_over(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    unbiased: bool,
    stable: bool,
    type: ElementType,
    debug: str,
    share: BatchShare,
) -> tuple[Tensor, Tensor]:
    """Mean and inverse deviation of what has a share in them; see `normStatistics`."""
    mean, power = _moments(graph, acts, prog, stable, type, debug, share)
    count = share.elements
    scale = count / (count - 1) if unbiased and count > 1 else 1.0
    return _deviation(graph, acts, mean, power, prog, {"scaleVar": scale, "eps": float(eps)}, stable, debug)


def _moments(
    graph: Graph, acts: Tensor, prog: Sequence, stable: bool, type: ElementType, debug: str, share: BatchShare
) -> tuple[Tensor, Tensor]:
    """The mean, and the mean of the squares of the activations, or of what they have beside the mean."""
    layout, sum_type = ChannelLayout.of(graph, acts), share.sum_type(type)
    mean = channel_vector(graph, acts, sum_type, below(debug, "mean"))
    power = graph.clone(sum_type, mean, below(debug, "power"))
    scale = graph.addConstant(FLOAT, [], 1 / max(share.elements, 1), below(debug, "scale"))
    graph.setTileMapping(scale, 0)
    of_mean, of_power = (ReduceParams(operation, False, scale) for operation in (Operation.ADD, Operation.SQUARE_ADD))
    outputs = [vector.reshape(layout.channel_shape) for vector in (mean, power)]
    if not stable:
        views = [layout.ordered(acts)] * 2
        names = zip(views, (of_mean, of_power), ("mean", "power"), strict=True)
        reduceMany(
            graph, [SingleReduceOp(view, layout.reduced, params, name) for view, params, name in names], outputs, prog, debug
        )
        mean, power = share.together(graph, [mean, power], type, prog, debug)
        return mean, power
    reduceWithOutput(graph, layout.ordered(acts), outputs[0], layout.reduced, of_mean, prog, below(debug, "mean"))
    (mean,) = share.together(graph, [mean], type, prog, debug)
    (spread,) = share.spread(graph, acts, [mean], prog, debug)
    remove = ChannelOperation(graph, "NormRemoveMean", (acts.elementType(), type), below(debug, "removeMean"))
    centred = remove.new_result(prog, {"acts": acts}, {"mean": spread})
    reduceWithOutput(graph, layout.ordered(centred), outputs[1], layout.reduced, of_power, prog, below(debug, "power"))
    (power,) = share.together(graph, [power], type, prog, debug)
    return mean, power


def _deviation(
    graph: Graph, acts: Tensor, mean: Tensor, power: Tensor, prog: Sequence, values: dict[str, float], stable: bool, debug: str
) -> tuple[Tensor, Tensor]:
    """The mean as it is returned, and the inverse deviation, in one compute set."""
    type = acts.elementType()
    deviation = graph.clone(type, mean, below(debug, "iStdDev"))
    if acts.dim(1) == 0:
        return graph.clone(type, mean, below(debug, "mean")), deviation
    name = templateVertex("poplin::InverseStdDeviation", stable, mean.elementType(), power.elementType(), type)
    operands = {"mean": mean, "power": power, "iStdDev": deviation}
    cs = add_element_vertices(graph, below(debug, "iStdDev"), name, "iStdDev", operands, values=values)
    result = mean if mean.elementType() is type else cast(graph, mean, type, cs, below(debug, "mean"))
    prog.add(Execute(cs))
    return result, deviation
