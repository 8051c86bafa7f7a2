"""Which of the elements that a compute set gathers have to be copied on their tile.

An edge that lies partly on its vertex's tile and partly elsewhere is gathered into a buffer here. A compiler that lays out a tile's
memory need not copy what is on the tile: where it is one stretch of memory, what arrives can be laid directly before and behind it,
as the halo of a block is. This holds unless another vertex of the compute set needs the memory beyond that end as it is, or
something else there, or unless what is on the tile does not lie as the alignment that the vertex demands wants it: the layout has
done what it can about that. Constants can be laid wherever they are needed.
"""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int8s, Int64s
from pypoplar.arrays.groups import groups_of, in_order
from pypoplar.arrays.interval_algebra import keys
from pypoplar.compiler.exchange.compute_set_edges import GATHERED, IN_PLACE, Edges
from pypoplar.compiler.exchange.graph_index import ConstantPlaces
from pypoplar.compiler.exchange.pieces import chosen
from pypoplar.compiler.exchange_plan import Pieces


def copied_pieces(edges: Edges, placement: Int8s, offset: Int64s, gather: Pieces, constants: ConstantPlaces) -> Pieces:
    """The pieces of `gather` that a worker copies: of what is on the tile already, all that no layout saves.

    `placement` and `offset` say what becomes of each edge and where it lies.
    """
    resident = np.flatnonzero(~gather.source_in_buffer & ~constants.have(gather.source_tile, gather.source_offset))
    own = chosen(gather, resident)
    if len(resident) == 0:
        return own
    size = edges.length * edges.width
    span = int(max((offset + size).max(), (own.source_offset + own.bytes).max(), (own.target_offset + own.bytes).max())) + 1
    gathered = np.flatnonzero(placement == GATHERED)
    starts, first, owner = groups_of(keys(edges.tile[gathered], offset[gathered], span))
    demanded = np.ones(len(starts), np.int64)
    np.maximum.at(demanded, owner, edges.demanded[gathered])
    target = keys(own.target_tile, own.target_offset, span)
    buffer = np.searchsorted(starts, target, "right") - 1
    alone = np.flatnonzero(np.bincount(buffer, minlength=len(starts))[buffer] == 1)

    tile, begin = own.source_tile[alone], own.source_offset[alone]
    low, high = keys(tile, begin, span), keys(tile, begin + own.bytes[alone], span)
    before = target[alone] > starts[buffer[alone]]  # something arrives in front of it
    behind = target[alone] + own.bytes[alone] < starts[buffer[alone]] + size[gathered[first[buffer[alone]]]]
    place = resident[alone]  # pieces of a buffer follow each other in `gather`
    front, back = np.maximum(place - 1, 0), np.minimum(place + 1, len(gather.bytes) - 1)
    arrives_before = 2 * (gather.source_offset + gather.bytes)[front] + gather.source_in_buffer[front]
    arrives_behind = 2 * gather.source_offset[back] + gather.source_in_buffer[back]
    unmoved = np.flatnonzero(placement == IN_PLACE)
    fixed = keys(edges.tile[unmoved], offset[unmoved], span)
    needed = in_order(np.concatenate((fixed, low))), in_order(np.concatenate((fixed + size[unmoved], high)))
    free = (begin - (target[alone] - starts[buffer[alone]])) % demanded[buffer[alone]] == 0
    for end, arrives, what in ((low, before, arrives_before), (high, behind, arrives_behind)):
        claimed = np.flatnonzero(arrives)
        _, one_each, group = groups_of(end[claimed])
        agrees = np.zeros(len(alone), bool)
        agrees[claimed] = what[claimed] == what[claimed][one_each][group]  # with the first that wants something there
        free &= ~arrives | (agrees & ~_inside(end, *needed))
    copied = np.ones(len(own.bytes), bool)
    copied[alone[free]] = False
    return chosen(own, copied)


def varying_pieces(pieces: Pieces, constants: ConstantPlaces) -> Pieces:
    """The pieces without those that come from a constant on the tile, which can lie there as often as it is needed."""
    return chosen(pieces, pieces.source_in_buffer | ~constants.have(pieces.source_tile, pieces.source_offset))


def _inside(place: Int64s, begin: Int64s, end: Int64s) -> Bools:
    """Whether any interval goes on at `place` from below to above, of those that have these begins and ends, each in order."""
    inside: Bools = np.searchsorted(begin, place, "left") > np.searchsorted(end, place, "right")
    return inside
