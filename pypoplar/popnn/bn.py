"""Batch norm: each channel is normalised over all samples and places. PopLibs' namespace of this name."""

from __future__ import annotations

from typing import overload

from pypoplar.errors import MissingFeature
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.norms.norm_statistics import DistributedNormReduceCallback
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
    """Mean and inverse standard deviation of each channel of `acts` [N, C, ...], over all else.

    They are two new vectors [C]. They have the type of `acts`, FLOAT or HALF; what `eps`, `unbiasedVarEstimate`, `stableAlgo` and
    `partialsType` mean is told by `poplin.normStatistics`; a `partialsType` smaller than the type of `acts` is ignored. There are
    no `options`. `prog` is extended.
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
    reduceCallback: DistributedNormReduceCallback | None,
    normBatchSize: int,
    stableAlgo: bool = False,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> tuple[Tensor, Tensor]:
    """Statistics over the batches of several replicas: `MissingFeature`, until graphs replicate."""
    raise MissingFeature("popnn.bn.distributedBatchNormStatistics: graphs do not replicate yet; batchNormStatistics is for one")


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
    """``(acts - mean) * invStdDev`` as a new tensor; both vectors are those of `batchNormStatistics`.

    There are no `options`. `prog` is extended.
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
    """``(acts - mean) * invStdDev * gamma + beta`` for each channel, and the whitened activations: two new tensors.

    `gamma` and `beta` have an element for each channel, `mean` and `invStdDev` are those of `batchNormStatistics`. In the form with
    `combinedMultiplicand` and `addend`, for inference, the one result is ``acts * combinedMultiplicand + addend``, where the former
    is ``gamma * invStdDev`` and the latter ``beta - mean * gamma * invStdDev``. There are no `options`. `prog` is extended.
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
    """The gradients ``(gamma's, beta's)``, two new vectors [C]: sums over each channel of ``actsWhitened * gradsIn`` and `gradsIn`.

    `gradsIn` is the gradient of the layer's output. The form with `acts` whitens them first. `partialsType` changes nothing:
    products are rounded to the type of the activations, and summed in float. There are no `options`. `prog` is extended.
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
    """The gradient of the activations from that of the layer's output, `gradsIn`: a new tensor of their shape and type.

    It goes through the statistics too, which are taken with the biased variance. The form with `acts` whitens them first.
    `partialsType` changes nothing: sums are in float. There are no `options`. `prog` is extended.
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
    reduceCallback: DistributedNormReduceCallback | None,
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
    reduceCallback: DistributedNormReduceCallback | None,
    normBatchSize: int,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overloaded("popnn.bn.distributedBatchNormGradients")
def distributedBatchNormGradients(**arguments: object) -> Tensor:
    """Gradients where batches are spread over several replicas: `MissingFeature`, until graphs replicate."""
    raise MissingFeature("popnn.bn.distributedBatchNormGradients: graphs do not replicate yet; batchNormGradients is for one")


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
    """``gamma += scale * gammaDelta`` and ``beta += scale * betaDelta``; `scale` is a number, or a tensor of one element.

    There are no `options`. `prog` is extended.
    """
    layer = NormLayer.of_batches("popnn.bn.batchNormParamUpdate", graph, prog, debugContext, options)
    layer.update(gammaDelta, betaDelta, scale, gamma, beta)
