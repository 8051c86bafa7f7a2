"""Operands that are broadcast, of which a vertex of element operations gets each element once.

What a tile needs of a vector along the rows of its block, or down its columns, comes again in a regular order. Fetched as it is
read, it would be gathered one element at a time, as often as it comes. A field of a repeated operand holds its elements once;
element i of the vertex meets number ``(i + offset) // inner % length``.
"""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.repeated_rows import RepeatedRows, repeated_rows
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat_slices, numbers_of_slices, pieces_of_slices
from pypoplar.popops.elements.element_cycles import MISALIGNED_ROW
from pypoplar.poputil.cost_conventions import MESSAGE
from pypoplar.poputil.cycles import ceiling, share_of_worker
from pypoplar.poputil.placement.tiles_of_elements import TileRegions
from pypoplar.target import Target


def comes_again(target: Target, view: Tensor, regions: TileRegions) -> bool:
    """Whether a flat operand is better fetched once: on the tile that gathers it in most pieces, each of which is a message."""
    if not view.containsAliases():
        return False
    pieces = np.bincount(regions.tile, pieces_of_slices(view, regions.begin, regions.end))
    tile = int(pieces.argmax())
    gathering = MESSAGE * int(pieces[tile])
    if gathering <= target.getNumWorkerContexts() * row_cycles(target, 1, 1, 1):
        return False
    mine = regions.tile == tile
    found = _repeated(view, regions.begin[mine], regions.end[mine], 1)
    if found is None:
        return False
    rows = row_cycles(target, int(regions.elements()[tile]), found.inner, found.place.shape[1])
    return target.getNumWorkerContexts() * rows < gathering


def row_cycles(target: Target, elements: int, inner: int, once: int) -> int:
    """Worker cycles of the outer loop of a vertex with so many elements: the busiest worker's rows, whose ends may be cut.

    `once` is how many elements of the repeated operand there are. Each row is one of BroadcastVectorOuter that may begin anywhere.
    """
    row, share = (inner if inner > 1 else once), share_of_worker(elements, target)
    return MISALIGNED_ROW * (ceiling(share, row) + 1)


def fields_of_repeated(name: str, view: Tensor, begin: Int64s, end: Int64s, count: int) -> dict[str, object]:
    """The fields of `count` vertices for an operand of which each gets as many slices and elements; a row of `begin` is its own.

    One that does not repeat itself on these tiles is there as it is read.
    """
    found = _repeated(view, begin, end, count)
    if found is None:
        rows = concat_slices(view, begin, end).reshape([count, -1])
        return {name: rows, offset_field(name): np.zeros(count, np.int64), inner_field(name): np.ones(count, np.int64)}
    size = end - begin
    first = np.cumsum(size) - size
    place = (found.place + np.arange(count)[:, None] * (int(size.sum()) // count)).reshape(-1)  # in the slices
    slice_of = np.searchsorted(first + size, place, "right")
    at = begin[slice_of] + place - first[slice_of]
    once = concat_slices(view, at, at + 1).reshape([count, -1])
    return {name: once, offset_field(name): found.offset, inner_field(name): np.full(count, found.inner)}


def offset_field(name: str) -> str:
    """The field of a repeated operand that says how many of the first ones of equal neighbours are on the tile before."""
    return f"{name}Offset"


def inner_field(name: str) -> str:
    """The field of a repeated operand that says how many neighbours are equal."""
    return f"{name}Inner"


def _repeated(view: Tensor, begin: Int64s, end: Int64s, count: int) -> RepeatedRows | None:
    return repeated_rows(numbers_of_slices(view, begin, end).reshape(count, -1))
