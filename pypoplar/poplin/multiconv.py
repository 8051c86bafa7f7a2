"""Several convolutions at once: PopLibs' namespace of this name.

With the option ``planType`` "parallel", its default, those whose parameters and options are equal are groups of one convolution,
and those that differ are computed side by side, each on tiles of its own, in the same supersteps: their exchanges and compute
sets run together. The tiles are shared out by the estimated work; each convolution has ``perConvReservedTiles`` (50) of them at
least, or an equal share where there are fewer. Where that is estimated to take longer than one convolution after the other, each on
all tiles, they follow each other, as with ``planType`` "serial". ``cycleBackOff`` is checked and changes nothing: no tiles are kept
free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, overload

from attrs import define, field, frozen

from pypoplar import popops
from pypoplar.braces import TENSORS, ordered
from pypoplar.errors import InvalidOption, PoplarIndexError, PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.convolution.calls import conv_operands
from pypoplar.poplin.convolution.calls.chosen_form import Canonical, ChosenForm, choose_form
from pypoplar.poplin.convolution.calls.conv_call import (
    Options,
    build_beside,
    check_convolution,
    check_params,
    external,
    grouped_input,
    used_weights,
)
from pypoplar.poplin.convolution.calls.conv_gradients import (
    deltas_beside,
    getWeightUpdateParams,
    update_weights,
    weight_deltas,
)
from pypoplar.poplin.convolution.calls.conv_weights import check_transposed, copy_transposed
from pypoplar.poplin.convolution.calls.tile_shares import ConvolutionJob, TileShares, share_tiles
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poplin.convolution.supersteps import SuperstepLane, Supersteps
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

RESERVED = 50  # tiles of each convolution, at least
KINDS: dict[str, Kind] = {"planType": ("serial", "parallel"), "perConvReservedTiles": int, "cycleBackOff": float}


@public
@define
class CreateTensorArgs:
    """A convolution one of whose operands is to be made.

    `createInput` and `createWeights` take such.

    Parameters
    ----------
    params:
        The parameters of the convolution.
    options:
        Its options, see `poplin.createWeights`.
    name:
        The name of the operand.
    """

    params: ConvParams = field(factory=ConvParams)
    options: Options = None
    name: str = ""


@public
@define(eq=False)
class ConvolutionArgs:
    """A convolution for `multiconv.convolution`.

    Parameters
    ----------
    inputs:
        Its input, see `poplin.convolution`.
    weights:
        Its weights.
    params:
        The parameters of the convolution.
    options:
        Its options, see `poplin.createWeights`.
    """

    inputs: Tensor = field(factory=Tensor)
    weights: Tensor = field(factory=Tensor)
    params: ConvParams = field(factory=ConvParams)
    options: Options = None


@public
@define(eq=False)
class CalculateWeightDeltasArgs:
    """A gradient of weights for `multiconv.calculateWeightDeltas`.

    Parameters
    ----------
    zDeltas:
        The gradient of the result.
    activations:
        The input of the forward pass.
    params:
        The parameters of the forward pass.
    options:
        Its options, see `poplin.createWeights`.
    """

    zDeltas: Tensor = field(factory=Tensor)
    activations: Tensor = field(factory=Tensor)
    params: ConvParams = field(factory=ConvParams)
    options: Options = None


@public
@define(eq=False)
class ConvWeightUpdateArgs:
    """An update of weights by a multiple of their gradient, with a factor in a tensor.

    Parameters
    ----------
    zDeltas:
        The gradient of the result.
    weights:
        What is written.
    activations:
        The input of the forward pass.
    scale:
        The factor, a tensor of one element.
    params:
        The parameters of the forward pass.
    options:
        Its options, see `poplin.createWeights`.
    """

    zDeltas: Tensor = field(factory=Tensor)
    weights: Tensor = field(factory=Tensor)
    activations: Tensor = field(factory=Tensor)
    scale: Tensor = field(factory=Tensor)
    params: ConvParams = field(factory=ConvParams)
    options: Options = None


@public
@define(eq=False)
class ConvWeightUpdateArgsScalar:
    """An update of weights by a multiple of their gradient, with a factor that is a number.

    Parameters
    ----------
    zDeltas:
        The gradient of the result.
    weights:
        What is written.
    activations:
        The input of the forward pass.
    scale:
        The factor, a number.
    params:
        The parameters of the forward pass.
    options:
        Its options, see `poplin.createWeights`.
    """

    zDeltas: Tensor = field(factory=Tensor)
    weights: Tensor = field(factory=Tensor)
    activations: Tensor = field(factory=Tensor)
    scale: float = 1.0
    params: ConvParams = field(factory=ConvParams)
    options: Options = None


Update = ConvWeightUpdateArgs | ConvWeightUpdateArgsScalar
Args = Any  # one of the above; all of a call are of one kind


@frozen
class Together:
    """The convolutions of a call: equal ones, whose `numbers` are a list, are groups of a job; and where the jobs are computed."""

    several: list[Args]
    numbers: list[list[int]]
    jobs: list[ConvolutionJob]
    shares: TileShares

    def chosen(self, graph: Graph, job: int, cache: PlanningCache | None) -> tuple[Graph, ChosenForm]:
        """The tiles of a job, and how it is computed there."""
        own = self.shares.graph(graph, job)
        return own, choose_form(own.getTarget(), self.jobs[job].params, self.jobs[job].options, cache)


@public
def createInput(
    graph: Graph, args: Iterable[CreateTensorArgs], inputIndex: int, options: Options = None, cache: PlanningCache | None = None
) -> Tensor:
    """A new tensor for the input of one of several convolutions that are computed at once, see `poplin.createInput`.

    Parameters
    ----------
    args:
        All of the convolutions.
    inputIndex:
        Which of them the input is for.
    options:
        Known are ``planType``, ``perConvReservedTiles`` and ``cycleBackOff``, see the module.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [batch, input channels, *field], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    PoplarIndexError
        For an index beyond `args`.
    """
    return _created(
        "poplin.multiconv.createInput", conv_operands.createInput, 1, graph, args, "inputIndex", inputIndex, options, cache
    )


@public
def createWeights(
    graph: Graph, args: Iterable[CreateTensorArgs], weightsIndex: int, options: Options = None, cache: PlanningCache | None = None
) -> Tensor:
    """A new tensor for the weights of one of several convolutions that are computed at once, see `poplin.createWeights`.

    Parameters
    ----------
    args:
        All of the convolutions.
    weightsIndex:
        Which of them the weights are for.
    options:
        Known are ``planType``, ``perConvReservedTiles`` and ``cycleBackOff``, see the module.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    Tensor
        [groups, output channels of a group, input channels of a group, *kernel], with tiles.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    PoplarIndexError
        For an index beyond `args`.
    """
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
    """The results of several convolutions, see `poplin.convolution`; `prog` is extended.

    Parameters
    ----------
    args:
        The convolutions.
    transposeAndFlipWeights:
        For all of them, as for `poplin.convolution`.
    options:
        Known are ``planType``, ``perConvReservedTiles`` and ``cycleBackOff``, see the module.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    list[Tensor]
        A result for each, in their order.

    Raises
    ------
    PoplibsError
        As for `poplin.convolution`; the message has the number of the one that does not fit.
    PoplarTypeError
        For arguments of another class.
    """
    call = "poplin.multiconv.convolution"
    check_call(call, graph, prog, debugContext)
    check_flag(call, "transposeAndFlipWeights", transposeAndFlipWeights)
    together = _read(call, ConvolutionArgs, graph, args, options, cache)
    for number, one in enumerate(together.several):
        check_convolution(
            f"{call}, args[{number}]", graph, one.inputs, one.weights, one.params, transposeAndFlipWeights, prog, debugContext,
            one.options, cache,
        )  # fmt: skip

    def build(own: list[ConvolutionArgs], part: Graph, chosen: ChosenForm, lane: SuperstepLane, name: str) -> Tensor:
        params = own[0].params
        inputs = concat([grouped_input(one.inputs, params) for one in own])
        weights = used_weights(concat([one.weights for one in own]), transposeAndFlipWeights)
        return build_beside(part, chosen, inputs, weights, lane, name)

    return [external(result) for result in _built(graph, together, build, prog, debugContext, cache)]


@public
def calculateWeightDeltas(
    graph: Graph,
    args: Iterable[CalculateWeightDeltasArgs],
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> list[Tensor]:
    """The gradients of several convolutions' weights, see `poplin.calculateWeightDeltas`; `prog` is extended.

    Parameters
    ----------
    args:
        The convolutions.
    options:
        Known are ``planType``, ``perConvReservedTiles`` and ``cycleBackOff``, see the module.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Returns
    -------
    list[Tensor]
        A gradient for each, in their order.

    Raises
    ------
    PoplibsError
        As for `poplin.calculateWeightDeltas`; the message has the number of the one that does not fit.
    PoplarTypeError
        For arguments of another class.
    """
    call = "poplin.multiconv.calculateWeightDeltas"
    check_call(call, graph, prog, debugContext)
    together = _read(call, CalculateWeightDeltasArgs, graph, args, options, cache, True)
    return _deltas(call, graph, together, prog, debugContext, cache)


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
    """Update the weights of several convolutions, see `poplin.convolutionWeightUpdate`; `prog` is extended.

    Parameters
    ----------
    args:
        The convolutions, all with numbers or all with tensors for factors.
    options:
        Known are ``planType``, ``perConvReservedTiles`` and ``cycleBackOff``, see the module.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        As for `poplin.convolutionWeightUpdate`; and if the input type of one is not its output type.
    PoplarTypeError
        For arguments of another class.
    """
    call = "poplin.multiconv.convolutionWeightUpdate"
    together = _read(call, (ConvWeightUpdateArgs, ConvWeightUpdateArgsScalar), graph, args, options, cache, True)
    several = together.several
    for number, one in enumerate(several):
        if one.params.inputType is not one.params.outputType:
            raise PoplibsError(f"{call}, args[{number}]: the input and output type are one, got {one.params!r}")
        update_weights(
            f"{call}, args[{number}]", graph, one.zDeltas, one.weights, one.activations, one.params, one.scale, prog, debugContext,
            one.options, cache,
        )  # fmt: skip
    for one, deltas in zip(several, _deltas(call, graph, together, prog, debugContext, cache), strict=True):
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
    """Copy weights to those of several convolutions, transposed, see `poplin.weightsTransposeChansFlipXY`; `prog` is extended.

    Parameters
    ----------
    args:
        The convolutions, whose weights are written.
    weightsIn:
        What is copied for each.
    options:
        Known are ``planType``, ``perConvReservedTiles`` and ``cycleBackOff``, see the module.
    cache:
        It is checked, and not used.

    Raises
    ------
    PoplibsError
        As for `poplin.weightsTransposeChansFlipXY`; and for another number of tensors than convolutions.
    PoplarTypeError
        For arguments of another class.
    """
    call = "poplin.multiconv.weightsTransposeChansFlipXY"
    check_call(call, graph, prog, debugContext)
    several = _listed(call, ConvolutionArgs, args, options, cache)
    sources = ordered(weightsIn, f"weightsIn of {call}", TENSORS)
    given = [sources] if isinstance(sources, Tensor) else list(sources)
    if len(given) != len(several):
        raise PoplibsError(f"{call}: weightsIn has {len(given)} tensors, and args {len(several)} convolutions")
    for number, (one, source) in enumerate(zip(several, given, strict=True)):
        check_transposed(f"{call}, args[{number}]", graph, source, one.weights, prog, debugContext, one.options)
    for one, source in zip(several, given, strict=True):
        copy_transposed(call, graph, source, one.weights, prog, debugContext, one.options)


def _listed(call: str, kind: type | tuple[type, ...], args: object, options: Options, cache: PlanningCache | None) -> list[Args]:
    """The convolutions of a call, whose parameters and options have been checked."""
    chosen = read_options(call, options, KINDS)
    back_off = float(chosen.get("cycleBackOff", 0.1))
    if int(chosen.get("perConvReservedTiles", RESERVED)) < 0 or not 0 <= back_off <= 1:
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
        ConvolutionOptions.read(f"{call}, args[{number}]", one.options)
    return several


def _read(
    call: str,
    kind: type | tuple[type, ...],
    graph: Graph,
    args: object,
    options: Options,
    cache: PlanningCache | None,
    updates: bool = False,
) -> Together:
    """The convolutions of a call, and how they are computed together; `updates` are the gradients of their weights."""
    several = _listed(call, kind, args, options, cache)
    chosen = read_options(call, options, KINDS)
    parallel = chosen.get("planType", "parallel") == "parallel"
    alike: dict[object, list[int]] = {}
    each: list[tuple[Canonical, ConvolutionOptions]] = []
    for number, one in enumerate(several):
        read = ConvolutionOptions.read(f"{call}, args[{number}]", one.options)
        params = deepcopy(one.params)
        if updates:
            read, params = read.for_weight_update(), getWeightUpdateParams(_updated(call, one))
        each.append((Canonical(params), read))
        alike.setdefault((one.params.key(), each[-1]) if parallel else number, []).append(number)
    numbers = list(alike.values())
    jobs = [ConvolutionJob(*each[own[0]], len(own)) for own in numbers]
    reserved = int(chosen.get("perConvReservedTiles", RESERVED))
    shares = share_tiles(graph.getTarget(), jobs, reserved, cache) if parallel else TileShares(())
    return Together(several, numbers, jobs, shares)


def _updated(call: str, one: Args) -> ConvParams:
    """The parameters of the forward pass; an update of weights is of their type."""
    params: ConvParams = deepcopy(one.params)
    if not isinstance(one, CalculateWeightDeltasArgs):
        params.outputType = params.inputType
    return params


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
    """An operand that lies where its convolution wants it; `dimension` has the groups, some of each of equal convolutions."""
    check_graph(call, graph)
    together = _read(call, CreateTensorArgs, graph, args, options, cache)
    place = whole_number(call, name, index)
    if place >= len(together.several):
        raise PoplarIndexError(f"{call}: {name} is {place}, and args has {len(together.several)} convolutions")
    job = next(number for number, own in enumerate(together.numbers) if place in own)
    own, one = together.numbers[job], together.several[place]
    check_debug(call, one.name)
    part = together.shares.graph(graph, job)
    operand = create(part, one.params, one.name, one.options, cache)
    if len(own) > 1:
        scratch = Graph(part.getTarget())
        whole = create(scratch, together.jobs[job].params, "", one.options, cache)
        size, first = operand.dim(dimension), own.index(place)
        part.setTileMapping(operand, scratch.getTileMapping(whole.slice(first * size, (first + 1) * size, dimension)))
    return operand


def _built(
    graph: Graph,
    together: Together,
    build: Callable[[list[Args], Graph, ChosenForm, SuperstepLane, str], Tensor],
    prog: Sequence,
    debugContext: str | None,
    cache: PlanningCache | None,
) -> list[Tensor]:
    """What is built of each convolution; dimension 0 of what is built together is cut into what belongs to each."""
    results: dict[int, Tensor] = {}
    supersteps = Supersteps(graph)
    for job, numbers in enumerate(together.numbers):
        own = [together.several[number] for number in numbers]
        name = below(debugContext, "_".join(map(str, numbers)))
        part, chosen = together.chosen(graph, job, cache)
        whole = build(own, part, chosen, supersteps.lane(), name)
        if not together.shares.beside:
            supersteps.add_to(prog)
            supersteps = Supersteps(graph)
        size = whole.dim(0) // len(own)
        for place, number in enumerate(numbers):
            results[number] = whole.slice(place * size, (place + 1) * size)
    supersteps.add_to(prog)
    return [results[number] for number in range(len(together.several))]


def _deltas(
    call: str, graph: Graph, together: Together, prog: Sequence, debugContext: str | None, cache: PlanningCache | None
) -> list[Tensor]:
    """The gradients of weights; nothing is built before all arguments have been checked."""
    for number, one in enumerate(together.several):
        own = (one.zDeltas, one.activations, one.params)
        weight_deltas(f"{call}, args[{number}]", graph, *own, prog, debugContext, one.options, cache)

    def build(own: list[Args], part: Graph, chosen: ChosenForm, lane: SuperstepLane, name: str) -> Tensor:
        params = deepcopy(own[0].params)
        params.numConvGroups *= len(own)
        deltas, activations = concat([one.zDeltas for one in own], 1), concat([one.activations for one in own], 1)
        return deltas_beside(part, chosen, deltas, activations, params, lane, name)

    return _built(graph, together, build, prog, debugContext, cache)
