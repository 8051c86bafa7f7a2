"""Group norm: groups of channels of each sample are normalised. PopLibs' namespace of this name."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.norms.channel_groups import Options
from pypoplar.popnn.norms.norm_layer import NormLayer
from pypoplar.poputil.arguments import whole_number
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType

__all__ = [
    "groupNormGradients",
    "groupNormParamGradients",
    "groupNormParamUpdate",
    "groupNormStatistics",
    "groupNormWhiten",
    "groupNormalise",
]


@public
def groupNormStatistics(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    numGroups: int,
    unbiasedVarEstimate: bool,
    stableAlgo: bool = False,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """Mean and inverse standard deviation of each group of channels of each sample; `prog` is extended.

    How `eps` and the variance go into the deviation is told by `poplin.normStatistics`.

    Parameters
    ----------
    acts:
        FLOAT or HALF [N, C, ...].
    eps:
        What is added to the variance, a number of 0 at least.
    numGroups:
        How many groups there are, of ``C / numGroups`` channels; which, says the option.
    unbiasedVarEstimate:
        Whether the variance is divided by one less than the number of elements, else by that number.
    stableAlgo:
        Whether the variance is computed of what is left of the activations without the mean, which takes a copy of them.
    partialsType:
        The type of both vectors until they get that of `acts`, FLOAT or HALF; one smaller than that of `acts` is ignored.
    options:
        As for `groupNormalise`.

    Returns
    -------
    tuple[Tensor, Tensor]
        Mean and inverse standard deviation, new vectors [N * groups] of the type of `acts`.

    Raises
    ------
    PoplibsError
        For another type or rank, a negative `eps`, and groups that the channels cannot be put in.
    InvalidTileMapping
        If an element of `acts` has no tile.
    """
    call = "popnn.gn.groupNormStatistics"
    layer = NormLayer.of_groups(call, graph, prog, debugContext, options)
    return layer.statistics(acts, eps, whole_number(call, "numGroups", numGroups, 1), unbiasedVarEstimate, stableAlgo, partialsType)


@public
def groupNormWhiten(
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
        Those of `groupNormStatistics`, [N * groups] and of the same grouping.
    options:
        As for `groupNormalise`.

    Returns
    -------
    Tensor
        Of the shape and type of `acts`.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    layer = NormLayer.of_groups("popnn.gn.groupNormWhiten", graph, prog, debugContext, options)
    return layer.whiten(acts, mean, invStdDev)


@public
def groupNormalise(  # noqa: PLR0913 (PopLibs' arguments)
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
        Those of `groupNormStatistics`, [N * groups] and of the same grouping.
    options:
        ``groupNormStridedChannelGrouping`` (true) says which channels are a group: true puts channel c in group ``c % groups``,
        false in group ``c // (C / groups)``, as most other libraries do; the number of groups follows from the statistics.

    Returns
    -------
    tuple[Tensor, Tensor]
        The result and the whitened activations, new tensors of the shape and type of `acts`.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    layer = NormLayer.of_groups("popnn.gn.groupNormalise", graph, prog, debugContext, options)
    return layer.normalise(acts, gamma, beta, mean, invStdDev)


@overload
def groupNormParamGradients(
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
def groupNormParamGradients(
    graph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]: ...
@overloaded("popnn.gn.groupNormParamGradients")
def groupNormParamGradients(  # noqa: PLR0913 (PopLibs' arguments)
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
        The statistics of the activations, [N * groups].
    actsWhitened:
        The whitened activations, instead of the three.
    partialsType:
        FLOAT or HALF; it changes nothing.
    options:
        As for `groupNormalise`.

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
    layer = NormLayer.of_groups("popnn.gn.groupNormParamGradients", graph, prog, debugContext, options)
    layer.check_gradients(gradsIn, partialsType, acts=acts, actsWhitened=actsWhitened)
    whitened = layer.whitened(acts, actsWhitened, mean, iStdDev=iStdDev)
    return layer.param_gradients(whitened, gradsIn, partialsType)


@overload
def groupNormGradients(
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
def groupNormGradients(
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
@overloaded("popnn.gn.groupNormGradients")
def groupNormGradients(  # noqa: PLR0913 (PopLibs' arguments)
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
        The inverse standard deviation [N * groups].
    gamma:
        The factors [C].
    acts:
        The activations, which the call whitens by `mean` and `invStdDev`.
    mean:
        The mean of the activations, [N * groups].
    actsWhitened:
        The whitened activations, instead of the two.
    partialsType:
        FLOAT or HALF; it changes nothing: sums are in float.
    options:
        As for `groupNormalise`.

    Returns
    -------
    Tensor
        A new tensor of the shape and type of `gradsIn`.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    layer = NormLayer.of_groups("popnn.gn.groupNormGradients", graph, prog, debugContext, options)
    layer.check_gradients(gradsIn, partialsType, acts=acts, actsWhitened=actsWhitened)
    layer.check_scaling(gradsIn, invStdDev, gamma)
    whitened = layer.whitened(acts, actsWhitened, mean, invStdDev=invStdDev)
    return layer.gradients(whitened, gradsIn, invStdDev, gamma, partialsType)


@overload
def groupNormParamUpdate(
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
def groupNormParamUpdate(
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
@overloaded("popnn.gn.groupNormParamUpdate")
def groupNormParamUpdate(  # noqa: PLR0913 (PopLibs' arguments)
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
        As for `groupNormalise`.

    Raises
    ------
    PoplibsError
        For other shapes, types or scales.
    """
    layer = NormLayer.of_groups("popnn.gn.groupNormParamUpdate", graph, prog, debugContext, options)
    layer.update(gammaDelta, betaDelta, scale, gamma, beta)
