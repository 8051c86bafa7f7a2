"""Transposes of many matrices, on the tiles where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pypoplar.arrays.intervals import Interval
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.poputil.arguments import (
    check_codelet,
    check_compute_set,
    check_debug,
    check_graph,
    check_operands,
    check_own,
    element_type,
    whole_number,
)
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.interval_lists import bounds, entries
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.target import Target
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, SHORT, UNSIGNED_INT, UNSIGNED_SHORT, ElementType

TRANSPOSABLE = (HALF, FLOAT, UNSIGNED_SHORT, UNSIGNED_INT, SHORT, INT)
GRAIN = 4  # rows and columns of the blocks of 16-bit elements that are transposed at once
MOST_TRANSPOSITIONS = 2**16 - 1
MAX_STRIDE = 1 << 9  # of the vendor's assembler, which its planners heed
RPT_COUNT_MAX = 4095


@public
def canUseFastTranspose(target: Target, type: ElementType, numRows: int, numColumns: int, numTranspositions: int) -> bool:
    """Whether the vendor's fast transposes take matrices: of 16-bit elements, in blocks of 4 by 4.

    Parameters
    ----------
    target:
        The target; all give the same answer.
    type:
        The element type.
    numRows, numColumns:
        The size of a matrix.
    numTranspositions:
        How many matrices a tile has.

    Returns
    -------
    bool
        Also whether strides and counts of the vendor's assembler go so far.

    Raises
    ------
    PoplarTypeError
        For what is no target or no whole number.
    """
    call = "popops.rearrange.canUseFastTranspose"
    if not isinstance(target, Target):
        raise PoplarTypeError(f"{call}: the first argument is a target, got {target!r}; write graph.getTarget()")
    numbers = {"numRows": numRows, "numColumns": numColumns, "numTranspositions": numTranspositions}
    numRows, numColumns, numTranspositions = (whole_number(call, name, number) for name, number in numbers.items())
    if (
        element_type(call, type).dtype.itemsize != 2
        or numTranspositions > MOST_TRANSPOSITIONS
        or numRows % GRAIN
        or numColumns % GRAIN
    ):
        return False
    if (numRows, numColumns) == (GRAIN, GRAIN):
        return numTranspositions - 2 <= RPT_COUNT_MAX
    longer = numRows if numColumns == GRAIN else numColumns
    if longer // GRAIN - 2 > RPT_COUNT_MAX or negative_stride(longer) > MAX_STRIDE:
        return False
    return numColumns == GRAIN or numRows // GRAIN < MAX_STRIDE


def negative_stride(dimension: int) -> int:
    """The step back of the vendor's assembler from one column of blocks to the next."""
    return dimension // GRAIN * 3 - 1


@public
def getMinimumRegroupGrainSize(type: ElementType) -> int:
    """The smallest groups between which elements of a type are transposed well.

    Parameters
    ----------
    type:
        The element type.

    Returns
    -------
    int
        4 for 16 bits, 2 for 32, 1 for others.
    """
    return {2: 4, 4: 2}.get(element_type("popops.rearrange.getMinimumRegroupGrainSize", type).dtype.itemsize, 1)


@public
def addTransposeVertices(
    graph: Graph,
    cs: ComputeSet,
    dType: ElementType,
    rows: int,
    cols: int,
    mapping: Iterable[Iterable[Interval]],
    getInOut: Callable[[int], tuple[Tensor, Tensor]],
    debugContext: str | None = None,
) -> None:
    """Add vertices that transpose matrices, each on a tile that the caller chooses.

    Parameters
    ----------
    cs:
        The compute set that the vertices go into.
    dType:
        The element type, of 16 or 32 bits.
    rows, cols:
        The size of a matrix.
    mapping:
        For each tile intervals of the numbers of its matrices.
    getInOut:
        A function of such a number that gives a matrix and where its transpose goes, both flat. The latter is mapped to the
        tile.

    Raises
    ------
    PoplibsError
        For other types, for more lists than tiles, and for tensors of another size or type.
    PoplarTypeError
        If `getInOut` is no function, or gives no two tensors.
    """
    call = "popops.rearrange.addTransposeVertices"
    check_graph(call, graph)
    _check_names(call, graph, cs, debugContext)
    _check_type(call, element_type(call, dType))
    size = whole_number(call, "rows", rows, 1) * whole_number(call, "cols", cols, 1)
    if not callable(getInOut):
        raise PoplarTypeError(f"{call}: getInOut is a function of a number that gives two tensors, got {getInOut!r}")
    numbers = [
        [number for interval in zip(*bounds(call, intervals), strict=True) for number in range(*interval)]
        for intervals in entries(call, mapping)
    ]
    tiles = graph.getTarget().getNumTiles()
    if len(numbers) > tiles:
        raise PoplibsError(f"{call}: mapping has a list for each of the {tiles} tiles at most, got {len(numbers)}")
    matrices = [[_two_ends(call, graph, getInOut(number), size, dType) for number in several] for several in numbers]
    for tile, pairs in enumerate(matrices):
        if pairs:
            ends = [concat([tensor.flatten() for tensor in several]) for several in zip(*pairs, strict=True)]
            _add_vertex(graph, cs, tile, rows, cols, *ends)


def _two_ends(call: str, graph: Graph, pair: object, size: int, type: ElementType) -> tuple[Tensor, Tensor]:
    """What `getInOut` gave: a matrix, and where its transpose goes."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise PoplarTypeError(f"{call}: getInOut gives two tensors, got {pair!r}")
    check_own(call, graph, *pair)
    for tensor in pair:
        if tensor.numElements() != size or tensor.elementType() is not type:
            raise PoplibsError(f"{call}: getInOut gives two tensors of {size} elements of {type!r}, got {tensor!r}")
    return pair[0], pair[1]


@public
def partialTranspose(graph: Graph, in_: Tensor, cs: ComputeSet, debugContext: str | None = None) -> Tensor:
    """A new tensor with the last two dimensions of `in_` swapped.

    Each matrix is transposed on the tile that has its first element.

    Parameters
    ----------
    in_:
        Two dimensions at least, of elements of 16 or 32 bits.
    cs:
        The compute set that the vertices go into; the caller executes it.

    Returns
    -------
    Tensor
        ``[..., columns, rows]`` of the type of `in_`.

    Raises
    ------
    PoplibsError
        For a vector, and for other types.
    InvalidTileMapping
        If an element of `in_` has no tile.
    """
    call = "popops.rearrange.partialTranspose"
    check_own(call, graph, in_)
    _check_names(call, graph, cs, debugContext)
    _check_type(call, in_.elementType())
    check_operands(call, graph, in_)
    if in_.rank() < 2:
        raise PoplibsError(f"{call} swaps the last two dimensions, got {in_!r}")
    *outer, rows, columns = in_.shape()
    if in_.numElements() == 0:
        return graph.addVariable(in_.elementType(), [*outer, columns, rows], below(debugContext, "partialTranspose"))
    matrices = in_.reshape([in_.numElements() // (rows * columns), rows * columns])
    mapping = graph.getTileMapping(matrices[:, 0])
    out = graph.addVariable(in_.elementType(), [*outer, columns, rows], below(debugContext, "partialTranspose"))
    transposed = out.reshape(matrices.shape())
    for tile, intervals in enumerate(mapping):
        if intervals:
            ends = [concat([t.slice(interval).flatten() for interval in intervals]) for t in (matrices, transposed)]
            _add_vertex(graph, cs, tile, rows, columns, *ends)
    return out


def _check_names(call: str, graph: Graph, cs: object, debugContext: object) -> None:
    check_debug(call, debugContext)
    if not isinstance(cs, ComputeSet):
        raise PoplarTypeError(f"{call}: vertices go into a compute set, got {cs!r}; graph.addComputeSet makes one")
    check_compute_set(call, graph, cs)
    check_codelet(call, graph, templateVertex("popops::Transpose1D", FLOAT))


def _check_type(call: str, type: ElementType) -> None:
    if type not in TRANSPOSABLE:
        raise PoplibsError(f"{call} transposes elements of 16 and 32 bits, got {type!r}")


def _add_vertex(graph: Graph, cs: ComputeSet, tile: int, rows: int, columns: int, source: Tensor, destination: Tensor) -> None:
    fields: dict[str, Any] = {"src": source, "dst": destination, "numSrcRows": rows, "numSrcColumns": columns}
    vertex = graph.addVertex(cs, templateVertex("popops::Transpose1D", source.elementType()), fields)
    graph.setTileMapping(vertex, tile)
    graph.setTileMapping(destination, tile)
