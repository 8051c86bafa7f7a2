"""`scatter`: a tensor with slices updated at many places, as XLA's Scatter does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import overload

from attrs import frozen

from pypoplar.errors import PoplarIndexError, PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.loops.counted_loops import countedLoop
from pypoplar.popops.slicing.blocks import permuted
from pypoplar.popops.slicing.dynamic_slice import slice_at, update_at
from pypoplar.popops.slicing.index_vectors import check_distinct, index_vectors
from pypoplar.popops.slicing.multi_update import multiUpdate
from pypoplar.popops.slicing.slice_arguments import (
    Extent,
    IndexOptions,
    Options,
    check_offsets,
    check_same_type,
    check_written,
    whole_number,
    whole_numbers,
)
from pypoplar.popops.slicing.slice_plan import SlicePlan
from pypoplar.poputil.arguments import check_codelet, check_operands
from pypoplar.poputil.copies import apart
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Sequence

UpdateComputationFunc = Callable[[Graph, Tensor, Tensor, Sequence], Tensor]


@overload
def scatter(
    graph: Graph,
    operand: Tensor,
    indices: Tensor,
    updates: Tensor,
    indexVectorDim: int,
    updateWindowDims: Iterable[int],
    insertWindowDims: Iterable[int],
    scatterDimsToOperandDims: Iterable[int],
    prog: Sequence,
    debugContext: str | None = None,
    optionFlags: Options = None,
) -> None: ...
@overload
def scatter(
    graph: Graph,
    operand: Tensor,
    indices: Tensor,
    updates: Tensor,
    indexVectorDim: int,
    updateWindowDims: Iterable[int],
    insertWindowDims: Iterable[int],
    scatterDimsToOperandDims: Iterable[int],
    updateComputation: Callable[[Graph, Tensor, Tensor, Sequence], Tensor],
    prog: Sequence,
    debugContext: str | None = None,
    optionFlags: Options = None,
) -> None: ...
@overloaded("popops.scatter")
def scatter(
    graph: Graph,
    operand: Tensor,
    indices: Tensor,
    updates: Tensor,
    indexVectorDim: int,
    updateWindowDims: Iterable[int],
    insertWindowDims: Iterable[int],
    scatterDimsToOperandDims: Iterable[int],
    prog: Sequence,
    updateComputation: UpdateComputationFunc | None = None,
    debugContext: str | None = None,
    optionFlags: Options = None,
) -> None:
    """Put slices of `updates` into `operand` at indices that are known when the program runs, one after the other.

    That is XLA's Scatter. An index out of range changes nothing. `prog` is extended.

    Parameters
    ----------
    operand:
        What is written.
    indices:
        UNSIGNED_INT with vectors along `indexVectorDim`; element k of a vector is where a slice begins in dimension
        ``scatterDimsToOperandDims[k]`` of the operand.
    updates:
        The slices, of the type of `operand`: dimensions that are no windows are those of the indices.
    indexVectorDim:
        The dimension of the vectors; the rank of `indices` if they are numbers.
    updateWindowDims:
        The dimensions of `updates` that are those of a slice.
    insertWindowDims:
        Where dimensions of size 1 are put into a slice, so that it has the rank of the operand.
    scatterDimsToOperandDims:
        A dimension of the operand for each element of a vector.
    updateComputation:
        A function of the graph, the slice that is there, the slice of `updates` and a Sequence that it extends; what it
        returns, a tensor of the shape and type of a slice, is put in the place. It is called once, for the body of a loop.
    optionFlags:
        As for `dynamicSlice`.

    Raises
    ------
    PoplibsError
        For indices that are not UNSIGNED_INT, two types, lists that do not fit the shapes, a slice larger than the operand, an
        operand that holds an element twice or a constant, and a result of `updateComputation` of another shape or type.
    PoplarIndexError
        For a dimension that there is not.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Notes
    -----
    The form is that of the operation Scatter in "Operation Semantics" of OpenXLA.
    """
    call = "popops.scatter"
    debug = below(debugContext, "scatter")
    form = ScatterForm.read(
        call,
        graph,
        (operand, indices, updates),
        whole_number(call, "indexVectorDim", indexVectorDim),
        (updateWindowDims, insertWindowDims, scatterDimsToOperandDims),
    )
    index = IndexOptions.read(call, optionFlags)
    if form.slices.numElements() == 0:
        return
    form = form.apart(graph, prog, debug)
    if updateComputation is None and form.is_rows:
        (dim,) = form.extent.dims
        multiUpdate(graph, form.operand, form.slices, form.vectors, [dim], [1], prog, SlicePlan(), optionFlags, debug)
        return
    prog.add(countedLoop(graph, form.slices.dim(0), form.body(graph, index, updateComputation, debug), debug))


@frozen
class ScatterForm:
    """What a scatter updates, the vectors of its indices, and the slices in the order of these."""

    operand: Tensor  # the part that slices reach from the beginning of the dimensions without an index
    vectors: Tensor  # [slices, length]
    slices: Tensor  # [slices, *shape of a slice]
    extent: Extent

    @property
    def is_rows(self) -> bool:
        """Whether slices are single elements of one dimension."""
        return self.extent.sizes == (1,)

    @staticmethod
    def read(
        call: str, graph: Graph, tensors: tuple[Tensor, Tensor, Tensor], vector: int, lists: tuple[Iterable[int], ...]
    ) -> ScatterForm:
        """`PoplibsError` or `PoplarIndexError` for what does not fit."""
        operand, indices, updates = tensors
        names = ("updateWindowDims", "insertWindowDims", "scatterDimsToOperandDims")
        windows, inserted, starts = (whole_numbers(call, name, given) for name, given in zip(names, lists, strict=True))
        check_operands(call, graph, operand, indices, updates)
        check_same_type(call, operand=operand, updates=updates)
        check_offsets(call, indices, indices.shape(), "")
        check_written(call, operand)
        check_codelet(call, graph, templateVertex("popops::DynamicSlice1D", operand.elementType()))
        if vector > indices.rank():
            raise PoplarIndexError(f"{call}: indexVectorDim {vector} is out of range for {indices!r}")
        check_distinct(call, "updateWindowDims", windows, updates.rank())
        check_distinct(call, "insertWindowDims", inserted, operand.rank())
        check_distinct(call, "scatterDimsToOperandDims", starts, operand.rank())
        vectors, batch = index_vectors(indices, vector)
        if vectors.dim(1) != len(starts):
            raise PoplibsError(
                f"{call}: scatterDimsToOperandDims has the {vectors.dim(1)} dimensions of an index, got {list(starts)}"
            )
        if len(windows) + len(inserted) != operand.rank():
            given = f"{list(windows)} and {list(inserted)}"
            raise PoplibsError(f"{call}: updateWindowDims and insertWindowDims are the dimensions of {operand!r}, got {given}")
        others = [dim for dim in range(updates.rank()) if dim not in windows]
        if [updates.dim(dim) for dim in others] != batch:
            raise PoplibsError(f"{call}: the dimensions of {updates!r} that are no windows are those of the indices, {batch}")
        rows = permuted(updates, [*others, *sorted(windows)]).reshape([prod(batch), *(updates.dim(dim) for dim in sorted(windows))])
        for dim in sorted(inserted):
            rows = rows.expand([dim + 1])
        shape = rows.shape()[1:]
        if any(size > extent for size, extent in zip(shape, operand.shape(), strict=True)):
            raise PoplibsError(f"{call}: a slice of {shape} is larger than {operand!r}")
        order = sorted(range(len(starts)), key=lambda place: starts[place])
        dims = tuple(starts[place] for place in order)
        part = operand.slice([0] * operand.rank(), [operand.dim(dim) if dim in dims else size for dim, size in enumerate(shape)])
        extent = Extent(tuple(part.shape()), dims, tuple(shape[dim] for dim in dims))
        sorted_vectors = concat([vectors.slice(place, place + 1, 1) for place in order], dimension=1) if order else vectors
        return ScatterForm(part, sorted_vectors, rows, extent)

    def apart(self, graph: Graph, prog: Sequence, debug: str) -> ScatterForm:
        """The same with copies of indices and updates that are parts of the operand."""
        vectors, slices = (apart(graph, read, self.operand, prog, f"{debug}/copy") for read in (self.vectors, self.slices))
        return ScatterForm(self.operand, vectors, slices, self.extent)

    def body(
        self, graph: Graph, index: IndexOptions, computation: UpdateComputationFunc | None, debug: str
    ) -> Callable[[Tensor], Sequence]:
        """What a round of the loop does with one slice."""
        plain = IndexOptions(False, False)
        rows, vectors = (Extent(tuple(tensor.shape()), (0,), (1,)) for tensor in (self.slices, self.vectors))

        def round(number: Tensor) -> Sequence:
            steps = Sequence()
            place = slice_at(graph, self.vectors, number, vectors, steps, plain, f"{debug}/index").squeeze([0])
            row = slice_at(graph, self.slices, number, rows, steps, plain, f"{debug}/update").squeeze([0])
            if computation is not None:
                there = slice_at(graph, self.operand, place, self.extent, steps, index, f"{debug}/slice")
                row = _computed(computation(graph, there, row, steps), row)
            update_at(graph, self.operand, row, place, self.extent, steps, index, f"{debug}/put")
            return steps

        return round


def _computed(result: object, like: Tensor) -> Tensor:
    """What an update computation gave, of the shape and type of a slice."""
    if not isinstance(result, Tensor):
        raise PoplarTypeError(f"popops.scatter: updateComputation returns a tensor, got {result!r}")
    if result.shape() != like.shape() or result.elementType() is not like.elementType():
        raise PoplibsError(f"popops.scatter: updateComputation gives {like.elementType()!r} {like.shape()}, got {result!r}")
    return result
