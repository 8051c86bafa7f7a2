"""How tensors of a convolution lie in memory: what one tile has of an operand is in one piece, as far as a plan's parts go."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise, product

from attrs import field, frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.splitting import equal_parts
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.types import ElementType


@frozen
class MemoryOrder:
    """How a tensor lies in memory: its dimensions in this order, the last one together.

    A dimension that has `cuts` is in parts with these bounds, 0 and its end included, and one that has `phases` in that many, each
    of which has every so many places: all that is in the same parts lies together, in this order. The order may be that of a tensor
    whose dimension 0 is two, the second of which is `factor`; that one has neither.
    """

    dimensions: tuple[int, ...]
    factor: int = 1
    cuts: Mapping[int, tuple[int, ...]] = field(factory=dict)
    phases: Mapping[int, int] = field(factory=dict)

    def largest_part(self, dimension: int, size: int) -> int:
        """Of a dimension of this size."""
        return max(end - begin for begin, end in pairwise(self.cuts.get(dimension, (0, size))))


@frozen
class _Stretch:
    """Neighbours in a dimension that are in parts of one size: behind each other, or in phases."""

    begin: int
    size: int
    parts: int
    in_phases: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        """The dimension as two."""
        inner = self.size // self.parts
        return (inner, self.parts) if self.in_phases else (self.parts, inner)


def in_order(graph: Graph, type: ElementType, shape: list[int], order: MemoryOrder, name: str) -> Tensor:
    """A new tensor mapped linearly that lies so in memory."""
    if order.factor > 1:
        apart = [shape[0] // order.factor, order.factor, *shape[1:]]
        return in_order(graph, type, apart, MemoryOrder(order.dimensions), name).flatten(0, 2)
    stretches = [_stretches(size, place, order) for place, size in enumerate(shape)]
    pieces = [_new_piece(graph, type, stretch, order, name) for stretch in product(*stretches)]
    for place in reversed(range(len(shape))):
        count = len(stretches[place])
        pieces = [_together(pieces[first : first + count], place) for first in range(0, len(pieces), count)]
    return pieces[0]


def pieces_in_order(tensor: Tensor, order: MemoryOrder) -> list[Tensor]:
    """The parts of a tensor that lie in a variable each where it is `in_order`, each in the order of that memory."""
    stretches = [_stretches(size, place, order) for place, size in enumerate(tensor.shape())]
    pieces = []
    for several in product(*stretches):
        part = tensor
        for place, stretch in enumerate(several):
            if stretch.size < part.dim(place):
                part = part.slice(stretch.begin, stretch.begin + stretch.size, place)
        apart = part.reshape([size for stretch in several for size in stretch.sizes])
        shuffle = _shuffle(several, order)
        pieces.append(apart.dimShuffle([shuffle.index(place) for place in range(len(shuffle))]))
    return pieces


def _together(pieces: list[Tensor], dimension: int) -> Tensor:
    return concat(pieces, dimension) if len(pieces) > 1 else pieces[0]


def _stretches(size: int, place: int, order: MemoryOrder) -> list[_Stretch]:
    phases = order.phases.get(place, 1)
    if phases > 1:
        rest = size % phases
        both = _Stretch(0, size - rest, phases, True), _Stretch(size - rest, rest, 1)
        return [stretch for stretch in both if stretch.size]
    cuts = equal_parts(order.cuts.get(place, (0, size)))
    return [_Stretch(parts.begin, parts.count * parts.size, parts.count) for parts in cuts]


def _shuffle(stretches: tuple[_Stretch, ...], order: MemoryOrder) -> list[int]:
    """For the halves of each dimension of a tensor, two each, which dimension of a variable they are.

    That has numbers of parts and phases first, and then places within these.
    """
    rank = len(stretches)
    shuffle: list[int] = []
    for place, stretch in enumerate(stretches):
        number = order.dimensions.index(place)
        shuffle += [rank + number, number] if stretch.in_phases else [number, rank + number]
    return shuffle


def _new_piece(graph: Graph, type: ElementType, stretches: tuple[_Stretch, ...], order: MemoryOrder, name: str) -> Tensor:
    parts = [stretches[place].parts for place in order.dimensions]
    sizes = [stretches[place].size // stretches[place].parts for place in order.dimensions]
    variable = graph.addVariable(type, [*parts, *sizes], name)
    mapTensorLinearly(graph, variable)
    return variable.dimShuffle(_shuffle(stretches, order)).reshape([stretch.size for stretch in stretches])
