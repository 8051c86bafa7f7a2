"""Many slices of a tensor at once, at offsets that are known when the program runs, or when it is built."""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from pypoplar.errors import PoplarIndexError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.loops.counted_loops import countedLoop
from pypoplar.popops.slicing.dynamic_slice import slice_at, update_at
from pypoplar.popops.slicing.multi_arguments import MultiCall
from pypoplar.popops.slicing.multi_vertices import UnplannedTable, spread_table
from pypoplar.popops.slicing.planned_vertices import PlannedPass
from pypoplar.popops.slicing.slice_arguments import Extent, IndexOptions, Options, whole_number, whole_numbers
from pypoplar.popops.slicing.slice_options import SliceOptions
from pypoplar.popops.slicing.slice_plan import SlicePlan
from pypoplar.popops.slicing.slice_tensors import slices_tensor
from pypoplar.poputil.arguments import check_call, check_operands
from pypoplar.poputil.copies import duplicate
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public

FEW = 3  # slices that are taken one by one


@overload
def multiSlice(
    graph: Graph,
    t: Tensor,
    offsets: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> Tensor: ...
@overload
def multiSlice(
    graph: Graph,
    t: Tensor,
    offsets: Iterable[int],
    dim: int,
    prog: Sequence,
    debugContext: str | None = None,
    optionFlags: Options = None,
) -> Tensor: ...
@overloaded("popops.multiSlice")
def multiSlice(
    graph: Graph,
    t: Tensor,
    offsets: Tensor | Iterable[int],
    prog: Sequence,
    dims: Iterable[int] = (),
    sizes: Iterable[int] = (),
    plan: SlicePlan | None = None,
    options: Options = None,
    dim: int = 0,
    debugContext: str | None = None,
    optionFlags: Options = None,
) -> Tensor:
    """Slices of `t`, one for each row of `offsets`, as a new tensor; `prog` is extended.

    A slice at an offset out of range holds zeros.

    Parameters
    ----------
    t:
        What is sliced.
    offsets:
        UNSIGNED_INT ``[lookups, len(dims)]``; or whole numbers known now, the indices of one dimension `dim`.
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.
    plan:
        A plan of `embedding.plan`, which is for slices of size 1 of dimension 0 of the matrix that it was made for; or the
        empty ``SlicePlan()``: `t` is taken as it is mapped.
    options:
        Those of `embedding.plan`, and

        - ``remapOutOfBoundIndices`` (false): an offset out of range is taken for 0.
        - ``validateIndices`` (false): at an offset out of range the run ends with an error.
        - ``paddingIndexUsed`` (false): the size of the dimension may be an offset, whose slice is zeros.
    dim:
        The dimension that numbers are indices of.
    optionFlags:
        As `options`, for numbers.

    Returns
    -------
    Tensor
        ``[lookups, *shape of a slice]``, of the type of `t`.

    Raises
    ------
    PoplibsError
        For other offsets, `dims` and `sizes` that do not fit, and a plan for another shape, or for sorted indices without the
        option ``indicesAreSorted``.
    PoplarIndexError
        For numbers out of range, and a dimension that `t` does not have.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Notes
    -----
    Without a plan, more than three slices of size 1 of one dimension are a single superstep of lookups; other slices are taken
    one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, table, rows):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     found = popops.multiSlice(graph, table, rows, [0], [1], prog, popops.SlicePlan(), {})
    ...     return prog, {"found": found}
    >>> arrays = {"table": np.float32([[1, 2], [3, 4], [5, 6]]), "rows": np.uint32([[2], [0], [2]])}
    >>> testing.run(compute, arrays)["found"].tolist()
    [[[5.0, 6.0]], [[1.0, 2.0]], [[5.0, 6.0]]]
    """
    call = "popops.multiSlice"
    debug = below(debugContext, "multiSlice")
    if not isinstance(offsets, Tensor):
        return _static(
            call, graph, t, whole_numbers(call, "offsets", offsets), whole_number(call, "dim", dim), prog, optionFlags, debug
        )
    what = MultiCall.read(call, graph, t, offsets, dims, sizes, plan or SlicePlan(), options, grouped=False)
    return _look_up(what, prog, debug).squeeze([0])


@public
def groupedMultiSlice(
    graph: Graph,
    t: Tensor,
    offsets: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    plan: SlicePlan,
    options: Options,
    debugContext: str | None = None,
) -> Tensor:
    """`multiSlice` of each group of `t` with offsets of its own, by a plan for groups; `prog` is extended.

    Parameters
    ----------
    t:
        ``[groups, *shape]``.
    offsets:
        UNSIGNED_INT ``[groups, lookups, 1]``.
    dims:
        The dimensions of a group that are sliced: [0].
    sizes:
        How many elements of them: [1].
    plan:
        A plan of `embedding.plan` for as many groups.
    options:
        As for `multiSlice`.

    Returns
    -------
    Tensor
        ``[groups, lookups, *shape of a slice]``, of the type of `t`.

    Raises
    ------
    PoplibsError
        As for `multiSlice`; for the empty plan, and one for another number of groups.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popops.groupedMultiSlice"
    check_call(call, graph, prog, debugContext)
    what = MultiCall.read(call, graph, t, offsets, dims, sizes, plan, options, grouped=True)
    return _look_up(what, prog, below(debugContext, "groupedMultiSlice"))


def _look_up(what: MultiCall, prog: Sequence, debug: str) -> Tensor:
    """``[groups, lookups, *shape of a slice]``."""
    graph, type, extent = what.graph, what.t.elementType(), what.extent
    if what.layout is not None:
        slices = what.layout.slices(type, what.lookups, debug)
        what = what.in_range(prog, debug, everything=True)
        if slices.numElements():
            for part in PlannedPass.all_of(what.layout, what.t, what.offsets, slices, debug):  # type: ignore[arg-type]
                part.look_up(prog)
        return slices
    slices = slices_tensor(graph, type, extent, what.lookups, debug)
    if slices.numElements():
        fast = what.is_plain and what.lookups > FEW
        what = what.in_range(prog, debug, everything=fast)
        if fast:
            table = spread_table(graph, what.t[0], extent.dims[0], what.options.memory, prog, debug)
            UnplannedTable.of(graph, table, slices, what.offsets, extent.dims[0]).look_up(prog, debug)
        elif what.lookups <= FEW:
            for number in range(what.lookups):
                name = f"{debug}/{number}"
                slice_at(graph, what.t[0], what.offsets[0][number], extent, prog, what.options.index, name, slices[number])
        else:
            _one_by_one(what, slices, prog, debug)
    return slices.expand([0])


def _one_by_one(what: MultiCall, slices: Tensor, prog: Sequence, debug: str) -> None:
    """A loop that takes one slice in each round."""
    graph, offsets = what.graph, what.offsets[0]
    rows, results = Extent(tuple(offsets.shape()), (0,), (1,)), Extent(tuple(slices.shape()), (0,), (1,))
    index = IndexOptions(False, False)

    def body(number: Tensor) -> Sequence:
        steps = Sequence()
        offset = slice_at(graph, offsets, number, rows, steps, index, f"{debug}/index").squeeze([0])
        slice = slice_at(graph, what.t[0], offset, what.extent, steps, what.options.index, f"{debug}/slice")
        update_at(graph, slices, slice.expand([0]), number, results, steps, index, f"{debug}/update")
        return steps

    prog.add(countedLoop(graph, what.lookups, body, f"{debug}/loop"))


def static_offsets(call: str, t: Tensor, offsets: tuple[int, ...], dim: int, options: SliceOptions) -> list[int]:
    """Offsets that are known now: 0 for those that are remapped, the dimension's size for those of padding."""
    if dim >= t.rank():
        raise PoplarIndexError(f"{call}: dimension {dim} is out of range for {t!r}")
    size = t.dim(dim)
    chosen = [0 if offset >= size and options.index.remaps else offset for offset in offsets]
    for offset in chosen:
        if offset >= size + options.index.pads or (offset >= size and options.index.remaps):
            raise PoplarIndexError(f"{call}: offset {offset} is out of range for dimension {dim} of {t!r}")
    return chosen


def _static(
    call: str, graph: Graph, t: Tensor, offsets: tuple[int, ...], dim: int, prog: Sequence, options: Options, debug: str
) -> Tensor:
    """Slices of size 1 at offsets that are known now, which are copied."""
    check_operands(call, graph, t)
    chosen = static_offsets(call, t, offsets, dim, SliceOptions.read(call, options))
    shape = [1 if place == dim else size for place, size in enumerate(t.shape())]
    if not chosen:
        return graph.addVariable(t.elementType(), [0, *shape], debug)
    padding = None
    if t.dim(dim) in chosen:
        padding = graph.addConstant(t.elementType(), shape, 0, f"{debug}/padding")
        mapTensorLinearly(graph, padding)
    parts = [padding if padding is not None and offset == t.dim(dim) else t.slice(offset, offset + 1, dim) for offset in chosen]
    every = concat([part.expand([0]) for part in parts])
    if padding is None:
        return duplicate(graph, every, prog, debug)
    result = graph.addVariable(t.elementType(), every.shape(), debug)
    mapTensorLinearly(graph, result)
    prog.add(Copy(every, result))
    return result
