"""Operands, results and biases that lie where a convolution wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from attrs import evolve

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.convolution.calls.chosen_form import ChosenForm, choose_form
from pypoplar.poplin.convolution.calls.conv_call import Options, check_operand, check_params, external
from pypoplar.poplin.convolution.calls.plain_forms import OutputPhases, PlainConvolution
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.conv_params import ConvParams, operand_shape
from pypoplar.poplin.convolution.conv_shape import FIELD
from pypoplar.poplin.convolution.layout.memory_order import MemoryOrder, in_order
from pypoplar.poplin.convolution.plan_choice import AnyPlan
from pypoplar.poplin.convolution.plan_execution import map_input, map_output, map_weights, memory_order
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.poputil.arguments import check_debug, check_graph, check_operands
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.placement.broadcast_operand import createBroadcastOperand
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF

Mapper = Callable[[Graph, AnyPlan, Tensor], None]


@public
def createInput(
    graph: Graph,
    params: ConvParams,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor that `convolution` takes as input with little exchange.

    Channels are neighbours in memory: those of a group, or of all groups where each has one.

    Parameters
    ----------
    params:
        The parameters of the convolution.
    options:
        As for `createWeights`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [batch, input channels, *field] of the input type, with tiles.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    MissingFeature
        For a field of more than three dimensions.
    """
    chosen = _planned("poplin.createInput", graph, params, debugContext, options, cache)
    shape = operand_shape(params, "input")
    input = in_order(graph, params.inputType, shape, _order(chosen, "input", shape), debugContext or "")
    if chosen.form.phases is OutputPhases.SEPARATE:
        seen = chosen.form.seen_input(graph, input)
        _map_parts(graph, chosen, map_input, lambda part: part.input(seen))
    return external(input)


@public
def createWeights(
    graph: Graph,
    params: ConvParams,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor that `convolution` takes as weights with little exchange.

    Parameters
    ----------
    params:
        The parameters of the convolution.
    options:
        Of this and of all calls of convolutions:

        - ``availableMemoryProportion`` (0.6): the part of a tile's memory that a convolution may take, where it can.
        - ``partialsType`` (float): the type of partial sums, "half" or "float"; float where the result is.
          ``partialsType.interTile`` (that of partialsType) is the type of those that are added on another tile.
        - ``disableSRForAMPVertices`` (false): HALFs that hold partial sums of products are rounded to the nearest also while
          stochastic rounding is on (`setStochasticRounding`).
        - ``planConstraints``: JSON, parts of a plan that are given.
        - ``planConstraintsOutputFilename``: the constraints of the plan that is taken are written to this file, with ``_FWD``,
          ``_BWD`` or ``_WU`` by the pass and ``.json`` behind it; of several plain convolutions, those of the first; of a plan
          in steps, how many of channels there are.
        - ``pass`` (NONE), ``use128BitConvUnitLoad``, ``enableMultiStageReduce``, ``enableFastReduce``, ``remapOutputTensor``,
          ``enableConvDithering``, ``gatherConvOutput``, ``disableTransformations``, ``enableTileLevelExpandDims``,
          ``partialsType.interIPU``, ``experimental.convTransformsEstimates`` and ``experimental.slicVmac16`` are checked, and
          change no plan.
        - ``insertTransformsCycleCountProgs`` is `MissingFeature`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [groups, output channels of a group, input channels of a group, *kernel] of the input type, with tiles.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    InvalidOption
        For other options and values.
    MissingFeature
        For a field of more than three dimensions.
    """
    chosen = _planned("poplin.createWeights", graph, params, debugContext, options, cache)
    shape = operand_shape(params, "weights")
    weights = in_order(graph, params.inputType, shape, _order(chosen, "weights", shape), debugContext or "")
    if chosen.form.phases is not OutputPhases.STACKED:
        seen = chosen.form.seen_weights(weights)
        _map_parts(graph, chosen, map_weights, lambda part: part.weights(seen))
    return weights


@public
def createConvOutput(
    graph: Graph,
    params: ConvParams,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor that lies as the result of `convolution` does, for `convolutionWithOutput`.

    Parameters
    ----------
    params:
        The parameters of the convolution.
    options:
        As for `createWeights`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [batch, output channels, *output field] of the output type, with tiles.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    MissingFeature
        For a field of more than three dimensions.
    """
    chosen = _planned("poplin.createConvOutput", graph, params, debugContext, options, cache)
    shape = operand_shape(params, "output")
    output = in_order(graph, params.outputType, shape, _order(chosen, "output", shape), debugContext or "")
    if chosen.form.phases is not OutputPhases.STACKED:
        computed = output
        for dim, axis in enumerate(chosen.form.params.axes()):
            computed = computed.slice(axis.output.paddingLower, computed.dim(FIELD + dim) - axis.output.paddingUpper, FIELD + dim)
        _map_parts(graph, chosen, map_output, lambda part: _outputs(part, computed))
    return external(output)


@overload
def createBiases(graph: Graph, activations: Tensor, debugContext: str | None = "biases") -> Tensor: ...
@overload
def createBiases(
    graph: Graph,
    activations: Tensor,
    params: ConvParams,
    debugContext: str | None = "biases",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor: ...
@overloaded("poplin.createBiases")
def createBiases(
    graph: Graph,
    activations: Tensor,
    params: ConvParams | None = None,
    debugContext: str | None = "biases",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new vector with an element for each channel of what a convolution has given.

    Each lies beside elements of its channel, so that `addBias` exchanges little.

    Parameters
    ----------
    activations:
        FLOAT or HALF [batch, channels, *field], with tiles.
    params:
        Those of the convolution, which shape and type of the activations are checked by.
    options:
        As for `createWeights`.
    cache:
        It is checked, and not used.

    Returns
    -------
    Tensor
        [channels] of the type of `activations`.

    Raises
    ------
    PoplibsError
        For activations of another type or rank, or that `params` do not give.
    InvalidTileMapping
        If an element of `activations` has no tile.
    """
    call = "poplin.createBiases"
    check_operands(call, graph, activations=activations)
    check_channels(call, "activations", activations)
    if params is not None:
        check_params(call, params)
        check_cache(call, cache)
        ConvolutionOptions.read(call, options)
        shape = [params.batchSize, params.getNumOutputChans(), *params.getOutputFieldShape()]
        check_operand(call, "activations", activations, params.outputType, "[batch, output channels, *output field]", shape)
    return createBroadcastOperand(graph, activations, activations.elementType(), 1, False, debugContext)


def check_channels(call: str, name: str, tensor: Tensor) -> None:
    """`PoplibsError` unless a tensor can be [batch, channels, *field] of floats or halves."""
    if tensor.rank() < 2 or tensor.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"{call}: {name} is [batch, channels, *field] of FLOAT or HALF, got {tensor!r}")


def _planned(
    call: str,
    graph: Graph,
    params: ConvParams,
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
) -> ChosenForm:
    check_graph(call, graph)
    check_params(call, params)
    check_debug(call, debugContext)
    check_cache(call, cache)
    return choose_form(graph.getTarget(), params, ConvolutionOptions.read(call, options), cache)


def _order(chosen: ChosenForm, operand: str, shape: list[int]) -> MemoryOrder:
    """How the first of the plans wants an operand in memory, or the order of its dimensions if there is none.

    Parts and phases are of dimensions that are the plan's, whole.
    """
    if not chosen.plans:
        return MemoryOrder(tuple(range(len(shape))))
    first = chosen.form.convolutions()[0].params
    assert first is not None
    own = operand_shape(first, operand)
    order = memory_order(chosen.plans[0], operand, own)
    alike = {place for place, (size, of_plan) in enumerate(zip(shape, own, strict=True)) if size == of_plan}
    cuts = {place: bounds for place, bounds in order.cuts.items() if place in alike}
    return evolve(order, cuts=cuts, phases={place: count for place, count in order.phases.items() if place in alike})


def _map_parts(graph: Graph, chosen: ChosenForm, map_as_planned: Mapper, view: Callable[[PlainConvolution], Tensor]) -> None:
    """Map what each plain convolution wants of a tensor; what several want lies where the first one wants it."""
    computed = [part for part in chosen.form.parts if part.params is not None]
    for part, plan in reversed(list(zip(computed, chosen.plans, strict=False))):
        map_as_planned(graph, plan, view(part))


def _outputs(part: PlainConvolution, output: Tensor) -> Tensor:
    for dim, axis in enumerate(part.axes):
        output = output.slice(axis.first, output.dim(FIELD + dim), FIELD + dim).subSample(axis.step, FIELD + dim)
    return output
