"""Tensors that are laid out to be sliced and updated, and the slices and indices that go with them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import overload

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.slicing.blocks import permuted
from pypoplar.popops.slicing.slice_arguments import (
    Extent,
    Options,
    check_name,
    read_extent,
    whole_number,
    whole_numbers,
)
from pypoplar.popops.slicing.slice_options import SliceOptions
from pypoplar.popops.slicing.slice_plan import SlicePlan, check_plan, planned_layout
from pypoplar.popops.slicing.sliceable_layout import sliceable_tensor, start_tile
from pypoplar.poputil.arguments import check_graph, check_operands, check_own, element_type
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.tile_mapping import mapTensorLinearlyWithOffset
from pypoplar.tracebacks import public
from pypoplar.types import UNSIGNED_INT, ElementType

MIN_INDICES_PER_TILE = 32


@overload
def createSliceableTensor(
    graph: Graph,
    type: ElementType,
    shape: Iterable[int],
    dims: Iterable[int],
    sizes: Iterable[int],
    minGrainSize: int = 0,
    debugContext: str | None = None,
) -> Tensor: ...
@overload
def createSliceableTensor(
    graph: Graph,
    type: ElementType,
    shape: Iterable[int],
    dims: Iterable[int],
    sizes: Iterable[int],
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> Tensor: ...
@overloaded("popops.createSliceableTensor")
def createSliceableTensor(
    graph: Graph,
    type: ElementType,
    shape: Iterable[int],
    dims: Iterable[int],
    sizes: Iterable[int],
    minGrainSize: int = 0,
    plan: SlicePlan | None = None,
    options: Options = None,
    debugContext: str | None = None,
) -> Tensor:
    """A new tensor that is sliced without moving its elements between tiles.

    Every tile has all elements of the sliced dimensions for its part of the others; or the tensor is spread as a plan says.

    Parameters
    ----------
    type:
        The element type.
    shape:
        The shape of the tensor.
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.
    minGrainSize:
        How many elements of the other dimensions a tile has at least.
    plan:
        A plan of `embedding.plan`, or the empty ``SlicePlan()``: the tensors are taken as they are mapped.
    options:
        Those of `embedding.plan`.

    Returns
    -------
    Tensor
        A variable of that shape, with tiles.

    Raises
    ------
    PoplibsError
        For `dims` and `sizes` of different lengths, a dimension twice, a slice larger than its dimension, and a plan for
        another shape.
    PoplarIndexError
        For a dimension that the shape does not have.
    """
    call = "popops.createSliceableTensor"
    SliceOptions.read(call, options)
    element = element_type(call, type)
    extent = read_extent(call, shape, dims, sizes)
    grain = whole_number(call, "minGrainSize", minGrainSize)
    debug = below(debugContext, "sliceable")
    if plan is not None and plan.planned:
        return planned_layout(call, graph, plan, 1, extent).base(element, debug).squeeze([0])
    return sliceable_tensor(graph, element, extent, extent.best_order(), grain, _first_tile(graph, extent), debug)


@overload
def createSliceTensor(
    graph: Graph,
    t: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    numIndices: int,
    debugContext: str | None = None,
) -> Tensor: ...
@overload
def createSliceTensor(
    graph: Graph,
    type: ElementType,
    shape: Iterable[int],
    dims: Iterable[int],
    sizes: Iterable[int],
    numIndices: int,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> Tensor: ...
@overloaded("popops.createSliceTensor")
def createSliceTensor(
    graph: Graph,
    dims: Iterable[int],
    sizes: Iterable[int],
    numIndices: int,
    t: Tensor | None = None,
    type: ElementType | None = None,
    shape: Iterable[int] = (),
    plan: SlicePlan | None = None,
    options: Options = None,
    debugContext: str | None = None,
) -> Tensor:
    """A new tensor for slices of a tensor, or for what it is updated with.

    Parameters
    ----------
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.
    numIndices:
        How many slices.
    t:
        The tensor that is sliced. A single slice is mapped like the first slice of `t`, several as for a tensor of
        `createSliceableTensor`.
    type, shape:
        Element type and shape of the tensor, instead of `t`.
    plan:
        A plan of `embedding.plan`, or the empty ``SlicePlan()``: the tensors are taken as they are mapped.
    options:
        Those of `embedding.plan`.

    Returns
    -------
    Tensor
        ``[numIndices, *shape of a slice]``, with tiles.

    Raises
    ------
    PoplibsError
        For `dims` and `sizes` of different lengths, a dimension twice, a slice larger than its dimension, and a plan for
        another shape.
    PoplarIndexError
        For a dimension that the shape does not have.
    """
    call = "popops.createSliceTensor"
    SliceOptions.read(call, options)
    if t is not None:
        check_own(call, graph, t)
    extent = read_extent(call, shape if t is None else t.shape(), dims, sizes)
    count = whole_number(call, "numIndices", numIndices)
    debug = below(debugContext, "slices")
    if t is not None and count == 1:
        return graph.clone(t.slice([0] * t.rank(), extent.slice_shape), debug).expand([0])
    element = element_type(call, type) if t is None else t.elementType()
    if plan is not None and plan.planned:
        return planned_layout(call, graph, plan, 1, extent).slices(element, count, debug).squeeze([0])
    return slices_tensor(graph, element, extent, count, debug)


def slices_tensor(graph: Graph, type: ElementType, extent: Extent, count: int, name: str) -> Tensor:
    """`count` slices, whose elements lie where those of a sliceable tensor do."""
    several = Extent((count, *extent.slice_shape), (0, *(dim + 1 for dim in extent.dims)), (1, *extent.sizes))
    order = [*(place + 1 for place in extent.best_order()), 0]
    return sliceable_tensor(graph, type, several, order, 0, _first_tile(graph, extent), name)


@public
def createIndicesTensor(
    graph: Graph,
    dims: Iterable[int],
    numIndices: int,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str | None = None,
) -> Tensor:
    """A new tensor for the offsets of slices; 32 at least lie on a tile.

    Parameters
    ----------
    dims:
        The dimensions that are sliced.
    numIndices:
        How many slices.
    plan:
        The plan of the slices, or the empty one; it decides nothing here.
    options:
        Those of `embedding.plan`.

    Returns
    -------
    Tensor
        UNSIGNED_INT ``[numIndices, len(dims)]``, spread linearly from tile 0 on.

    Raises
    ------
    PoplibsError
        For a plan for groups.
    """
    call = "popops.createIndicesTensor"
    SliceOptions.read(call, options)
    shape = _indices_shape(call, graph, dims, numIndices, plan, debugContext)
    if plan.planned:
        plan.check_group(call, 1)
    return _indices(graph, shape, below(debugContext, "indices"))


@public
def createGroupedIndicesTensor(
    graph: Graph,
    groupSize: int,
    dims: Iterable[int],
    numIndices: int,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str | None = None,
) -> Tensor:
    """A new tensor for the offsets of slices of each group of a plan; 32 at least lie on a tile.

    Parameters
    ----------
    groupSize:
        The number of groups, 1 at least.
    dims:
        The dimensions of a group that are sliced.
    numIndices:
        How many slices of each group.
    plan:
        A plan of `embedding.plan` for as many groups.
    options:
        Those of `embedding.plan`.

    Returns
    -------
    Tensor
        UNSIGNED_INT ``[groupSize, numIndices, len(dims)]``, spread linearly from tile 0 on.

    Raises
    ------
    PoplibsError
        For the empty plan, and one for another number of groups.
    """
    call = "popops.createGroupedIndicesTensor"
    SliceOptions.read(call, options)
    shape = _indices_shape(call, graph, dims, numIndices, plan, debugContext)
    plan.check_group(call, whole_number(call, "groupSize", groupSize, 1))
    return _indices(graph, [groupSize, *shape], below(debugContext, "groupedIndices"))


def _indices_shape(
    call: str, graph: Graph, dims: Iterable[int], numIndices: int, plan: SlicePlan, debugContext: str | None
) -> list[int]:
    check_graph(call, graph)
    check_name(call, debugContext)
    check_plan(call, plan)
    return [whole_number(call, "numIndices", numIndices), len(whole_numbers(call, "dims", dims))]


def _indices(graph: Graph, shape: list[int], name: str) -> Tensor:
    indices = graph.addVariable(UNSIGNED_INT, shape, name)
    mapTensorLinearlyWithOffset(graph, indices, MIN_INDICES_PER_TILE, 1, 0)
    return indices


@public
def createGroupedSliceableTensor(
    graph: Graph,
    type: ElementType,
    groupSize: int,
    shape: Iterable[int],
    dims: Iterable[int],
    sizes: Iterable[int],
    plan: SlicePlan,
    options: Options = None,
    debugContext: str | None = None,
) -> Tensor:
    """A new tensor, each group of which is sliced as the plan says.

    Parameters
    ----------
    type:
        The element type.
    groupSize:
        The number of groups, 1 at least.
    shape:
        The shape of a group.
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.
    plan:
        A plan of `embedding.plan` for as many groups.
    options:
        Those of `embedding.plan`.

    Returns
    -------
    Tensor
        ``[groupSize, *shape]``, with tiles.

    Raises
    ------
    PoplibsError
        For the empty plan, one for another shape or number of groups, and for slices but of size 1 of dimension 0.
    """
    call = "popops.createGroupedSliceableTensor"
    SliceOptions.read(call, options)
    check_graph(call, graph)
    check_name(call, debugContext)
    element = element_type(call, type)
    extent = read_extent(call, shape, dims, sizes)
    check_plan(call, plan)
    groups = whole_number(call, "groupSize", groupSize, 1)
    return planned_layout(call, graph, plan, groups, extent).base(element, below(debugContext, "sliceable"))


@public
def createGroupedSliceTensor(
    graph: Graph,
    type: ElementType,
    groupSize: int,
    shape: Iterable[int],
    dims: Iterable[int],
    sizes: Iterable[int],
    numIndices: int,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str | None = None,
) -> Tensor:
    """A new tensor for slices of each group, or for what the groups are updated with.

    Parameters
    ----------
    type:
        The element type.
    groupSize:
        The number of groups, 1 at least.
    shape:
        The shape of a group.
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.
    numIndices:
        How many slices of each group.
    plan:
        A plan of `embedding.plan` for as many groups.
    options:
        Those of `embedding.plan`.

    Returns
    -------
    Tensor
        ``[groupSize, numIndices, *shape of a slice]``, with tiles.

    Raises
    ------
    PoplibsError
        For the empty plan, one for another shape or number of groups, and for slices but of size 1 of dimension 0.
    """
    call = "popops.createGroupedSliceTensor"
    SliceOptions.read(call, options)
    check_graph(call, graph)
    check_name(call, debugContext)
    element = element_type(call, type)
    extent = read_extent(call, shape, dims, sizes)
    check_plan(call, plan)
    groups, count = whole_number(call, "groupSize", groupSize, 1), whole_number(call, "numIndices", numIndices)
    return planned_layout(call, graph, plan, groups, extent).slices(element, count, below(debugContext, "slices"))


@public
def createSliceableTensorFromSlice(
    graph: Graph, s: Tensor, dims: Iterable[int], numSlices: Iterable[int], debugContext: str | None = None
) -> Tensor:
    """A new tensor of several slices like `s`, spread over tiles as `s` is.

    Parameters
    ----------
    s:
        A slice, with tiles.
    dims:
        The dimensions that will be sliced, each once.
    numSlices:
        How many slices there are along each of `dims`, 1 at least.

    Returns
    -------
    Tensor
        Of the type of `s`; dimension ``dims[i]`` is ``numSlices[i]`` times that of `s`.

    Raises
    ------
    PoplibsError
        For `dims` and `numSlices` of different lengths, and a dimension twice.
    PoplarIndexError
        For a dimension that `s` does not have.
    InvalidTileMapping
        If an element of `s` has no tile.
    """
    call = "popops.createSliceableTensorFromSlice"
    check_own(call, graph, s)
    check_name(call, debugContext)
    given = read_extent(call, s.shape(), dims, numSlices, "numSlices")
    counts = dict(zip(given.dims, given.sizes, strict=True))
    shape = tuple(size * counts.get(dim, 1) for dim, size in enumerate(given.shape))
    whole = Extent(shape, given.dims, tuple(given.shape[dim] for dim in given.dims))
    order = whole.best_order()
    check_operands(call, graph, s)
    copies = _copies_by_tile(graph, s, prod(given.sizes), below(debugContext, "sliceable"))
    factored = copies.reshape([*(given.sizes[place] for place in order), *given.shape])
    outer = {given.dims[place]: number for number, place in enumerate(order)}
    back: list[int] = []
    for dim in range(s.rank()):
        back += [outer[dim], len(order) + dim] if dim in outer else [len(order) + dim]
    return permuted(factored, back).reshape(list(shape))


def _copies_by_tile(graph: Graph, s: Tensor, count: int, name: str) -> Tensor:
    """``[count, elements of s]``; a tile has all copies of each of its elements behind each other, copy by copy."""
    flat = graph.addVariable(s.elementType(), [count * s.numElements()], name)
    mapping: dict[int, list[Interval]] = {}
    pieces: list[tuple[int, Tensor]] = []
    begin = 0
    for tile, regions in enumerate(graph.getTileMapping(s)):
        held = sum(region.size() for region in regions)
        if not held:
            continue
        block = flat.slice(begin, begin + count * held).reshape([count, held])
        place = 0
        for region in regions:
            pieces.append((region.begin(), block.slice(place, place + region.size(), 1)))
            place += region.size()
        mapping[tile] = [Interval(begin, begin + count * held)]
        begin += count * held
    graph.setTileMapping(flat, mapping)
    if not pieces:
        return flat.reshape([count, 0])
    return concat([piece for _, piece in sorted(pieces, key=lambda pair: pair[0])], dimension=1)


def _first_tile(graph: Graph, extent: Extent) -> int:
    return start_tile(graph, extent.shape, extent.dims, extent.sizes)
