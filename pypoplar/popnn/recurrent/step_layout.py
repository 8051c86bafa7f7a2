"""How the steps of a sequence lie: of a row of elements all steps on one tile, so that a loop takes a step without exchange."""

from __future__ import annotations

from math import gcd

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poputil.cycles import ceiling
from pypoplar.types import ElementType

GRAIN = 8  # elements of a sample that stay together; 16 in PopLibs, which makes steps of small layers longer


@frozen
class StepLayout:
    """Steps of `multiple` matrices [batch, size] each, whose grains are spread over tiles."""

    multiple: int
    batch: int
    size: int
    tiles: int

    @staticmethod
    def of(graph: Graph, multiple: int, batch: int, size: int) -> StepLayout:
        return StepLayout(multiple, batch, size, graph.getTarget().getNumTiles())

    @property
    def grain(self) -> int:
        return gcd(GRAIN, self.size)

    @property
    def grains(self) -> int:
        return self.batch * self.size // self.grain

    @property
    def grains_of_tile(self) -> int:
        """Of each tile but the last."""
        return ceiling(self.grains, self.tiles)

    @property
    def full_tiles(self) -> int:
        """How many tiles there are but the last, which may have fewer grains."""
        return ceiling(self.grains, self.grains_of_tile) - 1

    @property
    def elements_of_tile(self) -> int:
        """Elements of a matrix that a tile has, but the last."""
        return self.grains_of_tile * self.grain

    def create(self, graph: Graph, type: ElementType, steps: int, debug: str) -> Tensor:
        """A new tensor of rows [steps, elements of a step], in the order of tiles; see `shaped`.

        It begins at the last tiles, as PopLibs' does: the first one has the counters of loops.
        """
        width, last = self.multiple * self.grains_of_tile * self.grain, self._last_width()
        rows: list[Tensor] = []
        if self.full_tiles:
            whole = graph.addVariable(type, [self.full_tiles, steps, width], debug)
            for number in range(self.full_tiles):
                graph.setTileMapping(whole[number], self.tiles - 1 - number)
            rows.append(whole.dimRoll(0, 1).reshape([steps, self.full_tiles * width]))
        rest = graph.addVariable(type, [steps, last], debug)
        graph.setTileMapping(rest, self.tiles - 1 - self.full_tiles)
        return concat([*rows, rest], 1)

    def shaped(self, rows: Tensor) -> Tensor:
        """Rows as [steps, multiple, batch, size]."""
        steps, multiple, grain = rows.dim(0), self.multiple, self.grain
        full = self.full_tiles * self.grains_of_tile
        parts = []
        if full:
            tiles = rows.slice(0, full * multiple * grain, 1).reshape([steps, self.full_tiles, multiple, -1])
            parts.append(tiles.dimRoll(1, 2).reshape([steps, multiple, full, grain]))
        parts.append(rows.slice(full * multiple * grain, rows.dim(1), 1).reshape([steps, multiple, -1, grain]))
        columns = concat(parts, 2).reshape([steps, multiple, self.size // grain, self.batch, grain])
        return columns.dimRoll(3, 2).reshape([steps, multiple, self.batch, self.size])

    def rows(self, shaped: Tensor) -> Tensor:
        """A tensor [steps, multiple, batch, size] as rows."""
        steps, multiple, grain = shaped.dim(0), self.multiple, self.grain
        columns = shaped.reshape([steps, multiple, self.batch, self.size // grain, grain]).dimRoll(2, 3)
        grains = columns.reshape([steps, multiple, self.grains, grain])
        full = self.full_tiles * self.grains_of_tile
        parts = []
        if full:
            tiles = grains.slice(0, full, 2).reshape([steps, multiple, self.full_tiles, -1]).dimRoll(2, 1)
            parts.append(tiles.reshape([steps, full * multiple * grain]))
        parts.append(grains.slice(full, self.grains, 2).reshape([steps, -1]))
        return concat(parts, 1)

    def _last_width(self) -> int:
        return self.multiple * (self.grains - self.full_tiles * self.grains_of_tile) * self.grain
