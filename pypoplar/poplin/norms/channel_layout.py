"""How the channels of activations [N, C, ...] follow each other in memory."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import opens, stepped
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat_slices
from pypoplar.poputil.placement.tiles_of_elements import mapped_pieces
from pypoplar.poputil.structure.groupings import detectInnermostGrouping

BATCH, GROUP, PLACE, FIELD = range(4)  # dimensions of activations whose channels are in groups of neighbours


@frozen
class ChannelLayout:
    """The dimensions of activations, as [batch, group of channels, place in the group, field], and their order in memory."""

    sizes: tuple[int, int, int, int]
    order: tuple[int, ...]

    @staticmethod
    def of(graph: Graph, acts: Tensor) -> ChannelLayout:
        """The order of memory as the first elements show it; any order is right, another one is slower."""
        batch, channels, *field = acts.shape()
        whole = (batch, channels, 1, prod(field))
        if acts.numElements() == 0:
            return ChannelLayout(whole, (BATCH, GROUP, PLACE, FIELD))
        together = detectInnermostGrouping(graph, acts.dimRoll(1, acts.rank() - 1))
        grouped = (batch, channels // together, together, prod(field))
        order = _order(acts, grouped)
        adjacent = order.index(GROUP) + 1 == order.index(PLACE)  # then channels simply follow each other
        if order[-1] != PLACE or together == 1 or adjacent or grouped[GROUP] == 1:
            return ChannelLayout(whole, _order(acts, whole))
        return ChannelLayout(grouped, order)

    def ordered(self, tensor: Tensor) -> Tensor:
        """A tensor of the activations' shape with the dimensions in the order of memory."""
        return tensor.reshape(self.sizes).dimShuffle(self.order)

    @property
    def reduced(self) -> list[int]:
        """The dimensions of an ordered tensor that are no channels."""
        return [place for place, dimension in enumerate(self.order) if dimension in (BATCH, FIELD)]

    @property
    def channel_shape(self) -> list[int]:
        """The shape that a vector of channels has beside an ordered tensor without these dimensions."""
        return [self.sizes[GROUP], self.sizes[PLACE]]

    def behind(self, dimension: int) -> int:
        """Elements from one step of a dimension to the next, in the order of memory."""
        return prod(self.sizes[inner] for inner in self.order[self.order.index(dimension) + 1 :])


def _order(acts: Tensor, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions by their steps in memory, the largest first; those of size 1 are outermost."""
    view = acts.reshape(sizes)
    corner = _place(view, None)
    steps = [abs(_place(view, dimension) - corner) if size > 1 else 0 for dimension, size in enumerate(sizes)]
    return tuple(sorted(range(len(sizes)), key=lambda dimension: (sizes[dimension] > 1, -steps[dimension])))


def _place(view: Tensor, dimension: int | None) -> int:
    """Where the first element lies, or the second one along a dimension."""
    index = [int(number == dimension) for number in range(view.rank())]
    return int(view[tuple(index)].flatten().runs().start[0])


@frozen(eq=False)
class ChannelPieces:
    """Pieces of the ordered and flattened activations, each on one tile.

    Element i of a piece belongs to the channel ``base + (first + (i + offset) // inner) % channels``, and a piece has elements of
    `period` different ones.
    """

    begin: Int64s
    end: Int64s
    tile: Int64s
    base: Int64s
    first: Int64s
    period: Int64s
    offset: Int64s
    inner: int
    channels: int

    def of_vector(self, vector: Tensor, pieces: Int64s) -> Tensor:
        """What these pieces, each of one period, need of a vector with an element for each channel: a row for each."""
        base, first, period = self.base[pieces], self.first[pieces], self.period[pieces]
        last = first + period
        begin = np.stack((base + first, base), 1)
        end = np.stack((base + np.minimum(last, self.channels), base + np.maximum(last - self.channels, 0)), 1)
        return concat_slices(vector, begin.ravel(), end.ravel()).reshape([len(pieces), int(period[0])])


def channel_pieces(graph: Graph, layout: ChannelLayout, flat: Tensor) -> ChannelPieces:
    """The pieces of a tensor whose ordered elements are `flat`."""
    begin, end, tile = mapped_pieces(graph, flat)
    joined = opens(tile)
    joined[1:] |= end[:-1] != begin[1:]
    first = np.flatnonzero(joined)
    begin, end, tile = begin[first], np.append(end[first[1:] - 1], end[-1:]), tile[first]
    together = layout.sizes[PLACE]
    if together > 1:
        whole = layout.behind(GROUP)
        begin, end, tile = _cut(begin, end, tile, whole)
        return _pieces(begin, end, tile, begin // whole % layout.sizes[GROUP] * together, together, 1)
    return _pieces(begin, end, tile, np.zeros_like(begin), layout.sizes[GROUP], layout.behind(GROUP))


def _cut(begin: Int64s, end: Int64s, tile: Int64s, length: int) -> tuple[Int64s, Int64s, Int64s]:
    """The pieces cut wherever a multiple of `length` begins."""
    count = (end - 1) // length - begin // length + 1
    low = stepped(begin // length * length, count, np.full_like(begin, length))
    return np.maximum(low, np.repeat(begin, count)), np.minimum(low + length, np.repeat(end, count)), np.repeat(tile, count)


def _pieces(begin: Int64s, end: Int64s, tile: Int64s, base: Int64s, channels: int, inner: int) -> ChannelPieces:
    """Pieces of `channels` from `base` on, which come again after ``channels * inner`` elements."""
    met = (end - 1) // inner - begin // inner + 1
    first, period = begin // inner % channels, np.minimum(met, channels)
    return ChannelPieces(begin, end, tile, base, first, period, begin % inner, inner, channels)
