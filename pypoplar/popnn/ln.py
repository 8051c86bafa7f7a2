"""Layer norm: each sample is normalised, a group norm of one group. PopLibs' namespace of this name."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.norms.channel_groups import Options
from pypoplar.popnn.norms.norm_layer import NormLayer
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType

__all__ = [
    "layerNormGradients",
    "layerNormParamGradients",
    "layerNormParamUpdate",
    "layerNormStatistics",
    "layerNormWhiten",
    "layerNormalise",
]


@public
def layerNormStatistics(  # noqa: PLR0913 (PopLibs' arguments)
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
    """Mean and inverse standard deviation of each sample of `acts` [N, C, ...], over all its channels and places.

    They are two new vectors [N]. They have the type of `acts`, FLOAT or HALF; what `eps`, `unbiasedVarEstimate`, `stableAlgo` and
    `partialsType` mean is told by `poplin.normStatistics`; a `partialsType` smaller than the type of `acts` is ignored. The option
    `groupNormStridedChannelGrouping` is taken, and changes nothing. `prog` is extended.
    """
    layer = NormLayer.of_groups("popnn.ln.layerNormStatistics", graph, prog, debugContext, options)
    return layer.statistics(acts, eps, 1, unbiasedVarEstimate, stableAlgo, partialsType)


@public
def layerNormWhiten(
    graph: Graph,
    acts: Tensor,
    mean: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """``(acts - mean) * invStdDev`` as a new tensor; both vectors are those of `layerNormStatistics`.

    The option `groupNormStridedChannelGrouping` is taken, and changes nothing. `prog` is extended.
    """
    layer = NormLayer.of_groups("popnn.ln.layerNormWhiten", graph, prog, debugContext, options)
    return layer.whiten(acts, mean, invStdDev)


@public
def layerNormalise(  # noqa: PLR0913 (PopLibs' arguments)
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

    `gamma` and `beta` have an element for each channel, `mean` and `invStdDev` are those of `layerNormStatistics`. The option
    `groupNormStridedChannelGrouping` is taken, and changes nothing. `prog` is extended.

    >>> import numpy as np
    >>> from pypoplar import poplin, popnn, program, testing
    >>> def compute(graph, x, gamma, beta):
    ...     poplin.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     statistics = popnn.ln.layerNormStatistics(graph, x, 0.0, prog, False)
    ...     normal, whitened = popnn.ln.layerNormalise(graph, x, gamma, beta, *statistics, prog)
    ...     return prog, {"normal": normal}
    >>> arrays = {"x": np.float32([[0, 4], [10, 18]]), "gamma": np.float32([1, 2]), "beta": np.float32([0, 5])}
    >>> testing.run(compute, arrays)["normal"].tolist()
    [[-1.0, 7.0], [-1.0, 7.0]]
    """
    layer = NormLayer.of_groups("popnn.ln.layerNormalise", graph, prog, debugContext, options)
    return layer.normalise(acts, gamma, beta, mean, invStdDev)


@overload
def layerNormParamGradients(
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
def layerNormParamGradients(
    graph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    prog: Sequence,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]: ...
@overloaded("popnn.ln.layerNormParamGradients")
def layerNormParamGradients(  # noqa: PLR0913 (PopLibs' arguments)
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
    layer = NormLayer.of_groups("popnn.ln.layerNormParamGradients", graph, prog, debugContext, options)
    layer.check_gradients(gradsIn, partialsType, acts=acts, actsWhitened=actsWhitened)
    whitened = layer.whitened(acts, actsWhitened, mean, iStdDev=iStdDev)
    return layer.param_gradients(whitened, gradsIn, partialsType)


@overload
def layerNormGradients(
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
def layerNormGradients(
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
@overloaded("popnn.ln.layerNormGradients")
def layerNormGradients(  # noqa: PLR0913 (PopLibs' arguments)
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
    layer = NormLayer.of_groups("popnn.ln.layerNormGradients", graph, prog, debugContext, options)
    layer.check_gradients(gradsIn, partialsType, acts=acts, actsWhitened=actsWhitened)
    layer.check_scaling(gradsIn, invStdDev, gamma)
    whitened = layer.whitened(acts, actsWhitened, mean, invStdDev=invStdDev)
    return layer.gradients(whitened, gradsIn, invStdDev, gamma, partialsType)


@overload
def layerNormParamUpdate(
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
def layerNormParamUpdate(
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
@overloaded("popnn.ln.layerNormParamUpdate")
def layerNormParamUpdate(  # noqa: PLR0913 (PopLibs' arguments)
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
    layer = NormLayer.of_groups("popnn.ln.layerNormParamUpdate", graph, prog, debugContext, options)
    layer.update(gammaDelta, betaDelta, scale, gamma, beta)
