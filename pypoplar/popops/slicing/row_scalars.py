"""One number of each row of a matrix, at indices that are known when the program runs: taken, or lessened by 1."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.slicing.slice_arguments import check_offsets, check_written
from pypoplar.popops.slicing.sliceable_layout import ATOM
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands
from pypoplar.poputil.copies import apart
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF

MANY_PIECES = 2  # for each row and tile


@frozen
class RowPiece:
    """Columns of a row that lie on one tile."""

    row: int
    columns: Interval


@public
def selectScalarFromRows(graph: Graph, params: Tensor, indices: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """``params[i, indices[i]]`` for each row i of a matrix, as a new tensor; `prog` is extended.

    An index beyond the row gives NaN, but 0xFFFFFFFF, `MASKED_LABEL_CODE`, gives 0.

    Parameters
    ----------
    params:
        FLOAT or HALF [rows, columns], one column at least.
    indices:
        UNSIGNED_INT [rows].

    Returns
    -------
    Tensor
        [rows], of the type of `params`.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popops.selectScalarFromRows"
    _check(call, graph, params, indices, prog, debugContext)
    debug = below(debugContext, "selectScalarFromRows")
    params = _in_rows(graph, params, prog, debug)
    result = graph.addVariable(params.elementType(), [params.dim(0)], debug)
    held = _pieces_of_tiles(graph, params)
    parts: list[list[Tensor]] = [[] for _ in range(params.dim(0))]
    counts = [0] * params.dim(0)
    for pieces in held.values():
        for piece in pieces:
            counts[piece.row] += 1
    whole = all(count == 1 for count in counts)
    cs = graph.addComputeSet(debug)
    for tile, pieces in held.items():
        output = graph.addVariable(params.elementType(), [len(pieces)], f"{debug}/partials")
        graph.setTileMapping(output, tile)
        for place, piece in enumerate(pieces):
            parts[piece.row].append(output.slice(place, place + 1))
        fields = {**_fields(params, indices, pieces), "output": output}
        vertex = graph.addVertex(cs, templateVertex("popops::SelectFromIntervals", params.elementType()), fields)
        graph.setTileMapping(vertex, tile)
    prog.add(Execute(cs))
    if whole and parts:
        return concat([part for row in parts for part in row])
    mapTensorLinearly(graph, result)
    _add_up(graph, parts, result, prog, f"{debug}/sum")
    return result


def _add_up(graph: Graph, parts: list[list[Tensor]], result: Tensor, prog: Sequence, debug: str) -> None:
    """Each element is the sum of its parts."""
    cs = graph.addComputeSet(debug)
    for tile, regions in enumerate(graph.getTileMapping(result)):
        rows = [row for region in regions for row in range(region.begin(), region.end())]
        if rows:
            fields = {"pieces": [concat(parts[row]) for row in rows], "output": concat(result.slices(regions))}
            vertex = graph.addVertex(cs, templateVertex("popops::SumPieces", result.elementType()), fields)
            graph.setTileMapping(vertex, tile)
    prog.add(Execute(cs))


@public
def updateScalarInRows(graph: Graph, params: Tensor, indices: Tensor, program: Sequence, debugContext: str | None = None) -> None:
    """Take 1 from ``params[i, indices[i]]`` in each row i of a matrix.

    An index beyond the row makes the whole row NaN; a row whose index is 0xFFFFFFFF, `MASKED_LABEL_CODE`, stays as it is.

    Parameters
    ----------
    params:
        FLOAT or HALF [rows, columns], one column at least, which is written.
    indices:
        UNSIGNED_INT [rows].
    program:
        The Sequence that is extended.

    Raises
    ------
    PoplibsError
        For other shapes and types, and if `params` holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popops.updateScalarInRows"
    _check(call, graph, params, indices, program, debugContext)
    check_written(call, params)
    debug = below(debugContext, "updateScalarInRows")
    places = apart(graph, indices, params, program, f"{debug}/copy")
    rows = _in_rows(graph, params, program, debug)
    cs = graph.addComputeSet(debug)
    atom = ATOM // params.elementType().size
    for tile, pieces in _pieces_of_tiles(graph, rows).items():
        bounds = [params.dim(1), *(bound for piece in pieces for bound in piece.columns)]
        fields = {**_fields(rows, places, pieces), "divides": not any(bound % atom for bound in bounds)}
        vertex = graph.addVertex(cs, templateVertex("popops::UpdateIntervalsDEC", params.elementType()), fields)
        graph.setTileMapping(vertex, tile)
    program.add(Execute(cs))
    if rows is not params:
        program.add(Copy(rows, params))


def _in_rows(graph: Graph, params: Tensor, prog: Sequence, debug: str) -> Tensor:
    """The matrix, or a copy that is spread in order of its elements if its rows lie in many pieces, as those of columns do."""
    pieces = sum(map(len, graph.getTileMapping(params)))
    if pieces <= MANY_PIECES * (params.dim(0) + graph.getTarget().getNumTiles()):
        return params
    rows = graph.addVariable(params.elementType(), params.shape(), f"{debug}/rows")
    mapTensorLinearly(graph, rows)
    prog.add(Copy(params, rows))
    return rows


def _check(call: str, graph: Graph, params: Tensor, indices: Tensor, prog: Sequence, debugContext: str | None) -> None:
    check_call(call, graph, prog, debugContext)
    check_operands(call, graph, params=params, indices=indices)
    if params.rank() != 2:
        raise PoplibsError(f"{call}: params is a matrix, got {params!r}")
    if params.dim(0) and not params.dim(1):
        raise PoplibsError(f"{call}: rows have one column at least, got {params!r}")
    if params.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"{call}: params is of FLOATs or HALFs, got {params!r}")
    check_offsets(call, indices, [params.dim(0)], "one for each row")
    check_codelet(call, graph, templateVertex("popops::SelectFromIntervals", params.elementType()))


def _pieces_of_tiles(graph: Graph, params: Tensor) -> dict[int, list[RowPiece]]:
    """The pieces of rows that each tile has."""
    width = params.dim(1)
    held: dict[int, list[RowPiece]] = {}
    for tile, regions in enumerate(graph.getTileMapping(params)):
        for region in regions:
            begin = region.begin()
            while begin < region.end():
                row, column = divmod(begin, width)
                end = min(region.end(), (row + 1) * width)
                held.setdefault(tile, []).append(RowPiece(row, Interval(column, column + end - begin)))
                begin = end
    return held


def _fields(params: Tensor, indices: Tensor, pieces: list[RowPiece]) -> dict[str, object]:
    """What both kinds of vertices are connected to."""
    return {
        "params": [params[piece.row].slice(piece.columns.begin(), piece.columns.end()) for piece in pieces],
        "indices": concat([indices.slice(piece.row, piece.row + 1) for piece in pieces]),
        "firstColumns": [piece.columns.begin() for piece in pieces],
        "width": params.dim(1),
    }
