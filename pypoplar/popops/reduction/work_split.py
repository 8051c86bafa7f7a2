"""How the workers of a tile share a reduction: outputs, places of the outputs, or pieces of rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import group_positions, offsets, opens, ragged
from pypoplar.popops.reduction.held_rows import HeldRows
from pypoplar.popops.reduction.tile_holdings import TileHoldings
from pypoplar.poputil.cycles import Count, ceiling
from pypoplar.target import Target
from pypoplar.types import ElementType

WORD = 4


def output_share(target: Target, outputs: int, inner: int, result: ElementType) -> int:
    """Outputs of a worker: whole words, and whole vectors where outputs lie side by side."""
    grain = max(target.getVectorWidth(result) if inner > 1 else WORD // result.size, WORD // result.size, 1)
    return ceiling(ceiling(outputs, grain), target.getNumWorkerContexts()) * grain


def place_share(target: Target, places: Count) -> Count:
    """Places of the outputs that a worker has."""
    return ceiling(places, target.getNumWorkerContexts())


@frozen(eq=False)
class WorkerPieces:
    """Vertices whose workers reduce parts: of so many `outputs` places of all rows together, or, where that is 0, whole rows.

    The results of vertex i are pieces of ``outputs[i] or 1`` results each, from each of its `first_outputs` on, one after the
    other; its pieces are those from ``pieces[i]`` to ``pieces[i + 1]``.
    """

    tile: Int64s
    inner: Int64s
    share: Int64s
    outputs: Int64s
    rows: HeldRows
    pieces: Int64s
    first_outputs: Int64s

    @property
    def width(self) -> Int64s:
        """Of each piece of a vertex's results."""
        return np.maximum(self.outputs, 1)

    @property
    def count(self) -> Int64s:
        """Pieces of each vertex's results."""
        return np.diff(self.pieces)

    @cached_property
    def alike(self) -> list[Int64s]:
        """Vertices that differ in nothing but where they are and what they read."""
        return self.rows.alike(self.inner, self.share, self.outputs)

    @cached_property
    def results(self) -> PiecesOfResults:
        """The pieces of all vertices' results, one after the other."""
        width = np.repeat(self.width, self.count)
        return PiecesOfResults(offsets(width)[:-1], self.first_outputs, width)

    def in_order_of_tiles(self, other: WorkerPieces) -> WorkerPieces:
        """The vertices of both, which have no tile in common."""
        order = np.argsort(np.append(self.tile, other.tile), kind="stable")
        names = ("tile", "inner", "share", "outputs")
        tile, inner, share, wide = (np.append(getattr(self, name), getattr(other, name))[order] for name in names)
        count = np.append(self.count, other.count)
        first = offsets(count)[order]
        outputs = np.append(self.first_outputs, other.first_outputs)[ragged(first, count[order])]
        rows = self.rows.and_those_of(other.rows).of(order)
        return WorkerPieces(tile, inner, share, wide, rows, offsets(count[order]), outputs)


@frozen(eq=False)
class PiecesOfResults:
    """Pieces of results: where each begins, its first output, and its width."""

    place: Int64s
    output: Int64s
    width: Int64s


def worker_pieces(target: Target, holdings: TileHoldings) -> WorkerPieces:
    """The vertices of all tiles that split what these hold among their workers."""
    heads = opens(holdings.tile)
    group = np.cumsum(heads) - 1
    alone = np.bincount(group) == 1
    side_by_side = np.bincount(group, holdings.inner > 1) > 0
    whole = (alone | side_by_side)[group]
    in_parts = _in_parts(target, holdings.of(np.flatnonzero(whole)))
    return in_parts if whole.all() else in_parts.in_order_of_tiles(_in_pieces(target, holdings.of(np.flatnonzero(~whole))))


def _in_parts(target: Target, holdings: TileHoldings) -> WorkerPieces:
    share = place_share(target, holdings.places)
    parts = -(-holdings.places // share)
    first_outputs = np.repeat(holdings.output, parts)
    return WorkerPieces(
        holdings.tile, holdings.inner, share, holdings.outputs, holdings.rows, offsets(parts), first_outputs
    )  # fmt: skip


def _in_pieces(target: Target, holdings: TileHoldings) -> WorkerPieces:
    """Of each tile a vertex with pieces of one output each, as many for every worker, which are as long together as any other's."""
    rows = holdings.rows
    owner = np.repeat(np.arange(len(holdings)), rows.count)
    # Of each row each output that it has: where its places begin, how many there are.
    times = holdings.outputs[owner]
    places = np.repeat(rows.size // times, times)
    number = group_positions(times)
    begin = np.repeat(rows.begin, times) + number * places
    output = np.repeat(holdings.output[owner], times) + number
    tile = np.repeat(holdings.tile[owner], times)
    head = np.flatnonzero(opens(tile))
    held = HeldRows(rows.vector, np.append(head, len(tile)), begin, begin + places)
    cuts: list[_EvenCuts] = []
    vertices: list[Int64s] = []
    for of_kind in held.alike():
        low, high = held.first[of_kind[0]], held.first[of_kind[0] + 1]
        cuts.append(_even_cuts(tuple(places[low:high].tolist()), target.getNumWorkerContexts()))
        vertices.append(of_kind)
    count, workers = np.empty(len(head), np.int64), np.empty(len(head), np.int64)
    for of_kind, cut in zip(vertices, cuts, strict=True):
        count[of_kind], workers[of_kind] = len(cut.number), cut.workers
    first = offsets(count)
    source, low, high = (np.empty(first[-1], np.int64) for _ in range(3))
    for of_kind, cut in zip(vertices, cuts, strict=True):
        own = first[of_kind][:, None] + np.arange(len(cut.number))
        source[own] = head[of_kind][:, None] + cut.number
        low[own], high[own] = cut.low, cut.high
    pieces = HeldRows(rows.vector, first, begin[source] + low, begin[source] + high)
    ones, none = np.ones(len(head), np.int64), np.zeros(len(head), np.int64)
    return WorkerPieces(tile[head], ones, -(-count // workers), none, pieces, first, output[source])


@frozen(eq=False)
class _EvenCuts:
    """How so many workers share rows: the pieces of all in turn, by a row's number and the piece's bounds in it."""

    workers: int
    number: Int64s
    low: Int64s
    high: Int64s


@lru_cache(1 << 12)
def _even_cuts(sizes: tuple[int, ...], contexts: int) -> _EvenCuts:
    """How the workers share rows of these sizes."""
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
    return _EvenCuts(workers, *np.array(pieces, np.int64).T)


def _more(bounds: list[int], pieces: int) -> list[int]:
    """Bounds with so many pieces at least between them: the longest is cut."""
    while len(bounds) <= pieces:
        low, high = max(pairwise(bounds), key=lambda piece: piece[1] - piece[0])
        bounds = sorted([*bounds, (low + high) // 2])
    return bounds
