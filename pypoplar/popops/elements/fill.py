"""Filling tensors with one value."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import overload

from attrs import frozen

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.host_values import values_of
from pypoplar.popops.elements.element_vertices import add_element_vertices, add_vertices_on_tiles
from pypoplar.poputil.arguments import check_codelet, check_compute_set, check_operands, check_own, check_writeable, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.placement.tiles_of_elements import TileRegions
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import HALF, ElementType

Region = Interval | tuple[int, int]
Regions = SequenceOf[Region]


@overload
def fill(
    graph: Graph, t: Tensor, tileRegions: SequenceOf[Region], tile: int, fillCS: ComputeSet, fillValue: float | bool
) -> None: ...
@overload
def fill(graph: Graph, t: Tensor, tile: int, fillCS: ComputeSet, fillValue: float | bool) -> None: ...
@overload
def fill(graph: Graph, t: Tensor, mapping: SequenceOf[SequenceOf[Region]], fillCS: ComputeSet, fillValue: float | bool) -> None: ...
@overload
def fill(graph: Graph, t: Tensor, prog: Sequence, fillValue: float | bool, debugContext: str | None = None) -> None: ...
@overloaded("popops.fill")
def fill(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    t: Tensor,
    fillValue: float | bool,
    prog: Sequence | None = None,
    fillCS: ComputeSet | None = None,
    tile: int | None = None,
    tileRegions: Regions | None = None,
    mapping: SequenceOf[Regions] | None = None,
    debugContext: str | None = None,
) -> None:
    """Set all elements of `t` to a value of its type; each tile fills what it holds.

    `prog` is extended. Or vertices are added to a compute set, on one tile for all of `t` or some regions of it, or by a
    mapping.

    Parameters
    ----------
    t:
        The tensor that is filled.
    fillValue:
        A number of the type of `t`, or a bool.
    fillCS:
        A compute set instead of `prog`, which the caller executes.
    tile:
        The tile of its vertices.
    tileRegions:
        Intervals of `t` flattened, which that tile fills; without them all of it.
    mapping:
        For each tile its intervals of `t` flattened, instead of one tile.

    Raises
    ------
    PoplarTypeError
        For a value that the type does not have.
    PoplibsError
        If `t` holds an element twice or a constant, for a tile beyond those of the target, and for regions beyond `t` or with
        an element twice.
    InvalidTileMapping
        With a Sequence, if an element of `t` has no tile.
    """
    _Filling("popops.fill", graph, t, fillValue).build(prog, fillCS, tile, tileRegions, mapping, below(debugContext, "fill"))


@overload
def zero(graph: Graph, t: Tensor, tileRegions: SequenceOf[Region], tile: int, zeroCS: ComputeSet) -> None: ...
@overload
def zero(graph: Graph, t: Tensor, tile: int, zeroCS: ComputeSet) -> None: ...
@overload
def zero(graph: Graph, t: Tensor, mapping: SequenceOf[SequenceOf[Region]], zeroCS: ComputeSet) -> None: ...
@overload
def zero(graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None) -> None: ...
@overloaded("popops.zero")
def zero(
    graph: Graph,
    t: Tensor,
    prog: Sequence | None = None,
    zeroCS: ComputeSet | None = None,
    tile: int | None = None,
    tileRegions: Regions | None = None,
    mapping: SequenceOf[Regions] | None = None,
    debugContext: str | None = None,
) -> None:
    """Set all elements of `t` to 0, of a BOOL to false; each tile fills what it holds.

    `prog` is extended. Or vertices are added to a compute set, on one tile for all of `t` or some regions of it, or by a
    mapping.

    Parameters
    ----------
    t:
        The tensor that is filled.
    zeroCS:
        A compute set instead of `prog`, which the caller executes.
    tile:
        The tile of its vertices.
    tileRegions:
        Intervals of `t` flattened, which that tile fills; without them all of it.
    mapping:
        For each tile its intervals of `t` flattened, instead of one tile.

    Raises
    ------
    PoplibsError
        If `t` holds an element twice or a constant, for a tile beyond those of the target, and for regions beyond `t` or with
        an element twice.
    InvalidTileMapping
        With a Sequence, if an element of `t` has no tile.
    """
    _Filling("popops.zero", graph, t, 0).build(prog, zeroCS, tile, tileRegions, mapping, below(debugContext, "zero"))


def fill_cycles(elements: int, type: ElementType) -> int:
    """getFill1DCycleEstimate of PopLibs' PerformanceEstimation, of a worker's elements."""
    size = type.dtype.itemsize
    if size == 8:
        return 5 + elements
    if size == 1:
        return 28 + elements // 4 if elements < 64 else 39 + elements // 8
    if type is HALF or size == 2:
        return {1: 15, 2: 21}.get(elements, 26 + elements // 4)
    return 23 + elements // 2 + elements % 2


@frozen(eq=False)
class _Filling:
    """A call that fills elements of a tensor."""

    call: str
    graph: Graph
    t: Tensor
    value: float

    def build(
        self,
        prog: Sequence | None,
        cs: ComputeSet | None,
        tile: int | None,
        regions: Regions | None,
        mapping: SequenceOf[Regions] | None,
        debug: str,
    ) -> None:
        """Extend the program, or the compute set on a tile or by a mapping."""
        check_own(self.call, self.graph, self.t)
        values_of(self.t.elementType(), self.value, 1, f"the value of {self.call}")
        check_writeable(self.call, self.t)
        vertex, values = templateVertex("popops::Fill", self.t.elementType()), {"in": self.value}
        check_codelet(self.call, self.graph, vertex)
        if prog is not None:
            check_operands(self.call, self.graph, self.t)
            prog.add(Execute(add_element_vertices(self.graph, debug, vertex, "out", {"out": self.t}, values=values)))
            return
        assert cs is not None
        check_compute_set(self.call, self.graph, cs)
        tiles = [*([[]] * self._tile(tile)), self._whole() if regions is None else regions] if tile is not None else mapping
        assert tiles is not None
        by_tile = self._checked(tiles)
        add_vertices_on_tiles(self.graph, cs, vertex, {"out": self.t.flatten()}, TileRegions.listed(by_tile), values=values)

    def _whole(self) -> list[Interval]:
        return [Interval(0, self.t.numElements())]

    def _tile(self, tile: int) -> int:
        number, tiles = whole_number(self.call, "tile", tile), self.graph.getTarget().getNumTiles()
        if number >= tiles:
            raise PoplibsError(f"{self.call}: tile {number} is beyond the {tiles} tiles of the target")
        return number

    def _checked(self, given: SequenceOf[Regions]) -> list[list[Interval]]:
        """The regions of each tile in the order of memory; `PoplibsError` for what is not there, or there twice."""
        mapping = [[Interval(*region) for region in regions] for regions in given]
        tiles = self.graph.getTarget().getNumTiles()
        if len(mapping) > tiles:
            raise PoplibsError(f"{self.call}: a mapping to {len(mapping)} tiles is beyond the {tiles} tiles of the target")
        flat = self.t.flatten()
        beyond = [region for regions in mapping for region in regions if region.end() > flat.numElements()]
        if beyond:
            begin, end = beyond[0]
            raise PoplibsError(f"{self.call}: the region [{begin}:{end}) is beyond the {flat.numElements()} elements of {self.t!r}")
        by_tile = [self._in_memory(flat, regions) for regions in mapping]
        every = [region for regions in by_tile for region in regions]
        if every and concat(flat.slices(every)).containsAliases():
            raise PoplibsError(f"{self.call}: the regions have an element of {self.t!r} twice")
        return by_tile

    def _in_memory(self, flat: Tensor, regions: list[Interval]) -> list[Interval]:
        contiguous = self.graph.getSortedContiguousRegions(flat, regions)
        return [region for piece in contiguous for region in piece if region.size()]
