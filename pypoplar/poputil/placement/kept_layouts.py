"""The layouts that a graph keeps by variable, through views of the variables."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.strides import row_major
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import whole_variables
from pypoplar.poputil.placement.layout import Layout
from pypoplar.poputil.structure.groupings import detectInnermostGrouping

_MOST_LOOKS = 64  # beside four for each piece of a mapping of which a layout is derived


def layout_of(graph: Graph, tensor: Tensor, *, derived: bool = True) -> Layout | None:
    """Where a tensor lies: the layout of its variable, through slices and permutations of the view that was made with it.

    Without such a layout, and where one may be `derived`, the tensor's mapping is looked at, once for all that is asked until it
    changes. None for what is no grid of parts: most mappings of users, and views that join, repeat or reverse.
    """
    if tensor.numElements() == 0:
        graph.elements_without_tile(tensor)  # refuses another graph's
        return None
    kept = graph.kept_layout(tensor)
    if kept is None and derived and len(tensor.variable_numbers()) == 1:
        shape = _shape_in_memory(tensor)
        kept = graph.kept_layout(tensor, shape, partial(_derived, shape))
    if kept is None or not isinstance(kept.layout, Layout):
        return None
    seen = _seen_as(kept.layout.on(kept.tile), kept.view, tensor)
    return None if seen is None or (seen.tile < 0).any() else seen


def _seen_as(layout: Layout, view: Tensor, tensor: Tensor) -> Layout | None:
    """The layout of a tensor that is a permutation of a slice of a view, but for dimensions of size 1; else None."""
    whole = tuple(place for place, size in enumerate(tensor.shape()) if size > 1)
    first = _place(whole_variables(view)[0], ())
    corner = layout.index_of(_place(tensor, ()) - first)
    order: list[int] = []
    for dimension in whole:
        second = layout.index_of(_place(tensor, (dimension,)) - first)
        differs = [place for place, (low, high) in enumerate(zip(corner, second, strict=True)) if low != high]
        if len(differs) != 1 or differs[0] in order or second[differs[0]] != corner[differs[0]] + 1:
            return None
        order += differs
    ends = [begin + 1 for begin in corner]
    for dimension, place in zip(whole, order, strict=True):
        ends[place] = corner[place] + tensor.dim(dimension)
        if ends[place] > view.dim(place):
            return None
    order += [place for place in range(view.rank()) if place not in order]
    expected = view
    for place, (begin, end) in enumerate(zip(corner, ends, strict=True)):
        expected = expected if end - begin == view.dim(place) else expected.slice(begin, end, place)
    expected = expected if order == sorted(order) else expected.dimShuffle(order)  # of views with many pieces either takes long
    expected = expected.reshape(tensor.shape())
    if expected.reinterpret(tensor.elementType()) != tensor:
        return None
    for place, (begin, end) in enumerate(zip(corner, ends, strict=True)):
        layout = layout.slice(begin, end, place)
    return layout.dim_shuffle(tuple(order)).with_units(tuple(size > 1 for size in tensor.shape()))


def _place(tensor: Tensor, further: tuple[int, ...]) -> int:
    """The number of the first element, or of the second along some dimensions."""
    index = tuple(int(place in further) for place in range(tensor.rank()))
    return int(tensor[index].runs().start[0])


def _shape_in_memory(tensor: Tensor) -> tuple[int, ...] | None:
    """The shape under which a tensor's variable is the tensor, with the dimensions in another order; None if there is none."""
    (flat,) = whole_variables(tensor)
    if flat.numElements() != tensor.numElements():
        return None
    corner = _place(tensor, ())
    steps = [_place(tensor, (place,)) - corner if size > 1 else 0 for place, size in enumerate(tensor.shape())]
    shape = tuple(
        tensor.dim(place) for place in sorted(range(len(steps)), key=lambda place: -steps[place]) if tensor.dim(place) > 1
    )
    return shape if sorted(row_major(shape)) == sorted(step for step in steps if step) else None


def _derived(wanted: tuple[int, ...] | None, shape: tuple[int, ...], begin: Int64s, end: Int64s, tile: Int64s) -> Layout | None:
    """The layout of a variable of a shape whose elements have these tiles, in its order; None if they are no grid of parts."""
    shape = shape if wanted is None else wanted
    elements = prod(shape)
    if len(begin) == 0 or begin[0] != 0 or end[-1] != elements or (begin[1:] != end[:-1]).any():
        return None
    found = _rows(shape, begin, tile)
    if found is None:
        return None
    inner, columns, rows = found
    cuts = [_changes(rows, dimension) for dimension in range(inner)]
    cuts += [columns][: len(shape) - inner]
    cuts += [np.array([0, size]) for size in shape[inner + 1 :]]
    parts = [len(own) - 1 for own in cuts]
    grid = rows[np.ix_(*(own[:-1] for own in cuts[:inner]), np.arange(rows.shape[-1]))].reshape(parts)
    steps, corner = np.array(row_major(shape), np.int64), np.zeros((), np.int64)
    for own, step in zip(cuts, steps, strict=True):
        corner = np.add.outer(corner, own[:-1] * step)
    return Layout(tuple(cuts), grid, corner, np.broadcast_to(steps, (*parts, len(shape))))


def _rows(shape: tuple[int, ...], begin: Int64s, tile: Int64s) -> tuple[int, Int64s, Int64s] | None:
    """The innermost dimension within which tiles change, its cuts, and the tile of each of its parts for all indices before it.

    None if that is much more than there are pieces.
    """
    inner, index = 0, np.zeros(0, np.int64)
    left = begin[1:]
    for dimension in reversed(range(len(shape))):
        index, left = left % shape[dimension], left // shape[dimension]
        if index.any():
            inner = dimension
            break
    size = shape[inner] if shape else 1
    columns = np.unique(np.concatenate(([0], index, [size])))
    rows, width = prod(shape[:inner]), prod(shape[inner + 1 :])
    if rows * (len(columns) - 1) > 4 * len(begin) + _MOST_LOOKS:
        return None
    corner = np.add.outer(np.arange(rows) * size, columns[:-1]) * width
    return inner, columns, tile[np.searchsorted(begin, corner, "right") - 1].reshape(*shape[:inner], len(columns) - 1)


def _changes(rows: Int64s, dimension: int) -> Int64s:
    """The cuts of a dimension: where what is there differs from what is at the index before."""
    own = np.moveaxis(rows, dimension, 0).reshape(rows.shape[dimension], -1)
    changes = np.flatnonzero((own[1:] != own[:-1]).any(1)) + 1
    return np.concatenate(([0], changes, [len(own)]))


def channels_together(graph: Graph, acts: Tensor) -> int:
    """How many neighbours in memory are channels of one place of activations [N, C, ...] on one tile.

    The layout with which they were made says so of all; of others the first row is looked at.
    """
    rows = acts.dimRoll(1, acts.rank() - 1)
    if acts.numElements() and graph.kept_layout(acts) is not None:
        layout = layout_of(graph, rows.reshape([acts.numElements() // acts.dim(1), acts.dim(1)]), derived=False)
        if layout is not None:
            return layout.together()
    return detectInnermostGrouping(graph, rows)
