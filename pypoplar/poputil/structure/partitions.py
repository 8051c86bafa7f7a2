"""Tensors whose partitions are single pieces of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import prod

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.variables import check_shape
from pypoplar.graph.views import concat
from pypoplar.poputil.arguments import check_debug, check_graph, check_tensor
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


@public
def createPartitionableTensor(
    graph: Graph, type: ElementType, shape: Iterable[int], nPartitions: Iterable[int], debugContext: str | None = None
) -> Tensor:
    """A new tensor, not mapped yet, each of whose partitions lies in one piece of memory.

    A dimension of n elements has partitions of ``ceil(n / nPartitions[d])``, then one with the rest, then empty ones.

    Parameters
    ----------
    type:
        The element type.
    shape:
        The shape.
    nPartitions:
        How many partitions there are along each dimension, 1 at least.

    Returns
    -------
    Tensor
        A view of variables of that shape; the caller maps it.

    Raises
    ------
    PoplibsError
        Unless there is a number for each dimension, of 1 at least.
    """
    check_graph("createPartitionableTensor", graph)
    check_debug("createPartitionableTensor", debugContext)
    sizes, counts = check_shape(shape), check_shape(nPartitions)
    _check_counts("createPartitionableTensor", f"the shape {list(sizes)}", len(sizes), counts)
    name = below(debugContext, "partitionable")
    if prod(sizes) == 0 or not sizes:
        return graph.addVariable(type, sizes, name)
    # Along a dimension that does not divide evenly there are partitions of two sizes: a variable holds all that have one shape.
    stretches = [_stretches(size, count) for size, count in zip(sizes, counts, strict=True)]
    blocks = {places: _block(graph, type, places, name) for places in product(*stretches)}
    for dimension in reversed(range(len(sizes))):
        joined: dict[tuple[tuple[int, int], ...], list[Tensor]] = {}
        for places, block in blocks.items():
            joined.setdefault(places[:dimension], []).append(block)
        blocks = {places: concat(several, dimension) for places, several in joined.items()}
    return blocks[()]


def _stretches(size: int, partitions: int) -> list[tuple[int, int]]:
    """The elements along a dimension as (partitions, elements of each): those of full size, then the rest if there is one."""
    each = -(-size // partitions)
    return [(size // each, each), (1, size % each)] if size % each else [(size // each, each)]


def _block(graph: Graph, type: ElementType, stretches: tuple[tuple[int, int], ...], name: str) -> Tensor:
    """A variable of partitions of one shape, as the part of the tensor that they are."""
    counts, sizes = zip(*stretches, strict=True)
    rank = len(stretches)
    order = [place for dimension in range(rank) for place in (dimension, rank + dimension)]
    variable = graph.addVariable(type, [*counts, *sizes], name)
    return variable.dimShuffle(order).reshape([count * size for count, size in stretches])


@public
def iterateTensorPartitions(t: Tensor, nPartitions: Iterable[int], f: Callable[[list[int], Tensor], object]) -> None:
    """Call a function for every partition of a tensor, the first dimension's fastest.

    Partitions are those of `createPartitionableTensor`; empty ones count too.

    Parameters
    ----------
    t:
        The tensor.
    nPartitions:
        How many partitions there are along each dimension, 1 at least.
    f:
        A function of the partition's place along each dimension, a list, and the partition, a view.

    Raises
    ------
    PoplibsError
        Unless there is a number for each dimension, of 1 at least.
    """
    check_tensor("iterateTensorPartitions", t)
    counts = check_shape(nPartitions)
    _check_counts("iterateTensorPartitions", repr(t), t.rank(), counts)
    if not callable(f):
        raise PoplarTypeError(f"iterateTensorPartitions calls a function f(indices, partition), got {f!r}")
    for indices, partition in _partitions(t, counts, t.rank() - 1):
        f(indices, partition)


def _partitions(t: Tensor, counts: tuple[int, ...], last: int) -> Iterator[tuple[list[int], Tensor]]:
    """Indices and partitions along the dimensions up to `last`, which changes slowest."""
    if last < 0:
        yield [], t
        return
    size = t.dim(last)
    each = -(-size // counts[last])
    for index in range(counts[last]):
        part = t.slice(min(index * each, size), min((index + 1) * each, size), last)
        for indices, partition in _partitions(part, counts, last - 1):
            yield [*indices, index], partition


def _check_counts(call: str, what: str, rank: int, counts: tuple[int, ...]) -> None:
    if len(counts) != rank or min(counts, default=1) < 1:
        raise PoplibsError(f"{call}: nPartitions has a number of 1 at least for each dimension of {what}, got {list(counts)}")
