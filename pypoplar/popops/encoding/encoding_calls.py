"""`popops.iota` and `popops.encodeOneHot`."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.mapping import TileToTensorMapping
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands, check_own, check_writeable
from pypoplar.poputil.copies import apart
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import fits, overloaded
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT

MASKED_LABEL_CODE = 0xFFFFFFFF  # an index that stands for none
WHOLE = (INT, UNSIGNED_INT)
ENCODED = (FLOAT, HALF, INT, UNSIGNED_INT)


@public
def iota(graph: Graph, t: Tensor, startInteger: int, prog: Sequence, debugContext: str | None = None) -> None:
    """Fill the vector `t` of INTs or UNSIGNED_INTs with `startInteger` and the numbers that follow it; `prog` is extended.

    Parameters
    ----------
    t:
        A vector or scalar of INTs or UNSIGNED_INTs. Each tile fills what it holds.
    startInteger:
        The first number.

    Raises
    ------
    PoplibsError
        For another rank or type, for a `t` that cannot be written, and for numbers that the type does not have.
    InvalidTileMapping
        If an element of `t` has no tile.
    """
    check_call("popops.iota", graph, prog, debugContext)
    check_own("popops.iota", graph, t=t)
    if t.rank() > 1:
        raise PoplibsError(f"popops.iota fills a vector, got {t!r} of rank {t.rank()}")
    if t.elementType() not in WHOLE:
        raise PoplibsError(f"popops.iota fills a vector of INT or UNSIGNED_INT, got {t!r}")
    check_writeable("popops.iota", t)
    low, high = (0, 2**32) if t.elementType() is UNSIGNED_INT else (-(2**31), 2**31)
    if not fits(startInteger, int) or not low <= startInteger <= high - max(t.numElements(), 1):
        raise PoplibsError(f"popops.iota: {t.elementType()!r} has no {t.numElements()} numbers from {startInteger!r} on")
    check_operands("popops.iota", graph, t)
    check_codelet("popops.iota", graph, templateVertex("popops::Iota", t.elementType()))
    mapping = graph.getTileMapping(t.flatten())
    if t.numElements() == 0:
        return
    cs = graph.addComputeSet(below(debugContext, "iota"))
    name = templateVertex("popops::Iota", t.elementType())
    for tile, intervals in enumerate(mapping):
        if intervals:
            offsets = [int(startInteger) + interval.begin() for interval in intervals]
            vertex = graph.addVertex(cs, name, {"out": t.flatten().slices(intervals), "offsets": offsets})
            graph.setTileMapping(vertex, tile)
    prog.add(Execute(cs))


@overload
def encodeOneHot(graph: Graph, indices: Tensor, encoded: Tensor, prog: Sequence, debugContext: str | None = None) -> None: ...
@overload
def encodeOneHot(
    graph: Graph,
    indices: Tensor,
    encoded: Tensor,
    prog: Sequence,
    on: Tensor,
    off: Tensor,
    debugContext: str | None = None,
) -> None: ...
@overloaded("popops.encodeOneHot")
def encodeOneHot(
    graph: Graph,
    indices: Tensor,
    encoded: Tensor,
    prog: Sequence,
    on: Tensor | None = None,
    off: Tensor | None = None,
    debugContext: str | None = None,
) -> None:
    """Write one-hot vectors to the rows of `encoded`: the element at a row's index is `on`, the others are `off`.

    A row whose index is no column, such as `MASKED_LABEL_CODE` (-1 as an INT), is `off` throughout.

    Parameters
    ----------
    indices:
        INT or UNSIGNED_INT [rows].
    encoded:
        FLOAT, HALF, INT or UNSIGNED_INT [rows, columns], which is written; it has tiles.
    on, off:
        One element of the type of `encoded` each; without them they are 1 and 0.

    Raises
    ------
    PoplibsError
        For other shapes and types, and if `encoded` cannot be written.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    check_own("popops.encodeOneHot", graph, indices, encoded, *(value for value in (on, off) if value is not None))
    values: list[Tensor | int] = [1 if on is None else on, 0 if off is None else off]
    _check_one_hot(indices, encoded, values)
    check_operands("popops.encodeOneHot", graph, indices, encoded, *(value for value in (on, off) if value is not None))
    check_codelet(
        "popops.encodeOneHot", graph, templateVertex("popops::EncodeOneHot", indices.elementType(), encoded.elementType())
    )
    mapping = graph.getTileMapping(encoded.flatten())
    if encoded.numElements() == 0:
        return
    debug = below(debugContext, "OneHot")
    whole = apart(graph, indices, encoded, prog, below(debug, "indices"))
    scalars = [apart(graph, value.reshape([]), encoded, prog, debug) if isinstance(value, Tensor) else value for value in values]
    cs = graph.addComputeSet(below(debug, "OneHotEncode"))
    if max(map(len, mapping)) <= 1:
        _add_vertices(graph, cs, whole, encoded, scalars, mapping)
        prog.add(Execute(cs))
        return
    rows = graph.addVariable(encoded.elementType(), encoded.shape(), below(debug, "encodedOut"))
    mapTensorLinearly(graph, rows)
    _add_vertices(graph, cs, whole, rows, scalars, graph.getTileMapping(rows))
    prog.add(Execute(cs))
    prog.add(Copy(rows, encoded, debug))


def _check_one_hot(indices: Tensor, encoded: Tensor, values: list[Tensor | int]) -> None:
    call = "popops.encodeOneHot"
    if indices.rank() != 1 or encoded.rank() != 2 or indices.dim(0) != encoded.dim(0):
        raise PoplibsError(f"{call} takes indices [rows] and writes to a matrix [rows, columns], got {indices!r} and {encoded!r}")
    if indices.elementType() not in WHOLE:
        raise PoplibsError(f"{call}: indices are INT or UNSIGNED_INT, got {indices!r}")
    if encoded.elementType() not in ENCODED:
        raise PoplibsError(f"{call} writes FLOAT, HALF, INT or UNSIGNED_INT, got {encoded!r}")
    for name, value in zip(("on", "off"), values, strict=True):
        if isinstance(value, Tensor) and (value.numElements(), value.elementType()) != (1, encoded.elementType()):
            raise PoplibsError(f"{call}: {name} is one {encoded.elementType()!r}, as encoded has, got {value!r}")
    check_writeable(call, encoded)


def _add_vertices(
    graph: Graph, cs: ComputeSet, indices: Tensor, encoded: Tensor, scalars: list[Tensor | int], mapping: TileToTensorMapping
) -> None:
    """A vertex on each tile, for the one piece of the rows that it holds."""
    columns = encoded.dim(1)
    name = templateVertex("popops::EncodeOneHot", indices.elementType(), encoded.elementType())
    on, off = scalars
    flat = encoded.flatten()
    for tile, intervals in enumerate(mapping):
        for begin, end in intervals:
            rows = indices.slice(begin // columns, -(-end // columns))
            edges = {"indices": rows, "out": flat.slice(begin, end), "On": on, "Off": off}
            values = {"offset": begin % columns, "sliceLength": columns}
            graph.setTileMapping(graph.addVertex(cs, name, {**edges, **values}), tile)
