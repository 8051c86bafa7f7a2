"""Vertices that combine activations with vectors that have an element for each channel: one for each piece on a tile."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.norms.channel_layout import ChannelLayout
from pypoplar.poplin.norms.channel_pieces import (
    ChannelIntervals,
    ChannelPieces,
    channel_intervals,
    cut_at_first_channels,
    joined_pieces,
)
from pypoplar.poplin.norms.norm_cycles import CHANNEL_WORK, channel_slots
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import ElementType

MOST_CUTS = 8  # vertices that an interval becomes, at most


@frozen(eq=False)
class ChannelOperation:
    """A call's operation on activations: a codelet of poplin and its types, whose `out` is written, element by element."""

    graph: Graph
    codelet: str
    types: tuple[ElementType, ...]
    debug: str

    def new_result(self, prog: Sequence, whole: Mapping[str, Tensor], vectors: Mapping[str, Tensor]) -> Tensor:
        """The result as a new tensor that lies as the first of the `whole` tensors, which have its shape."""
        acts = next(iter(whole.values()))
        out = self.graph.clone(acts, self.debug)
        if acts.numElements():
            self._add(prog, out, whole, vectors)
        return out

    def _add(self, prog: Sequence, out: Tensor, whole: Mapping[str, Tensor], vectors: Mapping[str, Tensor]) -> None:
        layout = ChannelLayout.of(self.graph, out)
        views = {name: layout.ordered(tensor).flatten() for name, tensor in {"out": out, **whole}.items()}
        pieces = self._pieces(layout, views["out"])
        flat = {name: vector.flatten() for name, vector in vectors.items()}
        cs, vertex = self.graph.addComputeSet(self.debug), templateVertex(f"poplin::{self.codelet}", *self.types)
        sizes = np.stack((pieces.length, pieces.facts.period), 1)
        for size in np.unique(sizes, axis=0):
            own = np.flatnonzero((sizes == size).all(1))
            fields: dict[str, object] = {name: pieces.of_view(view, own) for name, view in views.items()}
            fields |= {name: pieces.of_vector(vector, own) for name, vector in flat.items()}
            facts = pieces.facts.chosen(own)
            fields |= {"offset": facts.offset, "inner": facts.inner}
            self.graph.add_vertices(cs, vertex, fields, facts.tile)
        prog.add(Execute(cs))

    def _pieces(self, layout: ChannelLayout, flat: Tensor) -> ChannelPieces:
        intervals, channels = channel_intervals(self.graph, layout, flat)
        if int(intervals.inner[0]) > 1:
            return joined_pieces(intervals, flat, channels)
        return ChannelPieces.single(self._cut(intervals, channels), channels)

    def _cut(self, intervals: ChannelIntervals, channels: int) -> ChannelIntervals:
        """Intervals in which channels come again are cut there, if the vertices of the parts take fewer cycles than one of all."""
        sizes = np.stack((intervals.length, (intervals.first + intervals.length - 1) // channels + 1), 1)
        cuts = np.zeros(len(sizes), bool)
        for length, parts in np.unique(sizes[(sizes[:, 0] > channels) & (sizes[:, 1] <= MOST_CUTS)], axis=0).tolist():
            if parts * self._slots(channels, channels) < self._slots(length, channels):
                cuts |= (sizes == (length, parts)).all(1)
        return cut_at_first_channels(intervals, cuts, channels)

    def _slots(self, elements: int, period: int) -> int:
        return channel_slots(self.graph.getTarget(), self.types[0], CHANNEL_WORK[self.codelet], elements, period, 1)
