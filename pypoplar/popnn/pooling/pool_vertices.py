"""The vertices of pooling, from tensors that are seen as [samples, groups of channels, field, channels of a group]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.popnn.pooling.pool_axis import PoolAxis
from pypoplar.popnn.pooling.pool_plan import PoolPlan
from pypoplar.popnn.pooling.pool_work import pool_work
from pypoplar.poputil.placement.tiles_of_elements import place_on
from pypoplar.poputil.structure.box_rows import Bounds, box_rows


@frozen(eq=False)
class BoxClass:
    """Boxes that are alike in a dimension: their numbers, and the ranges of results and of what is pooled."""

    numbers: list[int]
    results: Bounds
    others: Bounds


def grouped(tensor: Tensor, channels: int) -> Tensor:
    """[N, C, field...] as [N, C / channels, field..., channels]."""
    samples, all_channels, *shape = tensor.shape()
    view = tensor.reshape([samples, all_channels // channels, channels, *shape])
    return view.dimRoll(2, view.rank() - 1)


def ungrouped(tensor: Tensor) -> Tensor:
    """The other way round."""
    samples, groups, *shape, channels = tensor.shape()
    return tensor.dimRoll(tensor.rank() - 1, 2).reshape([samples, groups * channels, *shape])


@frozen(eq=False)
class PoolVertices:
    """Vertices for a tensor of results; `channels` are those of a place."""

    graph: Graph
    axes: Sequence[PoolAxis]
    plan: PoolPlan
    channels: int

    def new_result(self, like: Tensor, debug: str, follows: Tensor | None) -> tuple[Tensor, Int64s]:
        """A new tensor of the boxes' results, mapped to their tiles, and the tile of each box.

        Where `follows`, what is pooled, has the first places of all boxes on different tiles, boxes go there.
        """
        bounds = self.plan.bounds(self.axes)
        counts = [len(ranges) for ranges in bounds]
        tiles = np.arange(prod(counts))
        if follows is not None:
            tiles = self._tiles_there(follows, bounds)
        shape = [axis.size for axis in self.axes]
        number = np.zeros([1] * len(shape), np.int64)
        for dimension, (size, step, count) in enumerate(zip(shape, self.plan.steps, counts, strict=True)):
            index = (np.arange(size) // step).reshape([-1 if place == dimension else 1 for place in range(len(shape))])
            number = number * count + index
        out = self.graph.addVariable(like.elementType(), [*shape, self.channels], debug)
        place_on(self.graph, out, np.repeat(tiles[number][..., None], self.channels, -1))
        return out, tiles

    def _tiles_there(self, follows: Tensor, bounds: list[Bounds]) -> Int64s:
        plain = np.arange(prod(map(len, bounds)))
        corners = follows
        for dimension, (axis, ranges) in enumerate(zip(self.axes, bounds, strict=True)):
            starts = [min(axis.others(*bound)[0], corners.dim(dimension) - 1) for bound in ranges]
            corners = concat([corners.slice(start, start + 1, dimension) for start in starts], dimension)
        mapping = self.graph.getTileMapping(corners.slice(0, 1, corners.rank() - 1))
        tiles = np.zeros(len(plain), np.int64)
        for tile, regions in enumerate(mapping):
            for begin, end in regions:
                tiles[begin:end] = tile
        return tiles if len(np.unique(tiles)) == len(tiles) else plain

    def add(
        self,
        cs: ComputeSet,
        vertex: str,
        out: Tensor,
        tiles: Int64s,
        pooled: Mapping[str, Tensor],
        like_result: Mapping[str, Tensor] | None = None,
        scales: Sequence[Sequence[float]] | None = None,
    ) -> None:
        """Add a vertex for each box; `pooled` are tensors of what is pooled, `like_result` those that have the result's shape.

        `scales` are those of the places in each dimension, of the results or, of a gradient, of what is pooled.
        """
        classes = [self._classes(dimension, scales) for dimension in range(len(self.axes))]
        counts = [len(ranges) for ranges in self.plan.bounds(self.axes)]
        target = self.graph.getTarget()
        blanks = vertex.startswith("popnn::MaxPooling<")
        grain = 2 if out.elementType().size * self.channels % target.getAtomicStoreGranularity() else 1
        steps = self.axes[-1].steps
        for alike in product(*classes):
            work = pool_work(self.axes, [part.results[0] for part in alike], target.getNumWorkerContexts(), grain, blanks)
            fields: dict[str, object] = {"out": box_rows(out, [part.results for part in alike])}
            fields |= {name: box_rows(tensor, [part.others for part in alike]) for name, tensor in pooled.items()}
            fields |= {name: box_rows(tensor, [part.results for part in alike]) for name, tensor in (like_result or {}).items()}
            fields |= work.fields | {"channels": self.channels, "outStride": steps[0], "inStride": steps[1]}
            if scales is not None:
                fields["scales"] = self._scales(alike, scales)
            numbers = np.ravel_multi_index(np.ix_(*(part.numbers for part in alike)), counts).ravel()
            self.graph.add_vertices(cs, vertex, fields, tiles[numbers])

    def _classes(self, dimension: int, scales: Sequence[Sequence[float]] | None) -> list[BoxClass]:
        axis = self.axes[dimension]
        classes: dict[object, BoxClass] = {}
        for number, (begin, end) in enumerate(self.plan.bounds(self.axes)[dimension]):
            low, high = axis.others(begin, end)
            runs = tuple((run.first - begin, run.other - low, run.count) for run in axis.runs(begin, end))
            scaled = tuple(scales[dimension][slice(*((low, high) if axis.back else (begin, end)))]) if scales else ()
            alike = classes.setdefault((end - begin, high - low, runs, scaled), BoxClass([], [], []))
            alike.numbers.append(number)
            alike.results.append((begin, end))
            alike.others.append((low, high))
        return list(classes.values())

    def _scales(self, alike: Sequence[BoxClass], scales: Sequence[Sequence[float]]) -> list[float]:
        """Of all places of a box, or one where they are equal."""
        values = np.ones(1)
        for axis, part, own in zip(self.axes, alike, scales, strict=True):
            values = np.outer(values, own[slice(*(part.others[0] if axis.back else part.results[0]))]).ravel()
        equal = len(values) and (values == values[0]).all()
        return [float(values[0])] if equal else [float(value) for value in values] or [1.0]
