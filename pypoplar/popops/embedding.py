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
    """How to spread a table of `numEntries` entries of `outputSize` elements, of which so many are looked up or updated at once.

    The plan with the fewest cycles by the formulas of the codelets, for the largest of `numLookups`. With groups there are as many
    such tables, each with lookups of its own. Options: ``usedForSlice`` and ``usedForUpdate`` [both true], one of which has to be
    true; ``operationForUpdate`` ("none", "add", "max", "mul") ["add"]; ``availableMemoryProportion`` [0.6], the part of a tile's
    memory for temporary variables; ``indicesDistribution`` ("uniform", "onePoint") ["uniform"], which cycles are estimated by;
    ``indicesAreSorted``, ``validateIndices`` [false], ``partialType`` of additions, ``planConstraints``, JSON with splits.
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
    """The arguments of `plan`: ``(graph, dataType[, groupSize], numEntries, outputSize, numLookups, optionFlags)``."""

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
    """`plan` for each of several sets of parameters, in their order."""
    if not isinstance(spds, SequenceOf):
        raise PoplarTypeError(f"popops.embedding.planMultiple takes a list of SlicePlanningParameters, got {spds!r}")
    for parameters in spds:
        if not isinstance(parameters, SlicePlanningParameters):
            raise PoplarTypeError(f"popops.embedding.planMultiple takes a list of SlicePlanningParameters, got {parameters!r}")
    return [
        plan(each.graph, each.dataType, each.groupSize, each.numEntries, each.outputSize, each.numLookups, each.optionFlags)
        for each in spds
    ]
