"""Products by blocks: each tile multiplies a block of the left matrix by one of the right."""

from __future__ import annotations

from itertools import product

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.block_plan import BlockPlan, worker_columns
from pypoplar.poplin.partial_sums import add_partials
from pypoplar.poplin.splitting import EqualParts, equal_parts
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import FLOAT, ElementType


def block_product(
    graph: Graph, a: Tensor, b: Tensor, result: ElementType, plan: BlockPlan, prog: Sequence, debug: str | None
) -> Tensor:
    """A new tensor with the product of `a` [rows, depth] and `b` [depth, columns], computed as `plan` says; `prog` is extended.

    Each tile of the plan has one vertex. It receives its blocks in the exchange before the compute set; its part of
    the result stays on it, or where the depth is cut is added to the others' in a second step.
    """
    tiles = graph.getTarget().getNumTiles()
    partials = graph.addVariable(FLOAT, [plan.depth_parts, plan.rows, plan.columns], below(debug, "partials"))
    cs = graph.addComputeSet(below(debug, "matMul"))
    vertexType = templateVertex("poplin::BlockProduct", a.elementType())
    cuts = (plan.row_bounds(), plan.depth_bounds(), plan.column_bounds())
    for rows, depth, columns in product(*map(equal_parts, cuts)):  # blocks of one size at a time
        left = _blocks(rows.of(depth.of(a, 1), 0), rows, depth).expand([2]).broadcast(columns.count, 2)
        right = _blocks(depth.of(columns.of(b, 1), 0), depth, columns).expand([0]).broadcast(rows.count, 0)
        out = columns.of(rows.of(partials.slice(depth.first, depth.first + depth.count), 1), 2)
        out = out.reshape([depth.count, rows.count, rows.size, columns.count, columns.size]).dimShuffle([1, 0, 3, 2, 4])
        vertices = rows.count * depth.count * columns.count
        fields = {
            "a": left.reshape([vertices, rows.size * depth.size]),
            "b": right.reshape([vertices, depth.size * columns.size]),
            "out": out.reshape([vertices, rows.size * columns.size]),
            "depth": depth.size,
            "columns": columns.size,
            "rowGroups": plan.row_groups,
            "columnShare": worker_columns(columns.size, plan.row_groups, plan.grain),
        }
        places = [plan.tile(i, p, j, tiles) for i, p, j in product(rows.numbers, depth.numbers, columns.numbers)]
        graph.add_vertices(cs, vertexType, fields, np.array(places))
        for block, tile in zip(np.ndindex(rows.count, depth.count, columns.count), places, strict=True):
            graph.setTileMapping(out[block], tile)
    prog.add(Execute(cs))
    if plan.depth_parts == 1 and result is FLOAT:
        return partials[0]
    return add_partials(graph, partials, result, prog, below(debug, "reduce"))


def _blocks(matrix: Tensor, rows: EqualParts, columns: EqualParts) -> Tensor:
    """A matrix as blocks of one size: [parts of the rows, parts of the columns, rows, columns]."""
    return matrix.reshape([rows.count, rows.size, columns.count, columns.size]).dimShuffle([0, 2, 1, 3])
