"""Tensors cut along their dimensions into blocks, each of which lies in one piece on a tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat


@frozen
class Stretch:
    """Blocks of one width that follow each other along a dimension."""

    begin: int  # element
    first: int  # number of the first block
    count: int
    width: int

    @property
    def end(self) -> int:
        return self.begin + self.count * self.width

    def numbers(self) -> Int64s:
        """The numbers of the blocks."""
        return np.arange(self.first, self.first + self.count)


def stretches(size: int, width: int) -> list[Stretch]:
    """The blocks of a dimension: those of full width, and the last one of what is left."""
    full, rest = divmod(size, width)
    whole = [Stretch(0, 0, full, width)] if full else []
    return [*whole, Stretch(full * width, full, 1, rest)] if rest else whole


def permuted(tensor: Tensor, order: Sequence[int]) -> Tensor:
    """`Tensor.dimShuffle`, which writes down every element of some views, only where something moves."""
    moved = [dim for dim in order if tensor.dim(dim) != 1]
    return tensor.reshape([tensor.dim(dim) for dim in order]) if moved == sorted(moved) else tensor.dimShuffle(order)


def of_blocks(memory: Tensor, shape: Sequence[int], widths: Sequence[int]) -> Tensor:
    """A flat tensor, in which a tensor's blocks lie one behind the other, as that tensor.

    Blocks are of `widths`, in the order of their numbers, each row-major.
    """
    return _of_blocks(memory, shape, widths, [])


def _of_blocks(chunk: Tensor, shape: Sequence[int], widths: Sequence[int], cut: list[Stretch]) -> Tensor:
    dim = len(cut)
    counts, inner = [stretch.count for stretch in cut], [stretch.width for stretch in cut]
    if dim == len(shape):
        order = [place for pair in range(dim) for place in (pair, dim + pair)]
        return permuted(chunk.reshape([*counts, *inner]), order).reshape([a * b for a, b in zip(counts, inner, strict=True)])
    unit = prod(inner) * prod(shape[dim + 1 :])
    parts = []
    for stretch in stretches(shape[dim], widths[dim]):
        part = chunk.slice(stretch.begin * unit, stretch.end * unit, dim)
        parts.append(_of_blocks(part.reshape([*counts, stretch.count, stretch.width * unit]), shape, widths, [*cut, stretch]))
    return concat(parts, dimension=dim)


def alike_blocks(shape: Sequence[int], widths: Sequence[int]) -> Iterator[tuple[Stretch, ...]]:
    """The blocks of a tensor in bulk: for each combination of widths the stretches that have it."""
    yield from product(*(stretches(size, width) for size, width in zip(shape, widths, strict=True)))


def cut_blocks(tensor: Tensor, cut: Sequence[Stretch]) -> Tensor:
    """``[*counts, *widths]``: the blocks of stretches along each dimension of a tensor."""
    begin, end = [stretch.begin for stretch in cut], [stretch.end for stretch in cut]
    part = tensor.slice(begin, end)
    rank = len(cut)
    spread = part.reshape([size for stretch in cut for size in (stretch.count, stretch.width)])
    return permuted(spread, [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)])


def numbered(cut: Sequence[Stretch]) -> tuple[Int64s, ...]:
    """For each dimension the block numbers along it, of all blocks of stretches in order."""
    grid = np.meshgrid(*(stretch.numbers() for stretch in cut), indexing="ij")
    return tuple(numbers.reshape(-1) for numbers in grid)
