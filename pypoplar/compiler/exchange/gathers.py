"""Gather buffers: copies in one piece of edges whose elements do not lie in one piece on their vertex's tile."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s, UInt64s
from pypoplar.arrays.groups import before_in_group, opens, ragged, whole_groups
from pypoplar.arrays.interval_algebra import overlay, same_strands
from pypoplar.compiler.exchange.compute_set_edges import Edges
from pypoplar.compiler.exchange.exchange_buffer import Landing
from pypoplar.compiler.exchange.graph_index import Survey
from pypoplar.compiler.exchange.pieces import chosen, end_to_end, joined, make_pieces, no_pieces, turned
from pypoplar.compiler.exchange_plan import Homes, Pieces
from pypoplar.compiler.field_table import INPUT, OUTPUT
from pypoplar.compiler.memory.memory_blocks import BLOCK_ALIGNMENT, packed, rounded_up, widest_on_tiles

AT_ONCE = 1 << 16  # strands: what the processor's caches hold


@frozen(eq=False)
class Gathers:
    """The edges of a compute set that are gathered in exchange buffers, and the pieces by which they are."""

    edge: Int64s  # index into the compute set's edges
    offset: Int64s  # bytes from the start of the tile's exchange buffer
    gather: Pieces
    parted: Pieces
    preload: Pieces
    scatter: Pieces
    bytes: Int64s  # [tiles]: what the gather buffers add to the exchange buffer
    alignment: Int64s  # [tiles]: what the exchange buffer begins at a multiple of


@frozen(eq=False)
class Wanted:
    """The gathered edges and their strands: `owner` indexes `edge`, `first` and `count` find an edge's strands."""

    edge: Int64s
    strand: Int64s  # index into the compute set's strands
    owner: Int64s
    first: Int64s
    count: Int64s
    place: Int64s  # elements from the start of the edge to the strand


def plan_gathers(edges: Edges, gathered: Int64s, apart: Int64s, homes: Homes, survey: Survey, landing: Landing) -> Gathers:
    """Buffers for the edges `gathered`, behind the landing areas, and what moves into and out of them on the tile.

    `apart` is what `part_edges` gives.
    """
    tiles = len(landing.bytes)
    if len(gathered) == 0:
        none, nothing = no_pieces(), np.zeros(0, np.int64)
        return Gathers(nothing, nothing, none, none, none, none, np.zeros(tiles, np.int64), landing.alignment)
    wanted = wanted_strands(edges, gathered)
    keeper = _shared(edges, wanted, apart)
    own = keeper == np.arange(len(gathered))
    tile, size = edges.tile[gathered], edges.length[gathered] * edges.width[gathered]
    alignment = np.full(len(gathered), BLOCK_ALIGNMENT)
    np.maximum.at(alignment, keeper, edges.alignment[gathered])
    widest = np.maximum(landing.alignment, widest_on_tiles(tile, alignment, tiles))
    base = rounded_up(landing.bytes, widest)
    offset, reach = packed(tile, np.where(own, size, 0), alignment, tiles)
    offset = (base[tile] + offset)[keeper]

    kept = own[wanted.owner]
    strand, owner = wanted.strand[kept], wanted.owner[kept]
    width = edges.width[gathered[owner]]
    target = offset[owner] + wanted.place[kept] * width
    access, second = edges.access[gathered[owner]], apart[gathered[owner]] > 0
    output = access == OUTPUT
    parts = whole_groups(edges.tile[gathered[owner]], AT_ONCE)  # pieces of several tiles are not joined
    moved = [_moves(edges, strand[part], target[part], width[part], homes, survey, landing) for part in parts]
    mixed = any(moves.source_in_buffer.any() for moves, _ in moved) and not all(moves.source_in_buffer.all() for moves, _ in moved)
    fetched, parted, returned = [no_pieces()], [no_pieces()], [no_pieces()]
    for part, (moves, left) in zip(parts, moved, strict=True):
        left += part.start
        if mixed:
            order = np.lexsort((moves.target_offset, moves.target_tile))
            moves, left = chosen(moves, order), left[order]
        fetched.append(joined(chosen(moves, ~output[left] & ~second[left])))
        parted.append(joined(chosen(moves, second[left])))
        returned.append(joined(turned(chosen(moves, access[left] != INPUT))))
    return Gathers(
        gathered,
        offset,
        end_to_end(fetched),
        end_to_end(parted),
        _old_values(edges, strand[output], target[output], width[output], homes),
        end_to_end(returned),
        np.where(reach > 0, base + reach - landing.bytes, 0),
        widest,
    )


def wanted_strands(edges: Edges, gathered: Int64s) -> Wanted:
    """The strands of some edges, which ascend."""
    first = np.searchsorted(edges.strands.owner, gathered)
    count = np.searchsorted(edges.strands.owner, gathered, "right") - first
    strand = ragged(first, count)
    owner = np.repeat(np.arange(len(gathered)), count)
    place = before_in_group(edges.strands.length[strand], owner)
    return Wanted(gathered, strand, owner, np.cumsum(count) - count, count, place)


def _shared(edges: Edges, wanted: Wanted, apart: Int64s) -> Int64s:
    """For each gathered edge the one whose buffer it uses: itself, or the first Input of the tile that has the same elements.

    An Input that is the same tensor as an Output of its vertex uses that one's, and no other Input does. Inputs that are parted
    share with those of the same number in `apart`.
    """
    keeper = np.searchsorted(wanted.edge, edges.place_of[wanted.edge])
    inputs = np.flatnonzero((edges.access[wanted.edge] == INPUT) & (keeper == np.arange(len(keeper))))
    if len(inputs) < 2:
        return keeper
    print_of = fingerprints(edges, wanted)[inputs]
    tile, number = edges.tile[wanted.edge[inputs]], apart[wanted.edge[inputs]]
    order = np.lexsort((print_of, number, tile))  # which is stable
    begins = opens(tile[order], number[order], print_of[order])
    leader = np.empty_like(inputs)
    leader[order] = inputs[order][np.flatnonzero(begins)][np.cumsum(begins) - 1]
    follows = leader != inputs
    same = same_strands(edges.strands, wanted.edge[inputs[follows]], wanted.edge[leader[follows]])
    keeper[inputs[follows][same]] = leader[follows][same]
    return keeper


def fingerprints(edges: Edges, wanted: Wanted) -> UInt64s:
    """uint64 per gathered edge; equal lists of strands have equal ones."""
    begin, length = edges.strands.begin[wanted.strand], edges.strands.length[wanted.strand]
    mixed = begin.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + length.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed = (mixed + wanted.place.astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0x94D049BB133111EB)
    total: UInt64s = np.add.reduceat(mixed, wanted.first)
    return total


def _moves(
    edges: Edges, strand: Int64s, target: Int64s, width: Int64s, homes: Homes, survey: Survey, landing: Landing
) -> tuple[Pieces, Int64s]:
    """From tile memory, and then from the landing area, into the gather buffers; and the strand of each piece."""
    begin, end = edges.begin[strand], edges.end[strand]
    resident = overlay(begin, end, survey.resident_begin, survey.resident_end)
    home = survey.resident_home[resident.right]
    landed = overlay(begin, end, landing.begin, landing.end)
    left = np.concatenate((resident.left, landed.left))
    into = target[left] + (np.concatenate((resident.begin, landed.begin)) - begin[left]) * width[left]
    tile = edges.tile[edges.strands.owner[strand]][left]
    return make_pieces(
        tile,
        np.concatenate(
            (
                homes.offset[home] + (resident.begin - survey.resident_begin[resident.right]) * homes.width[home],
                landing.offset[landed.right] + (landed.begin - landing.begin[landed.right]) * landing.width[landed.right],
            )
        ),
        tile,
        into,
        np.concatenate((resident.end - resident.begin, landed.end - landed.begin)) * width[left],
        source_in_buffer=np.arange(len(left)) >= len(resident.left),
        target_in_buffer=True,
    ), left


def _old_values(edges: Edges, strand: Int64s, target: Int64s, width: Int64s, homes: Homes) -> Pieces:
    """What gathered Outputs hold before their vertices write them, from wherever the elements live."""
    begin, length = edges.strands.begin[strand], edges.strands.length[strand]
    parts = overlay(begin, begin + length, homes.begin, homes.end)
    return joined(
        make_pieces(
            homes.tile[parts.right],
            homes.offset[parts.right] + (parts.begin - homes.begin[parts.right]) * homes.width[parts.right],
            edges.tile[edges.strands.owner[strand]][parts.left],
            target[parts.left] + (parts.begin - begin[parts.left]) * width[parts.left],
            (parts.end - parts.begin) * width[parts.left],
            target_in_buffer=True,
        )
    )
