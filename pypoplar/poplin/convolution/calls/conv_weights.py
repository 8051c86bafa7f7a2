"""Weights of a forward pass arranged for the backward pass."""

from __future__ import annotations

from copy import deepcopy

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.convolution.calls.conv_call import Options, check_operand, check_params, used_weights
from pypoplar.poplin.convolution.calls.conv_operands import createWeights
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.poputil.arguments import check_call, check_operands, check_own, check_writeable
from pypoplar.poputil.copies import duplicate, shares_elements
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public


@public
def weightsTransposeChansFlipXY(
    graph: Graph,
    weightsIn: Tensor,
    weightsOut: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """Copy weights with channels exchanged and each dimension of the kernel reversed; `prog` is extended.

    So they are the weights of the backward pass, see `getGradientParams`.

    Parameters
    ----------
    weightsIn:
        [groups, a, b, *kernel].
    weightsOut:
        What is written: [groups, b, a, *kernel] of its type. It may have elements of `weightsIn`.
    options:
        Those of `createWeights`; they are checked and change nothing.

    Raises
    ------
    PoplibsError
        For other shapes and types, and if `weightsOut` holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    copy_transposed("poplin.weightsTransposeChansFlipXY", graph, weightsIn, weightsOut, prog, debugContext, options)


def copy_transposed(
    call: str, graph: Graph, weightsIn: Tensor, weightsOut: Tensor, prog: Sequence, debugContext: str | None, options: Options
) -> None:
    check_transposed(call, graph, weightsIn, weightsOut, prog, debugContext, options)
    if shares_elements(graph, weightsIn, weightsOut):
        weightsIn = duplicate(graph, weightsIn, prog, below(debugContext, "weightsIn"))
    prog.add(Copy(used_weights(weightsIn, True), weightsOut))


def check_transposed(
    call: str, graph: Graph, weightsIn: Tensor, weightsOut: Tensor, prog: Sequence, debugContext: str | None, options: Options
) -> None:
    """`PoplibsError` unless one tensor has the transposed shape of the other, and its type, and can be written."""
    check_call(call, graph, prog, debugContext)
    check_own(call, graph, weightsIn=weightsIn, weightsOut=weightsOut)
    ConvolutionOptions.read(call, options)
    if weightsIn.rank() < 3:
        raise PoplibsError(f"{call}: weightsIn is [groups, output channels, input channels, *kernel], got {weightsIn!r}")
    groups, outputs, inputs, *kernel = weightsIn.shape()
    words = "[groups, input channels, output channels, *kernel]"
    if weightsOut.shape() != [groups, inputs, outputs, *kernel] or weightsOut.elementType() is not weightsIn.elementType():
        shape = [groups, inputs, outputs, *kernel]
        raise PoplibsError(
            f"{call}: weightsOut is {words} = {shape} of {weightsIn.elementType()!r}, as weightsIn has them, got {weightsOut!r}"
        )
    check_writeable(call, weightsOut)
    check_operands(call, graph, weightsIn=weightsIn, weightsOut=weightsOut)


@public
def fullyConnectedWeightTranspose(
    graph: Graph,
    weights: Tensor,
    params: ConvParams,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor with the weights of a fully connected layer arranged for its backward pass; `prog` is extended.

    Parameters
    ----------
    weights:
        [groups, input channels, output channels, kernel] as `params` call them.
    params:
        The parameters of the backward pass, with one field dimension.
    options:
        As for `createWeights`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [groups, output channels, input channels, kernel], laid out as by `createWeights`.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together or have another number of field dimensions, and weights of another shape or
        type.
    InvalidTileMapping
        If an element of `weights` has no tile.
    """
    call = "poplin.fullyConnectedWeightTranspose"
    check_call(call, graph, prog, debugContext)
    check_own(call, graph, weights=weights)
    check_params(call, params)
    check_cache(call, cache)
    if params.getNumFieldDims() != 1:
        raise PoplibsError(f"{call}: the field has one dimension, got {params.getNumFieldDims()}: {params.inputFieldShape}")
    shape = [params.numConvGroups, params.inputChannelsPerConvGroup, params.outputChannelsPerConvGroup, *params.kernelShape]
    check_operand(call, "weights", weights, params.inputType, "[groups, input channels, output channels, kernel]", shape)
    check_operands(call, graph, weights=weights)
    ConvolutionOptions.read(call, options)
    transposed = createWeights(graph, deepcopy(params), below(debugContext, "transposed"), options, cache)
    prog.add(Copy(weights.dimShufflePartial([1], [2]), transposed))
    return transposed
