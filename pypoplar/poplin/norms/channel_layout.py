"""How the channels of activations [N, C, ...] follow each other in memory."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import element_numbers
from pypoplar.poputil.placement.kept_layouts import channels_together

BATCH, GROUP, PLACE, FIELD = range(4)  # dimensions of activations whose channels are in groups of neighbours
MOST_STRETCHES = 16  # of channels that lie alike, beyond which activations are read in one order


@frozen
class ChannelLayout:
    """The dimensions of activations, as [batch, group of channels, place in the group, field], and their order in memory."""

    sizes: tuple[int, int, int, int]
    order: tuple[int, ...]

    @staticmethod
    def of(graph: Graph, acts: Tensor) -> ChannelLayout:
        """The order of memory as the layout or the first elements show it; any order is right, another one is slower."""
        batch, channels, *field = acts.shape()
        if acts.numElements() == 0:
            return ChannelLayout((batch, channels, 1, prod(field)), (BATCH, GROUP, PLACE, FIELD))
        together = channels_together(graph, acts)
        grouped = (batch, channels // together, together, prod(field))
        order = _order(acts, grouped)
        adjacent = order.index(GROUP) + 1 == order.index(PLACE)  # then channels simply follow each other
        if order[-1] != PLACE or together == 1 or adjacent or grouped[GROUP] == 1:
            return ChannelLayout._ungrouped(acts)
        return ChannelLayout(grouped, order)

    @staticmethod
    def choices(graph: Graph, acts: Tensor) -> list[ChannelLayout]:
        """The layout by `of`, and the one without groups, in which neighbouring channels of several variables are one piece."""
        return list(dict.fromkeys((ChannelLayout.of(graph, acts), ChannelLayout._ungrouped(acts))))

    @staticmethod
    def _ungrouped(acts: Tensor) -> ChannelLayout:
        batch, channels, *field = acts.shape()
        whole = (batch, channels, 1, prod(field))
        return ChannelLayout(whole, _order(acts, whole))

    def ordered(self, tensor: Tensor) -> Tensor:
        """A tensor of the activations' shape with the dimensions in the order of memory."""
        return tensor.reshape(self.sizes).dimShuffle(self.order)

    @property
    def side_by_side(self) -> int:
        """How many channels of one place of the field are neighbours in memory; 1 where others than channels are innermost."""
        return self.sizes[self.order[-1]] if self.order[-1] in (GROUP, PLACE) else 1

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


def channel_stretches(acts: Tensor) -> list[tuple[int, int]]:
    """Neighbouring channels of activations that lie alike: with equal steps from sample to sample, and from place to place.

    A concatenation has several stretches. Where they are very many, the channels are one.
    """
    rows = acts.reshape([acts.dim(0), acts.dim(1), prod(acts.shape()[2:])])
    corner = element_numbers(rows[0, :, 0])
    others = rows[min(1, rows.dim(0) - 1), :, 0], rows[0, :, min(1, rows.dim(2) - 1)]
    sample, place = (element_numbers(row) - corner for row in others)
    cuts = np.flatnonzero((sample[1:] != sample[:-1]) | (place[1:] != place[:-1])) + 1
    cuts = cuts if len(cuts) < MOST_STRETCHES else cuts[:0]
    return list(zip([0, *cuts.tolist()], [*cuts.tolist(), len(corner)], strict=True))


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
