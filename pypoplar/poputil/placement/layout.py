"""Where the elements of a tensor lie: parts of it on tiles, in an order of memory."""

from __future__ import annotations

from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import opens
from pypoplar.errors import PoplarTypeError, TensorShapeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.types import ElementType


@frozen(eq=False)
class Layout:
    """The parts into which cuts of each dimension divide a tensor: the tile of each, and its place in the variable's memory.

    Part ``[i, j, ...]`` has the indices from ``cuts[0][i]`` to ``cuts[0][i + 1]`` of dimension 0, and so on. Its elements lie at
    ``begin[i, j, ...]`` plus, for each dimension, a step of the part's for each index further on.
    """

    cuts: tuple[Int64s, ...]
    tile: Int64s  # [parts of each dimension]
    begin: Int64s  # [parts of each dimension]
    steps: Int64s  # [parts of each dimension, dimensions]

    @staticmethod
    def of(cuts: tuple[Int64s, ...], tile: Int64s, order: Int64s | None = None, inside: tuple[int, ...] | None = None) -> Layout:
        """Parts that lie behind each other in memory: in row-major order, or by the number that `order` has for each.

        Within a part the dimensions go from the outermost one to the innermost as `inside` lists them, else as they are.
        `TensorShapeError` for cuts that do not cover a tensor, and for tiles or numbers that are not one for each part.
        """
        cuts = tuple(np.asarray(own, np.int64) for own in cuts)
        _check_cuts(cuts)
        parts, rank = tuple(len(own) - 1 for own in cuts), len(cuts)
        number = np.arange(prod(parts)).reshape(parts) if order is None else np.asarray(order)
        _check_parts(parts, tile=np.asarray(tile), order=number)
        sorted_parts = np.argsort(number, axis=None, kind="stable")
        sizes = np.meshgrid(*(np.diff(own) for own in cuts), indexing="ij") if rank else []
        whole = np.asarray(prod(sizes), np.int64) if rank else np.ones((), np.int64)
        begin = np.empty(prod(parts), np.int64)
        begin[sorted_parts] = np.cumsum(np.append([0], whole.reshape(-1)[sorted_parts]))[:-1]
        steps, step = np.empty((*parts, rank), np.int64), np.ones(parts, np.int64)
        for dimension in reversed(inside if inside is not None else range(rank)):
            steps[..., dimension] = step
            step = step * sizes[dimension]
        return Layout(cuts, np.asarray(tile, np.int64), begin.reshape(parts), steps)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return tuple(int(own[-1]) for own in self.cuts)

    # -- what it makes --------------------------------------------------------------------------------------------------------

    def variable(self, graph: Graph, type: ElementType, name: str) -> Tensor:
        """A new variable whose memory is as the layout says, mapped, and seen as a tensor of the shape; the graph keeps the layout.

        `TensorShapeError` if the parts leave gaps in memory, as those of a slice do.
        """
        count = self._sizes()
        order = np.argsort(self.begin, axis=None, kind="stable")
        begin, end = self.begin.reshape(-1)[order], (self.begin + count).reshape(-1)[order]
        if begin[0] != 0 or (begin[1:] != end[:-1]).any() or not self._compact():
            raise TensorShapeError(f"{name!r}: parts of a variable lie behind each other in memory, this layout leaves gaps")
        flat = graph.addVariable(type, [int(end[-1])], name)
        view = self._view(flat)
        graph.place_laid(view, flat, begin, end, self.tile.reshape(-1)[order], self)
        return view

    def map(self, graph: Graph, tensor: Tensor) -> None:
        """Map a tensor of the shape as the parts are, however it lies in memory."""
        if tuple(tensor.shape()) != self.shape:
            raise TensorShapeError(f"a layout of shape {list(self.shape)} for {tensor!r}")
        graph.place_pieces(tensor, *self.pieces())

    def pieces(self) -> tuple[Int64s, Int64s, Int64s]:
        """Ranges (begin, end, tile) of the flattened tensor, in its order; neighbours are on different tiles."""
        inner = len(self.cuts)
        while inner and len(self.cuts[inner - 1]) == 2:
            inner -= 1
        if not inner:
            return np.zeros(1, np.int64), np.array([prod(self.shape)]), self.tile.reshape(-1)
        width = prod(self.shape[inner:])
        cuts = self.cuts[inner - 1]
        outer = [np.repeat(np.arange(len(own) - 1), np.diff(own)) for own in self.cuts[: inner - 1]]
        tile = self.tile.reshape(self.tile.shape[:inner])[np.ix_(*outer, np.arange(len(cuts) - 1))].reshape(-1)
        rows = prod(self.shape[: inner - 1])
        begin = (np.arange(rows)[:, None] * cuts[-1] + cuts[:-1]).reshape(-1) * width
        first = np.flatnonzero(opens(tile))
        return begin[first], np.append(begin[first[1:]], prod(self.shape)), tile[first]

    def _view(self, flat: Tensor) -> Tensor:
        views: np.ndarray[Any, Any] = np.empty(self.tile.shape, object)
        sizes = [np.diff(own).tolist() for own in self.cuts]
        for part in product(*(range(extent) for extent in self.tile.shape)):
            own = [sizes[dimension][index] for dimension, index in enumerate(part)]
            inside = np.lexsort((-np.arange(len(own)), self.steps[part], [size > 1 for size in own]))[::-1].tolist()
            ordered = [own[dimension] for dimension in inside]
            begin = int(self.begin[part])
            view = flat.slice(begin, begin + prod(own)).reshape(ordered)
            views[part] = view.dimShuffle(np.argsort(inside).tolist()) if own else view
        for dimension in reversed(range(len(self.cuts))):
            joined: np.ndarray[Any, Any] = np.empty(views.shape[:-1], object)
            for part in np.ndindex(joined.shape):
                joined[part] = concat(list(views[part]), dimension=dimension)
            views = joined
        whole: Tensor = views.item()
        return whole

    def _sizes(self) -> Int64s:
        """The elements of each part."""
        count: Int64s = np.ones((), np.int64)
        for own in self.cuts:
            count = np.asarray(np.multiply.outer(count, np.diff(own)), np.int64)
        return count

    def _compact(self) -> bool:
        """Whether the elements of each part are a stretch of memory."""
        span: Int64s = np.ones(self.tile.shape, np.int64)
        for dimension, own in enumerate(self.cuts):
            further = np.diff(own) - 1
            shape = [len(further) if place == dimension else 1 for place in range(len(self.cuts))]
            span = np.add(span, further.reshape(shape) * self.steps[..., dimension], dtype=np.int64)
        return bool((span == self._sizes()).all())

    # -- other layouts --------------------------------------------------------------------------------------------------------

    def slice(self, begin: int, end: int, dimension: int) -> Layout:
        """That of the indices ``[begin, end)`` of a dimension, one of them at least."""
        cuts = self.cuts[dimension]
        low, high = int(np.searchsorted(cuts, begin, "right")) - 1, int(np.searchsorted(cuts, end))
        tile, first, steps = (column.take(range(low, high), dimension) for column in (self.tile, self.begin, self.steps))
        edge = np.moveaxis(first, dimension, 0)[:1]  # a view
        edge += (begin - int(cuts[low])) * np.moveaxis(steps, dimension, 0)[:1, ..., dimension]
        own = np.clip(cuts[low : high + 1], begin, end) - begin
        return Layout((*self.cuts[:dimension], own, *self.cuts[dimension + 1 :]), tile, first, steps)

    def dim_shuffle(self, order: tuple[int, ...]) -> Layout:
        """That of the tensor whose dimension k is dimension ``order[k]``."""
        steps = self.steps.transpose((*order, len(order)))[..., list(order)]
        return Layout(tuple(self.cuts[d] for d in order), self.tile.transpose(order), self.begin.transpose(order), steps)

    def with_units(self, kept: tuple[bool, ...]) -> Layout:
        """That of the tensor with the first dimensions where `kept` is true and new ones of size 1 elsewhere.

        Dimensions beyond those have size 1, and are left out.
        """
        own = [place for place, keeps in enumerate(kept) if keeps]
        parts, shape = self.tile.shape[: len(own)], [1] * len(kept)
        cuts: list[Int64s] = [np.array([0, 1])] * len(kept)
        steps = np.ones((*parts, len(kept)), np.int64)
        for place, dimension in enumerate(own):
            shape[dimension], cuts[dimension] = self.tile.shape[place], self.cuts[place]
            steps[..., dimension] = self.steps[..., place].reshape(parts)
        tile, begin = self.tile.reshape(shape), self.begin.reshape(shape)
        return Layout(tuple(cuts), tile, begin, steps.reshape([*shape, len(kept)]))

    def on(self, tile: Int64s) -> Layout:
        """The same on other tiles."""
        return evolve(self, tile=tile)

    # -- questions ------------------------------------------------------------------------------------------------------------

    def index_of(self, place: int) -> tuple[int, ...]:
        """The index of the element that lies at a place in memory, which is that of one."""
        left = place - self.begin.reshape(-1)
        steps, rank = self.steps.reshape(self.tile.size, len(self.cuts)), len(self.cuts)
        corners = [own.reshape(-1) for own in np.meshgrid(*(own[:-1] for own in self.cuts), indexing="ij")]
        sizes = [own.reshape(-1) for own in np.meshgrid(*(np.diff(own) for own in self.cuts), indexing="ij")]
        local = np.zeros((len(left), rank), np.int64)
        for dimension in np.argsort(-steps, axis=1, kind="stable").T if rank else ():
            part = np.arange(len(left))
            size = np.stack(sizes, 1)[part, dimension]
            digit = np.where(size > 1, np.clip(left // steps[part, dimension], 0, size - 1), 0)
            local[part, dimension] = digit
            left = left - digit * steps[part, dimension]
        (own,) = np.flatnonzero(left == 0)
        return tuple(int(corner[own] + local[own, d]) for d, corner in enumerate(corners))

    def together(self) -> int:
        """The largest size of groups of neighbours in the last dimension that all lie behind each other, each on one tile."""
        size, step = np.diff(self.cuts[-1]), self.steps[..., -1]
        if (step[..., size > 1] != 1).any():
            return 1
        follows = (self.begin[..., 1:] == self.begin[..., :-1] + size[:-1]) & (self.tile[..., 1:] == self.tile[..., :-1])
        ends = np.broadcast_to(self.cuts[-1][1:-1], follows.shape)[~follows]
        return gcd(int(self.cuts[-1][-1]), *np.unique(ends).tolist())


def _check_cuts(cuts: tuple[Int64s, ...]) -> None:
    for dimension, own in enumerate(cuts):
        if own.ndim != 1 or len(own) < 2 or own[0] != 0 or (np.diff(own) <= 0).any():
            raise TensorShapeError(f"cuts of dimension {dimension} ascend from 0 to its size, got {own.tolist()}")


def _check_parts(parts: tuple[int, ...], **given: Int64s) -> None:
    for name, numbers in given.items():
        if numbers.dtype.kind not in "iu":
            raise PoplarTypeError(f"the {name} of parts are whole numbers, got {numbers.dtype}")
        if numbers.shape != parts:
            raise TensorShapeError(f"the {name} of {list(parts)} parts, got an array of shape {list(numbers.shape)}")
