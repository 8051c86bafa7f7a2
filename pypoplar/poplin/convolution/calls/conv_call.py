"""`convolution` and `convolutionWithOutput`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from pypoplar import popops
from pypoplar.errors import MissingFeature, PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.convolution.calls.chosen_form import ChosenForm, choose_form
from pypoplar.poplin.convolution.calls.plain_forms import PlainConvolution
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poplin.convolution.conv_shape import FIELD
from pypoplar.poplin.convolution.plan_execution import execute
from pypoplar.poplin.convolution.supersteps import SuperstepLane, Supersteps
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.poputil.arguments import check_call, check_codelet, check_flag, check_operands, check_own, check_writeable, shape_of
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType

MOST_DIMS = 3
CODELETS = (templateVertex("poplin::ConvPartialnx1", FLOAT, FLOAT), templateVertex("popops::Fill", FLOAT))
Options = Mapping[str, object] | None


@public
def convolution(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    in_: Tensor,
    weights: Tensor,
    params: ConvParams,
    transposeAndFlipWeights: bool,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor: the convolution that `params` describe; `prog` is extended.

    Parameters
    ----------
    in_:
        [batch, input channels, *field] of the input type.
    weights:
        [groups, output channels of a group, input channels of a group, *kernel] of the input type.
    params:
        The parameters, with a field of up to three dimensions.
    transposeAndFlipWeights:
        Whether the weights are those of the forward pass, [groups, input channels, output channels, *kernel] as `params` call
        them, and are used with their channels exchanged and every dimension of the kernel reversed: with `getGradientParams`
        that is the backward pass.
    options:
        As for `createWeights`; sums are taken in the type that ``partialsType`` says.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [batch, output channels, *output field] of the output type, where it is computed.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together, and operands of other shapes or types.
    InvalidTileMapping
        If an element of an operand has no tile.
    MissingFeature
        For a field of more than three dimensions.

    Notes
    -----
    Zeros between inputs, as a backward pass with a stride has, cost nothing where that is cheaper: outputs of each phase are a
    convolution of their own, or output channels of one.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import FLOAT, poplin, program, testing
    >>> params = poplin.ConvParams(FLOAT, 1, [4], [2], 1, 1, 1)  # a sample of one channel of 4 places, a kernel of 2
    >>> def compute(graph, x, kernel):
    ...     poplin.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"y": poplin.convolution(graph, x, kernel, params, False, prog)}
    >>> arrays = {"x": np.float32([[[1, 2, 3, 4]]]), "kernel": np.float32([[[[1, 10]]]])}
    >>> testing.run(compute, arrays)["y"].tolist()
    [[[21.0, 32.0, 43.0]]]
    """
    call = "poplin.convolution"
    chosen = check_convolution(call, graph, in_, weights, params, transposeAndFlipWeights, prog, debugContext, options, cache)
    input, kernel = grouped_input(in_, params), used_weights(weights, transposeAndFlipWeights)
    return external(build_convolution(graph, chosen, input, kernel, prog, debugContext))


@public
def convolutionWithOutput(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    in_: Tensor,
    weights: Tensor,
    out: Tensor,
    params: ConvParams,
    transposeAndFlipWeights: bool,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """`convolution`, whose result is copied to a tensor that is given; `prog` is extended.

    Parameters
    ----------
    in_:
        [batch, input channels, *field] of the input type.
    weights:
        [groups, output channels of a group, input channels of a group, *kernel] of the input type.
    out:
        [batch, output channels, *output field] of the output type: `createConvOutput` makes one.
    params:
        The parameters, with a field of up to three dimensions.
    transposeAndFlipWeights:
        As for `convolution`.
    options:
        As for `createWeights`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        As for `convolution`; for an `out` of another shape or type, or that holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "poplin.convolutionWithOutput"
    chosen = check_convolution(call, graph, in_, weights, params, transposeAndFlipWeights, prog, debugContext, options, cache)
    check_own(call, graph, out=out)
    shape = [params.batchSize, params.getNumOutputChans(), *params.getOutputFieldShape()]
    check_operand(call, "out", out, params.outputType, "[batch, output channels, *output field]", shape)
    check_writeable(call, out)
    check_operands(call, graph, out=out)
    input, kernel = grouped_input(in_, params), used_weights(weights, transposeAndFlipWeights)
    prog.add(Copy(external(build_convolution(graph, chosen, input, kernel, prog, debugContext)), out))


def check_convolution(  # noqa: PLR0913 (PopLibs' arguments)
    call: str,
    graph: Graph,
    in_: Tensor,
    weights: Tensor,
    params: ConvParams,
    flipped: bool,
    prog: Sequence,
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
) -> ChosenForm:
    """The way to compute a convolution whose operands fit."""
    check_call(call, graph, prog, debugContext)
    check_own(call, graph, in_=in_, weights=weights)
    check_flag(call, "transposeAndFlipWeights", flipped)
    check_params(call, params)
    check_cache(call, cache)
    read = ConvolutionOptions.read(call, options)
    shape = [params.batchSize, params.getNumInputChans(), *params.inputFieldShape]
    check_operand(call, "in_", in_, params.inputType, "[batch, input channels, *field]", shape)
    channels = [params.outputChannelsPerConvGroup, params.inputChannelsPerConvGroup]
    words = "output channels, input channels"
    if flipped:
        channels, words = channels[::-1], "input channels, output channels"
    shape = [params.numConvGroups, *channels, *params.kernelShape]
    check_operand(call, "weights", weights, params.inputType, f"[groups, {words}, *kernel]", shape)
    check_operands(call, graph, in_=in_, weights=weights)
    check_codelets(call, graph)
    return choose_form(graph.getTarget(), params, read, cache)


def check_codelets(call: str, graph: Graph) -> None:
    """`UnknownVertexType` unless the graph has the device code of poplin and of popops, which sets what is 0."""
    for vertexType in CODELETS:
        check_codelet(call, graph, vertexType)


def check_params(call: str, params: object) -> None:
    """Errors for what is no `ConvParams`, for what does not fit together, and for a field of more than three dimensions."""
    if not isinstance(params, ConvParams):
        raise PoplarTypeError(f"{call}: params is a poplin.ConvParams, got {params!r}")
    try:
        params.validate()
    except (PoplibsError, PoplarTypeError) as error:
        raise type(error)(f"{call}: params: {str(error).removeprefix('ConvParams: ')}") from None
    channels, outputs = params.getNumInputChans(), params.outputChannelsPerConvGroup
    tensors = {
        "the input": (params.batchSize, channels, *params.inputFieldShape),
        "the weights": (channels, outputs, *params.kernelShape),
        "the result": (params.batchSize, params.getNumOutputChans(), *params.getOutputFieldShape()),
    }
    for name, shape in tensors.items():
        shape_of(f"{call}: params: {name}", shape)
    if params.getNumFieldDims() > MOST_DIMS:
        raise MissingFeature(
            f"{call}: a field has {MOST_DIMS} dimensions at most in pypoplar, got {len(params.inputFieldShape)}, "
            f"{params.inputFieldShape}"
        )


def check_operand(call: str, name: str, tensor: Tensor, type: ElementType | None, words: str, shape: list[int]) -> None:
    """`PoplibsError` unless a tensor has the type, or with None is of floats, and the shape that parameters say."""
    if tensor.shape() != shape:
        raise PoplibsError(f"{call}: {name} is {words} = {shape} by the parameters, got {tensor!r}")
    if type is None and tensor.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"{call}: {name} is FLOAT or HALF, got {tensor!r}")
    if type is not None and tensor.elementType() is not type:
        raise PoplibsError(f"{call}: {name} is {type!r} by the parameters, got {tensor!r}")


def grouped_input(tensor: Tensor, params: ConvParams) -> Tensor:
    """[batch, channels, *field] as [groups, batch, channels of a group, *field]."""
    return in_groups(tensor, params.numConvGroups, params.inputChannelsPerConvGroup)


def in_groups(tensor: Tensor, groups: int, channels: int) -> Tensor:
    """[batch, groups * channels, *field] as [groups, batch, channels, *field]."""
    return tensor.reshapePartial(1, 2, [groups, channels]).dimRoll(1, 0)


def used_weights(weights: Tensor, transposed: bool) -> Tensor:
    """The weights as a convolution uses them."""
    if not transposed:
        return weights
    for dim in range(FIELD, weights.rank()):
        weights = weights.reverse(dim)
    return weights.dimShufflePartial([1], [2])


def external(result: Tensor) -> Tensor:
    """[groups, batch, channels, *field] as [batch, channels of all groups, *field]."""
    return result.dimRoll(0, 1).flatten(1, 3)


def build_convolution(
    graph: Graph, chosen: ChosenForm, input: Tensor, weights: Tensor, prog: Sequence, debug: str | None
) -> Tensor:
    """The result [groups, batch, output channels, *output field] of [groups, batch, input channels, *field] and weights."""
    supersteps = Supersteps(graph)
    result = build_beside(graph, chosen, input, weights, supersteps.lane(), debug)
    supersteps.add_to(prog)
    return result


def build_beside(
    graph: Graph, chosen: ChosenForm, input: Tensor, weights: Tensor, lane: SuperstepLane, debug: str | None
) -> Tensor:
    """The same in a lane of supersteps."""
    form, params = chosen.form, chosen.form.params
    name = below(debug, "convolution") if debug else "convolution"
    shape = [params.numConvGroups, params.batchSize, params.outputChannelsPerConvGroup]
    if not chosen.plans:
        return _zeros(graph, params, [*shape, *params.getOutputFieldShape()], lane, name)
    seen, kernel = form.seen_input(graph, input), form.seen_weights(weights)
    if form.whole is not None:
        stacked = form.stacked_weights(graph, kernel)
        whole = execute(graph, chosen.plans[0], form.whole.input(seen), stacked, lane, name)
        channels = params.outputChannelsPerConvGroup
        results = [_first(whole.slice(channels * n, channels * (n + 1), 2), part) for n, part in enumerate(form.parts)]
    else:
        plans, results = list(chosen.plans), []
        for part in form.parts:
            if part.params is None:
                results.append(_zeros(graph, params, [*shape, *(axis.count for axis in part.axes)], lane, name))
            else:
                results.append(execute(graph, plans.pop(0), part.input(seen), part.weights(kernel), lane, name))
    return _padded(graph, params, form.joined(results), lane, name)


def _first(result: Tensor, part: PlainConvolution) -> Tensor:
    """The outputs that a part has of those of the whole."""
    for dim, axis in enumerate(part.axes):
        result = result.slice(0, axis.count, FIELD + dim)
    return result


def _padded(graph: Graph, params: ConvParams, result: Tensor, lane: SuperstepLane, name: str) -> Tensor:
    """The result with its output padding."""
    for dim, axis in enumerate(params.axes()):
        pieces = [result]
        for place, count in ((0, axis.output.paddingLower), (2, axis.output.paddingUpper)):
            if count:
                shape = result.shape()
                shape[FIELD + dim] = count
                pieces.insert(place, _zeros(graph, params, shape, lane, name))
        result = concat(pieces, FIELD + dim)
    return result


def _zeros(graph: Graph, params: ConvParams, shape: list[int], lane: SuperstepLane, name: str) -> Tensor:
    """Outputs that are 0, set anew in each run."""
    tensor = graph.addVariable(params.outputType, shape, below(name, "zeros"))
    mapTensorLinearly(graph, tensor)
    if prod(shape):
        popops.zero(graph, tensor, lane.programs, below(name, "zeros"))
    return tensor
