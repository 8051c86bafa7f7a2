"""How the workers of a tile share a reduction: outputs, places of the outputs, or pieces of rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, groupby, pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets
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
    """A vertex whose workers reduce parts: of so many `outputs` places of all rows together, or, without, whole rows.

    Its results are pieces of ``outputs or 1`` results each, from each of `first_outputs` on, one after the other.
    """

    tile: int
    rows: tuple[HeldRow, ...]
    inner: int
    share: int
    outputs: int | None
    first_outputs: tuple[int, ...]

    @property
    def width(self) -> int:
        """Of each piece of its results."""
        return self.outputs or 1

    @property
    def size(self) -> int:
        return self.width * len(self.first_outputs)


@frozen(eq=False)
class PiecesOfResults:
    """The pieces of many vertices' results, one after the other: where each begins, its first output, and its width."""

    place: Int64s
    output: Int64s
    width: Int64s

    @staticmethod
    def of(pieces: Sequence[WorkerPieces]) -> PiecesOfResults:
        count = [len(piece.first_outputs) for piece in pieces]
        output = np.fromiter(chain.from_iterable(piece.first_outputs for piece in pieces), np.int64, sum(count))
        width = np.repeat([piece.width for piece in pieces], count)
        return PiecesOfResults(offsets(width)[:-1], output, width)


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
    first_outputs = (holding.output,) * ceiling(holding.places, share)
    return WorkerPieces(holding.tile, holding.rows, holding.inner, share, holding.outputs, first_outputs)


def _in_pieces(target: Target, held: Sequence[Holding]) -> WorkerPieces:
    """Pieces of one output each, as many for every worker, whose pieces together are as long as any other's."""
    whole = [  # a row, and of each output in it where its places begin, how many there are, and the output
        (row, number * places, places, holding.output + number)
        for holding in held
        for row in holding.rows
        for places in (row.size // holding.outputs,)
        for number in range(holding.outputs)
    ]
    workers, cuts = _even_cuts(tuple(places for _, _, places, _ in whole), target.getNumWorkerContexts())
    rows = tuple(row.slice(first + low, first + high) for number, low, high in cuts for row, first, _, _ in (whole[number],))
    outputs = tuple(whole[number][3] for number, _, _ in cuts)
    return WorkerPieces(held[0].tile, rows, 1, ceiling(len(rows), workers), None, outputs)


@lru_cache(1 << 12)
def _even_cuts(sizes: tuple[int, ...], contexts: int) -> tuple[int, list[tuple[int, int, int]]]:
    """How many workers share rows of these sizes, and the pieces of all in turn: a row's number, and the piece's bounds in it."""
    ends = list(accumulate(sizes))
    workers = min(contexts, ends[-1])
    cuts = [worker * ends[-1] // workers for worker in range(workers + 1)]
    shares = [[low, *ends[bisect_right(ends, low) : bisect_left(ends, high)], high] for low, high in pairwise(cuts)]
    share = min(max(len(bounds) for bounds in shares) - 1, min(high - low for low, high in pairwise(cuts)))
    pieces = []
    for bounds in shares:
        for low, high in pairwise(_more(bounds, share)):
            number = bisect_right(ends, low)
            begin = ends[number] - sizes[number]
            pieces.append((number, low - begin, high - begin))
    return workers, pieces


def _more(bounds: list[int], pieces: int) -> list[int]:
    """Bounds with so many pieces at least between them: the longest is cut."""
    while len(bounds) <= pieces:
        low, high = max(pairwise(bounds), key=lambda piece: piece[1] - piece[0])
        bounds = sorted([*bounds, (low + high) // 2])
    return bounds
