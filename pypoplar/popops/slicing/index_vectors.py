"""Indices of XLA's Gather and Scatter: vectors along a dimension of a tensor, or numbers."""

from __future__ import annotations

from pypoplar.errors import PoplarIndexError
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.slicing.blocks import permuted
from pypoplar.poputil.exceptions import PoplibsError


def index_vectors(indices: Tensor, vector: int) -> tuple[Tensor, list[int]]:
    """``[vectors, length]``, and the shape of the indices without dimension `vector`; that is their rank if they are numbers."""
    if vector == indices.rank():
        return indices.reshape([indices.numElements(), 1]), indices.shape()
    last = permuted(indices, [*(dim for dim in range(indices.rank()) if dim != vector), vector])
    batch = last.shape()[:-1]
    count = 1
    for size in batch:
        count *= size
    return last.reshape([count, last.dim(last.rank() - 1)]), batch


def check_distinct(call: str, name: str, dims: tuple[int, ...], rank: int) -> None:
    """`PoplarIndexError` or `PoplibsError` unless all are different dimensions of so many."""
    for place, dim in enumerate(dims):
        if dim >= rank:
            raise PoplarIndexError(f"{call}: dimension {dim} of {name} is out of range for {rank} dimensions")
        if dim in dims[:place]:
            raise PoplibsError(f"{call}: {name} has dimension {dim} twice: {list(dims)}")
