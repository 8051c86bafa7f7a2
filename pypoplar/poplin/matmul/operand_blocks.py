"""Operands of products as blocks: made so, copied into such, or sliced where they lie."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.block_cuts import BlockCuts
from pypoplar.poplin.matmul.block_keepers import left_keepers, right_keepers
from pypoplar.poplin.matmul.block_layout import BlockMatrix, blocked, laid_out
from pypoplar.poplin.matmul.block_plan import BlockPlan
from pypoplar.poplin.matmul.operand_transposes import OperandTranspose
from pypoplar.poplin.splitting import equal_parts, share_bounds
from pypoplar.poputil.cost_conventions import MESSAGE, superstep_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_parts
from pypoplar.program import Copy, Sequence
from pypoplar.types import ElementType

COPY_SLOTS = 35  # of a vertex that copies on its tile, beside the bytes
MOST_PIECES = 100_000  # that tiles read of an operand which FEWEST_USERS or more have a block of each: more are copied into blocks
FEWEST_USERS = 4


def new_operand(graph: Graph, type: ElementType, cuts: BlockCuts, right: bool, debug: str) -> BlockMatrix:
    """A new operand in blocks, each on the tiles that keep it, a stretch each."""
    blocks = blocked(graph, type, cuts.right_bounds() if right else cuts.left_bounds(), debug)
    tiles = graph.getTarget().getNumTiles()
    if right:
        keepers = np.tile(right_keepers(cuts, tiles), (1, 1, cuts.column_steps, 1))
    else:
        keepers = np.tile(left_keepers(cuts, tiles), (1, cuts.row_steps, 1, 1))
    for parts, tensor in blocks.by_size.values():
        own = keepers[tuple(slice(part.first, part.first + part.count) for part in parts)]
        for share in equal_parts(share_bounds(tensor.dim(3), keepers.shape[3])):
            shape = [*tensor.shape()[:3], share.count, share.size]
            place_parts(graph, share.of(tensor, 3).reshape(shape), own[..., share.first : share.first + share.count])
    return blocks


def given_operand(graph: Graph, plan: BlockPlan, given: Tensor, right: bool, prog: Sequence, debug: str | None) -> BlockMatrix:
    """An operand as blocks: those in which it was made, slices, or where it lies in so many pieces that this is cheaper a copy.

    Copied is also one of very many pieces in all: each is an instruction of the exchange on two tiles, which cycles do not tell.
    A copy is transposed on the tiles that keep it where the operand's columns lie together, and that is cheaper.
    """
    cuts, params = plan.cuts, plan.params
    bounds = cuts.right_bounds() if right else cuts.left_bounds()
    known = laid_out(given, bounds)
    if known is not None:
        return known
    sliced = BlockMatrix(bounds, given.reshape(params.b_shape if right else params.a_shape))
    costs = _OperandCosts.of(graph, plan, sliced, right)
    name = below(debug, "right" if right else "left")
    if costs.saved <= min(costs.copied, costs.transposed) and not costs.many:
        return sliced
    if costs.transposed < costs.copied:
        return costs.transpose.add(graph, prog, name)
    copy = new_operand(graph, params.type, cuts, right, name)
    prog.add(Copy(sliced.matrix, copy.matrix, name=name))
    return copy


@frozen(eq=False)
class _OperandCosts:
    """Cycles of the busiest tile: `saved` where it lies in pieces no more, against what bringing it into blocks takes.

    Each piece of a block is a message. Looked at is the first block, which is as large as any.
    """

    saved: int  # by all tiles that use elements, each time
    copied: int
    transposed: int
    many: bool  # whether it is copied whatever it takes
    transpose: OperandTranspose

    @staticmethod
    def of(graph: Graph, plan: BlockPlan, operand: BlockMatrix, right: bool) -> _OperandCosts:
        cuts, target, matrix = plan.cuts, graph.getTarget(), operand.matrix
        keepers = np.tile(
            (right_keepers if right else left_keepers)(cuts, target.getNumTiles()),
            (1, 1, cuts.column_steps, 1) if right else (1, cuts.row_steps, 1, 1),
        )
        transpose = OperandTranspose(operand, keepers)
        first = matrix
        for dimension, places in enumerate(operand.bounds):
            first = first.slice(places[0], places[1], dimension)
        pieces, size = _pieces(graph, first.flatten()), first.numElements()
        users = cuts.row_parts if right else cuts.column_parts  # where there is one, the block lies there once it is laid out
        moved = 0 if users == 1 else ceiling(size * matrix.elementType().size, target.getExchangeBytesPerCycle())
        saved = len(cuts.steps) * (MESSAGE * pieces - moved)
        copying = superstep_cycles(target) + target.getNumWorkerContexts() * COPY_SLOTS
        blocks = prod(len(places) - 1 for places in operand.bounds)
        many = users >= FEWEST_USERS and blocks * users * pieces >= MOST_PIECES
        if saved <= copying:
            return _OperandCosts(saved, copying, copying, many, transpose)
        own = ceiling(matrix.numElements(), len(np.unique(keepers)))
        copied = copying + MESSAGE * ceiling(own * pieces, size)
        transposed = copying + transpose.cycles(target, _pieces(graph, transpose.first_stretch()))
        return _OperandCosts(saved, copied, transposed, many, transpose)


def _pieces(graph: Graph, elements: Tensor) -> int:
    return max(elements.runs().stretches(), len(graph.mapped_pieces(elements)[0]))
