"""Vertices that combine activations with vectors that have an element for each channel: one for each piece on a tile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.poplin.norms.channel_layout import ChannelLayout, channel_stretches
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
class ChannelPart:
    """Some channels of activations, the order in which they are read, and what vertices take of them."""

    operation: ChannelOperation
    begin: int
    end: int
    layout: ChannelLayout
    pieces: ChannelPieces

    @cached_property
    def slots(self) -> Int64s:
        """The cycles of a worker on each tile."""
        facts = self.pieces.facts
        kinds, kind = np.unique(np.stack((self.pieces.length, facts.period, facts.inner), 1), axis=0, return_inverse=True)
        slots = np.array([self.operation.slots(*sizes) for sizes in kinds.tolist()], np.int64)
        by_tile = np.bincount(facts.tile, slots[kind.ravel()], self.operation.graph.getTarget().getNumTiles())
        return by_tile.astype(np.int64)


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
        cs = self.graph.addComputeSet(self.debug)
        for part in self._parts(out):
            own = {name: tensor.slice(part.begin, part.end, 1) for name, tensor in {"out": out, **whole}.items()}
            self._add_vertices(
                cs, part, own, {name: vector.flatten().slice(part.begin, part.end) for name, vector in vectors.items()}
            )
        prog.add(Execute(cs))

    def _add_vertices(self, cs: ComputeSet, part: ChannelPart, whole: Mapping[str, Tensor], flat: Mapping[str, Tensor]) -> None:
        pieces, vertex = part.pieces, templateVertex(f"poplin::{self.codelet}", *self.types)
        views = {name: part.layout.ordered(tensor).flatten() for name, tensor in whole.items()}
        sizes = np.stack((pieces.length, pieces.facts.period), 1)
        for size in np.unique(sizes, axis=0):
            own = np.flatnonzero((sizes == size).all(1))
            fields: dict[str, object] = {name: pieces.of_view(view, own) for name, view in views.items()}
            fields |= {name: pieces.of_vector(vector, own) for name, vector in flat.items()}
            facts = pieces.facts.chosen(own)
            fields |= {"offset": facts.offset, "inner": facts.inner}
            self.graph.add_vertices(cs, vertex, fields, facts.tile)

    def _parts(self, out: Tensor) -> list[ChannelPart]:
        """All channels in the order of the first ones; or stretches, each in its own, if the busiest tile is done earlier."""
        whole = self._part(out, 0, out.dim(1), ChannelLayout.of(self.graph, out))
        stretches = channel_stretches(out)
        if len(stretches) == 1:
            return [whole]
        parts = [self._best_part(out, begin, end) for begin, end in stretches]
        return parts if np.sum([part.slots for part in parts], 0).max() < whole.slots.max() else [whole]

    def _best_part(self, out: Tensor, begin: int, end: int) -> ChannelPart:
        layouts = ChannelLayout.choices(self.graph, out.slice(begin, end, 1))
        return min((self._part(out, begin, end, layout) for layout in layouts), key=lambda part: part.slots.max())

    def _part(self, out: Tensor, begin: int, end: int, layout: ChannelLayout) -> ChannelPart:
        pieces = self._pieces(layout, layout.ordered(out.slice(begin, end, 1)).flatten())
        return ChannelPart(self, begin, end, layout, pieces)

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
            if parts * self.slots(channels, channels, 1) < self.slots(length, channels, 1):
                cuts |= (sizes == (length, parts)).all(1)
        return cut_at_first_channels(intervals, cuts, channels)

    def slots(self, elements: int, period: int, inner: int) -> int:
        """The cycles of a worker of a vertex with so many elements."""
        return channel_slots(self.graph.getTarget(), self.types[0], CHANNEL_WORK[self.codelet], elements, period, inner)
