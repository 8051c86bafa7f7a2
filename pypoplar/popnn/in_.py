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
    """Mean and inverse standard deviation of each channel of each sample of `acts` [N, C, ...].

    They are two new vectors [N * C]. They have the type of `acts`, FLOAT or HALF; what `eps`, `unbiasedVarEstimate`, `stableAlgo`
    and `partialsType` mean is told by `poplin.normStatistics`; a `partialsType` smaller than the type of `acts` is ignored. The
    option `groupNormStridedChannelGrouping` is taken, and changes nothing. `prog` is extended.
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
    """``(acts - mean) * invStdDev`` as a new tensor; both vectors are those of `instanceNormStatistics`.

    The option `groupNormStridedChannelGrouping` is taken, and changes nothing. `prog` is extended.
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
    """``(acts - mean) * invStdDev * gamma + beta``, and the whitened activations: two new tensors of the shape of `acts`.

    `gamma` and `beta` have an element for each channel, `mean` and `invStdDev` are those of `instanceNormStatistics`. The option
    `groupNormStridedChannelGrouping` is taken, and changes nothing. `prog` is extended.
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
    """The gradients ``(gamma's, beta's)``, two new vectors [C]: sums over each channel of ``actsWhitened * gradsIn`` and `gradsIn`.

    `gradsIn` is the gradient of the layer's output. The form with `acts` whitens them first. `partialsType` changes nothing:
    products are rounded to the type of the activations, and summed in float. The option `groupNormStridedChannelGrouping` is taken,
    and changes nothing. `prog` is extended.
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
    """The gradient of the activations from that of the layer's output, `gradsIn`: a new tensor of their shape and type.

    It goes through the statistics too, which are taken with the biased variance. The form with `acts` whitens them first.
    `partialsType` changes nothing: sums are in float. The option `groupNormStridedChannelGrouping` is taken, and changes nothing.
    `prog` is extended.
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
    """``gamma += scale * gammaDelta`` and ``beta += scale * betaDelta``; `scale` is a number, or a tensor of one element.

    The option `groupNormStridedChannelGrouping` is taken, and changes nothing. `prog` is extended.
    """
    layer = NormLayer.of_groups("popnn.in_.instanceNormParamUpdate", graph, prog, debugContext, options)
    layer.update(gammaDelta, betaDelta, scale, gamma, beta)


@public
def getFwdFlops(numChannels: int, actsPerChannel: int, computeEstimates: bool) -> int:
    """`popnn.getNormFwdFlops` of `numChannels` channels, over all samples, of `actsPerChannel` elements each."""
    return getNormFwdFlops(numChannels, numChannels * actsPerChannel, computeEstimates)


@public
def getBwdFlops(numChannels: int, actsPerChannel: int) -> int:
    """`popnn.getNormBwdFlops`, see `getFwdFlops`."""
    return getNormBwdFlops(numChannels, numChannels * actsPerChannel)


@public
def getWuFlops(numChannels: int, actsPerChannel: int) -> int:
    """`popnn.getNormWuFlops`, see `getFwdFlops`."""
    return getNormWuFlops(numChannels, numChannels * actsPerChannel)
