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
    """Mean and inverse standard deviation of each group of channels of each sample of `acts` [N, C, ...].

    They are two new vectors [N * numGroups]. There are `numGroups` groups, of `acts.dim(1) / numGroups` channels; which, says the
    option `groupNormStridedChannelGrouping`, see `groupNormalise`. They have the type of `acts`, FLOAT or HALF; what `eps`,
    `unbiasedVarEstimate`, `stableAlgo` and `partialsType` mean is told by `poplin.normStatistics`; a `partialsType` smaller than
    the type of `acts` is ignored. `options` are those of `groupNormalise`. `prog` is extended.
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
    """``(acts - mean) * invStdDev`` as a new tensor; both vectors are those of `groupNormStatistics`, and of the same grouping.

    `options` are those of `groupNormalise`. `prog` is extended.
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
    """``(acts - mean) * invStdDev * gamma + beta``, and the whitened activations: two new tensors of the shape of `acts`.

    `gamma` and `beta` have an element for each channel, `mean` and `invStdDev` are those of `groupNormStatistics`, and of the same
    grouping.

    The option `groupNormStridedChannelGrouping` says which channels are a group: true, the default, puts channel c in group ``c %
    numGroups``, false in group ``c // (C / numGroups)``, as most other libraries do; the number of groups follows from the
    statistics. `prog` is extended.
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
    """The gradients ``(gamma's, beta's)``, two new vectors [C]: sums over each channel of ``actsWhitened * gradsIn`` and `gradsIn`.

    `gradsIn` is the gradient of the layer's output. The form with `acts` whitens them first. `partialsType` changes nothing:
    products are rounded to the type of the activations, and summed in float. `options` are those of `groupNormalise`. `prog` is
    extended.
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
    """The gradient of the activations from that of the layer's output, `gradsIn`: a new tensor of their shape and type.

    It goes through the statistics too, which are taken with the biased variance. The form with `acts` whitens them first.
    `partialsType` changes nothing: sums are in float. `options` are those of `groupNormalise`. `prog` is extended.
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
    """``gamma += scale * gammaDelta`` and ``beta += scale * betaDelta``; `scale` is a number, or a tensor of one element.

    `options` are those of `groupNormalise`. `prog` is extended.
    """
    layer = NormLayer.of_groups("popnn.gn.groupNormParamUpdate", graph, prog, debugContext, options)
    layer.update(gammaDelta, betaDelta, scale, gamma, beta)
