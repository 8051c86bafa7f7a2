"""Sequences of rows, copied from one tensor into another."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.fill import zero
from pypoplar.popops.slicing.dynamic_vertices import columns_along, columns_of_tiles
from pypoplar.popops.slicing.local_rows import with_local_rows
from pypoplar.popops.slicing.slice_arguments import Extent, check_offsets, check_same_type, check_written
from pypoplar.popops.slicing.sliceable_layout import ATOM
from pypoplar.poputil.arguments import check_call, check_codelet, check_flag, check_operands
from pypoplar.poputil.copies import apart
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Sequence
from pypoplar.tracebacks import public


@public
def sequenceSlice(
    graph: Graph,
    tIn: Tensor,
    tOut: Tensor,
    tN: Tensor,
    tInOffset: Tensor,
    tOutOffset: Tensor,
    zeroUnused: bool,
    prog: Sequence,
    debugContext: str | None = None,
) -> None:
    """Copy ``tN[i]`` rows of `tIn`, from row ``tInOffset[i]`` on, to the rows of `tOut` from ``tOutOffset[i]`` on, for each i.

    What goes beyond the end of either is left out. A row should be written once. `prog` is extended.

    Parameters
    ----------
    tIn:
        What rows are taken from, of two dimensions at least.
    tOut:
        What they are written to, of the type of `tIn`. A row has as many elements in both.
    tN:
        How many rows each sequence has: UNSIGNED_INT [sequences].
    tInOffset:
        The first row of each in `tIn`: UNSIGNED_INT [sequences].
    tOutOffset:
        The first row of each in `tOut`: UNSIGNED_INT [sequences].
    zeroUnused:
        Whether the other rows of `tOut` become 0; else they stay.

    Raises
    ------
    PoplibsError
        For other shapes and types, and if `tOut` holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popops.sequenceSlice"
    check_call(call, graph, prog, debugContext)
    check_flag(call, "zeroUnused", zeroUnused)
    check_operands(call, graph, tIn=tIn, tOut=tOut, tN=tN, tInOffset=tInOffset, tOutOffset=tOutOffset)
    check_same_type(call, tIn=tIn, tOut=tOut)
    if tIn.rank() < 2 or tOut.rank() < 2:
        raise PoplibsError(f"{call}: tIn and tOut have two dimensions at least, got {tIn!r} and {tOut!r}")
    if tN.rank() != 1:
        raise PoplibsError(f"{call}: tN has one dimension, got {tN!r}")
    for numbers in (tN, tInOffset, tOutOffset):
        check_offsets(call, numbers, tN.shape(), "one for each sequence")
    source, target = (tensor.flatten(1) for tensor in (tIn, tOut))
    if source.dim(1) != target.dim(1):
        raise PoplibsError(f"{call}: rows have as many elements in both, got {tIn!r} and {tOut!r}")
    check_written(call, tOut)
    check_codelet(call, graph, templateVertex("popops::SequenceSlice", tIn.elementType()))
    debug = below(debugContext, "sequenceSlice")
    reads = [apart(graph, read, tOut, prog, f"{debug}/copy") for read in (source, tN, tInOffset, tOutOffset)]
    if zeroUnused and tOut.numElements():
        zero(graph, tOut, prog, f"{debug}/zero")
    if source.numElements() and target.numElements() and tN.numElements():
        _copy_sequences(graph, reads[0], target, reads[1:], prog, debug)


def _copy_sequences(graph: Graph, source: Tensor, target: Tensor, numbers: list[Tensor], prog: Sequence, debug: str) -> None:
    """Each tile copies the columns that it has of the larger of both."""
    from_source = source.numElements() > 2 * target.numElements()
    base, other = (source, target) if from_source else (target, source)
    local = with_local_rows(graph, base, Extent(tuple(base.shape()), (0,), (1,)), prog, f"{debug}/rearranged")
    columns, others = columns_along(graph, local, 0, other)
    count, first, place = numbers
    cs = graph.addComputeSet(debug)
    for held in columns_of_tiles(graph, columns.slice(0, 1, 1).flatten()):
        own, their = held.of(columns, held.regions), held.of(others, held.regions)
        width, tiles = own.dim(2), len(held.tiles)
        rows = (own, their) if from_source else (their, own)
        edges = {name: tensor.expand([0]).broadcast(tiles) for name, tensor in zip(_NUMBERS, (count, first, place), strict=True)}
        fields = {"numSrcElements": source.dim(0), "numDstElements": target.dim(0), "regionSize": width}
        whole = width * source.elementType().size % ATOM == 0
        every = {**edges, **fields, "srcT": rows[0].flatten(1), "dstT": rows[1].flatten(1), "divides": whole}
        graph.add_vertices(cs, templateVertex("popops::SequenceSlice", source.elementType()), every, held.tiles)
    prog.add(Execute(cs))
    if not from_source and local is not base:
        prog.add(Copy(local, target))


_NUMBERS = ("nElementsT", "srcOffsetT", "dstOffsetT")
