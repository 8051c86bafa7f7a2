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
from pypoplar.graph.views import concat_slices, element_numbers, pieces_of_slices
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
    found = _repeated(concat_slices(view, regions.begin[mine], regions.end[mine]).expand([0]))
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
    rows = concat_slices(view, begin, end).reshape([count, -1])
    found = _repeated(rows)
    if found is None:
        return {name: rows, offset_field(name): np.zeros(count, np.int64), inner_field(name): np.ones(count, np.int64)}
    at = (found.place + np.arange(count)[:, None] * rows.dim(1)).reshape(-1)
    once = concat_slices(rows.flatten(), at, at + 1).reshape([count, -1])
    return {name: once, offset_field(name): found.offset, inner_field(name): np.full(count, found.inner)}


def offset_field(name: str) -> str:
    """The field of a repeated operand that says how many of the first ones of equal neighbours are on the tile before."""
    return f"{name}Offset"


def inner_field(name: str) -> str:
    """The field of a repeated operand that says how many neighbours are equal."""
    return f"{name}Inner"


def _repeated(rows: Tensor) -> RepeatedRows | None:
    return repeated_rows(element_numbers(rows).reshape(rows.shape()))
