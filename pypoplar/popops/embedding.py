"""Plans for lookups in tables, and for updates of their entries."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from typing import overload

from attrs import frozen

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.popops.slicing.slice_arguments import Options, whole_number, whole_numbers
from pypoplar.popops.slicing.slice_options import SliceOptions
from pypoplar.popops.slicing.slice_plan import PlannedTable, SlicePlan
from pypoplar.popops.slicing.slice_planner import cheapest_partition
from pypoplar.popops.slicing.sliceable_layout import start_tile
from pypoplar.poputil.arguments import element_type, shape_of
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.tracebacks import public
from pypoplar.types import ElementType

__all__ = ["SlicePlanningParameters", "plan", "planMultiple"]


@overload
def plan(
    graph: Graph, dataType: ElementType, numEntries: int, outputSize: int, numLookups: Iterable[int], options: Options
) -> SlicePlan: ...
@overload
def plan(
    graph: Graph,
    dataType: ElementType,
    groupSize: int,
    numEntries: int,
    outputSize: int,
    numLookups: Iterable[int],
    options: Options,
) -> SlicePlan: ...
@overloaded("popops.embedding.plan")
def plan(
    graph: Graph,
    dataType: ElementType,
    numEntries: int,
    outputSize: int,
    numLookups: Iterable[int],
    options: Options,
    groupSize: int = 1,
) -> SlicePlan:
    """How to spread a table over tiles, of which entries are looked up or updated.

    The plan with the fewest cycles by the formulas of the codelets, for the largest of `numLookups`.

    Parameters
    ----------
    dataType:
        The element type of the table.
    numEntries:
        Its rows, 1 at least.
    outputSize:
        Elements of a row, 1 at least.
    numLookups:
        How many rows are looked up or updated at once, in one call or another.
    options:
        Known are

        - ``usedForSlice`` and ``usedForUpdate`` (true), one of which has to be true.
        - ``operationForUpdate`` ("add"): "none", "add", "max" or "mul".
        - ``availableMemoryProportion`` (0.6): the part of a tile's memory for temporary variables, 0 to 1.
        - ``indicesDistribution`` ("uniform"): what cycles are estimated by, "uniform" or "onePoint".
        - ``indicesAreSorted`` (false): indices come in ascending order; calls are given the option, too.
        - ``partialType``: the type that updates are added up in, "half" or "float"; by default that of the table.
        - ``planConstraints``: splits that a plan has to have, as JSON such as ``{"slicedDimSplit": 4}``.
        - ``validateIndices``, ``remapOutOfBoundIndices`` and ``paddingIndexUsed`` (false): they are for the calls, see
          `multiSlice`.
    groupSize:
        How many such tables there are, each with lookups of its own.

    Returns
    -------
    SlicePlan
        For `createSliceableTensor`, `multiSlice`, `multiUpdateAdd` and their kin.

    Raises
    ------
    PoplibsError
        For a plan for nothing, numbers below 1, ``partialType`` half of FLOATs, and constraints that no plan has.
    InvalidOption
        For other options.
    """
    call = "popops.embedding.plan"
    chosen = SliceOptions.read(call, options)
    if not chosen.for_slice and not chosen.for_update:
        raise PoplibsError(f"{call}: a plan is used for slices or for updates, got usedForSlice and usedForUpdate false")
    operation = chosen.operation if chosen.for_update else None
    if chosen.constraints.get("lookupParallelSplit", 1) > 1 and operation is not None:
        raise PoplibsError(f"{call}: lookupParallelSplit is for plans with usedForUpdate false, got {dict(chosen.constraints)}")
    element = element_type(call, dataType)
    if operation == "add":
        chosen.accumulates_in(call, element)
    groups, entries, width = (
        whole_number(call, name, number, 1)
        for name, number in (("groupSize", groupSize), ("numEntries", numEntries), ("outputSize", outputSize))
    )
    lookups = max(whole_numbers(call, "numLookups", numLookups), default=1)
    shape_of(call, [groups, entries, width])
    shape_of(call, [groups, lookups, width])
    table = PlannedTable(
        groups=groups,
        entries=entries,
        outputSize=width,
        lookups=lookups,
        forSlice=chosen.for_slice,
        operation=operation,
        sorted=chosen.in_order,
        uniform=chosen.uniform,
    )
    first = start_tile(graph, (table.entries, table.outputSize), (0,), (1,))  # that of the same table without a plan
    return SlicePlan.of(cheapest_partition(graph.getTarget(), element, table, chosen), table, first)


@public
@frozen(init=False)
class SlicePlanningParameters:
    """The arguments of `plan`: ``(graph, dataType[, groupSize], numEntries, outputSize, numLookups, optionFlags)``.

    Parameters
    ----------
    dataType:
        The element type of the table.
    numEntries:
        Its rows, 1 at least.
    outputSize:
        Elements of a row, 1 at least.
    numLookups:
        How many rows are looked up or updated at once, in one call or another.
    optionFlags:
        The options of `plan`.
    groupSize:
        How many such tables there are. In its form it stands behind `dataType`.
    """

    graph: Graph
    dataType: ElementType
    groupSize: int
    numEntries: int
    outputSize: int
    numLookups: tuple[int, ...]
    optionFlags: Options

    @overload
    def __init__(
        self, graph: Graph, dataType: ElementType, numEntries: int, outputSize: int, numLookups: Iterable[int], optionFlags: Options
    ) -> None: ...
    @overload
    def __init__(
        self,
        graph: Graph,
        dataType: ElementType,
        groupSize: int,
        numEntries: int,
        outputSize: int,
        numLookups: Iterable[int],
        optionFlags: Options,
    ) -> None: ...
    @overloaded("popops.embedding.SlicePlanningParameters")
    def __init__(
        self,
        graph: Graph,
        dataType: ElementType,
        numEntries: int,
        outputSize: int,
        numLookups: Iterable[int],
        optionFlags: Options,
        groupSize: int = 1,
    ) -> None:
        numbers = whole_numbers("popops.embedding.SlicePlanningParameters", "numLookups", numLookups)
        self.__attrs_init__(graph, dataType, groupSize, numEntries, outputSize, numbers, optionFlags)


@public
def planMultiple(spds: SequenceOf[SlicePlanningParameters]) -> list[SlicePlan]:
    """`plan` for each of several sets of parameters.

    Parameters
    ----------
    spds:
        The sets.

    Returns
    -------
    list[SlicePlan]
        A plan for each, in their order.

    Raises
    ------
    PoplarTypeError
        For what is no list of `SlicePlanningParameters`.
    PoplibsError
        As `plan`.
    """
    if not isinstance(spds, SequenceOf):
        raise PoplarTypeError(f"popops.embedding.planMultiple takes a list of SlicePlanningParameters, got {spds!r}")
    for parameters in spds:
        if not isinstance(parameters, SlicePlanningParameters):
            raise PoplarTypeError(f"popops.embedding.planMultiple takes a list of SlicePlanningParameters, got {parameters!r}")
    return [
        plan(each.graph, each.dataType, each.groupSize, each.numEntries, each.outputSize, each.numLookups, each.optionFlags)
        for each in spds
    ]
