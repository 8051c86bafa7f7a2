"""Transposed operands of products: rows that lie together are exchanged so, and transposed on the tiles that keep the blocks."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.block_layout import BlockMatrix, Parts, blocked
from pypoplar.poplin.splitting import EqualParts, bounds, equal_parts, largest
from pypoplar.popops.rearrange.transpose_cycles import GRAIN, transpose_cycles
from pypoplar.poputil.cost_conventions import MESSAGE, superstep_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_parts
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Copy, Execute, Sequence
from pypoplar.target import Target


@frozen(eq=False)
class OperandTranspose:
    """An operand whose columns lie together, and the tiles of its blocks: [*blocks, stretches]; a stretch is some rows."""

    operand: BlockMatrix
    keepers: Int64s

    @property
    def grain(self) -> int:
        """Rows that are transposed at once."""
        return GRAIN[self.operand.matrix.elementType().size]

    def cycles(self, target: Target, pieces: int) -> int:
        """Of the exchange and the vertices, on the tile that has most, if the first stretch lies in so many pieces.

        Sizes that are not whole grains take longer than the largest.
        """
        size, workers = self.operand.matrix.elementType().size, target.getNumWorkerContexts()
        groups, rows, columns = (sorted({int(size) for size in np.diff(places)}) for places in self.operand.bounds)
        moved, messages, slowest = 0, 0, 0
        for block, width in product(rows, columns):
            shares = self._shares(target, groups[-1], block, width)
            for number in {share.first for share in shares}:
                own = [share.size for share in shares if share.first == number]
                moved = max(moved, ceiling(groups[-1] * sum(own) * columns[-1] * size, target.getExchangeBytesPerCycle()))
                messages = max(messages, MESSAGE * pieces * len(own))
                slowest = max(slowest, sum(transpose_cycles(target, groups[-1], width, share, size) for share in own))
        several = ceiling(self.keepers.size, len(np.unique(self.keepers)))
        return several * (max(messages, moved) + workers * slowest) + superstep_cycles(target)

    def first_stretch(self) -> Tensor:
        """What the first tile gets, in the order in which it arrives."""
        first = self.operand.matrix
        for dimension, places in enumerate(self.operand.bounds):
            first = first.slice(places[0], places[1], dimension)
        rows = largest(first.dim(1), self.keepers.shape[3], self.grain)
        return first.slice(0, rows, 1).dimShuffle([0, 2, 1]).flatten()

    def add(self, graph: Graph, prog: Sequence, debug: str) -> BlockMatrix:
        """Extend the program: the operand in blocks, as it is used."""
        type = self.operand.matrix.elementType()
        blocks = blocked(graph, type, self.operand.bounds, debug)
        cs = graph.addComputeSet(below(debug, "Transpose"))
        given, arrived = [], []
        for parts, tensor in blocks.by_size.values():
            own = self.keepers[tuple(slice(part.first, part.first + part.count) for part in parts)]
            for share in self._shares(graph.getTarget(), *(part.size for part in parts)):
                tiles = own[..., share.first : share.first + share.count].flatten()
                source = self._columns(parts, share)
                arriving = graph.addVariable(type, source.shape(), below(debug, "preTranspose"))
                place_parts(graph, arriving, tiles)
                target = _rows(parts, tensor, share)
                place_parts(graph, target, tiles)
                fields = {"src": arriving, "dst": target, "numSrcRows": parts[2].size, "numSrcColumns": share.size}
                graph.add_vertices(cs, templateVertex("popops::Transpose1D", type), fields, tiles)
                given.append(source.flatten())
                arrived.append(arriving.flatten())
        prog.add(Copy(concat(given), concat(arrived), name=debug))
        prog.add(Execute(cs))
        return blocks

    def _shares(self, target: Target, groups: int, rows: int, columns: int) -> list[EqualParts]:
        """Of the rows of a block those of each stretch, whole grains but for the last.

        What the last has beyond whole grains is a share of its own on the same tile, where all of it would take longer together.
        """
        shares = equal_parts(bounds(rows, min(self.keepers.shape[3], ceiling(rows, self.grain)), self.grain))
        last = shares[-1]
        whole, rest = last.size - last.size % self.grain, last.size % self.grain
        if not rest or not whole:
            return shares
        size = self.operand.matrix.elementType().size
        together, *apart = (transpose_cycles(target, groups, columns, share, size) for share in (last.size, whole, rest))
        if target.getNumWorkerContexts() * (together - sum(apart)) <= MESSAGE * groups * columns:  # which come in more pieces
            return shares
        return [*shares[:-1], evolve(last, size=whole), evolve(last, begin=last.begin + whole, size=rest)]

    def _columns(self, parts: Parts, share: EqualParts) -> Tensor:
        """Stretches of the operand, each with the groups of its block, column by column: [stretches, elements]."""
        source = self.operand.matrix
        for dimension, part in enumerate(parts):
            source = part.of(source, dimension)
        groups, rows, columns = parts
        source = share.of(source.reshape([groups.count * groups.size, rows.count, rows.size, columns.count * columns.size]), 2)
        source = source.reshape([groups.count, groups.size, rows.count, share.count, share.size, columns.count, columns.size])
        source = source.dimShuffle([0, 2, 5, 3, 1, 6, 4])
        return source.reshape([prod(source.shape()[:4]), prod(source.shape()[4:])])


def _rows(parts: Parts, blocks: Tensor, share: EqualParts) -> Tensor:
    """The same stretches of the blocks, row by row."""
    groups, rows, columns = parts
    own = share.of(blocks.reshape([prod(blocks.shape()[:3]), groups.size, rows.size, columns.size]), 2)
    own = own.reshape([own.dim(0), groups.size, share.count, share.size * columns.size]).dimShuffle([0, 2, 1, 3])
    return own.reshape([own.dim(0) * share.count, groups.size * own.dim(3)])
