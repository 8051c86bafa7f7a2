"""Matrices that lie block by block: each block is one stretch of a variable, and of the memory of its tile."""

from __future__ import annotations

from itertools import accumulate, product
from math import prod

from attrs import field, frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.block_cuts import Bounds
from pypoplar.poplin.splitting import EqualParts, equal_parts
from pypoplar.types import ElementType

Parts = tuple[EqualParts, EqualParts, EqualParts]  # of groups, rows and columns


@frozen(eq=False)
class BlockMatrix:
    """The blocks of a grouped matrix. What is not there by size is sliced from the matrix."""

    bounds: Bounds
    matrix: Tensor  # [groups, rows, columns]
    by_size: dict[tuple[int, int, int], tuple[Parts, Tensor]] = field(factory=dict)  # by the first parts of each size

    def of(self, parts: Parts) -> Tensor:
        """BlockMatrix of one size: [parts of the groups, of the rows, of the columns, elements]."""
        for known, blocks in self.by_size.values():
            if all(part.first <= wanted.first and wanted.last <= part.last for part, wanted in zip(known, parts, strict=True)):
                for dimension, (part, wanted) in enumerate(zip(known, parts, strict=True)):
                    first = wanted.first - part.first
                    blocks = blocks.slice(first, first + wanted.count, dimension)
                return blocks
        sliced = self.matrix
        for dimension, part in enumerate(parts):
            sliced = part.of(sliced, dimension)
        sizes = [size for part in parts for size in (part.count, part.size)]
        blocks = sliced.reshape(sizes).dimShuffle([0, 2, 4, 1, 3, 5])
        return blocks.reshape([*(part.count for part in parts), prod(part.size for part in parts)])


class LaidOutTensor(Tensor):
    """A view of a matrix in blocks that knows them: they are hard to find again in the view. Views of it know nothing of them."""

    __slots__ = ("blocks",)

    blocks: BlockMatrix


def blocked(graph: Graph, type: ElementType, bounds: Bounds, debug: str) -> BlockMatrix:
    """A new matrix [groups, rows, columns] whose blocks are one stretch each; it has no tiles yet."""
    groups, rows, columns = (equal_parts(places) for places in bounds)
    several = list(product(groups, rows, columns))
    sizes = [prod(part.count * part.size for part in parts) for parts in several]
    variable = graph.addVariable(type, [sum(sizes)], debug)
    by_size, flat = {}, variable.flatten()
    for parts, end, size in zip(several, accumulate(sizes), sizes, strict=True):
        shape = [*(part.count for part in parts), prod(part.size for part in parts)]
        by_size[parts[0].first, parts[1].first, parts[2].first] = parts, flat.slice(end - size, end).reshape(shape)
    return BlockMatrix(bounds, _matrix(by_size, bounds), by_size)


def _matrix(by_size: dict[tuple[int, int, int], tuple[Parts, Tensor]], bounds: Bounds) -> Tensor:
    """The view of all blocks as a matrix."""
    firsts = [[part.first for part in equal_parts(places)] for places in bounds]
    layers = []
    for group in firsts[0]:
        rows = []
        for row in firsts[1]:
            rows.append(concat([_unfolded(*by_size[group, row, column]) for column in firsts[2]], 2))
        layers.append(concat(rows, 1))
    return concat(layers, 0)


def _unfolded(parts: Parts, blocks: Tensor) -> Tensor:
    counts, sizes = [part.count for part in parts], [part.size for part in parts]
    blocks = blocks.reshape([*counts, *sizes]).dimShuffle([0, 3, 1, 4, 2, 5])
    return blocks.reshape([count * size for count, size in zip(counts, sizes, strict=True)])


def knowing(tensor: Tensor, blocks: BlockMatrix) -> Tensor:
    """The tensor, which lies in these blocks, as one that knows that."""
    view = LaidOutTensor()
    for name in Tensor.__slots__:
        setattr(view, name, getattr(tensor, name))
    view.blocks = blocks
    return view


def laid_out(tensor: Tensor, bounds: Bounds) -> BlockMatrix | None:
    """The blocks in which a tensor was made, if they are these."""
    if isinstance(tensor, LaidOutTensor) and tensor.blocks.bounds == bounds:
        return tensor.blocks
    return None
