"""IPUs whose shares of a compute set are alike but for the numbers of tiles and elements: one of them is planned for all.

An IPU is like another if its tiles have the same vertices and edges, whose elements are those of the other, each variable's moved
by a distance of its own, and if these lie on its tiles as the other's do on the other's. Where they lie on other IPUs is left open:
what comes from there arrives at the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

import numpy as np
from attrs import astuple, frozen

from pypoplar.arrays.dtypes import AnyArray, Int64s
from pypoplar.arrays.groups import groups_of, offsets, ragged
from pypoplar.arrays.interval_algebra import Strands, holder, keys
from pypoplar.compiler.exchange.compute_set_edges import Edges
from pypoplar.compiler.exchange.exchange_buffer import Landing, Parts
from pypoplar.compiler.exchange.graph_index import Survey
from pypoplar.compiler.exchange.pieces import columns
from pypoplar.compiler.exchange.vertex_side import Moving, VertexSide
from pypoplar.compiler.exchange_plan import Homes, Pieces
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.interface.layout import NOTHING

OWN_SHARE = 4  # times its part of all homes and strands: what an IPU may look at, so that comparing stays cheaper than planning


@frozen(eq=False)
class IpuShift:
    """From one IPU to one that is like it: for each variable that the first touches, how far elements and homes are moved.

    What is touched is looked up by its elements: it may go on into the next variable, which counts with the one where it begins.
    """

    first: Int64s  # ascending: the first element that is touched of each
    elements: Int64s
    homes: Int64s  # places in the list of all homes
    tiles: int


@frozen(eq=False)
class AlikeIpus:
    """For each IPU the one that is planned in its place, which is not behind it, and how to come from there to it."""

    leader: list[int]
    shift: list[IpuShift]
    per_ipu: int  # tiles

    @property
    def leaders(self) -> list[int]:
        return sorted(set(self.leader))

    @property
    def followed(self) -> list[int]:
        """The leaders of others."""
        return sorted({leader for ipu, leader in enumerate(self.leader) if leader != ipu})


def find_alike(graph: FrozenGraph, edges: Edges, homes: Homes, survey: Survey) -> AlikeIpus | None:
    """Which IPUs are alike; None where none that has vertices is like another."""
    ipus = survey.ipus
    if ipus < 2 or len(homes.begin) == 0:
        return None
    cuts = _ShareCuts.of(edges, ipus, graph.tiles // ipus)
    taking_part = np.diff(cuts.vertices) > 0
    if np.count_nonzero(taking_part) < 2:
        return None
    most = OWN_SHARE * (len(homes.begin) + len(edges.strands.begin)) // ipus
    variables = graph.variables.first.astype(np.int64)
    known: dict[int, list[_Leader]] = {}
    leader, shift = [], []
    for ipu in range(ipus):
        share = _Share.of(graph, edges, cuts, ipu)
        alike = known.setdefault(share.fingerprint, [])
        found, by = next(((one, by) for one in alike if (by := one.reaches(share, homes, survey)) is not None), (None, None))
        if found is None or by is None:
            found = _Leader.of(share, variables, homes, most)
            by = found.itself()
            alike.append(found)
        leader.append(found.share.ipu)
        shift.append(by)
    led = np.array(leader) != np.arange(ipus)
    return AlikeIpus(leader, shift, cuts.per_ipu) if bool((led & taking_part).any()) else None


@frozen(eq=False)
class _ShareCuts:
    """Where the shares of IPUs begin in the tables of a compute set, and last where they end."""

    per_ipu: int
    vertices: Int64s  # [IPUs + 1]
    edges: Int64s
    strands: Int64s

    @staticmethod
    def of(edges: Edges, ipus: int, per_ipu: int) -> _ShareCuts:
        vertices = np.searchsorted(edges.vertex_tile, np.arange(ipus + 1) * per_ipu)
        edge = np.searchsorted(edges.position, vertices)
        return _ShareCuts(per_ipu, vertices, edge, np.searchsorted(edges.strands.owner, edge))


@frozen(eq=False)
class _Share:
    """What an IPU has of a compute set, numbered from its own first tile, vertex, edge and strand."""

    ipu: int
    columns: tuple[AnyArray, ...]  # all but where its elements are
    begin: Int64s  # element ids, of each strand
    length: Int64s
    per_ipu: int
    fingerprint: int

    @staticmethod
    def of(graph: FrozenGraph, edges: Edges, cuts: _ShareCuts, ipu: int) -> _Share:
        vertices, edge, strands = (slice(*cut[ipu : ipu + 2].tolist()) for cut in (cuts.vertices, cuts.edges, cuts.strands))
        rows = (edges.field, edges.row, edges.access, edges.width, edges.alignment, edges.demanded, edges.length)
        found = (
            graph.vertices.codelet[edges.vertex[vertices]],
            edges.vertex_tile[vertices] - ipu * cuts.per_ipu,
            edges.position[edge] - vertices.start,
            edges.place_of[edge] - edge.start,
            *(column[edge] for column in rows),
            edges.strands.owner[strands] - edge.start,
            edges.strands.length[strands],
        )
        mark = len(found[0])
        for column in found:
            mark = crc32(np.ascontiguousarray(column).data, mark)
        return _Share(ipu, found, edges.strands.begin[strands], edges.strands.length[strands], cuts.per_ipu, mark)


@frozen(eq=False)
class _Leader:
    """An IPU that is planned, and what it touches, variable by variable."""

    share: _Share
    number: Int64s  # of each strand, that of its variable among those that are touched, in their order
    sample: Int64s  # a strand of each variable
    low: Int64s  # the first element that is touched of each
    high: Int64s  # behind the last one
    first_home: Int64s  # of each
    home_count: Int64s
    leads: bool  # whether others are compared with it

    @staticmethod
    def of(share: _Share, variables: Int64s, homes: Homes, most: int) -> _Leader:
        variable, sample, number = groups_of(holder(variables, share.begin))
        low, high = np.full(len(variable), variables[-1]), np.zeros(len(variable), np.int64)
        np.minimum.at(low, number, share.begin)
        np.maximum.at(high, number, share.begin + share.length)
        first = holder(homes.begin, low)
        count = holder(homes.begin, high - 1) + 1 - first
        leads = bool((first >= 0).all()) and int(count.sum()) <= most
        return _Leader(share, number, sample, low, high, first, count, leads)

    def itself(self) -> IpuShift:
        """The shift from here to here."""
        nothing = np.zeros(len(self.low), np.int64)
        return IpuShift(self.low, nothing, nothing, 0)

    def reaches(self, share: _Share, homes: Homes, survey: Survey) -> IpuShift | None:
        """How to come from here to another IPU; None if it is not alike."""
        own = self.share
        if not self.leads or not all(map(np.array_equal, own.columns, share.columns)):
            return None
        moved = share.begin - own.begin
        elements = moved[self.sample]
        if not bool((elements[self.number] == moved).all()) or not self._in_order(elements):
            return None
        first = holder(homes.begin, self.low + elements)
        shift = IpuShift(self.low, elements, first - self.first_home, (share.ipu - own.ipu) * own.per_ipu)
        return shift if self._lies_alike(shift, share.ipu, homes, survey) else None

    def _in_order(self, elements: Int64s) -> bool:
        """Whether variables follow each other as they do here, and touch where they touch here."""
        low, high = (self.low + elements)[1:], (self.high + elements)[:-1]
        return bool((high <= low).all()) and np.array_equal(high == low, self.high[:-1] == self.low[1:])

    def _lies_alike(self, shift: IpuShift, ipu: int, homes: Homes, survey: Survey) -> bool:
        """Whether what is touched there has such homes as here, of which those on other IPUs may lie anywhere."""
        if bool((self.first_home + self.home_count + shift.homes > len(homes.begin)).any()):
            return False
        here = self._touched(self.share.ipu, self.itself(), homes, survey)
        there = self._touched(ipu, shift, homes, survey)
        return all(map(np.array_equal, here, there))

    def _touched(self, ipu: int, shift: IpuShift, homes: Homes, survey: Survey) -> tuple[AnyArray, ...]:
        """The homes between the first and the last element that is touched of each variable, as this IPU numbers all."""
        home = ragged(self.first_home + shift.homes, self.home_count)
        low, high, by = (np.repeat(column, self.home_count) for column in (self.low, self.high, shift.elements))
        begin = np.maximum(homes.begin[home], low + by)
        tile = homes.tile[home] - ipu * self.share.per_ipu
        inside = (tile >= 0) & (tile < self.share.per_ipu)
        offset = homes.offset[home] + (begin - homes.begin[home]) * homes.width[home]
        return (
            np.minimum(homes.end[home], high + by) - by,
            survey.constant[home],
            np.where(inside, tile, NOTHING),
            np.where(inside, offset, NOTHING),
        )


def edges_of_leaders(edges: Edges, alike: AlikeIpus) -> Edges:
    """The edges of the IPUs that are planned, those of an IPU in their order."""
    cuts = _ShareCuts.of(edges, len(alike.leader), alike.per_ipu)
    vertices, rows, strands = (
        ragged(cut[alike.leaders], np.diff(cut)[alike.leaders]) for cut in (cuts.vertices, cuts.edges, cuts.strands)
    )

    def left_out(cut: Int64s, others: Int64s) -> Int64s:
        """What numbers get smaller by, for each row of another table."""
        count = np.diff(cut)[alike.leaders]
        return np.repeat(cut[alike.leaders] - offsets(count)[:-1], np.diff(others)[alike.leaders])

    owner = edges.strands.owner[strands] - left_out(cuts.edges, cuts.strands)
    return Edges(
        edges.vertex[vertices],
        edges.vertex_tile[vertices],
        edges.position[rows] - left_out(cuts.vertices, cuts.edges),
        edges.tile[rows],
        edges.field[rows],
        edges.row[rows],
        edges.access[rows],
        edges.place_of[rows] - left_out(cuts.edges, cuts.edges),
        edges.width[rows],
        edges.alignment[rows],
        edges.demanded[rows],
        edges.length[rows],
        Strands(owner, edges.strands.begin[strands], edges.strands.length[strands]),
        edges.begin[strands],
        edges.end[strands],
    )


@frozen(eq=False)
class SpreadPlan:
    """What was planned for the leaders, for all IPUs. Tables are sorted by tile."""

    alike: AlikeIpus
    homes: Homes
    survey: Survey

    def side(self, side: VertexSide, edges: Edges) -> VertexSide | None:
        """The whole side, of the edges of leaders; None if something comes from another IPU that is not exchanged."""
        moves = side.moves
        placement, offset = (self._column(column, edges.tile) for column in (side.placement, side.offset))
        if moves is None:
            return VertexSide(placement, offset, None)
        source, target = (tile // self.alike.per_ipu for tile in (moves.preload.source_tile, moves.preload.target_tile))
        if bool(np.isin(target[source != target], self.alike.followed).any()):
            return None
        on_tiles = (moves.gather, moves.parted, moves.scatter, moves.preload)
        copied = (moves.copied_gather, moves.copied_parted, moves.copied_scatter)
        found = Moving(
            self._parts(moves.incoming),
            self._parts(moves.outgoing),
            self._landing(moves.landing),
            self._by_tile(moves.buffer_bytes),
            self._by_tile(moves.buffer_alignment),
            *map(self._pieces, (*on_tiles, *copied)),
        )
        return VertexSide(placement, offset, found)

    def _cut(self, tile: Int64s) -> Int64s:
        return np.searchsorted(tile, np.arange(len(self.alike.leader) + 1) * self.alike.per_ipu)

    def _joined(self, tile: Int64s, make: Callable[[slice, IpuShift], Sequence[AnyArray]]) -> list[AnyArray]:
        """The columns of a table, of what `make` gives for the rows of each IPU's leader."""
        cut = self._cut(tile).tolist()
        made = [
            make(slice(cut[leader], cut[leader + 1]), shift)
            for leader, shift in zip(self.alike.leader, self.alike.shift, strict=True)
        ]
        return [np.concatenate(column) for column in zip(*made, strict=True)]

    def _column(self, column: AnyArray, tile: Int64s) -> AnyArray:
        return self._joined(tile, lambda rows, _: (column[rows],))[0]

    def _by_tile(self, values: Int64s) -> Int64s:
        whole: Int64s = values.reshape(len(self.alike.leader), -1)[self.alike.leader].ravel()
        return whole

    def _pieces(self, pieces: Pieces) -> Pieces:
        def moved(rows: slice, shift: IpuShift) -> tuple[AnyArray, ...]:
            source, source_offset, target, *rest = (column[rows] for column in columns(pieces))
            return (source + shift.tiles, source_offset, target + shift.tiles, *rest)

        return Pieces(*self._joined(pieces.target_tile, moved))

    def _parts(self, parts: Parts) -> Parts:
        def moved(rows: slice, shift: IpuShift) -> tuple[AnyArray, ...]:
            tile, begin, end, home = (column[rows] for column in astuple(parts, recurse=False))
            number = holder(shift.first, begin)
            by = shift.elements[number]
            return tile + shift.tiles, begin + by, end + by, home + shift.homes[number]

        return Parts(*self._joined(parts.tile, moved))

    def _landing(self, landing: Landing) -> Landing:
        tile, span = landing.begin // self.survey.span, self.survey.span

        def moved(rows: slice, shift: IpuShift) -> tuple[AnyArray, ...]:
            begin, here = landing.begin[rows], tile[rows]
            element = begin - here * span
            number = holder(shift.first, element)
            there = keys(here + shift.tiles, element + shift.elements[number], span)
            return there, there + (landing.end[rows] - begin), landing.offset[rows], landing.width[rows]

        begin, end, offset, width = self._joined(tile, moved)
        return Landing(begin, end, offset, width, self._by_tile(landing.bytes), self._by_tile(landing.alignment))
