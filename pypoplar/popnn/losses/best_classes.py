"""The largest or smallest element of each row, and its place: `maxAndArgMax` and its kin."""

from __future__ import annotations

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.losses.class_pieces import ClassPieces, joined_width, plan_pieces
from pypoplar.popnn.row_vertices import add_row_vertices
from pypoplar.popops.elements.cast import cast
from pypoplar.popops.ordering.topk_call import SortOrder, TopKParams, topKWithPermutation
from pypoplar.poputil.arguments import check_call, check_codelet, check_flag, check_operands, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_on
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT

TYPES = (FLOAT, HALF, INT, UNSIGNED_INT)


@public
def argMax(graph: Graph, input: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """For each row of a matrix the place of its largest element, the first of several; `prog` is extended.

    What NaNs count for depends on where they stand.

    Parameters
    ----------
    input:
        FLOAT, HALF, INT or UNSIGNED_INT [rows, columns], with columns.

    Returns
    -------
    Tensor
        UNSIGNED_INT [rows].

    Raises
    ------
    PoplibsError
        For another type or shape.
    InvalidTileMapping
        If an element of `input` has no tile.

    Notes
    -----
    Long rows are cut into pieces, for several workers and tiles.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popnn, program, testing
    >>> def compute(graph, x):
    ...     popnn.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"places": popnn.argMax(graph, x, prog)}
    >>> testing.run(compute, {"x": np.float32([[3, 9, 4], [8, 1, 7]])})["places"]
    array([1, 0], dtype=uint32)
    """
    return _checked("popnn.argMax", graph, input, prog, "Max", debugContext)[1]


@public
def argMin(graph: Graph, input: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """For each row of a matrix the place of its smallest element, the first of several, as `argMax`; `prog` is extended.

    Parameters
    ----------
    input:
        FLOAT, HALF, INT or UNSIGNED_INT [rows, columns], with columns.

    Returns
    -------
    Tensor
        UNSIGNED_INT [rows].

    Raises
    ------
    PoplibsError
        For another type or shape.
    InvalidTileMapping
        If an element of `input` has no tile.
    """
    return _checked("popnn.argMin", graph, input, prog, "Min", debugContext)[1]


@public
def maxAndArgMax(graph: Graph, input: Tensor, prog: Sequence, debugContext: str | None = None) -> tuple[Tensor, Tensor]:
    """For each row of a matrix its largest element and the place of that, as `argMax`; `prog` is extended.

    Parameters
    ----------
    input:
        FLOAT, HALF, INT or UNSIGNED_INT [rows, columns], with columns.

    Returns
    -------
    tuple[Tensor, Tensor]
        The elements [rows], of the type of `input`, and their places, UNSIGNED_INT [rows].

    Raises
    ------
    PoplibsError
        For another type or shape.
    InvalidTileMapping
        If an element of `input` has no tile.
    """
    return _of_type("popnn.maxAndArgMax", graph, input, prog, "Max", debugContext)


@public
def minAndArgMin(graph: Graph, input: Tensor, prog: Sequence, debugContext: str | None = None) -> tuple[Tensor, Tensor]:
    """For each row of a matrix its smallest element and the place of that, as `argMin`; `prog` is extended.

    Parameters
    ----------
    input:
        FLOAT, HALF, INT or UNSIGNED_INT [rows, columns], with columns.

    Returns
    -------
    tuple[Tensor, Tensor]
        The elements [rows], of the type of `input`, and their places, UNSIGNED_INT [rows].

    Raises
    ------
    PoplibsError
        For another type or shape.
    InvalidTileMapping
        If an element of `input` has no tile.
    """
    return _of_type("popnn.minAndArgMin", graph, input, prog, "Min", debugContext)


@public
def topK(graph: Graph, input: Tensor, K: int, sort: bool, prog: Sequence, debugContext: str | None = None) -> tuple[Tensor, Tensor]:
    """The largest elements of each row of a matrix, and their places; `prog` is extended.

    `popops.topKWithPermutation` has more.

    Parameters
    ----------
    input:
        FLOAT, HALF, INT or UNSIGNED_INT [rows, columns], with columns.
    K:
        How many of each row.
    sort:
        Whether the largest comes first; else they stand in any order.

    Returns
    -------
    tuple[Tensor, Tensor]
        Elements and places, both [rows, 1, K], the latter UNSIGNED_INT.

    Raises
    ------
    PoplibsError
        For another type or shape, and a K beyond the columns.
    InvalidTileMapping
        If an element of `input` has no tile.
    """
    call = "popnn.topK"
    check_call(call, graph, prog, debugContext)
    _check_matrix(call, graph, input)
    check_flag(call, "sort", sort)
    count = whole_number(call, "K", K)
    if count > input.dim(1):
        raise PoplibsError(f"{call}: K is at most the {input.dim(1)} columns of {input!r}, got {count}")
    order = SortOrder.DESCENDING if sort else SortOrder.NONE
    values, places = topKWithPermutation(graph, prog, input, TopKParams(count, True, order), below(debugContext, "topK"))
    return values.expand([1]), places.expand([1])


def _of_type(call: str, graph: Graph, input: Tensor, prog: Sequence, which: str, debugContext: str | None) -> tuple[Tensor, Tensor]:
    values, places = _checked(call, graph, input, prog, which, debugContext)
    if values.elementType() is not input.elementType():
        values = cast(graph, values, input.elementType(), prog, below(debugContext, which.lower()))
    return values, places


def _checked(call: str, graph: Graph, input: Tensor, prog: Sequence, which: str, debugContext: str | None) -> tuple[Tensor, Tensor]:
    check_call(call, graph, prog, debugContext)
    _check_matrix(call, graph, input)
    return best_of_rows(graph, input, prog, which, below(debugContext, f"arg{which}"))


def _check_matrix(call: str, graph: Graph, input: Tensor) -> None:
    if not isinstance(input, Tensor):
        raise PoplarTypeError(f"{call} takes a tensor, got {input!r} for input")
    check_operands(call, graph, input)
    if input.rank() != 2 or input.dim(1) == 0 or input.elementType() not in TYPES:
        raise PoplibsError(f"{call} takes a matrix of FLOATs, HALFs, INTs or UNSIGNED_INTs with columns, got {input!r}")
    check_codelet(call, graph, "popnn::ReduceMaxClassGather<float,float>")


def best_of_rows(graph: Graph, matrix: Tensor, prog: Sequence, which: str, debug: str) -> tuple[Tensor, Tensor]:
    """The largest ("Max") or smallest ("Min") element of each row and its place; floats for halves."""
    type = matrix.elementType()
    wide = FLOAT if type is HALF else type
    target = graph.getTarget()
    pieces = plan_pieces(target, matrix.dim(0), matrix.dim(1), type.size)
    values = graph.addVariable(wide, [pieces.rows, pieces.count], below(debug, "values"))
    places = graph.addVariable(UNSIGNED_INT, [pieces.rows, pieces.count], below(debug, "places"))
    if pieces.rows == 0:
        return values.flatten(), places.flatten()
    cs = graph.addComputeSet(below(debug, "ReduceClass[0]"))
    vertex = templateVertex(f"popnn::Reduce{which}ClassGather", type, wide)
    for numbers in pieces.alike():
        cut = pieces.cut(matrix, numbers)
        results = {"value": pieces.chosen(values, numbers), "index": pieces.chosen(places, numbers)}
        groups = pieces.groups(graph, cut, target.getNumWorkerContexts())
        for result in results.values():
            place_on(graph, result, groups.tile_of_rows())
        add_row_vertices(graph, cs, vertex, groups, {"in": cut, **results}, numbers={"first": pieces.first_columns(numbers)})
    prog.add(Execute(cs))
    if pieces.whole:
        return values.flatten(), places.flatten()
    step = 1
    while values.dim(1) > 1:
        width = joined_width(target, pieces.rows, values.dim(1))
        values, places = _joined(graph, values, places, width, prog, which, below(debug, f"ReduceClass[{step}]"))
        step += 1
    return values.flatten(), places.flatten()


def _joined(
    graph: Graph, values: Tensor, places: Tensor, width: int, prog: Sequence, which: str, debug: str
) -> tuple[Tensor, Tensor]:
    """Of [rows, pieces] the best of each `width` pieces."""
    target = graph.getTarget()
    rows, count = values.shape()
    pieces = ClassPieces(rows, count, -(-count // width), width)
    best = graph.addVariable(values.elementType(), [rows, pieces.count], below(debug, "value"))
    place = graph.addVariable(UNSIGNED_INT, [rows, pieces.count], below(debug, "place"))
    cs = graph.addComputeSet(debug)
    vertex = templateVertex(f"popnn::Reduce{which}ClassSparse", values.elementType())
    for numbers in pieces.alike():
        cut = pieces.cut(values, numbers)
        results = {"value": pieces.chosen(best, numbers), "index": pieces.chosen(place, numbers)}
        groups = pieces.groups(graph, cut, target.getNumWorkerContexts())
        for result in results.values():
            place_on(graph, result, groups.tile_of_rows())
        add_row_vertices(graph, cs, vertex, groups, {"in": cut, "labels": pieces.cut(places, numbers), **results})
    prog.add(Execute(cs))
    return best, place
