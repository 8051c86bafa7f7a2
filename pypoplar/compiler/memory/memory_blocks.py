"""Blocks of a tile's memory: what lies in one piece of addresses, and which of its places are demanded to be aligned.

Where a block begins is free, so it takes the beginning that leaves the fewest bytes to be copied to aligned places.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import before_in_group, sums

BLOCK_ALIGNMENT = 8  # of blocks without demands: what the widest load of a worker needs
WORD = 4  # bytes: no block begins within one


def rounded_up(bytes: Int64s, alignment: int | Int64s) -> Int64s:
    return (bytes + (alignment - 1)) & -alignment


@frozen(eq=False)
class Demands:
    """Places that are demanded to be multiples of their alignment; nothing is lost but a copy of `bytes` where one is none."""

    block: Int64s
    place: Int64s  # bytes from the block's first byte; negative for what would begin before it
    alignment: Int64s
    bytes: Int64s


@frozen(eq=False)
class Leads:
    """How blocks begin: `lead` bytes behind a multiple of `alignment`."""

    lead: Int64s
    alignment: Int64s

    @staticmethod
    def none(blocks: int) -> Leads:
        """Those of blocks without demands."""
        return Leads(np.zeros(blocks, np.int64), np.full(blocks, BLOCK_ALIGNMENT))


def choose_leads(width: Int64s, demands: Demands) -> Leads:
    """The leads of blocks whose elements have these widths: those that meet demands on the most bytes, of these the least."""
    leads = Leads.none(len(width))
    block, dense = np.unique(demands.block, return_inverse=True)
    if len(block) == 0:
        return leads
    widest = np.full(len(block), BLOCK_ALIGNMENT)
    np.maximum.at(widest, dense, demands.alignment)
    candidates = np.arange(0, int(widest.max()), WORD)
    met = np.full((len(block), len(candidates)), -1)
    for number, lead in enumerate(candidates.tolist()):
        bytes = np.where((demands.place + lead) % demands.alignment == 0, demands.bytes, 0)
        allowed = (lead < widest) & (lead % np.maximum(width[block], WORD) == 0)
        met[allowed, number] = np.bincount(dense, bytes, len(block))[allowed]
    lead = candidates[np.argmax(met, axis=1)]
    kept = (demands.place + lead[dense]) % demands.alignment == 0
    leads.lead[block] = lead
    np.maximum.at(leads.alignment, demands.block[kept], demands.alignment[kept])
    return leads


def packed(tile: Int64s, bytes: Int64s, alignment: Int64s, tiles: int) -> tuple[Int64s, Int64s]:
    """Where blocks lie that follow each other on each tile, and how far they reach there; `tile` must be sorted.

    Those of a larger alignment come first, and each takes a multiple of its own, so that all are aligned.
    """
    size = rounded_up(bytes, alignment)
    if bool((alignment == BLOCK_ALIGNMENT).all()):
        return before_in_group(size, tile), sums(size, tile, tiles)
    order = np.lexsort((-alignment, tile))
    offset = np.empty(len(order), np.int64)
    offset[order] = before_in_group(size[order], tile[order])
    return offset, sums(size, tile, tiles)


def widest_on_tiles(tile: Int64s, alignment: Int64s, tiles: int) -> Int64s:
    """int64 [tiles]: the largest alignment of the blocks on each tile, which where they begin must be a multiple of."""
    widest = np.full(tiles, BLOCK_ALIGNMENT)
    np.maximum.at(widest, tile, alignment)
    return widest
