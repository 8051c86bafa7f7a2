"""`SlicePlan`: how the lookups and updates of a table are spread over tiles."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import asdict, field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.intervals import Interval
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.slicing.blocks import alike_blocks, numbered, of_blocks
from pypoplar.popops.slicing.slice_arguments import Extent
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


@frozen(order=True)
class SlicePartition:
    """Into how many parts the groups, lookups, entries and elements of an entry are split.

    Lookups are taken in `lookupSerialSplit` passes, in each by `lookupParallelSplit` sets of tiles at once. Every set has
    `slicedDimSplit` parts of the entries, and each of these `unslicedDimSplit` tiles; a part of an entry has a multiple of
    `unslicedGrainSize` elements.
    """

    groupSplit: int
    lookupSerialSplit: int
    lookupParallelSplit: int
    slicedDimSplit: int
    unslicedDimSplit: int
    unslicedGrainSize: int


@frozen(order=True)
class PlannedTable:
    """What a plan is made for."""

    groups: int
    entries: int
    outputSize: int
    lookups: int  # the largest number of them that is expected
    forSlice: bool = True
    operation: str | None = "add"  # of updates; None where there are none
    sorted: bool = False
    uniform: bool = True  # indices are spread over all entries; else they are all one

    def __str__(self) -> str:
        tables = "a table" if self.groups == 1 else f"{self.groups} tables"
        return f"{tables} of {self.entries} entries of {self.outputSize}, with {self.lookups} lookups,"


@public
@frozen(repr=False)
class SlicePlan:
    """How slices and updates of a table are spread over tiles: given by `popops.embedding.plan`.

    ``SlicePlan()`` is the empty plan: calls take the tensors as they are mapped. Plans are equal if they say the same, and have
    an order.

    Attributes
    ----------
    partition:
        Into how many parts groups, lookups, entries and elements of an entry are split; None of the empty plan.
    table:
        What the plan is made for; None of the empty plan.
    start_tile:
        The first tile that has a part.
    """

    partition: SlicePartition | None = field(default=None, init=False)
    table: PlannedTable | None = field(default=None, init=False)
    start_tile: int = field(default=0, init=False)

    @staticmethod
    def of(partition: SlicePartition, table: PlannedTable, start_tile: int) -> SlicePlan:
        """A plan that says something, as the planner makes it.

        Parameters
        ----------
        partition:
            Into how many parts the work is split.
        table:
            What the plan is made for.
        start_tile:
            The first tile that has a part.

        Returns
        -------
        SlicePlan
            A plan that is not empty.
        """
        plan = SlicePlan()
        for name, value in (("partition", partition), ("table", table), ("start_tile", start_tile)):
            object.__setattr__(plan, name, value)
        return plan

    @property
    def planned(self) -> bool:
        """Whether the plan says anything."""
        return self.partition is not None

    def __lt__(self, other: SlicePlan) -> bool:
        keys = [(plan.partition, plan.table, plan.start_tile) if plan.planned else () for plan in (self, other)]
        return keys[0] < keys[1]

    def __repr__(self) -> str:
        if self.partition is None or self.table is None:
            return "SlicePlan()"
        words = (f"{name}={count}" for name, count in asdict(self.partition).items())
        of = f"{self.table.groups} x " if self.table.groups > 1 else ""
        return f"<SlicePlan for {of}{self.table.entries} entries of {self.table.outputSize}: {', '.join(words)}>"

    def check_group(self, call: str, groups: int) -> None:
        """Whether the plan is for so many groups; nothing else is looked at.

        Parameters
        ----------
        call:
            The call that asks, for the message.
        groups:
            How many groups there are.

        Raises
        ------
        PoplibsError
            If the plan is empty, or for another number of groups.
        """
        if self.table is None:
            raise PoplibsError(f"{call} needs a plan of popops.embedding.plan, got the empty SlicePlan()")
        if self.table.groups != groups:
            raise PoplibsError(f"{call}: the plan is for {self.table.groups} groups, got {groups}: {self!r}")


def planned_layout(call: str, graph: Graph, plan: SlicePlan, groups: int, extent: Extent) -> PlannedLayout:
    """The layout that a plan gives; `PoplibsError` if the plan is empty or for another shape."""
    plan.check_group(call, groups)
    assert plan.table is not None
    assert plan.partition is not None
    if extent.dims != (0,) or extent.sizes != (1,):
        raise PoplibsError(
            f"{call}: a plan is for slices of size 1 of dimension 0, got dims {list(extent.dims)} and sizes {list(extent.sizes)}"
        )
    if extent.shape != (plan.table.entries, plan.table.outputSize):
        wanted = [plan.table.entries, plan.table.outputSize]
        raise PoplibsError(f"{call}: the plan is for the shape {wanted}, got {list(extent.shape)}: {plan!r}")
    return PlannedLayout(graph, plan.table, plan.partition, plan.start_tile)


@frozen
class PlannedLayout:
    """Where a plan puts the parts of a table and of its slices."""

    graph: Graph
    table: PlannedTable
    partition: SlicePartition
    start_tile: int

    @property
    def groups_of_tile(self) -> int:
        """Groups of which a tile has something."""
        return ceiling(self.table.groups, self.partition.groupSplit)

    @property
    def entries_of_tile(self) -> int:
        """Entries of which a tile has something."""
        return ceiling(self.table.entries, self.partition.slicedDimSplit)

    @property
    def width_of_tile(self) -> int:
        """Elements of an entry that a tile has."""
        grains = ceiling(self.table.outputSize, self.partition.unslicedGrainSize)
        return ceiling(grains, self.partition.unslicedDimSplit) * self.partition.unslicedGrainSize

    def lookups_of_result(self, lookups: int) -> int:
        """Of so many lookups those whose results a tile has in one pass."""
        splits = (self.partition.lookupSerialSplit, self.partition.lookupParallelSplit, self.partition.slicedDimSplit)
        for split in splits:
            lookups = ceiling(lookups, split)
        return max(lookups, 1)

    def lookups_of_tile(self, lookups: int) -> int:
        """Of so many lookups those that a tile searches in its entries in one pass."""
        return self.lookups_of_result(lookups) * self.partition.slicedDimSplit

    def lookups_of_pass(self, lookups: int) -> int:
        """Of so many lookups those of one pass."""
        return self.lookups_of_tile(lookups) * self.partition.lookupParallelSplit

    def tiles(self, group: Int64s, lookup: Int64s | int, entry: Int64s | int, unit: Int64s | int) -> Int64s:
        """The tiles of parts: of a group (its number), of lookups, of entries and of an entry's elements (numbers of blocks)."""
        split = self.partition
        tile = group // self.groups_of_tile * split.lookupParallelSplit + lookup
        tile = (tile * split.slicedDimSplit + entry) * split.unslicedDimSplit + unit
        return (self.start_tile + tile) % self.graph.getTarget().getNumTiles()

    def base(self, type: ElementType, name: str) -> Tensor:
        """A new table ``[groups, entries, outputSize]``.

        The part of a set of tiles lies on the tiles that need it, a piece on each where there are several sets.
        """
        table = self.table
        shape = [table.groups, table.entries, table.outputSize]
        widths = [self.groups_of_tile, self.entries_of_tile, self.width_of_tile]
        flat, view = blocked_variable(self.graph, type, shape, widths, name)
        mapping: dict[int, list[Interval]] = {}
        begin = 0
        for (group, entry, unit), elements in blocks_in_order(shape, widths):
            piece = ceiling(ceiling(elements, self.partition.lookupParallelSplit), ATOM) * ATOM
            for number, place in enumerate(range(0, elements, piece)):
                tile = int(self.tiles(np.array(group * widths[0]), number, entry, unit))
                mapping.setdefault(tile, []).append(Interval(begin + place, begin + min(place + piece, elements)))
            begin += elements
        self.graph.setTileMapping(flat, mapping)
        return view

    def slices(self, type: ElementType, lookups: int, name: str) -> Tensor:
        """A new tensor ``[groups, lookups, 1, outputSize]``, each part of which lies where its lookup ends."""
        shape = [self.table.groups, lookups, self.table.outputSize]
        if prod(shape) == 0:
            return self.graph.addVariable(type, [shape[0], lookups, 1, shape[2]], name)
        widths = [self.groups_of_tile, self.lookups_of_result(lookups), self.width_of_tile]
        flat, view = blocked_variable(self.graph, type, shape, widths, name)
        mapping: dict[int, list[Interval]] = {}
        begin = 0
        for (group, result, unit), elements in blocks_in_order(shape, widths):
            tile = int(self.tiles(np.array(group * widths[0]), *self.place_of_result(np.array(result)), unit))
            mapping.setdefault(tile, []).append(Interval(begin, begin + elements))
            begin += elements
        self.graph.setTileMapping(flat, mapping)
        return view.expand([2])

    def place_of_result(self, number: Int64s) -> tuple[Int64s, Int64s]:
        """The set of tiles, and the part of its entries, that has the results of a block of lookups."""
        split = self.partition
        return number // split.slicedDimSplit % split.lookupParallelSplit, number % split.slicedDimSplit


ATOM = 8  # elements: pieces of a table that begin at such a multiple arrive in whole words


def blocked_variable(graph: Graph, type: ElementType, shape: list[int], widths: list[int], name: str) -> tuple[Tensor, Tensor]:
    """A new variable, flat as it lies in memory, and as the tensor of `shape` whose blocks follow each other there."""
    flat = graph.addVariable(type, [prod(shape)], name)
    return flat, of_blocks(flat, shape, widths)


def blocks_in_order(shape: list[int], widths: list[int]) -> list[tuple[tuple[int, ...], int]]:
    """The blocks of a tensor in the order of memory: their numbers along each dimension, and their elements."""
    found = []
    for cut in alike_blocks(shape, widths):
        elements = prod(stretch.width for stretch in cut)
        found += [(tuple(numbers), elements) for numbers in zip(*(axis.tolist() for axis in numbered(cut)), strict=True)]
    return sorted(found)


def check_plan(call: str, plan: object) -> None:
    """`PoplarTypeError` unless a plan is one; an empty one is."""
    if not isinstance(plan, SlicePlan):
        raise PoplarTypeError(f"{call}: the plan is a SlicePlan, an empty one for none, got {plan!r}")
