"""Gradients of norms: of their parameters, and of what goes into them."""

from __future__ import annotations

from pypoplar.errors import MissingFeature
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.norms.channel_layout import ChannelLayout
from pypoplar.poplin.norms.channel_vertices import ChannelOperation
from pypoplar.poplin.norms.norm_arguments import check_activations, check_alike, check_channel_vector, check_partials
from pypoplar.poplin.norms.norm_parameters import channel_vector
from pypoplar.poplin.norms.norm_statistics import DistributedNormReduceCallback
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
    """The gradients ``(gamma's, beta's)`` of `normalise`, two new vectors [C] of the type of `gradsIn`.

    They are the sums over each channel of ``actsWhitened * gradsIn`` and of `gradsIn`, the gradients of the layer's output.
    Products of HALFs are rounded to HALF, and summed in float, whatever `partialsType` says. `prog` is extended.
    """
    call = "poplin.normParamGradients"
    _check(call, graph, actsWhitened, gradsIn, prog, partialsType, debugContext)
    debug = below(debugContext, "normParamGradients")
    grads = regroupIfBeneficial(graph, gradsIn, actsWhitened, prog, debug)
    return _sums(graph, actsWhitened, grads, 1.0, gradsIn.elementType(), prog, debug)


@public
def normGradients(graph: Graph, gradsIn: Tensor, gamma: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """The gradient of the whitened activations, ``gradsIn * gamma`` for each channel: a new tensor that lies as `gradsIn` does.

    `gradsIn` is the gradient [N, C, ...] of the layer's output; `gamma` has an element of its type for each channel. `prog` is
    extended.
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
    """The gradient of the activations from that of the whitened ones, `gradsIn`, as a new tensor that lies as `actsWhitened` does.

    It is ``(gradsIn - mean(gradsIn) - actsWhitened * mean(actsWhitened * gradsIn)) * invStdDev`` for each channel: mean and
    deviation are functions of the activations, too, the latter with the biased variance. Sums over channels, and what follows
    them, are in float, whatever `partialsType` says; products of HALFs are rounded to HALF before they are summed up. `prog` is
    extended.
    """
    call = "poplin.normStatisticsGradients"
    _check(call, graph, actsWhitened, gradsIn, prog, partialsType, debugContext)
    check_channel_vector(call, graph, "invStdDev", invStdDev, actsWhitened)
    debug = below(debugContext, "normStatisticsGradients")
    if actsWhitened.numElements() == 0:
        return graph.clone(actsWhitened, debug)
    grads = regroupIfBeneficial(graph, gradsIn, actsWhitened, prog, debug)
    scale = -actsWhitened.dim(1) / actsWhitened.numElements()
    variance, mean = _sums(graph, actsWhitened, grads, scale, FLOAT, prog, debug)
    vectors = {"varDelta": variance, "meanDelta": mean, "iStdDev": invStdDev}
    operation = ChannelOperation(graph, "NormStatisticsGradient", (actsWhitened.elementType(),), debug)
    return operation.new_result(prog, {"acts": actsWhitened, "grads": grads}, vectors)


@public
def distributedNormStatisticsGradients(  # noqa: PLR0913 (PopLibs' arguments)
    replicatedGraph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    reduceCallback: DistributedNormReduceCallback | None,
    normSize: int,
    partialsType: ElementType = FLOAT,
    debugContext: str | None = None,
) -> Tensor:
    """Gradients where batches are spread over several replicas: `MissingFeature`, until graphs replicate."""
    raise MissingFeature(
        "poplin.distributedNormStatisticsGradients: graphs do not replicate yet; poplin.normStatisticsGradients is for one"
    )


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
