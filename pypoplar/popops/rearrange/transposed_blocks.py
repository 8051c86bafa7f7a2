"""Tensors copied into another order of memory in blocks, which tiles transpose: not element by element."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt, prod

from attrs import frozen

from pypoplar.errors import InvalidTileMapping
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.rearrange.regroup_calls import regroupTensor
from pypoplar.popops.rearrange.transpose_calls import TRANSPOSABLE
from pypoplar.popops.rearrange.transpose_cycles import transpose_cycles
from pypoplar.poputil.cost_conventions import MESSAGE, superstep_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.poputil.structure.groupings import innermost_grouping
from pypoplar.program import Execute, Sequence
from pypoplar.target import Target


@frozen(eq=False)
class TransposedBlocks:
    """A tensor, in the order in which its elements are to lie, whose neighbours in memory are those of another dimension.

    It is [outer, source, inner]: `group` neighbours of `source` lie together, and `row` neighbours of `inner` are to.
    """

    graph: Graph
    tensor: Tensor
    shape: list[int]
    group: int
    row: int
    cycles: int  # of the copy into blocks, of the tiles that transpose them, and of the pieces that are copied on from there

    def transposed(self, prog: Sequence, debug: str | None) -> Tensor:
        """The tensor in other memory, in rows that lie together; `prog` is extended."""
        name = below(debug, "transposed")
        cs = self.graph.addComputeSet(name)
        view = self.tensor.reshape(self.shape)
        made = regroupTensor(self.graph, view, prog, cs, (1, self.group), (2, self.row), name)
        prog.add(Execute(cs))
        return made.reshape(self.tensor.shape())


def best_blocks(graph: Graph, tensor: Tensor) -> TransposedBlocks | None:
    """The blocks that take fewest cycles; None if the tensor lies in order, or what lies together is too little.

    `tensor` has its elements in the order in which they are to lie, some at least. Of one that has no tiles, or tiles that a
    virtual graph does not see, nothing is known.
    """
    if tensor.elementType() not in TRANSPOSABLE or tensor.rank() < 2:
        return None
    try:
        dimension, size = innermost_grouping(graph, tensor)
    except InvalidTileMapping:
        return None
    shape = tensor.shape()
    inner = prod(shape[dimension + 1 :])
    if size == 1 or inner == 1:
        return None
    parts = [prod(shape[:dimension]), shape[dimension], inner]
    found = list(_candidates(graph.getTarget(), parts, size, tensor.elementType().size))
    if not found or not _is_seen(graph, tensor):
        return None
    cycles, group, row = min(found)
    return TransposedBlocks(graph, tensor, parts, group, row, cycles)


def _is_seen(graph: Graph, tensor: Tensor) -> bool:
    """Whether all elements are on tiles of the graph."""
    try:
        graph.mapped_pieces(graph.reorderToSimplify(tensor)[0])
    except InvalidTileMapping:
        return False
    return True


def _candidates(target: Target, parts: list[int], size: int, bytes: int) -> Iterator[tuple[int, int, int]]:
    """Cycles, group and row of the blocks that are worth a look."""
    elements, tiles = prod(parts), target.getTilesPerIPU()
    steps = 2 * superstep_cycles(target)
    for group in _divisors(size):
        for row in _divisors(parts[2]):
            if group > 1 and row > 1:
                of_tile = ceiling(elements // (group * row), tiles)
                pieces = MESSAGE * of_tile * (group + row)  # those that come in, and those that others fetch
                compute = target.getNumWorkerContexts() * transpose_cycles(target, of_tile, row, group, bytes)
                yield steps + pieces + compute, group, row


def _divisors(number: int) -> list[int]:
    low = [each for each in range(1, isqrt(number) + 1) if number % each == 0]
    return sorted({*low, *(number // each for each in low)})
