"""Batch norm: each channel is normalised over all samples and places. PopLibs' namespace of this name."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.norms.batch_share import DistributedNormReduceCallback
from pypoplar.popnn.norms.channel_groups import Options
from pypoplar.popnn.norms.norm_layer import NormLayer
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType

__all__ = [
    "batchNormGradients",
    "batchNormParamGradients",
    "batchNormParamUpdate",
    "batchNormStatistics",
    "batchNormWhiten",
    "batchNormalise",
    "distributedBatchNormGradients",
    "distributedBatchNormStatistics",
]


@public
def batchNormStatistics(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    unbiasedVarEstimate: bool,
    stableAlgo: bool = False,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """Mean and inverse standard deviation of each channel, over all else; `prog` is extended.

    How `eps` and the variance go into the deviation is told by `poplin.normStatistics`.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...].
    eps:
        What is added to the variance, a number of 0 at least.
    unbiasedVarEstimate:
        Whether the variance is divided by one less than the number of elements, else by that number.
    stableAlgo:
        Whether the variance is computed of what is left of the activations without the mean, which takes a copy of them.
    partialsType:
        The type of both vectors until they get that of `acts`, FLOAT or HALF; one smaller than that of `acts` is ignored.
    options:
        There are none.

    Returns
    -------
    tuple[Tensor, Tensor]
        Mean and inverse standard deviation, new vectors [C] of the type of `acts`.

    Raises
    ------
    PoplibsError
        For another type or rank, a negative `eps`.
    InvalidTileMapping
        If an element of `acts` has no tile.
    """
    layer = NormLayer.of_batches("popnn.bn.batchNormStatistics", graph, prog, debugContext, options)
    return layer.statistics(acts, eps, 1, unbiasedVarEstimate, stableAlgo, partialsType)


@public
def distributedBatchNormStatistics(  # noqa: PLR0913 (PopLibs' arguments)
    replicatedGraph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    unbiasedVarEstimate: bool,
    reduceCallback: DistributedNormReduceCallback,
    normBatchSize: int,
    stableAlgo: bool = False,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """`batchNormStatistics` over the batches of several replicas, each of which has activations of this shape.

    Parameters
    ----------
    replicatedGraph:
        The graph of a replica.
    acts:
        FLOAT or HALF [N, C, ...].
    eps, unbiasedVarEstimate:
        As for `batchNormStatistics`, over all these batches.
    reduceCallback:
        What adds up statistics over replicas, as `poplin.distributedNormStatistics` calls it.
    normBatchSize:
        How many samples all these replicas have together, a multiple of N.
    stableAlgo, partialsType, options:
        As for `batchNormStatistics`.

    Returns
    -------
    tuple[Tensor, Tensor]
        Mean and inverse standard deviation, new vectors [C] of the type of `acts`.

    Raises
    ------
    PoplibsError
        For another type or rank, a negative `eps`, and a `normBatchSize` that is no multiple of N.
    PoplarTypeError
        If the callback cannot be called so, or gives something else than tensors.
    """
    layer = NormLayer.of_batches("popnn.bn.distributedBatchNormStatistics", replicatedGraph, prog, debugContext, options)
    over = (reduceCallback, normBatchSize)
    return layer.statistics(acts, eps, 1, unbiasedVarEstimate, stableAlgo, partialsType, over)


@public
def batchNormWhiten(
    graph: Graph,
    acts: Tensor,
    mean: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """``(acts - mean) * invStdDev`` as a new tensor; `prog` is extended.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...].
    mean, invStdDev:
        Those of `batchNormStatistics`, [C].
    options:
        There are none.

    Returns
    -------
    Tensor
        Of the shape and type of `acts`.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    layer = NormLayer.of_batches("popnn.bn.batchNormWhiten", graph, prog, debugContext, options)
    return layer.whiten(acts, mean, invStdDev)


@overload
def batchNormalise(
    graph: Graph,
    acts: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def batchNormalise(
    graph: Graph,
    acts: Tensor,
    combinedMultiplicand: Tensor,
    addend: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overloaded("popnn.bn.batchNormalise")
def batchNormalise(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    acts: Tensor,
    prog: Sequence,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    mean: Tensor | None = None,
    invStdDev: Tensor | None = None,
    combinedMultiplicand: Tensor | None = None,
    addend: Tensor | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor] | Tensor:
    """``(acts - mean) * invStdDev * gamma + beta`` for each channel; `prog` is extended.

    Or, for inference, ``acts * combinedMultiplicand + addend``.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...].
    gamma, beta:
        An element [C] for each channel.
    mean, invStdDev:
        Those of `batchNormStatistics`, [C].
    combinedMultiplicand:
        ``gamma * invStdDev``, [C].
    addend:
        ``beta - mean * gamma * invStdDev``, [C].
    options:
        There are none.

    Returns
    -------
    tuple[Tensor, Tensor] | Tensor
        The result and the whitened activations, of the shape and type of `acts`; of the second form the result alone.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    layer = NormLayer.of_batches("popnn.bn.batchNormalise", graph, prog, debugContext, options)
    if combinedMultiplicand is not None and addend is not None:
        return layer.scale_and_shift(acts, combinedMultiplicand, addend)
    assert gamma is not None
    assert beta is not None
    assert mean is not None
    assert invStdDev is not None
    return layer.normalise(acts, gamma, beta, mean, invStdDev)


@overload
def batchNormParamGradients(
    graph: Graph,
    acts: Tensor,
    gradsIn: Tensor,
    mean: Tensor,
    iStdDev: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def batchNormParamGradients(
    graph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]: ...
@overloaded("popnn.bn.batchNormParamGradients")
def batchNormParamGradients(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    gradsIn: Tensor,
    prog: Sequence,
    acts: Tensor | None = None,
    mean: Tensor | None = None,
    iStdDev: Tensor | None = None,
    actsWhitened: Tensor | None = None,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """The gradients of gamma and beta: sums over each channel of ``actsWhitened * gradsIn`` and of `gradsIn`; `prog` is extended.

    Parameters
    ----------
    gradsIn:
        The gradient of the layer's output, FLOAT or HALF [N, C, ...].
    acts:
        The activations, which the call whitens by `mean` and `iStdDev`.
    mean, iStdDev:
        The statistics of the activations, [C].
    actsWhitened:
        The whitened activations, instead of the three.
    partialsType:
        FLOAT or HALF; it changes nothing.
    options:
        There are none.

    Returns
    -------
    tuple[Tensor, Tensor]
        Those of gamma and beta, new vectors [C].

    Raises
    ------
    PoplibsError
        For other shapes and types.

    Notes
    -----
    Products are rounded to the type of the activations, and summed in float.
    """
    layer = NormLayer.of_batches("popnn.bn.batchNormParamGradients", graph, prog, debugContext, options)
    layer.check_gradients(gradsIn, partialsType, acts=acts, actsWhitened=actsWhitened)
    whitened = layer.whitened(acts, actsWhitened, mean, iStdDev=iStdDev)
    return layer.param_gradients(whitened, gradsIn, partialsType)


@overload
def batchNormGradients(
    graph: Graph,
    acts: Tensor,
    gradsIn: Tensor,
    mean: Tensor,
    invStdDev: Tensor,
    gamma: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overload
def batchNormGradients(
    graph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    gamma: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overloaded("popnn.bn.batchNormGradients")
def batchNormGradients(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    gradsIn: Tensor,
    invStdDev: Tensor,
    gamma: Tensor,
    prog: Sequence,
    acts: Tensor | None = None,
    mean: Tensor | None = None,
    actsWhitened: Tensor | None = None,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """The gradient of the activations from that of the layer's output; `prog` is extended.

    It goes through the statistics too, which are taken with the biased variance.

    Parameters
    ----------
    gradsIn:
        The gradient of the layer's output, FLOAT or HALF [N, C, ...].
    invStdDev:
        The inverse standard deviation [C].
    gamma:
        The factors [C].
    acts:
        The activations, which the call whitens by `mean` and `invStdDev`.
    mean:
        The mean of the activations, [C].
    actsWhitened:
        The whitened activations, instead of the two.
    partialsType:
        FLOAT or HALF; it changes nothing: sums are in float.
    options:
        There are none.

    Returns
    -------
    Tensor
        A new tensor of the shape and type of `gradsIn`.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    layer = NormLayer.of_batches("popnn.bn.batchNormGradients", graph, prog, debugContext, options)
    layer.check_gradients(gradsIn, partialsType, acts=acts, actsWhitened=actsWhitened)
    layer.check_scaling(gradsIn, invStdDev, gamma)
    whitened = layer.whitened(acts, actsWhitened, mean, invStdDev=invStdDev)
    return layer.gradients(whitened, gradsIn, invStdDev, gamma, partialsType)


@overload
def distributedBatchNormGradients(
    replicatedGraph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    gamma: Tensor,
    prog: Sequence,
    reduceCallback: DistributedNormReduceCallback,
    normBatchSize: int,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overload
def distributedBatchNormGradients(
    replicatedGraph: Graph,
    acts: Tensor,
    gradsIn: Tensor,
    mean: Tensor,
    invStdDev: Tensor,
    gamma: Tensor,
    prog: Sequence,
    reduceCallback: DistributedNormReduceCallback,
    normBatchSize: int,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overloaded("popnn.bn.distributedBatchNormGradients")
def distributedBatchNormGradients(  # noqa: PLR0913 (PopLibs' arguments)
    replicatedGraph: Graph,
    gradsIn: Tensor,
    invStdDev: Tensor,
    gamma: Tensor,
    prog: Sequence,
    reduceCallback: DistributedNormReduceCallback,
    normBatchSize: int,
    acts: Tensor | None = None,
    mean: Tensor | None = None,
    actsWhitened: Tensor | None = None,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """`batchNormGradients` where the batches of several replicas were normalised together.

    Parameters
    ----------
    replicatedGraph:
        The graph of a replica.
    gradsIn, invStdDev, gamma:
        As for `batchNormGradients`.
    reduceCallback:
        What adds up statistics over replicas, as `poplin.distributedNormStatistics` calls it, with FLOATs.
    normBatchSize:
        How many samples all these replicas have together, a multiple of N.
    acts, mean:
        As for `batchNormGradients`.
    actsWhitened:
        The whitened activations [N, C, ...], instead of the two.
    partialsType, options:
        As for `batchNormGradients`.

    Returns
    -------
    Tensor
        A new tensor of the shape and type of `gradsIn`.

    Raises
    ------
    PoplibsError
        For other shapes and types, and a `normBatchSize` that is no multiple of N.
    PoplarTypeError
        If the callback cannot be called so, or gives something else than tensors.
    """
    layer = NormLayer.of_batches("popnn.bn.distributedBatchNormGradients", replicatedGraph, prog, debugContext, options)
    layer.check_gradients(gradsIn, partialsType, acts=acts, actsWhitened=actsWhitened)
    layer.check_scaling(gradsIn, invStdDev, gamma)
    whitened = layer.whitened(acts, actsWhitened, mean, invStdDev=invStdDev)
    return layer.gradients(whitened, gradsIn, invStdDev, gamma, partialsType, (reduceCallback, normBatchSize))


@overload
def batchNormParamUpdate(
    graph: Graph,
    gammaDelta: Tensor,
    betaDelta: Tensor,
    scale: float,
    gamma: Tensor,
    beta: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None: ...
@overload
def batchNormParamUpdate(
    graph: Graph,
    gammaDelta: Tensor,
    betaDelta: Tensor,
    scale: Tensor,
    gamma: Tensor,
    beta: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None: ...
@overloaded("popnn.bn.batchNormParamUpdate")
def batchNormParamUpdate(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    gammaDelta: Tensor,
    betaDelta: Tensor,
    scale: float | Tensor,
    gamma: Tensor,
    beta: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """``gamma += scale * gammaDelta`` and ``beta += scale * betaDelta``; `prog` is extended.

    Parameters
    ----------
    gammaDelta, betaDelta:
        The gradients [C], of one type.
    scale:
        The factor, a number or a tensor of one element.
    gamma, beta:
        What is written: [C], FLOAT or HALF, of one type.
    options:
        There are none.

    Raises
    ------
    PoplibsError
        For other shapes, types or scales.
    """
    layer = NormLayer.of_batches("popnn.bn.batchNormParamUpdate", graph, prog, debugContext, options)
    layer.update(gammaDelta, betaDelta, scale, gamma, beta)
