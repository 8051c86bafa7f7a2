"""The vertices of tiles: how many there are of each type, what they take of memory, how much they are connected to."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.report.program_nodes import VertexInstances


@frozen
class FieldSizes:
    """How many elements a field of several vertices is connected to, at least and at most."""

    name: str
    least: int
    most: int

    def told(self) -> str:
        """``x 1,024``, or ``x 1,020 to 1,024``."""
        return f"{self.name} {self.most:,}" if self.least == self.most else f"{self.name} {self.least:,} to {self.most:,}"


@frozen
class SizedVertices:
    """The vertices of one type that a tile runs in a step, with the sizes of their vectors and lists."""

    name: str  # of the vertex type
    count: int
    sizes: tuple[FieldSizes, ...] = ()

    def told(self) -> str:
        """``6 vertices of Scale (x 1,024, y 1,020 to 1,024)``."""
        sizes = f" ({', '.join(size.told() for size in self.sizes)})" if self.sizes else ""
        return f"{self.count:,} {'vertex' if self.count == 1 else 'vertices'} of {self.name}{sizes}"


@frozen
class VertexMemory(VertexInstances):
    """The vertices of one type on a tile, given by ``tile.memory.vertices``.

    Attributes
    ----------
    name:
        The vertex type.
    count:
        How many vertices there are.
    size:
        Bytes of their state and pointers.
    """

    size: int = 0


def _nothing() -> Int64s:
    return np.zeros(0, np.int64)


@frozen(eq=False)
class VerticesByTile:
    """The vertices of each tile by type: row after row, by tile. No rows where it is not known."""

    names: tuple[str, ...] = ()  # of vertex types
    tile: Int64s = field(factory=_nothing)  # rising
    vertex_type: Int64s = field(factory=_nothing)  # index into `names`
    count: Int64s = field(factory=_nothing)
    bytes: Int64s = field(factory=_nothing)

    def of_tile(self, tile: int) -> tuple[VertexMemory, ...]:
        """What a tile has, in the order of the types."""
        rows = slice(*np.searchsorted(self.tile, (tile, tile + 1)).tolist())
        columns = (self.vertex_type[rows].tolist(), self.count[rows].tolist(), self.bytes[rows].tolist())
        return tuple(VertexMemory(self.names[number], count, size) for number, count, size in zip(*columns, strict=True))
