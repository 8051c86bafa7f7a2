"""Instance norm: each channel of each sample is normalised. PopLibs' namespace ``in``."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.norms.channel_groups import Options
from pypoplar.popnn.norms.norm_flops import getNormBwdFlops, getNormFwdFlops, getNormWuFlops
from pypoplar.popnn.norms.norm_layer import NormLayer
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType

__all__ = [
    "getBwdFlops",
    "getFwdFlops",
    "getWuFlops",
    "instanceNormGradients",
    "instanceNormParamGradients",
    "instanceNormParamUpdate",
    "instanceNormStatistics",
    "instanceNormWhiten",
    "instanceNormalise",
]


@public
def instanceNormStatistics(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    unbiasedVarEstimate: bool,
    stableAlgo: bool,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """Mean and inverse standard deviation of each channel of each sample; `prog` is extended.

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
        ``groupNormStridedChannelGrouping`` is taken, and changes nothing.

    Returns
    -------
    tuple[Tensor, Tensor]
        Mean and inverse standard deviation, new vectors [N * C] of the type of `acts`.

    Raises
    ------
    PoplibsError
        For another type or rank, a negative `eps`.
    InvalidTileMapping
        If an element of `acts` has no tile.
    """
    layer = NormLayer.of_groups("popnn.in_.instanceNormStatistics", graph, prog, debugContext, options)
    return layer.statistics(acts, eps, None, unbiasedVarEstimate, stableAlgo, partialsType)


@public
def instanceNormWhiten(
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
        Those of `instanceNormStatistics`, [N * C].
    options:
        ``groupNormStridedChannelGrouping`` is taken, and changes nothing.

    Returns
    -------
    Tensor
        Of the shape and type of `acts`.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    layer = NormLayer.of_groups("popnn.in_.instanceNormWhiten", graph, prog, debugContext, options)
    return layer.whiten(acts, mean, invStdDev)


@public
def instanceNormalise(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    acts: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """``(acts - mean) * invStdDev * gamma + beta``, and the whitened activations; `prog` is extended.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...].
    gamma, beta:
        An element [C] for each channel.
    mean, invStdDev:
        Those of `instanceNormStatistics`, [N * C].
    options:
        ``groupNormStridedChannelGrouping`` is taken, and changes nothing.

    Returns
    -------
    tuple[Tensor, Tensor]
        The result and the whitened activations, new tensors of the shape and type of `acts`.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    layer = NormLayer.of_groups("popnn.in_.instanceNormalise", graph, prog, debugContext, options)
    return layer.normalise(acts, gamma, beta, mean, invStdDev)


@overload
def instanceNormParamGradients(
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
def instanceNormParamGradients(
    graph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]: ...
@overloaded("popnn.in_.instanceNormParamGradients")
def instanceNormParamGradients(  # noqa: PLR0913 (PopLibs' arguments)
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
        The statistics of the activations, [N * C].
    actsWhitened:
        The whitened activations, instead of the three.
    partialsType:
        FLOAT or HALF; it changes nothing.
    options:
        ``groupNormStridedChannelGrouping`` is taken, and changes nothing.

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
    layer = NormLayer.of_groups("popnn.in_.instanceNormParamGradients", graph, prog, debugContext, options)
    layer.check_gradients(gradsIn, partialsType, acts=acts, actsWhitened=actsWhitened)
    whitened = layer.whitened(acts, actsWhitened, mean, iStdDev=iStdDev)
    return layer.param_gradients(whitened, gradsIn, partialsType)


@overload
def instanceNormGradients(
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
def instanceNormGradients(
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
@overloaded("popnn.in_.instanceNormGradients")
def instanceNormGradients(  # noqa: PLR0913 (PopLibs' arguments)
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
        The inverse standard deviation [N * C].
    gamma:
        The factors [C].
    acts:
        The activations, which the call whitens by `mean` and `invStdDev`.
    mean:
        The mean of the activations, [N * C].
    actsWhitened:
        The whitened activations, instead of the two.
    partialsType:
        FLOAT or HALF; it changes nothing: sums are in float.
    options:
        ``groupNormStridedChannelGrouping`` is taken, and changes nothing.

    Returns
    -------
    Tensor
        A new tensor of the shape and type of `gradsIn`.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    layer = NormLayer.of_groups("popnn.in_.instanceNormGradients", graph, prog, debugContext, options)
    layer.check_gradients(gradsIn, partialsType, acts=acts, actsWhitened=actsWhitened)
    layer.check_scaling(gradsIn, invStdDev, gamma)
    whitened = layer.whitened(acts, actsWhitened, mean, invStdDev=invStdDev)
    return layer.gradients(whitened, gradsIn, invStdDev, gamma, partialsType)


@overload
def instanceNormParamUpdate(
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
def instanceNormParamUpdate(
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
@overloaded("popnn.in_.instanceNormParamUpdate")
def instanceNormParamUpdate(  # noqa: PLR0913 (PopLibs' arguments)
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
        ``groupNormStridedChannelGrouping`` is taken, and changes nothing.

    Raises
    ------
    PoplibsError
        For other shapes, types or scales.
    """
    layer = NormLayer.of_groups("popnn.in_.instanceNormParamUpdate", graph, prog, debugContext, options)
    layer.update(gammaDelta, betaDelta, scale, gamma, beta)


@public
def getFwdFlops(numChannels: int, actsPerChannel: int, computeEstimates: bool) -> int:
    """The operations of an instance norm, by `popnn.getNormFwdFlops`.

    Parameters
    ----------
    numChannels:
        The channels of all samples.
    actsPerChannel:
        The elements of each of them.
    computeEstimates:
        Whether the statistics are computed.

    Returns
    -------
    int
        Floating point operations.
    """
    return getNormFwdFlops(numChannels, numChannels * actsPerChannel, computeEstimates)


@public
def getBwdFlops(numChannels: int, actsPerChannel: int) -> int:
    """The operations of the gradient of an instance norm's activations, by `popnn.getNormBwdFlops`.

    Parameters
    ----------
    numChannels:
        The channels of all samples.
    actsPerChannel:
        The elements of each of them.

    Returns
    -------
    int
        Floating point operations.
    """
    return getNormBwdFlops(numChannels, numChannels * actsPerChannel)


@public
def getWuFlops(numChannels: int, actsPerChannel: int) -> int:
    """The operations of an instance norm's parameter update, by `popnn.getNormWuFlops`.

    Parameters
    ----------
    numChannels:
        The channels of all samples.
    actsPerChannel:
        The elements of each of them.

    Returns
    -------
    int
        Floating point operations.
    """
    return getNormWuFlops(numChannels, numChannels * actsPerChannel)
