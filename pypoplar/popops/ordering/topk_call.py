"""`popops.topK` and its kin: the largest or smallest elements of rows."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import numpy as np
from attrs import define

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.cast import cast
from pypoplar.popops.encoding.encoding_calls import iota
from pypoplar.popops.ordering.topk_cycles import Companions
from pypoplar.popops.ordering.topk_network import add_step, tiles_of_pairs
from pypoplar.popops.ordering.topk_plan import NetworkStep, check_network, network_steps, plan_division
from pypoplar.poputil.arguments import (
    check_call,
    check_codelet,
    check_debug,
    check_graph,
    check_operands,
    check_own,
    element_type,
    shape_of,
    whole_number,
)
from pypoplar.poputil.copies import duplicate
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_on
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT, ElementType

TYPES = (FLOAT, HALF, INT, UNSIGNED_INT)


class SortOrder(Enum):
    """In which order the elements of a top-k are wanted.

    Attributes
    ----------
    NONE:
        In any order; this is cheapest.
    ASCENDING:
        The smallest first.
    DESCENDING:
        The largest first.
    """

    NONE = "NONE"
    ASCENDING = "ASCENDING"
    DESCENDING = "DESCENDING"


@define
class TopKParams:
    """Which elements `topK` takes, and in which order they stand.

    Parameters
    ----------
    k:
        How many elements of each row, 0 to all.
    largest:
        Whether the largest are taken, else the smallest.
    sortOrder:
        The order of the result.
    stableSort:
        Whether equal elements keep their order; of `topKWithPermutation` with an order.
    """

    k: int
    largest: bool
    sortOrder: SortOrder
    stableSort: bool = False


@public
def createTopKInput(
    graph: Graph, type: ElementType, shape: Iterable[int], params: TopKParams, debugContext: str | None = None
) -> Tensor:
    """A new tensor mapped as the first step of a top-k in its last dimension reads it.

    Parameters
    ----------
    type:
        FLOAT, HALF, INT or UNSIGNED_INT.
    shape:
        One dimension at least.
    params:
        What the top-k will be called with.

    Returns
    -------
    Tensor
        A variable of that shape; without elements it is left unmapped.

    Raises
    ------
    PoplibsError
        For another type, no dimension, or a `k` beyond the last one.
    PoplarTypeError
        If `params` is no `TopKParams` with a `SortOrder`.
    """
    call = "popops.createTopKInput"
    check_graph(call, graph)
    check_debug(call, debugContext)
    sizes, key = shape_of(call, shape), element_type(call, type)
    if key not in TYPES:
        raise PoplibsError(f"{call}: the type is FLOAT, HALF, INT or UNSIGNED_INT, got {key!r}")
    if not sizes:
        raise PoplibsError(f"{call}: a tensor of rank 0 has no last dimension")
    _check_params(call, params, sizes[-1])
    t = graph.addVariable(type, sizes, below(debugContext, "topKInput"))
    rows, elements = int(np.prod(sizes[:-1])), sizes[-1]
    if rows * elements == 0:
        return t
    if elements == 1:
        mapTensorLinearly(graph, t)
        return t
    step = NetworkStep(elements, 1, mirrored=True)
    key = FLOAT if type is HALF else type
    division = plan_division(graph.getTarget(), rows, elements, max(params.k, 1), _ordered(params), key, Companions.NONE)
    tiles = np.repeat(tiles_of_pairs(division, step.pairs(), rows), 2, axis=0)
    if elements % 2:  # the last one has no pair
        tiles = np.concatenate((tiles, tiles[-1:]))
    place_on(graph, t.reshape([rows, elements]), tiles.T)
    return t


@public
def topK(graph: Graph, prog: Sequence, t: Tensor, params: TopKParams, debugContext: str | None = None) -> Tensor:
    """The `params.k` largest or smallest elements of each row of `t`, that is, of its last dimension; `prog` is extended.

    NaN is larger than all else. `TopKParams.stableSort` changes nothing here.

    Parameters
    ----------
    t:
        FLOAT, HALF, INT or UNSIGNED_INT of one dimension at least.
    params:
        How many, which and in which order.

    Returns
    -------
    Tensor
        A new tensor of the type and shape of `t`, but for the last dimension, which is `k`.

    Raises
    ------
    PoplibsError
        For other types, a scalar, and a `k` beyond the last dimension.
    PoplarTypeError
        If `params` is no `TopKParams` with a `SortOrder`.

    Notes
    -----
    A bitonic network: each of its steps is a superstep that compares pairs of all rows at once. HALF is compared as FLOAT.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popops, program, testing
    >>> def compute(graph, x):
    ...     popops.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     params = popops.TopKParams(2, True, popops.SortOrder.DESCENDING)
    ...     return prog, {"best": popops.topK(graph, prog, x, params)}
    >>> testing.run(compute, {"x": np.int32([[3, 9, 4], [8, 1, 7]])})["best"]
    array([[9, 4],
           [8, 7]], dtype=int32)
    """
    _check_call("popops.topK", graph, prog, debugContext, params, t=t)
    return _TopK(graph, prog, params, below(debugContext, "topK")).of(t)[0]


@public
def topKKeyValue(
    graph: Graph, prog: Sequence, keys: Tensor, values: Tensor, params: TopKParams, debugContext: str | None = None
) -> tuple[Tensor, Tensor]:
    """The `params.k` largest or smallest elements of each row of `keys`, and the values in the same places; `prog` is extended.

    NaN is larger than all else.

    Parameters
    ----------
    keys:
        FLOAT, HALF, INT or UNSIGNED_INT of one dimension at least.
    values:
        One of these types, of the shape of `keys`.
    params:
        How many, which and in which order; not stable with an order.

    Returns
    -------
    tuple[Tensor, Tensor]
        Keys and values, new tensors whose last dimension is `k`.

    Raises
    ------
    PoplibsError
        For other types or shapes, a `k` beyond the last dimension, and a sort that is to be stable, which `topKWithPermutation`
        can be.
    """
    call = "popops.topKKeyValue"
    _check_call(call, graph, prog, debugContext, params, keys=keys, values=values)
    if keys.shape() != values.shape():
        raise PoplibsError(f"{call}: keys and values have one shape, got {keys!r} and {values!r}")
    if params.stableSort and _ordered(params):
        raise PoplibsError(f"{call}: no stable sort of keys and values; topKWithPermutation has one")
    result, others = _TopK(graph, prog, params, below(debugContext, "topKKeyValue")).of(keys, values)
    assert others is not None
    return result, others


@public
def topKWithPermutation(
    graph: Graph, prog: Sequence, t: Tensor, params: TopKParams, debugContext: str | None = None
) -> tuple[Tensor, Tensor]:
    """The `params.k` largest or smallest elements of each row of `t`, and their places in the row; `prog` is extended.

    NaN is larger than all else. With `stableSort` and an order, of equal elements, and of NaNs, the first ones are taken, and stand
    in the order of their places.

    Parameters
    ----------
    t:
        FLOAT, HALF, INT or UNSIGNED_INT of one dimension at least.
    params:
        How many, which and in which order.

    Returns
    -------
    tuple[Tensor, Tensor]
        Elements, of the type of `t`, and places, UNSIGNED_INT: new tensors whose last dimension is `k`.

    Raises
    ------
    PoplibsError
        For other types, a scalar, and a `k` beyond the last dimension.
    """
    _check_call("popops.topKWithPermutation", graph, prog, debugContext, params, t=t)
    debug = below(debugContext, "topKWithPermutation")
    elements = t.dim(t.rank() - 1)
    places = graph.addVariable(UNSIGNED_INT, [elements], below(debug, "indices"))
    mapTensorLinearly(graph, places)
    iota(graph, places, 0, prog, debug)
    rows = t.numElements() // max(elements, 1)
    indices = places.expand([0]).broadcast(rows, 0).reshape(t.shape()) if elements else places.reshape(t.shape())
    result, others = _TopK(graph, prog, params, debug, secondary=params.stableSort and _ordered(params)).of(t, indices)
    assert others is not None
    return result, others


def _ordered(params: TopKParams) -> bool:
    return params.sortOrder is not SortOrder.NONE


def _check_params(call: str, params: object, elements: int) -> None:
    if not isinstance(params, TopKParams) or not isinstance(params.sortOrder, SortOrder):
        raise PoplarTypeError(f"{call}: params is a TopKParams with a SortOrder, got {params!r}")
    if whole_number(call, "k", params.k) > elements:
        raise PoplibsError(f"{call}: k is {params.k}, and the last dimension has {elements} elements")


def _check_call(call: str, graph: Graph, prog: Sequence, debugContext: str | None, params: TopKParams, **tensors: Tensor) -> None:
    check_call(call, graph, prog, debugContext)
    check_own(call, graph, **tensors)
    for name, tensor in tensors.items():
        if tensor.rank() == 0:
            raise PoplibsError(f"{call}: {name} has a last dimension, got {tensor!r}")
        if tensor.elementType() not in TYPES:
            raise PoplibsError(f"{call}: {name} is FLOAT, HALF, INT or UNSIGNED_INT, got {tensor!r}")
    check_operands(call, graph, *tensors.values())
    check_codelet(call, graph, templateVertex("popops::CompareAndSwapAtDistance", FLOAT))
    first = next(iter(tensors.values()))
    elements = first.dim(first.rank() - 1)
    _check_params(call, params, elements)
    if first.numElements() and params.k:
        check_network(call, first.numElements() // elements, elements, params.k, _ordered(params))


@define
class _TopK:
    """A call: where its steps go, and what is wanted."""

    graph: Graph
    prog: Sequence
    params: TopKParams
    debug: str
    secondary: bool = False  # values decide between equal keys

    def of(self, keys: Tensor, values: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The best elements, and the values in their places."""
        params, shape = self.params, keys.shape()
        elements, outShape = shape[-1], [*shape[:-1], params.k]
        if keys.numElements() == 0 or params.k == 0:
            fresh = [
                None if t is None else self.graph.addVariable(t.elementType(), outShape, below(self.debug, name))
                for name, t in (("keys", keys), ("values", values))
            ]
            assert fresh[0] is not None
            return fresh[0], fresh[1]
        operands = {"keys": self._matrix(keys)} | ({} if values is None else {"values": self._matrix(values)})
        reverses = _ordered(params) and (params.sortOrder is SortOrder.ASCENDING) == params.largest
        if elements > 1 and (params.k < elements or _ordered(params)):
            operands = {operand: self._as_words(operand, t) for operand, t in operands.items()}
            again = self.secondary and reverses and params.k < elements
            operands = self._network(operands, params.k, _ordered(params) and not again, reverses and not again)
            if again:  # the first of equal ones have been taken; those that are there stand the other way round
                operands = self._network(operands, params.k, True, True)
        results = {"keys": keys, "values": values}
        for operand, t in operands.items():
            t = t.reverse(0) if reverses else t
            given = results[operand]
            assert given is not None
            results[operand] = self._own(given, t.transpose().reshape(outShape), below(self.debug, operand))
        assert results["keys"] is not None
        return results["keys"], results["values"]

    @staticmethod
    def _matrix(t: Tensor) -> Tensor:
        elements = t.dim(t.rank() - 1)
        return t.reshape([t.numElements() // elements, elements]).transpose()

    def _as_words(self, operand: str, t: Tensor) -> Tensor:
        """Elements of 32 bits: halves become floats; values that are not compared are what they are, bit by bit."""
        if t.elementType() is HALF:
            t = cast(self.graph, t, FLOAT, self.prog, below(self.debug, operand))
        return t.reinterpret(UNSIGNED_INT) if operand == "values" and not self.secondary else t

    def _own(self, given: Tensor, result: Tensor, name: str) -> Tensor:
        """The result in the type of what was given, without an element of it."""
        if given.elementType() is HALF and result.elementType() is not HALF:
            return cast(self.graph, result.reinterpret(FLOAT), HALF, self.prog, name)
        result = result.reinterpret(given.elementType())
        if set(result.variable_numbers()) & set(given.variable_numbers()) or result.containsAliases():
            return duplicate(self.graph, result, self.prog, name)
        return result

    def _network(self, operands: dict[str, Tensor], k: int, ordered: bool, downwards: bool) -> dict[str, Tensor]:
        """The best `k` of each column, in order if that is wanted; equal keys by falling values, if `downwards`."""
        keys = operands["keys"]
        elements, rows = keys.shape()
        type = keys.elementType()
        companions = Companions.NONE
        name = templateVertex("popops::CompareAndSwapAtDistance", type)
        if "values" in operands:
            companions = Companions.SECONDARY if self.secondary else Companions.CARRIED
            # the vertices put the larger key first; where the smaller is better they are told the two places the other way round
            down = self.secondary and downwards == self.params.largest
            name = templateVertex(
                "popops::CompareAndSwapAtDistanceKeyVal", self.secondary, down, type, operands["values"].elementType()
            )
        division = plan_division(self.graph.getTarget(), rows, elements, k, ordered, type, companions)
        for step in network_steps(elements, k, ordered):
            stage = below(self.debug, f"{'Merge' if step.mirrored else 'Sort'}{step.distance}")
            cs = self.graph.addComputeSet(stage)
            operands = add_step(self.graph, cs, name, step, division, operands, self.params.largest, stage)
            self.prog.add(Execute(cs))
        return {operand: t.slice(0, k) for operand, t in operands.items()}
