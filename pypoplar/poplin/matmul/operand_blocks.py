"""Operands of products as blocks: made so, copied into such, or sliced where they lie."""

from __future__ import annotations

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.block_cuts import BlockCuts
from pypoplar.poplin.matmul.block_keepers import left_keepers, right_keepers
from pypoplar.poplin.matmul.block_layout import BlockMatrix, blocked, laid_out
from pypoplar.poplin.matmul.block_plan import BlockPlan
from pypoplar.poplin.matmul.block_product import map_rows
from pypoplar.poplin.splitting import equal_parts, share_bounds
from pypoplar.poplin.superstep_cost import MESSAGE, superstep_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.program import Copy, Sequence
from pypoplar.types import ElementType

COPY_SLOTS = 35  # of a vertex that copies on its tile, beside the bytes


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
            map_rows(graph, share.of(tensor, 3).reshape(shape), own[..., share.first : share.first + share.count])
    return blocks


def given_operand(graph: Graph, plan: BlockPlan, given: Tensor, right: bool, prog: Sequence, debug: str | None) -> BlockMatrix:
    """An operand as blocks: those in which it was made, slices, or a copy where it lies in so many pieces that this is cheaper."""
    cuts, params = plan.cuts, plan.params
    bounds = cuts.right_bounds() if right else cuts.left_bounds()
    known = laid_out(given, bounds)
    if known is not None:
        return known
    sliced = BlockMatrix(bounds, given.reshape(params.b_shape if right else params.a_shape))
    if not _is_scattered(graph, plan, sliced, right):
        return sliced
    name = below(debug, "right" if right else "left")
    copy = new_operand(graph, params.type, cuts, right, name)
    prog.add(Copy(sliced.matrix, copy.matrix, name=name))
    return copy


def _is_scattered(graph: Graph, plan: BlockPlan, operand: BlockMatrix, right: bool) -> bool:
    """Whether it takes fewer cycles to bring each element to its block once than each tile those that it uses.

    Each piece of a block is a message. Looked at is the first block, which is as large as any.
    """
    cuts, target = plan.cuts, graph.getTarget()
    first = operand.matrix
    for dimension, places in enumerate(operand.bounds):
        first = first.slice(places[0], places[1], dimension)
    first, matrix = first.flatten(), operand.matrix
    pieces = max(first.runs().stretches(), len(graph.mapped_pieces(first)[0]))
    size, rate = matrix.elementType().size, target.getExchangeBytesPerCycle()
    more = len(cuts.steps) * (MESSAGE * pieces - ceiling(first.numElements() * size, rate))
    copying = superstep_cycles(target) + target.getNumWorkerContexts() * COPY_SLOTS
    if more <= copying:
        return False
    keepers = (right_keepers if right else left_keepers)(cuts, target.getNumTiles())
    own = ceiling(matrix.numElements(), len(np.unique(keepers)))
    return more > copying + MESSAGE * ceiling(own * pieces, first.numElements())
