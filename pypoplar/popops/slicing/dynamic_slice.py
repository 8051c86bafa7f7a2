"""Slices at one offset for each sliced dimension, known when the program runs, and updates of such slices."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.graph.graph import Graph
from pypoplar.graph.mapping import TileToTensorMapping
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.slicing.dynamic_vertices import add_dynamic_vertices, columns_along
from pypoplar.popops.slicing.slice_arguments import (
    Extent,
    IndexOptions,
    Options,
    check_name,
    check_offsets,
    check_same_type,
    check_written,
    read_extent,
)
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands, check_own
from pypoplar.poputil.copies import apart
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Sequence
from pypoplar.tracebacks import public


@public
def dynamicSlice(
    graph: Graph,
    t: Tensor,
    offset: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """The slice of `t` at an offset that is known when the program runs, as a new tensor; `prog` is extended.

    It begins in dimension ``dims[i]`` at ``offset[i]`` and has ``sizes[i]`` elements there. A slice goes on at the beginning of
    a dimension after its end. At an offset out of range it holds zeros.

    Parameters
    ----------
    t:
        What is sliced, of any type.
    offset:
        UNSIGNED_INT ``[len(dims)]``.
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.
    options:
        Known are ``remapOutOfBoundIndices`` (false): an offset out of range is taken for 0; and ``paddingIndexUsed`` (false),
        which says that there may be such offsets and changes nothing here.

    Returns
    -------
    Tensor
        Of the rank of `t`, with ``sizes[i]`` elements in dimension ``dims[i]``; each element lies on the tile of the first
        slice's.

    Raises
    ------
    PoplibsError
        For other offsets, for `dims` and `sizes` of different lengths, a dimension twice, and a slice larger than its
        dimension.
    PoplarIndexError
        For a dimension that `t` does not have.
    InvalidTileMapping
        If an element of `t` or `offset` has no tile.

    Notes
    -----
    Dimensions are sliced one after another, that of which the smallest part is taken first, on the tiles that hold the
    elements: of a tensor of `createSliceableTensor` only the offset is exchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, x, first):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"part": popops.dynamicSlice(graph, x, first, [0], [2], prog)}
    >>> testing.run(compute, {"x": np.int32([10, 20, 30, 40]), "first": np.uint32([1])})["part"]
    array([20, 30], dtype=int32)
    """
    call = "popops.dynamicSlice"
    check_call(call, graph, prog, debugContext)
    extent, index = _read(call, graph, t, offset, dims, sizes, options)
    debug = below(debugContext, "dynamicSlice")
    return slice_at(graph, t, offset, extent, prog, index, debug)


@public
def createDynamicSliceOutput(
    graph: Graph,
    t: Tensor,
    offset: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """A new tensor for what `dynamicSlice` gives, as an output of `dynamicSliceWithOutput`; nothing is sliced.

    Parameters
    ----------
    t:
        What will be sliced, with tiles.
    offset:
        UNSIGNED_INT ``[len(dims)]``, which may be mapped later.
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.
    options:
        As for `dynamicSlice`.

    Returns
    -------
    Tensor
        Of the rank of `t`, with ``sizes[i]`` elements in dimension ``dims[i]``, mapped like the first slice.

    Raises
    ------
    PoplibsError
        As for `dynamicSlice`.
    PoplarIndexError
        For a dimension that `t` does not have.
    """
    call = "popops.createDynamicSliceOutput"
    check_name(call, debugContext)
    extent, _ = _read(call, graph, t, offset, dims, sizes, options, slices=False)
    return _like_slice(graph, t, extent, below(debugContext, "dynamicSlice"))


@public
def dynamicSliceWithOutput(
    graph: Graph,
    output: Tensor,
    t: Tensor,
    offset: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """`dynamicSlice` into a tensor that is given; `prog` is extended.

    Parameters
    ----------
    output:
        Of the slice's shape and the type of `t`; best one of `createDynamicSliceOutput`.
    t:
        What is sliced.
    offset:
        UNSIGNED_INT ``[len(dims)]``.
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.
    options:
        As for `dynamicSlice`.

    Raises
    ------
    PoplibsError
        As for `dynamicSlice`; for an `output` of another shape or type, or that holds an element twice or a constant.
    PoplarIndexError
        For a dimension that `t` does not have.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popops.dynamicSliceWithOutput"
    check_call(call, graph, prog, debugContext)
    extent, index = _read(call, graph, t, offset, dims, sizes, options)
    check_operands(call, graph, output=output)
    check_same_type(call, output=output, t=t)
    if output.shape() != extent.slice_shape:
        raise PoplibsError(f"{call}: the slice has the shape {extent.slice_shape}, which does not fit into {output!r}")
    check_written(call, output)
    debug = below(debugContext, "dynamicSlice")
    source, place = (apart(graph, read, output, prog, f"{debug}/copy") for read in (t, offset))
    slice_at(graph, source, place, extent, prog, index, debug, output)


@public
def getSliceMapping(graph: Graph, t: Tensor, dims: Iterable[int], sizes: Iterable[int]) -> TileToTensorMapping:
    """For each tile the intervals of the flattened slice of `t` that it would hold, as `dynamicSlice` maps it.

    Parameters
    ----------
    t:
        What is sliced, with tiles.
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.

    Returns
    -------
    TileToTensorMapping
        The mapping of a slice, as `Graph.getTileMapping` gives one.

    Raises
    ------
    PoplibsError
        For `dims` and `sizes` of different lengths, a dimension twice, and a slice larger than its dimension.
    PoplarIndexError
        For a dimension that `t` does not have.
    """
    call = "popops.getSliceMapping"
    check_operands(call, graph, t=t)
    extent = read_extent(call, t.shape(), dims, sizes)
    return graph.getTileMapping(t.slice([0] * t.rank(), extent.slice_shape))


@public
def dynamicUpdate(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offset: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """Put `s` in the place of the slice of `t` that `dynamicSlice` would give; `prog` is extended.

    Without `dims` it is put in the place of all of `t`. An offset out of range changes nothing.

    Parameters
    ----------
    t:
        What is written.
    s:
        The slice, of its shape and the type of `t`.
    offset:
        UNSIGNED_INT ``[len(dims)]``.
    dims:
        The dimensions that are sliced, each once.
    sizes:
        How many elements of each of `dims` a slice has.
    options:
        As for `dynamicSlice`.

    Raises
    ------
    PoplibsError
        As for `dynamicSlice`; for an `s` of another shape or type, and if `t` holds an element twice or a constant.
    PoplarIndexError
        For a dimension that `t` does not have.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popops.dynamicUpdate"
    check_call(call, graph, prog, debugContext)
    extent, index = _read(call, graph, t, offset, dims, sizes, options)
    check_operands(call, graph, s=s)
    check_same_type(call, t=t, s=s)
    if s.shape() != extent.slice_shape:
        raise PoplibsError(f"{call}: the slice of {t!r} has the shape {extent.slice_shape}, which {s!r} does not have")
    check_written(call, t)
    debug = below(debugContext, "dynamicUpdate")
    source, place = (apart(graph, read, t, prog, f"{debug}/copy") for read in (s, offset))
    update_at(graph, t, source, place, extent, prog, index, debug)


def slice_at(
    graph: Graph,
    t: Tensor,
    offset: Tensor,
    extent: Extent,
    prog: Sequence,
    index: IndexOptions,
    debug: str,
    output: Tensor | None = None,
) -> Tensor:
    """A slice by arguments that are checked, as a new tensor or in the one given."""
    if not extent.dims or 0 in extent.slice_shape:
        result = _like_slice(graph, t, extent, debug) if output is None else output
        if result.numElements():
            prog.add(Copy(t, result))
        return result
    part = t
    order = extent.best_order()
    for place in order:
        dim, name = extent.dims[place], f"{debug}_d{extent.dims[place]}"
        if output is not None and place == order[-1]:
            smaller = output
        else:
            smaller = graph.clone(part.slice(0, extent.sizes[place], dim), name)
        base, sub = columns_along(graph, part, dim, smaller)
        _execute(graph, "popops::DynamicSlice", offset[place], base, sub, prog, index, name)
        part = smaller
    return part


def update_at(
    graph: Graph, t: Tensor, s: Tensor, offset: Tensor, extent: Extent, prog: Sequence, index: IndexOptions, debug: str
) -> None:
    """An update by arguments that are checked: slices of all dimensions but one, which are updated from the inside."""
    if not extent.dims:
        prog.add(Copy(s, t))
        return
    if s.numElements() == 0:
        return
    order = extent.best_order()
    parts = [t]
    for place in order[:-1]:
        dim = extent.dims[place]
        single = Extent(tuple(parts[-1].shape()), (dim,), (extent.sizes[place],))
        parts.append(slice_at(graph, parts[-1], offset.slice(place, place + 1), single, prog, index, f"{debug}/slice"))
    inner = s
    for place, part in zip(reversed(order), reversed(parts), strict=True):
        base, sub = columns_along(graph, part, extent.dims[place], inner)
        _execute(graph, "popops::DynamicUpdateSlice", offset[place], base, sub, prog, index, f"{debug}_d{extent.dims[place]}")
        inner = part


def _execute(
    graph: Graph, vertex: str, offset: Tensor, base: Tensor, sub: Tensor, prog: Sequence, index: IndexOptions, name: str
) -> None:
    cs = graph.addComputeSet(name)
    add_dynamic_vertices(graph, cs, vertex, offset, base, sub, index.remaps)
    prog.add(Execute(cs))


def _like_slice(graph: Graph, t: Tensor, extent: Extent, name: str) -> Tensor:
    return graph.clone(t.slice([0] * t.rank(), extent.slice_shape), name)


def _read(
    call: str,
    graph: Graph,
    t: Tensor,
    offset: Tensor,
    dims: Iterable[int],
    sizes: Iterable[int],
    options: Options,
    slices: bool = True,
) -> tuple[Extent, IndexOptions]:
    """What all calls have; the offset of one that does not slice may be mapped later."""
    check_own(call, graph, t=t, offset=offset)
    check_operands(call, graph, t, *((offset,) if slices else ()))
    if slices:
        check_codelet(call, graph, templateVertex("popops::DynamicSlice1D", t.elementType()))
    extent = read_extent(call, t.shape(), dims, sizes)
    index = IndexOptions.read(call, options)
    if extent.dims:
        check_offsets(call, offset, [len(extent.dims)], "one for each of dims")
    return extent, index
