"""What convolutions cost: operations, perfect cycles, and plans in words."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, ClassVar, TextIO, overload

from attrs import define

from pypoplar.braces import ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.poplin.convolution.calls.chosen_form import ChosenForm, choose_form
from pypoplar.poplin.convolution.calls.conv_call import Options, check_params
from pypoplar.poplin.convolution.calls.conv_gradients import getWeightUpdateParams
from pypoplar.poplin.convolution.calls.plain_forms import products
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.poputil.arguments import check_graph
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.target import Target
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT

ConvPlanParams = tuple[Target, ConvParams, Options]


@public
@define
class PlanCosts:
    """What a convolution is estimated to cost; `unknown` is the number of what is not known.

    Parameters
    ----------
    cycles:
        Of all its supersteps.
    memory:
        Bytes of the fullest tile.
    """

    unknown: ClassVar[int] = 2 * sys.maxsize + 1

    cycles: int = unknown
    memory: int = unknown


@public
def getFwdFlops(params: ConvParams) -> int:
    """The least number of operations of the forward pass: two for each product of an input and a weight, but for padding.

    Parameters
    ----------
    params:
        The parameters of the forward pass.

    Returns
    -------
    int
        Floating point operations.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    """
    return _flops("poplin.getFwdFlops", params)


@public
def getBwdFlops(params: ConvParams) -> int:
    """The least number of operations of the backward pass: as many as of the forward pass.

    Parameters
    ----------
    params:
        The parameters of the forward pass.

    Returns
    -------
    int
        Floating point operations.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    """
    return _flops("poplin.getBwdFlops", params)


@public
def getWuFlops(params: ConvParams) -> int:
    """The least number of operations of the weight update: as many as of the forward pass.

    Parameters
    ----------
    params:
        The parameters of the forward pass.

    Returns
    -------
    int
        Floating point operations.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    """
    return _flops("poplin.getWuFlops", params)


@public
def getFwdPerfectCycleCount(graph: Graph, params: ConvParams) -> float:
    """The cycles of the forward pass if every tile computed all the time at its peak.

    Parameters
    ----------
    params:
        The parameters of the forward pass.

    Returns
    -------
    float
        Cycles.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.

    Notes
    -----
    After PopLibs' getPerfectCycleCount. The peak of HALF is that of the matrix unit; FLOAT is counted at a vector of two in a
    cycle.
    """
    return _perfect_cycles("poplin.getFwdPerfectCycleCount", graph, params)


@public
def getBwdPerfectCycleCount(graph: Graph, params: ConvParams) -> float:
    """The cycles of the backward pass if every tile computed all the time at its peak, see `getFwdPerfectCycleCount`.

    Parameters
    ----------
    params:
        The parameters of the forward pass.

    Returns
    -------
    float
        Cycles.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    """
    return _perfect_cycles("poplin.getBwdPerfectCycleCount", graph, params)


@public
def getWuPerfectCycleCount(graph: Graph, params: ConvParams) -> float:
    """The cycles of the weight update if every tile computed all the time at its peak, see `getFwdPerfectCycleCount`.

    Parameters
    ----------
    params:
        The parameters of the forward pass.

    Returns
    -------
    float
        Cycles.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    """
    return _perfect_cycles("poplin.getWuPerfectCycleCount", graph, params)


@public
def convolutionValidateOptions(options: Options) -> None:
    """Whether convolutions take options: it is the check of `convolution`.

    Parameters
    ----------
    options:
        The options, see `createWeights`.

    Raises
    ------
    InvalidOption
        For an option that convolutions do not have, or a value that it cannot have.
    MissingFeature
        For ``insertTransformsCycleCountProgs``.
    """
    ConvolutionOptions.read("poplin.convolutionValidateOptions", options)


@public
def reportPlanInfo(
    out: TextIO, graph: Graph, params: ConvParams, options: Options = None, cache: PlanningCache | None = None
) -> None:
    """Write to a text file how a convolution is computed, with the estimated cycles and bytes of the fullest tile.

    Parameters
    ----------
    out:
        A text file such as ``sys.stdout``.
    params:
        The parameters of the convolution.
    options:
        As for `createWeights`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together, and if `out` cannot be written to.
    """
    call = "poplin.reportPlanInfo"
    _report(call, out, graph, params, ConvolutionOptions.read(call, options), cache)


@public
def reportWeightUpdatePlanInfo(
    out: TextIO, graph: Graph, fwdParams: ConvParams, fwdOptions: Options = None, cache: PlanningCache | None = None
) -> None:
    """Write to a text file how the weight update of a convolution is computed, as `reportPlanInfo`.

    Parameters
    ----------
    out:
        A text file such as ``sys.stdout``.
    fwdParams:
        The parameters of the forward pass.
    fwdOptions:
        Its options, see `createWeights`.
    cache:
        Where the plan is kept for the next call of the same shapes, types and options.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together, and if `out` cannot be written to.
    """
    call = "poplin.reportWeightUpdatePlanInfo"
    check_params(call, fwdParams)
    options = ConvolutionOptions.read(call, fwdOptions).for_weight_update()
    _report(call, out, graph, getWeightUpdateParams(fwdParams), options, cache)


@public
def reportPlanEstimatedCosts(
    graph: Graph, params: ConvParams, options: Options = None, cache: PlanningCache | None = None
) -> PlanCosts:
    """The estimated cycles of a convolution and bytes of its fullest tile.

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
    PlanCosts
        Of the plan that `convolution` takes.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    """
    call = "poplin.reportPlanEstimatedCosts"
    chosen = _chosen(call, graph, params, ConvolutionOptions.read(call, options), cache)
    return PlanCosts(chosen.cycles, chosen.bytes)


@overload
def preplanConvolutions(convs: Iterable[object], cache: PlanningCache) -> None: ...
@overload
def preplanConvolutions(graph: Graph, convs: Iterable[object], cache: PlanningCache) -> None: ...
@overloaded("poplin.preplanConvolutions")
def preplanConvolutions(convs: Iterable[object], cache: PlanningCache, graph: Graph | None = None) -> None:
    """Plan convolutions into a cache; PopLibs has `preplan` in its place.

    Parameters
    ----------
    convs:
        A target, a `ConvParams` and options of `convolution` for each.
    cache:
        What gets the plans.

    Raises
    ------
    PoplibsError
        For parameters that do not fit together.
    PoplarTypeError
        For what is no list of such triples, or no cache.
    """
    plan_convolutions("poplin.preplanConvolutions", convs, cache)


def plan_convolutions(call: str, convs: Iterable[object], cache: PlanningCache) -> None:
    """Plan convolutions into a cache; all are checked before the first is planned."""
    write = "[(target, params, {}), ...]"
    several: object = ordered(convs, f"the convs of {call}", write)
    if not isinstance(several, Iterable):
        raise PoplarTypeError(f"{call}: convs is a list of a target, parameters and options each, got {convs!r}")
    check_cache(call, cache)
    read = []
    for given in several:
        if not isinstance(given, tuple) or len(given) != 3 or not isinstance(given[0], Target):
            raise PoplarTypeError(f"{call}: convs is a list of a target, parameters and options each: {write}, got {given!r}")
        target, params, options = given
        check_params(call, params)
        read.append((target, params, ConvolutionOptions.read(call, options)))
    for target, params, chosen in read:
        choose_form(target, params, chosen, cache)


def _flops(call: str, params: ConvParams) -> int:
    check_params(call, params)
    return 2 * products(params)


def _perfect_cycles(call: str, graph: Graph, params: ConvParams) -> float:
    check_graph(call, graph)
    check_params(call, params)
    target = graph.getTarget()
    if params.inputType is FLOAT:
        peak = target.getFloatVectorWidth()
    else:
        units = (
            target.getFp16InFp16OutConvUnitsPerTile(),
            target.getFp16InFp32OutConvUnitsPerTile(),
            target.getFp32InFp32OutConvUnitsPerTile(),
        )
        peak = max(units) * target.getHalfVectorWidth()
    return products(params) / (peak * target.getNumTiles())


def _chosen(call: str, graph: Graph, params: ConvParams, options: ConvolutionOptions, cache: PlanningCache | None) -> ChosenForm:
    check_graph(call, graph)
    check_params(call, params)
    check_cache(call, cache)
    return choose_form(graph.getTarget(), params, options, cache)


def _report(
    call: str, out: Any, graph: Graph, params: ConvParams, options: ConvolutionOptions, cache: PlanningCache | None
) -> None:
    if not hasattr(out, "write"):
        raise PoplibsError(f"{call}: out is a text file, such as sys.stdout, got {out!r}")
    chosen = _chosen(call, graph, params, options, cache)
    if chosen.plans:
        out.write(f"  Estimated cost {{cycles {chosen.cycles}, bytes of a tile {chosen.bytes}}}\n")
    out.write(chosen.describe())
