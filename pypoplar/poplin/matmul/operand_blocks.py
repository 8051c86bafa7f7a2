"""Operands of products that are made in blocks."""

from __future__ import annotations

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.poplin.matmul.block_cuts import BlockCuts
from pypoplar.poplin.matmul.block_keepers import left_keepers, right_keepers
from pypoplar.poplin.matmul.block_layout import BlockMatrix, blocked
from pypoplar.poplin.matmul.block_product import map_rows
from pypoplar.poplin.splitting import equal_parts, share_bounds
from pypoplar.types import ElementType


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
