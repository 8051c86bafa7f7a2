"""Which elements of activations a vertex takes, and which channels these are of."""

from __future__ import annotations

import numpy as np
from attrs import fields, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import offsets, opens, ragged, stepped
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat_slices
from pypoplar.poplin.norms.channel_layout import GROUP, PLACE, ChannelLayout
from pypoplar.poputil.placement.tiles_of_elements import mapped_pieces


@frozen(eq=False)
class ChannelIntervals:
    """Intervals of the ordered and flattened activations, each on one tile.

    Element i of an interval belongs to the channel ``base + (first + (i + offset) // inner) % channels``; an interval has elements
    of `period` different ones, the same ones every ``channels * inner`` elements.
    """

    begin: Int64s
    end: Int64s
    tile: Int64s
    base: Int64s
    first: Int64s
    period: Int64s
    offset: Int64s
    inner: Int64s

    @staticmethod
    def of(begin: Int64s, end: Int64s, tile: Int64s, base: Int64s, channels: int, inner: int) -> ChannelIntervals:
        """Intervals of `channels` from `base` on."""
        met = (end - 1) // inner - begin // inner + 1
        first, period = begin // inner % channels, np.minimum(met, channels)
        return ChannelIntervals(begin, end, tile, base, first, period, begin % inner, np.full_like(begin, inner))

    @property
    def length(self) -> Int64s:
        return self.end - self.begin

    def chosen(self, which: Int64s | Bools) -> ChannelIntervals:
        return ChannelIntervals(*(getattr(self, column.name)[which] for column in fields(ChannelIntervals)))


@frozen(eq=False)
class ChannelPieces:
    """What vertices take: piece k has ``intervals[interval[k] : interval[k + 1]]``, and their channels one after another.

    Its `facts` are columns of `ChannelIntervals`, of which `begin`, `end`, `base` and `first` mean nothing.
    """

    intervals: ChannelIntervals
    interval: Int64s
    facts: ChannelIntervals
    length: Int64s
    channels: int

    @staticmethod
    def single(intervals: ChannelIntervals, channels: int) -> ChannelPieces:
        """A piece for each interval."""
        return ChannelPieces(intervals, np.arange(len(intervals.begin) + 1), intervals, intervals.length, channels)

    def of_view(self, view: Tensor, pieces: Int64s) -> Tensor:
        """What pieces of one length have of a flat tensor that is ordered as the activations: a row for each."""
        own = ragged(self.interval[pieces], np.diff(self.interval)[pieces])
        rows = concat_slices(view, self.intervals.begin[own], self.intervals.end[own])
        return rows.reshape([len(pieces), int(self.length[pieces[0]])])

    def of_vector(self, vector: Tensor, pieces: Int64s) -> Tensor:
        """What pieces of one period need of a vector with an element for each channel: a row for each."""
        own = self.intervals.chosen(ragged(self.interval[pieces], np.diff(self.interval)[pieces]))
        last = own.first + own.period
        begin = np.stack((own.base + own.first, own.base), 1)
        end = np.stack((own.base + np.minimum(last, self.channels), own.base + np.maximum(last - self.channels, 0)), 1)
        return concat_slices(vector, begin.ravel(), end.ravel()).reshape([len(pieces), int(self.facts.period[pieces[0]])])


def channel_intervals(graph: Graph, layout: ChannelLayout, flat: Tensor) -> tuple[ChannelIntervals, int]:
    """The intervals of a tensor whose ordered elements are `flat`, and how many channels come in turn."""
    begin, end, tile = mapped_pieces(graph, flat)
    joined = opens(tile)
    joined[1:] |= end[:-1] != begin[1:]
    first = np.flatnonzero(joined)
    begin, end, tile = begin[first], np.append(end[first[1:] - 1], end[-1:]), tile[first]
    together = layout.sizes[PLACE]
    if together > 1:
        whole = layout.behind(GROUP)
        begin, end, which = _cut(begin, end, np.arange(len(begin)), whole)
        base = begin // whole % layout.sizes[GROUP] * together
        return ChannelIntervals.of(begin, end, tile[which], base, together, 1), together
    channels = layout.sizes[GROUP]
    return ChannelIntervals.of(begin, end, tile, np.zeros_like(begin), channels, layout.behind(GROUP)), channels


def cut_at_first_channels(intervals: ChannelIntervals, which: Bools, channels: int) -> ChannelIntervals:
    """The intervals, those that are asked for cut where the first channel comes again; theirs are neighbours in memory."""
    own, others = intervals.chosen(which), intervals.chosen(~which)
    begin, end, number = _cut(own.begin, own.end, np.arange(len(own.begin)), channels)
    cut = ChannelIntervals.of(begin, end, own.tile[number], own.base[number], channels, 1)
    columns = (column.name for column in fields(ChannelIntervals))
    return ChannelIntervals(*(np.concatenate((getattr(others, name), getattr(cut, name))) for name in columns))


def _cut(begin: Int64s, end: Int64s, number: Int64s, length: int) -> tuple[Int64s, Int64s, Int64s]:
    """The intervals cut wherever a multiple of `length` begins, each with its number."""
    count = (end - 1) // length - begin // length + 1
    low = stepped(begin // length * length, count, np.full_like(begin, length))
    return np.maximum(low, np.repeat(begin, count)), np.minimum(low + length, np.repeat(end, count)), np.repeat(number, count)


def joined_pieces(intervals: ChannelIntervals, flat: Tensor, channels: int) -> ChannelPieces:
    """Pieces of intervals of one channel each that follow each other in memory; others alone.

    A tile with some columns of several rows of a matrix has one piece then, not one for each row: where rows are channels, their
    columns are neighbours in memory, in whatever order the rows lie there. All intervals of a piece but the first and the last have
    one length, and these no larger one.
    """
    memory, whole = _places(intervals, flat)
    order = np.lexsort((memory, intervals.tile))
    intervals, memory, whole = intervals.chosen(order), memory[order], whole[order]
    length, one = intervals.length, whole & (intervals.period == 1)
    follows = np.zeros(len(order), bool)
    follows[1:] = one[1:] & one[:-1] & ~opens(intervals.tile)[1:] & (memory[1:] == memory[:-1] + length[:-1])
    head = np.flatnonzero(~follows)
    count = np.diff(np.append(head, len(order)))
    longest = np.maximum.reduceat(length, head)
    inside = follows & np.append(follows[1:], [False])
    even = np.logical_and.reduceat(~inside | (length == np.repeat(longest, count)), head)
    follows &= np.repeat(even, count)
    interval = np.append(np.flatnonzero(~follows), len(order))
    return _pieces_of(intervals, interval, channels)


def _pieces_of(intervals: ChannelIntervals, interval: Int64s, channels: int) -> ChannelPieces:
    """Pieces whose intervals are joined; of one channel, its length is the inner size, whatever the activations'."""
    head, count, length = interval[:-1], np.diff(interval), intervals.length
    facts, longest = intervals.chosen(head), np.maximum.reduceat(length, head)
    one = facts.period == 1
    facts = ChannelIntervals(
        facts.begin,
        facts.end,
        facts.tile,
        facts.base,
        facts.first,
        np.where(one, count, facts.period),
        np.where(one, longest - length[head], facts.offset),
        np.where(one, longest, facts.inner),
    )
    return ChannelPieces(intervals, interval, facts, np.add.reduceat(length, head), channels)


def _places(intervals: ChannelIntervals, flat: Tensor) -> tuple[Int64s, Bools]:
    """Where in memory intervals begin, and which of them lie there in one piece."""
    runs = flat.runs()
    first = offsets(runs.count)
    run = np.searchsorted(first, intervals.begin, "right") - 1
    memory = runs.start[run] + (intervals.begin - first[run]) * runs.step[run]
    return memory, (intervals.end <= first[run + 1]) & ((runs.step[run] == 1) | (intervals.length == 1))
