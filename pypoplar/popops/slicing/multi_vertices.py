"""Vertices that look up or update many entries of a table, in compute sets without a plan: where the table's first entry lies."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.slicing.dynamic_vertices import columns_along, columns_of_tiles
from pypoplar.popops.slicing.slice_arguments import Extent
from pypoplar.popops.slicing.slice_cycles import expected_in_range
from pypoplar.popops.slicing.sliceable_layout import ATOM, sliceable_tensor, start_tile
from pypoplar.poputil.cycles import ceiling, share_of_worker
from pypoplar.poputil.placement.tiles_of_elements import TileRegions
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute
from pypoplar.program import Sequence as Steps
from pypoplar.types import ElementType


@frozen
class EntryUpdate:
    """What updates do with an entry: replace it, or combine it with a row."""

    operation: str | None = None  # "add", "max", "mul"
    scale: Tensor | None = None
    in_order: bool = False  # offsets are sorted

    def vertex(self, type: ElementType) -> str:
        """The vertex type for a table's type."""
        if self.operation is None:
            return templateVertex("popops::MultiUpdate", type)
        if self.scale is None:
            return templateVertex("popops::MultiUpdateOp", self.operation, type)
        name = "add" if type.is_floating else "add-whole"
        return templateVertex("popops::ScaledMultiUpdateOp", name, type, self.scale.elementType())

    def values(self) -> Mapping[str, object]:
        """The plain fields that say it."""
        return {"indicesAreSorted": self.in_order}

    def edges(self, count: int) -> Mapping[str, Tensor]:
        """The edges that say it, for so many vertices."""
        return {} if self.scale is None else {"scale": self.scale.flatten().broadcast(count)}


def entries_of_worker(graph: Graph, type: ElementType, entries: int, width: int) -> int:
    """Entries of a tile that one worker updates, so that no two workers write into one word."""
    atom = next(count for count in (1, 2, 4) if count * width * type.size % ATOM == 0)
    return max(ceiling(ceiling(entries, atom), graph.getTarget().getNumWorkerContexts()) * atom, 1)


@frozen
class UnplannedTable:
    """A table, as ``[elements of an entry, entries]``, with slices ``[elements, lookups]``, and their offsets ``[lookups]``."""

    graph: Graph
    columns: Tensor
    slices: Tensor
    offsets: Tensor

    @staticmethod
    def of(graph: Graph, t: Tensor, slices: Tensor, offsets: Tensor, dim: int) -> UnplannedTable:
        """Of a tensor that is sliced along `dim`, with slices ``[lookups, *shape with 1 there]``."""
        rows = slices.squeeze([dim + 1]).dimRoll(0, dim)
        return UnplannedTable(graph, *columns_along(graph, t, dim, rows), offsets.flatten())

    def look_up(self, prog: Steps, debug: str) -> None:
        """Fill the slices."""
        name = templateVertex("popops::MultiSlice", self.columns.elementType())
        lookups = self.offsets.numElements()
        self._add(prog, debug, name, {"offsetsInRangePerWorker": share_of_worker(lookups, self.graph.getTarget())})

    def update(self, what: EntryUpdate, prog: Steps, debug: str, uniform: bool) -> None:
        """Put the slices into the table, or combine them with it."""
        self._add(prog, debug, what.vertex(self.columns.elementType()), what.values(), what, uniform)

    def _add(
        self,
        prog: Steps,
        debug: str,
        vertex: str,
        values: Mapping[str, object],
        what: EntryUpdate | None = None,
        uniform: bool = True,
    ) -> None:
        graph, entries, lookups = self.graph, self.columns.dim(1), self.offsets.numElements()
        cs = graph.addComputeSet(debug)
        for held in columns_of_tiles(graph, self.columns.slice(0, 1, 1).flatten()):
            base, sub = held.of(self.columns, held.regions), held.of(self.slices, held.regions)
            width, count = base.dim(2), len(held.tiles)
            fields: dict[str, object] = {"baseOffset": 0, "numBaseElements": entries, "regionSize": width, **values}
            if what is not None:
                share = entries_of_worker(graph, base.elementType(), entries, width)
                in_range = expected_in_range(lookups, share, entries, uniform)
                fields |= {**what.edges(count), "elementsPerWorker": share, "offsetsInRangePerWorker": in_range}
            edges = {"offsets": self.offsets.expand([0]).broadcast(count), "baseT": base.flatten(1), "subT": sub.flatten(1)}
            graph.add_vertices(cs, vertex, {**edges, **fields}, held.tiles)
        prog.add(Execute(cs))


def spread_table(graph: Graph, t: Tensor, dim: int, proportion: float, prog: Steps, debug: str) -> Tensor:
    """`t`, or a copy with all entries on each of many tiles, if too much would have to move to the tiles of its first entry."""
    first, last = t.slice(0, 1, dim).flatten(), t.slice(t.dim(dim) - 1, t.dim(dim), dim).flatten()
    held = TileRegions.of(graph, first).most()
    target = graph.getTarget()
    too_much = held * t.dim(dim) * t.elementType().size > target.getBytesPerTile() * proportion
    if not too_much or held <= ceiling(first.numElements(), target.getNumTiles()):
        return t
    if graph.getTileMapping(first) == graph.getTileMapping(last):
        return t
    extent = Extent(tuple(t.shape()), (dim,), (1,))
    spread = sliceable_tensor(graph, t.elementType(), extent, [0], 0, start_tile(graph, extent.shape), f"{debug}/baseRearranged")
    prog.add(Copy(t, spread))
    return spread
