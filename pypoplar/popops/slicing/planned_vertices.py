"""Vertices that look up or update entries of a table by a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.intervals import Interval
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.slicing.blocks import Stretch, alike_blocks, cut_blocks, numbered, permuted
from pypoplar.popops.slicing.multi_vertices import EntryUpdate, entries_of_worker
from pypoplar.popops.slicing.slice_cycles import expected_in_range
from pypoplar.popops.slicing.slice_plan import PlannedLayout, blocked_variable, blocks_in_order
from pypoplar.poputil.cycles import ceiling, share_of_worker
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, WriteUndef
from pypoplar.program import Sequence as Steps


def for_each(blocks: Tensor, places: Sequence[int], counts: Sequence[int]) -> Tensor:
    """``[vertices, elements]`` of ``[*counts of some dimensions, *widths]``, repeated along the dimensions that they have not.

    `places` are those dimensions among all, of which there are `counts` blocks.
    """
    own = len(places)
    elements = prod(blocks.shape()[own:])
    shape = [1] * len(counts)
    for place, count in zip(places, blocks.shape()[:own], strict=True):
        shape[place] = count
    view = blocks.reshape([*shape, elements])
    for place, count in enumerate(counts):
        if shape[place] != count:
            view = view.broadcast(count, place)
    return view.reshape([prod(counts), elements])


@frozen
class PlannedPass:
    """One pass over the lookups.

    The table is ``[groups, entries, elements]``, offsets ``[groups, lookups]``, and slices ``[groups, lookups, elements]``.
    """

    layout: PlannedLayout
    table: Tensor
    offsets: Tensor
    slices: Tensor
    widths: tuple[int, int]  # lookups that a tile searches, and those whose results it has
    debug: str

    @staticmethod
    def all_of(layout: PlannedLayout, table: Tensor, offsets: Tensor, slices: Tensor, debug: str) -> Iterator[PlannedPass]:
        """All passes; offsets are ``[groups, lookups, 1]``, slices ``[groups, lookups, 1, elements]``."""
        lookups = offsets.dim(1)
        length = layout.lookups_of_pass(lookups)
        widths = layout.lookups_of_tile(lookups), layout.lookups_of_result(lookups)
        for number, begin in enumerate(range(0, lookups, length)):
            end = min(begin + length, lookups)
            own, rows = offsets.slice(begin, end, 1).squeeze([2]), slices.slice(begin, end, 1).squeeze([2])
            yield PlannedPass(layout, table, own, rows, widths, f"{debug}/pass{number}" if length < lookups else debug)

    @property
    def parts(self) -> int:
        """Parts of the entries that have any."""
        return ceiling(self.layout.table.entries, self.layout.entries_of_tile)

    def look_up(self, prog: Steps) -> None:
        """Fill the slices: by the tiles that have the entries, and if there are several parts by choosing among their results."""
        if self.parts == 1:
            self._search(self.slices.expand([1]), "popops::MultiSlice", prog, self.debug)
            return
        found = self._partial_results()
        prog.add(WriteUndef(found))
        self._search(found, "popops::MultiSlicePart", prog, f"{self.debug}/stage0")
        self._choose(found, prog)

    def _partial_results(self) -> Tensor:
        """``[groups, parts, lookups, elements]``: what each part of the entries gives, on its tiles."""
        layout, (groups, lookups) = self.layout, self.offsets.shape()
        shape, widths = [groups, self.parts, lookups, self.slices.dim(2)], [1, 1, self.widths[0], layout.width_of_tile]
        flat, found = blocked_variable(layout.graph, self.table.elementType(), shape, widths, f"{self.debug}/partials")
        mapping: dict[int, list[Interval]] = {}
        begin = 0
        for (group, part, lookup, unit), elements in blocks_in_order(shape, widths):
            tile = int(layout.tiles(np.array(group), lookup, part, unit))
            mapping.setdefault(tile, []).append(Interval(begin, begin + elements))
            begin += elements
        layout.graph.setTileMapping(flat, mapping)
        return found

    def _search(self, found: Tensor, vertex: str, prog: Steps, name: str) -> None:
        """Each tile looks for the entries that it has."""
        layout, graph = self.layout, self.layout.graph
        cs = graph.addComputeSet(name)
        for cut in self._blocks():
            group, lookup, entry, unit = cut
            counts = [stretch.count for stretch in cut]
            numbers = numbered(cut)
            of_worker = share_of_worker(lookup.width, graph.getTarget())
            table = layout.table
            fields = {
                "baseT": for_each(cut_blocks(self.table, (group, entry, unit)), (0, 2, 3), counts),
                "offsets": for_each(cut_blocks(self.offsets, (group, lookup)), (0, 1), counts),
                "subT": for_each(
                    permuted(cut_blocks(found, (group, _singles(entry), lookup, unit)), _PARTS_LAST), (0, 1, 2, 3), counts
                ),
                "baseOffset": numbers[2] * layout.entries_of_tile,
                "numBaseElements": entry.width,
                "regionSize": unit.width,
                "offsetsInRangePerWorker": expected_in_range(of_worker, layout.entries_of_tile, table.entries, table.uniform),
            }
            graph.add_vertices(cs, templateVertex(vertex, self.table.elementType()), fields, self._tiles(numbers))
        prog.add(Execute(cs))

    def _choose(self, found: Tensor, prog: Steps) -> None:
        """Each tile takes, of the results of all parts for some lookups, those of the parts that have the entries."""
        layout, graph = self.layout, self.layout.graph
        cs = graph.addComputeSet(f"{self.debug}/stage1")
        every = Stretch(0, 0, 1, self.parts)
        for cut in alike_blocks(self.slices.shape(), [1, self.widths[1], layout.width_of_tile]):
            group, lookup, unit = cut
            counts = [stretch.count for stretch in cut]
            numbers = numbered(cut)
            fields = {
                "parts": for_each(cut_blocks(found, (group, every, lookup, unit)).squeeze([1]), (0, 1, 2), counts),
                "offsets": for_each(cut_blocks(self.offsets, (group, lookup)), (0, 1), counts),
                "subT": for_each(cut_blocks(self.slices, cut), (0, 1, 2), counts),
                "numEntries": layout.table.entries,
                "entriesOfPart": layout.entries_of_tile,
                "regionSize": unit.width,
            }
            tiles = layout.tiles(numbers[0], *layout.place_of_result(numbers[1]), numbers[2])
            graph.add_vertices(cs, templateVertex("popops::MultiSliceSelect", self.table.elementType()), fields, tiles)
        prog.add(Execute(cs))

    def update(self, what: EntryUpdate, prog: Steps) -> None:
        """Put the slices into the table, or combine them with it; each tile sees all of them."""
        layout, graph, type = self.layout, self.layout.graph, self.table.elementType()
        table, lookups = layout.table, self.offsets.dim(1)
        cs = graph.addComputeSet(self.debug)
        every = Stretch(0, 0, 1, lookups)
        for group, entry, unit in alike_blocks(self.table.shape(), [1, layout.entries_of_tile, layout.width_of_tile]):
            cut = (group, entry, unit)
            counts = [stretch.count for stretch in cut]
            numbers = numbered(cut)
            of_worker = entries_of_worker(graph, type, layout.entries_of_tile, unit.width)
            fields = {
                "baseT": for_each(cut_blocks(self.table, cut), (0, 1, 2), counts),
                "offsets": for_each(cut_blocks(self.offsets, (group, every)).squeeze([1]), (0,), counts),
                "subT": for_each(cut_blocks(self.slices, (group, every, unit)).squeeze([1]), (0, 2), counts),
                "baseOffset": numbers[1] * layout.entries_of_tile,
                "numBaseElements": entry.width,
                "regionSize": unit.width,
                "elementsPerWorker": of_worker,
                "offsetsInRangePerWorker": expected_in_range(lookups, of_worker, table.entries, table.uniform),
                **what.edges(prod(counts)),
                **what.values(),
            }
            graph.add_vertices(cs, what.vertex(type), fields, layout.tiles(numbers[0], 0, numbers[1], numbers[2]))
        prog.add(Execute(cs))

    def _blocks(self) -> Iterator[tuple[Stretch, ...]]:
        """The work of the tiles that search: groups, lookups, entries and elements of an entry."""
        layout, (groups, lookups) = self.layout, self.offsets.shape()
        shape = [groups, lookups, layout.table.entries, layout.table.outputSize]
        return alike_blocks(shape, [1, self.widths[0], layout.entries_of_tile, layout.width_of_tile])

    def _tiles(self, numbers: tuple[Int64s, ...]) -> Int64s:
        return self.layout.tiles(*numbers)


_PARTS_LAST = (0, 2, 1, 3, 4, 5, 6, 7)  # of [groups, parts, lookups, units, ...]: the order of the tiles' work


def _singles(blocks: Stretch) -> Stretch:
    """The numbers of blocks, as blocks of one."""
    return Stretch(blocks.first, blocks.first, blocks.count, 1)
