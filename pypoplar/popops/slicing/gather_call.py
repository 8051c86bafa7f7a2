"""`gather`: slices of a tensor at many places, put together as NumPy's `take` or XLA's Gather does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from attrs import field, frozen

from pypoplar.errors import PoplarIndexError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops import expr
from pypoplar.popops.elements.map_functions import map
from pypoplar.popops.slicing.blocks import permuted
from pypoplar.popops.slicing.index_range import remapped
from pypoplar.popops.slicing.index_vectors import check_distinct, index_vectors
from pypoplar.popops.slicing.local_rows import with_local_rows
from pypoplar.popops.slicing.multi_slice import multiSlice
from pypoplar.popops.slicing.slice_arguments import (
    Options,
    check_offsets,
    read_extent,
    whole_number,
    whole_numbers,
)
from pypoplar.popops.slicing.slice_options import SliceOptions
from pypoplar.popops.slicing.slice_plan import SlicePlan
from pypoplar.popops.slicing.slice_tensors import createSliceableTensor
from pypoplar.poputil.arguments import check_codelet, check_operands, element_type, shape_of
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


def _at_least_one(value: int) -> int:
    return whole_number("popops.GatherParams", "maxElementsPerTile", value, 1)


@public
@frozen
class GatherParams:
    """How `gather` and `createGatherInput` along an axis are spread over tiles.

    Parameters
    ----------
    maxElementsPerTile_:
        How many elements of the axis a tile has at most, 1 at least: of a longer axis pairs are gathered, and then one of each
        pair.

    Raises
    ------
    PoplibsError
        For less than 1.
    """

    maxElementsPerTile: int = field(default=65535, converter=_at_least_one, alias="maxElementsPerTile_")


@overload
def createGatherInput(
    graph: Graph,
    type: ElementType,
    operandShape: Iterable[int],
    axis: int,
    params: GatherParams = GatherParams(),
    debugContext: str | None = None,
) -> Tensor: ...
@overload
def createGatherInput(
    graph: Graph,
    type: ElementType,
    inputShape: Iterable[int],
    sliceSizes: Iterable[int],
    startIndexMap: Iterable[int],
    debugContext: str | None = None,
) -> Tensor: ...
@overloaded("popops.createGatherInput")
def createGatherInput(
    graph: Graph,
    type: ElementType,
    operandShape: Iterable[int] = (),
    axis: int | None = None,
    params: GatherParams | None = None,
    inputShape: Iterable[int] = (),
    sliceSizes: Iterable[int] = (),
    startIndexMap: Iterable[int] = (),
    debugContext: str | None = None,
) -> Tensor:
    """A new tensor of which `gather` moves what it takes alone.

    Parameters
    ----------
    type:
        The element type.
    operandShape:
        The shape, for a gather along an axis.
    axis:
        That axis.
    params:
        What `gather` will be called with.
    inputShape:
        The shape, for XLA's Gather.
    sliceSizes:
        A size for each dimension.
    startIndexMap:
        The dimensions that slices begin in at an index.

    Returns
    -------
    Tensor
        A variable of that shape, with tiles.

    Raises
    ------
    PoplibsError
        For another number of sizes than dimensions, and a dimension twice.
    PoplarIndexError
        For an axis or a dimension that the shape does not have.
    """
    call = "popops.createGatherInput"
    debug, type = below(debugContext, "gatherInput"), element_type(call, type)
    if axis is None:
        extents, sizes = shape_of(call, inputShape), whole_numbers(call, "sliceSizes", sliceSizes)
        dims = whole_numbers(call, "startIndexMap", startIndexMap)
        check_distinct(call, "startIndexMap", dims, len(extents))
        if len(sizes) != len(extents):
            raise PoplibsError(f"{call}: sliceSizes has a size for each dimension of {list(extents)}, got {list(sizes)}")
        return createSliceableTensor(graph, type, extents, sorted(dims), [sizes[dim] for dim in sorted(dims)], 0, debug)
    shape = shape_of(call, operandShape)
    along = _axis(call, whole_number(call, "axis", axis), shape)
    most = (params or GatherParams()).maxElementsPerTile
    if shape[along] <= most:
        return createSliceableTensor(graph, type, shape, [along], [1], 0, debug)
    even = shape[along] + shape[along] % 2
    pairs = [*shape[:along], even // 2, 2, *shape[along + 1 :]]
    whole = createGatherInput(graph, type, pairs, along, GatherParams(most), debugContext)
    return whole.reshapePartial(along, along + 2, [even]).slice(0, shape[along], along)


@overload
def gather(
    graph: Graph,
    input: Tensor,
    indices: Tensor,
    axis: int,
    prog: Sequence,
    params: GatherParams,
    debugContext: str | None = None,
    optionFlags: Options = None,
) -> Tensor: ...
@overload
def gather(
    graph: Graph,
    input: Tensor,
    indices: Tensor,
    indexVectorDim: int,
    offsetDims: Iterable[int],
    sliceSizes: Iterable[int],
    collapsedSliceDims: Iterable[int],
    startIndexMap: Iterable[int],
    prog: Sequence,
    debugContext: str | None = None,
    optionFlags: Options = None,
) -> Tensor: ...
@overloaded("popops.gather")
def gather(
    graph: Graph,
    input: Tensor,
    indices: Tensor,
    prog: Sequence,
    axis: int | None = None,
    params: GatherParams | None = None,
    indexVectorDim: int = 0,
    offsetDims: Iterable[int] = (),
    sliceSizes: Iterable[int] = (),
    collapsedSliceDims: Iterable[int] = (),
    startIndexMap: Iterable[int] = (),
    debugContext: str | None = None,
    optionFlags: Options = None,
) -> Tensor:
    """Slices of `input` at indices that are known when the program runs, as a new tensor; `prog` is extended.

    Along an axis as ``numpy.take``: the dimensions of the indices stand in its place. Or as XLA's Gather. A window that goes
    beyond the end goes on at the beginning; an index out of range gives zeros, but with the option ``remapOutOfBoundIndices``
    it is 0 in the dimensions where it is out of range.

    Parameters
    ----------
    input:
        What slices are taken of, of any type.
    indices:
        UNSIGNED_INT. Of XLA's form they hold vectors along `indexVectorDim`; element k of a vector is where the slice begins in
        dimension ``startIndexMap[k]``.
    axis:
        The dimension that is gathered along.
    params:
        How a long axis is spread.
    indexVectorDim:
        The dimension of the vectors; the rank of `indices` if they are numbers.
    offsetDims:
        Which dimensions of the result are those of a slice that are kept.
    sliceSizes:
        The size of a slice in each dimension of `input`.
    collapsedSliceDims:
        The dimensions of a slice, of size 1, that are left out.
    startIndexMap:
        A dimension of `input` for each element of a vector.
    optionFlags:
        As for `multiSlice`.

    Returns
    -------
    Tensor
        Of the type of `input`.

    Raises
    ------
    PoplibsError
        For indices that are not UNSIGNED_INT, a slice larger than `input`, and lists that do not fit the shapes.
    PoplarIndexError
        For an axis or a dimension that there is not.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Notes
    -----
    XLA's form is that of the operation Gather in "Operation Semantics" of OpenXLA.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, x, places):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"taken": popops.gather(graph, x, places, 1, prog, popops.GatherParams())}
    >>> arrays = {"x": np.int32([[1, 2, 3], [4, 5, 6]]), "places": np.uint32([2, 0])}
    >>> testing.run(compute, arrays)["taken"]
    array([[3, 1],
           [6, 4]], dtype=int32)
    """
    call = "popops.gather"
    debug = below(debugContext, "gather")
    check_operands(call, graph, input, indices)
    options = SliceOptions.read(call, optionFlags)
    check_offsets(call, indices, indices.shape(), "")
    check_codelet(call, graph, templateVertex("popops::MultiSlice", input.elementType()))
    if axis is not None:
        along = _axis(call, whole_number(call, "axis", axis), tuple(input.shape()))
        most = (params or GatherParams()).maxElementsPerTile
        if options.index.remaps and input.dim(along) > most:
            bounds = [input.dim(along)]
            indices = remapped(graph, indices.expand([indices.rank()]), bounds, prog, debug).squeeze([indices.rank()])
        return _take(graph, input, indices, along, most, prog, optionFlags, debug)
    lists = (offsetDims, sliceSizes, collapsedSliceDims, startIndexMap)
    form = GatherForm.read(call, input, indices, whole_number(call, "indexVectorDim", indexVectorDim), lists)
    return form.gathered(graph, input, indices, prog, optionFlags, debug)


def _axis(call: str, axis: int, shape: tuple[int, ...]) -> int:
    if axis >= len(shape):
        raise PoplarIndexError(f"{call}: axis {axis} is out of range for the shape {list(shape)}")
    return axis


def _take(
    graph: Graph, input: Tensor, indices: Tensor, axis: int, most: int, prog: Sequence, options: Options, debug: str
) -> Tensor:
    """``numpy.take``; of a long axis pairs are taken, and then one of each pair."""
    if input.dim(axis) <= most:
        shape, rank = input.shape(), indices.rank()
        sizes = [1 if dim == axis else size for dim, size in enumerate(shape)]
        offsets = [dim if dim < axis else dim + rank - 1 for dim in range(len(shape)) if dim != axis]
        form = GatherForm(rank, tuple(offsets), tuple(sizes), (axis,), (axis,))
        return form.gathered(graph, input, indices, prog, options, debug)
    if input.dim(axis) % 2:
        last = graph.addConstant(input.elementType(), [1 if dim == axis else size for dim, size in enumerate(input.shape())], 0)
        graph.setTileMapping(last, 0)
        input = concat([input, last], dimension=axis)
    half = map(graph, expr._1 >> expr.Const(1), [indices], prog, f"{debug}/half")
    odd = map(graph, (expr._1 & expr.Const(1)) != expr.Const(0), [indices], prog, f"{debug}/odd")
    assert isinstance(half, Tensor)
    assert isinstance(odd, Tensor)
    pairs = _take(graph, input.reshapePartial(axis, axis + 1, [input.dim(axis) // 2, 2]), half, axis, most, prog, options, debug)
    place = axis + indices.rank()
    first, second = (pairs.slice(number, number + 1, place).squeeze([place]) for number in (0, 1))
    chosen = odd.expand([odd.rank()] * (first.rank() - place))
    result = map(graph, expr.Select(expr._1, expr._2, expr._3), [second, first, chosen], prog, f"{debug}/select")
    assert isinstance(result, Tensor)
    return result


@frozen
class GatherForm:
    """XLA's description of a gather, whose parts fit each other."""

    vector: int  # the dimension of the indices along which a vector stands; their rank if they are numbers
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    collapsed: tuple[int, ...]
    starts: tuple[int, ...]

    @staticmethod
    def read(call: str, input: Tensor, indices: Tensor, vector: int, lists: tuple[Iterable[int], ...]) -> GatherForm:
        """`PoplibsError` or `PoplarIndexError` for what does not fit."""
        names = ("offsetDims", "sliceSizes", "collapsedSliceDims", "startIndexMap")
        offsets, sizes, collapsed, starts = (whole_numbers(call, name, given) for name, given in zip(names, lists, strict=True))
        rank = input.rank()
        if vector > indices.rank():
            raise PoplarIndexError(f"{call}: indexVectorDim {vector} is out of range for {indices!r}")
        batch = indices.rank() - (vector < indices.rank())
        check_distinct(call, "collapsedSliceDims", collapsed, rank)
        check_distinct(call, "startIndexMap", starts, rank)
        check_distinct(call, "offsetDims", offsets, batch + len(offsets))
        length = indices.dim(vector) if vector < indices.rank() else 1
        wrong = None
        if len(sizes) != rank:
            wrong = f"sliceSizes has a size for each dimension of {input!r}, got {list(sizes)}"
        elif any(size > extent for size, extent in zip(sizes, input.shape(), strict=True)):
            wrong = f"a slice of {list(sizes)} is larger than {input!r}"
        elif any(sizes[dim] != 1 for dim in collapsed):
            wrong = f"dimensions that are left out have size 1, got {list(sizes)} for {list(collapsed)}"
        elif len(offsets) != rank - len(collapsed):
            wrong = f"offsetDims has the {rank - len(collapsed)} dimensions of a slice that are kept, got {list(offsets)}"
        elif len(starts) != length:
            wrong = f"startIndexMap has a dimension for each of the {length} numbers of an index, got {list(starts)}"
        if wrong:
            raise PoplibsError(f"{call}: {wrong}")
        return GatherForm(vector, offsets, sizes, collapsed, starts)

    def gathered(self, graph: Graph, input: Tensor, indices: Tensor, prog: Sequence, options: Options, debug: str) -> Tensor:
        """The slices in XLA's order of dimensions."""
        rank = input.rank()
        vectors, batch = index_vectors(indices, self.vector)
        order = sorted(range(len(self.starts)), key=lambda place: self.starts[place])
        dims = [self.starts[place] for place in order]
        part = input.slice([0] * rank, [input.dim(dim) if dim in dims else self.sizes[dim] for dim in range(rank)])
        extent = read_extent("popops.gather", part.shape(), dims, [self.sizes[dim] for dim in dims])
        local = with_local_rows(graph, part, extent, prog, f"{debug}/input")
        if not dims:
            slices = local.expand([0]).broadcast(vectors.dim(0))
            found = graph.clone(slices, debug)
            prog.add(Copy(slices, found))
        else:
            ordered = concat([vectors.slice(place, place + 1, 1) for place in order], dimension=1)
            found = multiSlice(graph, local, ordered, dims, list(extent.sizes), prog, SlicePlan(), options, debug)
        kept = found.squeeze([dim + 1 for dim in self.collapsed])
        whole = kept.reshape([*batch, *kept.shape()[1:]])
        return _placed(whole, len(batch), self.offsets)


def _placed(tensor: Tensor, batch: int, offsets: tuple[int, ...]) -> Tensor:
    """A tensor ``[*batch, *slice]`` with the dimensions of the slice at `offsets`."""
    slices, others = iter(range(batch, tensor.rank())), iter(range(batch))
    return permuted(tensor, [next(slices) if dim in offsets else next(others) for dim in range(tensor.rank())])
