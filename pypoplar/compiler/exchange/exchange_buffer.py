"""Landing areas: where elements of other tiles lie while a tile's vertices read or write them."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.interval_algebra import holder, keys, overlay, union
from pypoplar.compiler.exchange.compute_set_edges import Edges
from pypoplar.compiler.exchange.graph_index import Survey
from pypoplar.compiler.exchange.pieces import make_pieces
from pypoplar.compiler.exchange_plan import Homes, Pieces
from pypoplar.compiler.memory.memory_blocks import Demands, Leads, choose_leads, packed, widest_on_tiles
from pypoplar.errors import InvalidTileMapping


@frozen(eq=False)
class Parts:
    """Elements of other tiles that a tile's vertices touch: sorted by tile and element, each within one home."""

    tile: Int64s
    begin: Int64s  # element ids
    end: Int64s
    home: Int64s


@frozen(eq=False)
class Landing:
    """The landing areas: a sorted list of keys ``tile * span + element``."""

    begin: Int64s
    end: Int64s
    offset: Int64s  # bytes from the start of the tile's exchange buffer
    width: Int64s
    bytes: Int64s  # [tiles]
    alignment: Int64s  # [tiles]: what the exchange buffer begins at a multiple of

    def place(self, key: Int64s) -> Int64s:
        """Offsets of elements that are known to have landed."""
        at = holder(self.begin, key)
        place: Int64s = self.offset[at] + (key - self.begin[at]) * self.width[at]
        return place


def remote_parts(survey: Survey, homes: Homes, edges: Edges, strands: Int64s) -> Parts:
    """The union, tile by tile, of the elements of some strands that live on other tiles."""
    begin, end = union(edges.begin[strands], edges.end[strands])
    tile = begin // survey.span
    begin, end = begin - tile * survey.span, end - tile * survey.span
    parts = overlay(begin, end, homes.begin, homes.end)
    if int((parts.end - parts.begin).sum()) != int((end - begin).sum()):
        raise InvalidTileMapping("a compute set touches elements that have no place in any tile's memory")
    remote = homes.tile[parts.right] != tile[parts.left]
    return Parts(tile[parts.left][remote], parts.begin[remote], parts.end[remote], parts.right[remote])


def land(tiles: int, survey: Survey, incoming: Parts, outgoing: Parts, edges: Edges, one_piece: Int64s) -> Landing:
    """The landing areas of the parts. The strands `one_piece` are edges that land whole, and lie as demanded as far as possible."""
    tile = np.concatenate((incoming.tile, outgoing.tile))
    begin = keys(tile, np.concatenate((incoming.begin, outgoing.begin)), survey.span)
    begin, end = union(begin, begin + np.concatenate((incoming.end - incoming.begin, outgoing.end - outgoing.begin)))
    tile = begin // survey.span
    # elements of different widths do not lie in one stretch of bytes
    parts = overlay(begin - tile * survey.span, end - tile * survey.span, survey.width_begin, survey.width_end)
    tile, width = tile[parts.left], survey.width[parts.right]
    begin = keys(tile, parts.begin, survey.span)
    leads = Leads.none(len(tile))
    demanding = one_piece[edges.demanded[edges.strands.owner[one_piece]] > 1]
    if len(demanding):
        stretch = holder(begin, edges.begin[demanding])
        place = (edges.begin[demanding] - begin[stretch]) * width[stretch]
        bytes = edges.strands.length[demanding] * width[stretch]
        leads = choose_leads(width, Demands(stretch, place, edges.demanded[edges.strands.owner[demanding]], bytes))
    offset, reach = packed(tile, leads.lead + (parts.end - parts.begin) * width, leads.alignment, tiles)
    widest = widest_on_tiles(tile, leads.alignment, tiles)
    return Landing(begin, begin + (parts.end - parts.begin), offset + leads.lead, width, reach, widest)


def from_homes(survey: Survey, homes: Homes, parts: Parts, landing: Landing) -> Pieces:
    """From where elements live to where they land."""
    return make_pieces(
        homes.tile[parts.home],
        homes.offset[parts.home] + (parts.begin - homes.begin[parts.home]) * homes.width[parts.home],
        parts.tile,
        landing.place(keys(parts.tile, parts.begin, survey.span)),
        (parts.end - parts.begin) * homes.width[parts.home],
        target_in_buffer=True,
    )
