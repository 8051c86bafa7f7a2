"""Several convolutions at once: PopLibs' namespace of this name.

With the option ``planType`` "parallel", its default, those whose parameters and options are equal are computed side by side, as
groups of one convolution, whose plan shares the tiles out among them; others follow one after the other, each on all tiles. With
"serial" all do. ``perConvReservedTiles`` and ``cycleBackOff`` are checked and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, overload

from attrs import define, field

from pypoplar import popops
from pypoplar.braces import TENSORS, ordered
from pypoplar.errors import InvalidOption, PoplarIndexError, PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.convolution.calls import conv_operands
from pypoplar.poplin.convolution.calls.conv_call import Options, check_convolution, check_params
from pypoplar.poplin.convolution.calls.conv_call import convolution as convolve_one
from pypoplar.poplin.convolution.calls.conv_gradients import update_weights, weight_deltas
from pypoplar.poplin.convolution.calls.conv_weights import check_transposed, copy_transposed
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.poputil.arguments import check_call, check_debug, check_flag, check_graph, whole_number
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.tracebacks import public

__all__ = [
    "CalculateWeightDeltasArgs",
    "ConvWeightUpdateArgs",
    "ConvWeightUpdateArgsScalar",
    "ConvolutionArgs",
    "CreateTensorArgs",
    "calculateWeightDeltas",
    "convolution",
    "convolutionWeightUpdate",
    "createInput",
    "createWeights",
    "weightsTransposeChansFlipXY",
]

KINDS: dict[str, Kind] = {"planType": ("serial", "parallel"), "perConvReservedTiles": int, "cycleBackOff": float}


@public
@define
class CreateTensorArgs:
    """A convolution whose operand is made: its parameters and options, and the operand's name."""

    params: ConvParams = field(factory=ConvParams)
    options: Options = None
    name: str = ""


@public
@define(eq=False)
class ConvolutionArgs:
    """A convolution: operands, parameters, options."""

    inputs: Tensor = field(factory=Tensor)
    weights: Tensor = field(factory=Tensor)
    params: ConvParams = field(factory=ConvParams)
    options: Options = None


@public
@define(eq=False)
class CalculateWeightDeltasArgs:
    """A gradient of weights: that of the result, the input, parameters and options of the forward pass."""

    zDeltas: Tensor = field(factory=Tensor)
    activations: Tensor = field(factory=Tensor)
    params: ConvParams = field(factory=ConvParams)
    options: Options = None


@public
@define(eq=False)
class ConvWeightUpdateArgs:
    """An update of weights by their gradient times a scale, a tensor of one element."""

    zDeltas: Tensor = field(factory=Tensor)
    weights: Tensor = field(factory=Tensor)
    activations: Tensor = field(factory=Tensor)
    scale: Tensor = field(factory=Tensor)
    params: ConvParams = field(factory=ConvParams)
    options: Options = None


@public
@define(eq=False)
class ConvWeightUpdateArgsScalar:
    """An update of weights by their gradient times a number."""

    zDeltas: Tensor = field(factory=Tensor)
    weights: Tensor = field(factory=Tensor)
    activations: Tensor = field(factory=Tensor)
    scale: float = 1.0
    params: ConvParams = field(factory=ConvParams)
    options: Options = None


Update = ConvWeightUpdateArgs | ConvWeightUpdateArgsScalar
Args = Any  # one of the above; all of a call are of one kind
Sharing = list[list[int]]  # numbers of the convolutions that are computed side by side


@public
def createInput(
    graph: Graph, args: Iterable[CreateTensorArgs], inputIndex: int, options: Options = None, cache: PlanningCache | None = None
) -> Tensor:
    """A new tensor for the input of a convolution of `args`, all of which are computed at once: see `poplin.createInput`."""
    return _created(
        "poplin.multiconv.createInput", conv_operands.createInput, 1, graph, args, "inputIndex", inputIndex, options, cache
    )


@public
def createWeights(
    graph: Graph, args: Iterable[CreateTensorArgs], weightsIndex: int, options: Options = None, cache: PlanningCache | None = None
) -> Tensor:
    """A new tensor for the weights of a convolution of `args`, all of which are computed at once: see `poplin.createWeights`."""
    call = "poplin.multiconv.createWeights"
    return _created(call, conv_operands.createWeights, 0, graph, args, "weightsIndex", weightsIndex, options, cache)


@public
def convolution(
    graph: Graph,
    args: Iterable[ConvolutionArgs],
    transposeAndFlipWeights: bool,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> list[Tensor]:
    """The results of several convolutions, see `poplin.convolution`, in their order; `prog` is extended."""
    call = "poplin.multiconv.convolution"
    check_call(call, graph, prog, debugContext)
    check_flag(call, "transposeAndFlipWeights", transposeAndFlipWeights)
    several, sharing = _read(call, ConvolutionArgs, args, options, cache)
    for number, one in enumerate(several):
        check_convolution(
            f"{call}, args[{number}]", graph, one.inputs, one.weights, one.params, transposeAndFlipWeights, prog, debugContext,
            one.options, cache,
        )  # fmt: skip

    def build(own: list[ConvolutionArgs], params: ConvParams, name: str) -> Tensor:
        input, weights = concat([one.inputs for one in own], 1), concat([one.weights for one in own])
        return convolve_one(graph, input, weights, params, transposeAndFlipWeights, prog, name, own[0].options, cache)

    return _built(several, sharing, build, 1, debugContext)


@public
def calculateWeightDeltas(
    graph: Graph,
    args: Iterable[CalculateWeightDeltasArgs],
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> list[Tensor]:
    """The gradients of several convolutions' weights, see `poplin.calculateWeightDeltas`, in their order; `prog` is extended."""
    call = "poplin.multiconv.calculateWeightDeltas"
    check_call(call, graph, prog, debugContext)
    several, sharing = _read(call, CalculateWeightDeltasArgs, args, options, cache)
    return _deltas(call, graph, several, sharing, prog, debugContext, cache)


@overload
def convolutionWeightUpdate(
    graph: Graph, args: Iterable[ConvWeightUpdateArgs], prog: Sequence, debugContext: str | None = None, options: Options = None,
    cache: PlanningCache | None = None,
) -> None: ...  # fmt: skip
@overload
def convolutionWeightUpdate(
    graph: Graph, args: Iterable[ConvWeightUpdateArgsScalar], prog: Sequence, debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> None: ...  # fmt: skip
@overloaded("poplin.multiconv.convolutionWeightUpdate")
def convolutionWeightUpdate(
    graph: Graph,
    args: Iterable[Update],
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Update the weights of several convolutions, see `poplin.convolutionWeightUpdate`; `prog` is extended."""
    call = "poplin.multiconv.convolutionWeightUpdate"
    several, sharing = _read(call, (ConvWeightUpdateArgs, ConvWeightUpdateArgsScalar), args, options, cache)
    for number, one in enumerate(several):
        if one.params.inputType is not one.params.outputType:
            raise PoplibsError(f"{call}, args[{number}]: the input and output type are one, got {one.params!r}")
        update_weights(
            f"{call}, args[{number}]", graph, one.zDeltas, one.weights, one.activations, one.params, one.scale, prog, debugContext,
            one.options, cache,
        )  # fmt: skip
    for one, deltas in zip(several, _deltas(call, graph, several, sharing, prog, debugContext, cache), strict=True):
        popops.scaledAddTo(graph, one.weights, deltas, one.scale, prog, below(debugContext, "weightUpdate"))


@public
def weightsTransposeChansFlipXY(
    graph: Graph,
    args: Iterable[ConvolutionArgs],
    weightsIn: Iterable[Tensor],
    prog: Sequence,
    options: Options,
    debugContext: str | None,
    cache: PlanningCache | None,
) -> None:
    """Copy each of `weightsIn` to the weights of its convolution, transposed: see `poplin.weightsTransposeChansFlipXY`."""
    call = "poplin.multiconv.weightsTransposeChansFlipXY"
    check_call(call, graph, prog, debugContext)
    several, _ = _read(call, ConvolutionArgs, args, options, cache)
    sources = ordered(weightsIn, f"weightsIn of {call}", TENSORS)
    given = [sources] if isinstance(sources, Tensor) else list(sources)
    if len(given) != len(several):
        raise PoplibsError(f"{call}: weightsIn has {len(given)} tensors, and args {len(several)} convolutions")
    for number, (one, source) in enumerate(zip(several, given, strict=True)):
        check_transposed(f"{call}, args[{number}]", graph, source, one.weights, prog, debugContext, one.options)
    for one, source in zip(several, given, strict=True):
        copy_transposed(call, graph, source, one.weights, prog, debugContext, one.options)


def _read(
    call: str, kind: type | tuple[type, ...], args: object, options: Options, cache: PlanningCache | None
) -> tuple[list[Args], Sharing]:
    """The convolutions of a call, and which of them are computed side by side; all parameters and options have been checked."""
    chosen = read_options(call, options, KINDS)
    back_off = float(chosen.get("cycleBackOff", 0.1))
    if int(chosen.get("perConvReservedTiles", 50)) < 0 or not 0 <= back_off <= 1:
        raise InvalidOption(f"{call}: perConvReservedTiles is 0 at least and cycleBackOff from 0 to 1, got {dict(options or {})!r}")
    check_cache(call, cache)
    listed: object = ordered(args, f"args of {call}", "[first, second]")
    kinds = kind if isinstance(kind, tuple) else (kind,)
    wanted = " or ".join(f"multiconv.{each.__name__}" for each in kinds)
    several: list[Any] = list(listed) if isinstance(listed, Iterable) else [listed]
    for number, one in enumerate(several):
        if type(one) not in kinds:
            raise PoplarTypeError(f"{call}: args is a list, each a {wanted}, got {one!r} as args[{number}]")
        check_params(f"{call}, args[{number}]", one.params)
    alike: dict[object, list[int]] = {}
    parallel = chosen.get("planType", "parallel") == "parallel"
    for number, one in enumerate(several):
        read = ConvolutionOptions.read(f"{call}, args[{number}]", one.options)
        alike.setdefault((one.params.key(), read) if parallel else number, []).append(number)
    return several, list(alike.values())


def _joined(params: ConvParams, count: int) -> ConvParams:
    """So many equal convolutions as groups of one."""
    joined = deepcopy(params)
    joined.numConvGroups *= count
    return joined


def _created(  # noqa: PLR0913 (PopLibs' arguments)
    call: str,
    create: Callable[..., Tensor],
    dimension: int,
    graph: Graph,
    args: Iterable[CreateTensorArgs],
    name: str,
    index: int,
    options: Options,
    cache: PlanningCache | None,
) -> Tensor:
    """An operand that lies as its part of that of all convolutions alike; `dimension` has the groups."""
    check_graph(call, graph)
    several, sharing = _read(call, CreateTensorArgs, args, options, cache)
    place = whole_number(call, name, index)
    if place >= len(several):
        raise PoplarIndexError(f"{call}: {name} is {place}, and args has {len(several)} convolutions")
    own, one = next(numbers for numbers in sharing if place in numbers), several[place]
    check_debug(call, one.name)
    operand = create(graph, one.params, one.name, one.options, cache)
    if len(own) > 1:
        scratch = Graph(graph.getTarget())
        whole = create(scratch, _joined(one.params, len(own)), "", one.options, cache)
        size, first = operand.dim(dimension), own.index(place)
        part = whole.slice(first * size, (first + 1) * size, dimension)
        graph.setTileMapping(operand, scratch.getTileMapping(part))
    return operand


def _built(
    several: list[Args],
    sharing: Sharing,
    build: Callable[[list[Args], ConvParams, str], Tensor],
    dimension: int,
    debugContext: str | None,
) -> list[Tensor]:
    """What is built of the convolutions that are computed side by side, cut in `dimension` into what belongs to each."""
    results: dict[int, Tensor] = {}
    for numbers in sharing:
        own = [several[number] for number in numbers]
        name = below(debugContext, "_".join(map(str, numbers)))
        whole = build(own, _joined(own[0].params, len(own)), name)
        size = whole.dim(dimension) // len(own)
        for place, number in enumerate(numbers):
            results[number] = whole.slice(place * size, (place + 1) * size, dimension)
    return [results[number] for number in range(len(several))]


def _deltas(
    call: str,
    graph: Graph,
    several: list[Args],
    sharing: Sharing,
    prog: Sequence,
    debugContext: str | None,
    cache: PlanningCache | None,
) -> list[Tensor]:
    """The gradients of weights; nothing is built before all arguments have been checked."""
    for number, one in enumerate(several):
        own = (one.zDeltas, one.activations, one.params)
        weight_deltas(f"{call}, args[{number}]", graph, *own, prog, debugContext, one.options, cache)

    def build(alike: list[Args], params: ConvParams, name: str) -> Tensor:
        deltas, activations = concat([one.zDeltas for one in alike], 1), concat([one.activations for one in alike], 1)
        return weight_deltas(call, graph, deltas, activations, params, prog, name, alike[0].options, cache)(name)

    return _built(several, sharing, build, 0, debugContext)
