"""Places for values on the tiles that hold them: each tile has all of its places in one piece, and one of them is taken at a time.

What `dynamicUpdate` and `dynamicSliceWithOutput` of ``[places, elements]`` make, without a list of all elements of all places.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.slicing.dynamic_vertices import share_of_row
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence


@frozen(eq=False)
class HeldPlaces:
    """So many places for values, which are flat, those of one tile behind those of the one before."""

    values: Tensor
    places: Tensor  # flat, in the same order of tiles: of each all that it has of the first place, then of the next
    count: int
    tiles: Int64s
    ends: Int64s  # where in `values` those of each tile end

    def update(self, graph: Graph, offset: Tensor, prog: Sequence, name: str) -> None:
        """Put the values at the place of a number, UNSIGNED_INT []."""
        self._execute(graph, "popops::DynamicUpdateSlice1D", offset, prog, f"{name}/dynamicUpdate_d0")

    def slice(self, graph: Graph, offset: Tensor, prog: Sequence, name: str) -> None:
        """Take the values of a place."""
        self._execute(graph, "popops::DynamicSlice1D", offset, prog, f"{name}/dynamicSlice_d0")

    def _execute(self, graph: Graph, codelet: str, offset: Tensor, prog: Sequence, name: str) -> None:
        cs, vertex = graph.addComputeSet(name), templateVertex(codelet, self.values.elementType())
        for begin, width, tiles in self._alike():
            count = len(tiles)
            end = begin + count * width
            fields = {
                "offset": offset.flatten().broadcast(count),
                "numBaseElements": self.count,
                "numSubElements": 1,
                "remapOutOfBoundIndices": False,
                "baseT": self.places.slice(self.count * begin, self.count * end).reshape([count, self.count * width]),
                "subT": self.values.slice(begin, end).reshape([count, width]),
                "regionSize": width,
            }
            if "Update" in codelet:
                fields["elementsPerWorker"] = share_of_row(graph, self.values, width)
            graph.add_vertices(cs, vertex, fields, tiles)
        prog.add(Execute(cs))

    def _alike(self) -> Iterator[tuple[int, int, list[int]]]:
        """Tiles behind each other that hold as much: where their values begin, how many each has, and the tiles."""
        begin = np.append(0, self.ends)[:-1]
        width = self.ends - begin
        opens = np.flatnonzero(np.append(True, np.diff(width) != 0)) if len(width) else width
        for first, last in zip(opens.tolist(), [*opens[1:].tolist(), len(width)], strict=True) if len(width) else ():
            yield int(begin[first]), int(width[first]), self.tiles[first:last].tolist()
