"""The tile that a step waits for: what it has to do, against the mean tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.number_ranges import counted
from pypoplar.report.execution import Execution, Step, numbered_steps
from pypoplar.report.tile_vertices import SizedVertices


@frozen
class SlowestTile:
    """The slowest tile of a step: its cycles and bytes are those of all executions.

    `equals` counts further tiles that take as long. In an exchange, cycles are those in which it sends, receives or copies.
    """

    number: int
    cycles: int
    mean: float  # cycles of the mean tile
    equals: int = 0
    sent: int = 0
    received: int = 0
    pieces: int = 0  # contiguous, sent or received, whichever are more; 0 where they are not known
    vertices: tuple[SizedVertices, ...] = ()  # in a compute step, as far as they are known

    def told(self) -> str:
        """What follows the word "tile": ``3 (2 others take as long): 40 cycles against 12 of the mean tile, 8 B sent``."""
        text = f"{self.number:,}"
        if self.equals:
            text += f" ({self.equals:,} {'other takes' if self.equals == 1 else 'others take'} as long)"
        text += f": {self.cycles:,} cycles against {self.mean:,.0f} of the mean tile"
        moved = [f"{count:,} B {what}" for count, what in ((self.sent, "sent"), (self.received, "received")) if count]
        if self.pieces > 1:
            moved.append(f"in {counted(self.pieces, 'piece')}")
        return ", ".join((text, *(vertices.told() for vertices in self.vertices), *moved))


def critical_tile(step: Step) -> int:
    """The tile that a step waits for: the one that computes longest or, in an exchange, whose port is busy longest; -1 for none.

    Where nothing goes between tiles, it is the one that copies longest.
    """
    return int(step.cyclesByTile.argmax()) if step.cyclesByTile.any() else _moving_tile(step)


def _moving_tile(step: Step) -> int:
    """The tile that an exchange waits for, -1 for none."""
    if not step.exchange_cycles_by_tile.any():
        return int(step.copy_cycles_by_tile.argmax()) if step.copy_cycles_by_tile.any() else -1
    busiest = np.flatnonzero(step.exchange_cycles_by_tile == step.exchange_cycles_by_tile.max())
    if not len(step.bytesSentByTile):
        return int(busiest[0])
    port = np.maximum(step.bytesSentByTile, step.bytesReceivedByTile)[busiest]  # both ways at once
    return int(busiest[port.argmax()])


def busiest_tile(step: Step) -> SlowestTile | None:
    """The tile that an exchange waits for; None where tiles are not known, or only the links between IPUs are busy."""
    tile = _moving_tile(step)
    moving = step.exchange_cycles_by_tile if step.exchange_cycles_by_tile.any() else step.copy_cycles_by_tile
    return None if tile < 0 else _slowest(moving, tile, _moved(step, tile))


@frozen(eq=False)
class SlowestTiles:
    """The tiles that the steps of an execution wait for."""

    steps: Mapping[int, Step]  # by number
    vertices: Mapping[int, tuple[SizedVertices, ...]]

    @staticmethod
    def of(execution: Execution) -> SlowestTiles:
        """Those of an execution."""
        return SlowestTiles(numbered_steps(execution), execution.slowest_vertices)

    def of_step(self, step: Step) -> SlowestTile | None:
        """Of a step of any type; None where the report does not know, or all tiles go through it alike."""
        return self.computing(step) if step.type == "OnTileExecute" else busiest_tile(step)

    def computing(self, step: Step) -> SlowestTile | None:
        """Of a compute step, with what the tile sends and receives before and after it; None if nothing computes."""
        if not step.cyclesByTile.any():
            return None
        tile = critical_tile(step)
        moved = [_moved(exchange, tile) for exchange in self._around(step)]
        sent, received, pieces = (sum(part[place] for part in moved) for place in range(3))
        moved_together = sent, received, pieces
        return _slowest(step.cyclesByTile, tile, moved_together, self.vertices.get(step.number, ()))

    def _around(self, step: Step) -> Iterator[Step]:
        """The exchanges of the compute set that a step executes: right before it, and right after it."""
        for number, phase in ((step.number - 1, "before"), (step.number + 1, "after")):
            other = self.steps.get(number)
            if other is not None and other.program is not None and (other.name, other.program.detail) == (step.name, phase):
                yield other


def _slowest(cycles: Int64s, tile: int, moved: tuple[int, int, int], vertices: tuple[SizedVertices, ...] = ()) -> SlowestTile:
    most = int(cycles[tile])
    return SlowestTile(tile, most, float(cycles.mean()), int(np.count_nonzero(cycles == most)) - 1, *moved, vertices)


def _moved(step: Step, tile: int) -> tuple[int, int, int]:
    """What a tile sends and receives in a step, and in how many pieces."""
    by_tile = (step.bytesSentByTile, step.bytesReceivedByTile, step.pieces_by_tile)
    sent, received, pieces = (int(values[tile]) if len(values) else 0 for values in by_tile)
    return sent, received, pieces
