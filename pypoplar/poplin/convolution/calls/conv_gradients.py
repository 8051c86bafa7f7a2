"""Gradients of convolutions: with respect to the input, and to the weights."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import overload

from pypoplar import popops
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.convolution.calls.chosen_form import ChosenForm, choose_form
from pypoplar.poplin.convolution.calls.conv_call import (
    Options,
    build_beside,
    check_codelets,
    check_operand,
    check_params,
    in_groups,
)
from pypoplar.poplin.convolution.conv_axis import ConvAxis, FieldAxis, OutputAxis
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.conv_params import ConvParams, operand_shape, with_axes
from pypoplar.poplin.convolution.supersteps import SuperstepLane, Supersteps
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.poputil.arguments import check_call, check_float, check_operands, check_own, check_writeable
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF


@public
def getGradientParams(params: ConvParams) -> ConvParams:
    """The parameters of the backward pass: the convolution of a result's gradient that gives the input's.

    Its weights are those of the forward pass with their channels exchanged and each dimension of the kernel reversed: see
    `convolution` and `weightsTransposeChansFlipXY`.

    Parameters
    ----------
    params:
        The parameters of the forward pass.

    Returns
    -------
    ConvParams
        Canonical parameters, see `ConvParams.canonicalize`.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    """
    check_params("poplin.getGradientParams", params)
    forward = params.canonicalize()
    backward = with_axes(forward, [_backward(axis) for axis in forward.axes()])
    backward.inputChannelsPerConvGroup = forward.outputChannelsPerConvGroup
    backward.outputChannelsPerConvGroup = forward.inputChannelsPerConvGroup
    return backward.canonicalize()


@public
def getWeightUpdateParams(fwdParams: ConvParams) -> ConvParams:
    """The parameters of the weight update: a convolution of the input with the result's gradient.

    The input's channels are its batch, the batch is its input channels, and the field of the gradient is its kernel.

    Parameters
    ----------
    fwdParams:
        The parameters of the forward pass.

    Returns
    -------
    ConvParams
        Canonical parameters, see `ConvParams.canonicalize`.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    """
    check_params("poplin.getWeightUpdateParams", fwdParams)
    forward = fwdParams.canonicalize()
    update = with_axes(forward, [_update(axis) for axis in forward.axes()])
    update.batchSize = forward.inputChannelsPerConvGroup
    update.inputChannelsPerConvGroup = forward.batchSize
    return update.canonicalize()


def _backward(axis: ConvAxis) -> ConvAxis:
    input, kernel, output = axis.input, axis.kernel, axis.output
    around = kernel.transformed_size - 1
    return ConvAxis(
        FieldAxis(
            axis.output_size,
            output.paddingLower,
            output.paddingUpper,
            output.stride,
            output.truncationLower + around,
            output.truncationUpper + around,
            input.flip,
        ),
        FieldAxis(  # its elements have been reversed
            kernel.size,
            kernel.truncationUpper,
            kernel.truncationLower,
            kernel.dilation,
            kernel.paddingUpper,
            kernel.paddingLower,
            kernel.flip != input.flip,
        ),
        OutputAxis(input.paddingLower, input.paddingUpper, input.dilation, input.truncationLower, input.truncationUpper),
    )


def _update(axis: ConvAxis) -> ConvAxis:
    input, kernel, output = axis.input, axis.kernel, axis.output
    return ConvAxis(
        FieldAxis(
            input.size,
            input.truncationLower,
            input.truncationUpper,
            input.dilation,
            input.paddingLower,
            input.paddingUpper,
            input.flip != kernel.flip,
        ),
        FieldAxis(
            axis.output_size,
            output.paddingLower,
            output.paddingUpper,
            output.stride,
            output.truncationLower,
            output.truncationUpper,
            kernel.flip,
        ),
        OutputAxis(kernel.paddingLower, kernel.paddingUpper, kernel.dilation, kernel.truncationLower, kernel.truncationUpper),
    )


@public
def calculateWeightDeltas(
    graph: Graph,
    zDeltas: Tensor,
    activations: Tensor,
    params: ConvParams,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor with the gradient of the weights of a convolution; `prog` is extended.

    Parameters
    ----------
    zDeltas:
        The gradient of the result: [batch, output channels, *output field] of the input type.
    activations:
        The input of the forward pass: [batch, input channels, *field] of the input type.
    params:
        The parameters of the forward pass.
    options:
        Those of the forward pass, see `createWeights`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [groups, output channels of a group, input channels of a group, *kernel] of the output type.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together, and operands of other shapes or types.
    InvalidTileMapping
        If an element of an operand has no tile.
    """
    call = "poplin.calculateWeightDeltas"
    build = weight_deltas(call, graph, zDeltas, activations, params, prog, debugContext, options, cache)
    return build(below(debugContext, "weightDeltas"))


@overload
def convolutionWeightUpdate(
    graph: Graph, zDeltas: Tensor, weights: Tensor, activations: Tensor, params: ConvParams, scale: Tensor, prog: Sequence,
    debugContext: str | None = None, options: Options = None, cache: PlanningCache | None = None,
) -> None: ...  # fmt: skip
@overload
def convolutionWeightUpdate(
    graph: Graph, zDeltas: Tensor, weights: Tensor, activations: Tensor, params: ConvParams, scale: float, prog: Sequence,
    debugContext: str | None = None, options: Options = None, cache: PlanningCache | None = None,
) -> None: ...  # fmt: skip
@overloaded("poplin.convolutionWeightUpdate")
def convolutionWeightUpdate(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    zDeltas: Tensor,
    weights: Tensor,
    activations: Tensor,
    params: ConvParams,
    scale: Tensor | float,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Add to weights a multiple of their gradient, see `calculateWeightDeltas`; `prog` is extended.

    The gradient has the input type, whatever the output type of `params` is.

    Parameters
    ----------
    zDeltas:
        The gradient of the result: [batch, output channels, *output field] of the input type.
    weights:
        What is written: FLOAT or HALF, so that FLOAT ones are updated by a gradient of HALFs.
    activations:
        The input of the forward pass: [batch, input channels, *field] of the input type.
    params:
        The parameters of the forward pass.
    scale:
        The factor, a number or a tensor of one element, FLOAT or HALF.
    options:
        Those of the forward pass, see `createWeights`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together, operands of other shapes or types, another scale, and weights that hold an
        element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    update_weights(
        "poplin.convolutionWeightUpdate", graph, zDeltas, weights, activations, params, scale, prog, debugContext, options, cache
    )()


def update_weights(  # noqa: PLR0913 (PopLibs' arguments)
    call: str,
    graph: Graph,
    zDeltas: Tensor,
    weights: Tensor,
    activations: Tensor,
    params: ConvParams,
    scale: Tensor | float,
    prog: Sequence,
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
) -> Callable[[], None]:
    """What builds a weight update whose arguments have been checked."""
    check_own(call, graph, weights=weights)
    check_params(call, params)
    own = deepcopy(params)
    own.outputType = own.inputType
    build = weight_deltas(call, graph, zDeltas, activations, own, prog, debugContext, options, cache)
    shape = operand_shape(params, "weights")
    check_operand(call, "weights", weights, None, "[groups, output channels, input channels, *kernel]", shape)
    check_writeable(call, weights)
    check_operands(call, graph, weights=weights)
    check_scale(call, graph, scale)

    def update() -> None:
        name = below(debugContext, "weightUpdate")
        popops.scaledAddTo(graph, weights, build(name), scale, prog, name)

    return update


def check_scale(call: str, graph: Graph, scale: Tensor | float) -> None:
    """`PoplibsError` for a scale that is a tensor of several elements, or of no floats, and for NaN."""
    if not isinstance(scale, Tensor):
        check_float(call, "scale", scale)
    else:
        check_own(call, graph, scale=scale)
        if scale.numElements() != 1 or scale.elementType() not in (FLOAT, HALF):
            raise PoplibsError(f"{call}: scale is a number or a tensor of one element, FLOAT or HALF, got {scale!r}")
        check_operands(call, graph, scale=scale)


def weight_deltas(  # noqa: PLR0913 (PopLibs' arguments)
    call: str,
    graph: Graph,
    zDeltas: Tensor,
    activations: Tensor,
    params: ConvParams,
    prog: Sequence,
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
) -> Callable[[str], Tensor]:
    """What builds the gradient of weights, below a name, once the arguments have been checked."""
    check_call(call, graph, prog, debugContext)
    check_own(call, graph, zDeltas=zDeltas, activations=activations)
    check_params(call, params)
    check_cache(call, cache)
    read = ConvolutionOptions.read(call, options).for_weight_update()
    shape = [params.batchSize, params.getNumOutputChans(), *params.getOutputFieldShape()]
    check_operand(call, "zDeltas", zDeltas, params.inputType, "[batch, output channels, *output field]", shape)
    shape = [params.batchSize, params.getNumInputChans(), *params.inputFieldShape]
    check_operand(call, "activations", activations, params.inputType, "[batch, input channels, *field]", shape)
    check_operands(call, graph, zDeltas=zDeltas, activations=activations)
    check_codelets(call, graph)
    chosen = choose_form(graph.getTarget(), getWeightUpdateParams(params), read, cache)

    def build(name: str) -> Tensor:
        supersteps = Supersteps(graph)
        deltas = deltas_beside(graph, chosen, zDeltas, activations, params, supersteps.lane(), name)
        supersteps.add_to(prog)
        return deltas

    return build


def deltas_beside(
    graph: Graph, chosen: ChosenForm, zDeltas: Tensor, activations: Tensor, params: ConvParams, lane: SuperstepLane, name: str
) -> Tensor:
    """The gradient of weights in a lane of supersteps; the parameters are those of the forward pass."""
    input = in_groups(activations, params.numConvGroups, params.inputChannelsPerConvGroup).dimShufflePartial([1], [2])
    kernel = in_groups(zDeltas, params.numConvGroups, params.outputChannelsPerConvGroup).dimShufflePartial([1], [2])
    return build_beside(graph, chosen, input, kernel, lane, name).dimShufflePartial([1], [2])
