"""How the workers of a tile share a reduction: outputs, places of the outputs, or pieces of rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.popops.reduction.held_row import HeldRow
from pypoplar.popops.reduction.tile_holdings import Holding
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target
from pypoplar.types import ElementType

WORD = 4


def output_share(target: Target, outputs: int, inner: int, result: ElementType) -> int:
    """Outputs of a worker: whole words, and whole vectors where outputs lie side by side."""
    grain = max(target.getVectorWidth(result) if inner > 1 else WORD // result.size, WORD // result.size, 1)
    return ceiling(ceiling(outputs, grain), target.getNumWorkerContexts()) * grain


def place_share(target: Target, places: int) -> int:
    """Places of the outputs that a worker has."""
    return ceiling(places, target.getNumWorkerContexts())


@frozen(eq=False)
class WorkerPieces:
    """A vertex whose workers reduce parts: of so many `outputs` places of all rows together, or, without, whole rows."""

    tile: int
    rows: tuple[HeldRow, ...]
    inner: int
    share: int
    outputs: int | None
    places: Int64s  # where in its results each piece of them begins
    first_outputs: Int64s
    widths: Int64s

    @property
    def size(self) -> int:
        return int(self.widths.sum())


def worker_pieces(target: Target, holdings: Sequence[Holding]) -> Iterator[WorkerPieces]:
    """The vertices of all tiles that split what these hold among their workers."""
    for _, of_tile in groupby(holdings, key=lambda holding: holding.tile):
        held = list(of_tile)
        if len(held) == 1 or any(holding.inner > 1 for holding in held):
            yield from (_in_parts(target, holding) for holding in held)
        else:
            yield _in_pieces(target, held)


def _in_parts(target: Target, holding: Holding) -> WorkerPieces:
    share = place_share(target, holding.places)
    parts = ceiling(holding.places, share)
    places = np.arange(parts) * holding.outputs
    outputs, widths = np.full(parts, holding.output), np.full(parts, holding.outputs)
    return WorkerPieces(holding.tile, holding.rows, holding.inner, share, holding.outputs, places, outputs, widths)


def _in_pieces(target: Target, held: Sequence[Holding]) -> WorkerPieces:
    """Pieces of one output each, as many for every worker, whose pieces together are as long as any other's."""
    whole = [
        (row.slice(number * places, (number + 1) * places), holding.output + number)
        for holding in held
        for row in holding.rows
        for places in (row.size // holding.outputs,)
        for number in range(holding.outputs)
    ]
    ends = list(accumulate(row.size for row, _ in whole))
    workers = min(target.getNumWorkerContexts(), ends[-1])
    cuts = [worker * ends[-1] // workers for worker in range(workers + 1)]
    shares = [[low, *ends[bisect_right(ends, low) : bisect_left(ends, high)], high] for low, high in pairwise(cuts)]
    share = min(max(len(bounds) for bounds in shares) - 1, min(high - low for low, high in pairwise(cuts)))
    rows: list[HeldRow] = []
    outputs: list[int] = []
    for bounds in shares:
        for low, high in pairwise(_more(bounds, share)):
            number = bisect_right(ends, low)
            row, output = whole[number]
            begin = ends[number] - row.size
            rows.append(row.slice(low - begin, high - begin))
            outputs.append(output)
    share = ceiling(len(rows), workers)
    ones = np.ones(len(rows), np.int64)
    return WorkerPieces(held[0].tile, tuple(rows), 1, share, None, np.arange(len(rows)), np.array(outputs), ones)


def _more(bounds: list[int], pieces: int) -> list[int]:
    """Bounds with so many pieces at least between them: the longest is cut."""
    while len(bounds) <= pieces:
        low, high = max(pairwise(bounds), key=lambda piece: piece[1] - piece[0])
        bounds = sorted([*bounds, (low + high) // 2])
    return bounds
