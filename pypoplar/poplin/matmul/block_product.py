"""Products by blocks: each tile multiplies a block of the left matrix by one of the right."""

from __future__ import annotations

from itertools import product

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.block_plan import BlockPlan, worker_columns
from pypoplar.poplin.partial_sums import add_partials
from pypoplar.poplin.splitting import EqualParts, equal_parts
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence


def block_product(
    graph: Graph, a: Tensor, b: Tensor, plan: BlockPlan, prog: Sequence, debug: str | None, out: Tensor | None = None
) -> Tensor:
    """A tensor with the product of `a` [groups, rows, depth] and `b` [groups, depth, columns], as `plan` says; `prog` is extended.

    Each tile of the plan has one vertex. It receives its blocks in the exchange before the compute set; its part of
    the result stays on it, or where the depth is cut is added to the others' in a second step. The result is `out`, if there is
    one and its rows do not have to be padded, else a new tensor.
    """
    params = plan.params
    if out is not None and not plan.summed and params.stride == params.columns:
        partials = out.expand([0])
    else:
        shape = [plan.depth_parts, params.groups, params.rows, params.stride]
        partials = graph.addVariable(params.partials, shape, below(debug, "partials"))
        map_blocks(graph, partials, plan)
    cs = graph.addComputeSet(below(debug, "matMul"))
    vertexType = templateVertex("poplin::BlockProduct", params.type, params.partials)
    cuts = (plan.group_bounds(), plan.row_bounds(), plan.depth_bounds(), plan.column_bounds())
    for groups, rows, depth, columns in product(*map(equal_parts, cuts)):  # blocks of one size at a time
        count = groups.count * rows.count * depth.count * columns.count
        left = blocks_of(a, groups, rows, depth).expand([3]).broadcast(columns.count, 3)
        right = blocks_of(b, groups, depth, columns).expand([1]).broadcast(rows.count, 1)
        written, stride = _written(partials, plan, groups, rows, depth, columns)
        fields = {
            "a": left.reshape([count, groups.size * rows.size * depth.size]),
            "b": right.reshape([count, groups.size * depth.size * columns.size]),
            "out": written.reshape([count, groups.size * rows.size * stride]),
            "groups": groups.size,
            "depth": depth.size,
            "columns": columns.size,
            "stride": stride,
            "rowGroups": plan.row_groups,
            "columnShare": worker_columns(columns.size, plan.row_groups, plan.grain),
        }
        tiles = plan.tiles_of(graph.getTarget().getNumTiles(), *(part.numbers for part in (groups, rows, depth, columns)))
        graph.add_vertices(cs, vertexType, fields, tiles.flatten())
    prog.add(Execute(cs))
    if not plan.summed:
        return partials.slice(0, params.columns, 3)[0]
    return add_partials(graph, partials.slice(0, params.columns, 3), params.result, prog, below(debug, "reduce"), out)


def map_blocks(graph: Graph, partials: Tensor, plan: BlockPlan) -> None:
    """Place partial products [parts of the depth, groups, rows, columns] on the tiles of their blocks."""
    cuts = (plan.group_bounds(), plan.row_bounds(), plan.depth_bounds(), plan.column_bounds())
    tiles = graph.getTarget().getNumTiles()
    for groups, rows, depth, columns in product(*map(equal_parts, cuts)):
        written, _ = _written(partials, plan, groups, rows, depth, columns)
        places = plan.tiles_of(tiles, *(part.numbers for part in (groups, rows, depth, columns)))
        for block, tile in np.ndenumerate(places):
            graph.setTileMapping(written[block], int(tile))


def blocks_of(matrix: Tensor, groups: EqualParts, rows: EqualParts, columns: EqualParts) -> Tensor:
    """Blocks of one size of a grouped matrix: [parts of the groups, of the rows, of the columns, groups, rows, columns]."""
    part = groups.of(rows.of(columns.of(matrix, 2), 1), 0)
    part = part.reshape([groups.count, groups.size, rows.count, rows.size, columns.count, columns.size])
    return part.dimShuffle([0, 2, 4, 1, 3, 5])


def _written(
    partials: Tensor, plan: BlockPlan, groups: EqualParts, rows: EqualParts, depth: EqualParts, columns: EqualParts
) -> tuple[Tensor, int]:
    """Blocks of partial products: [parts of the groups, rows, depth, columns, groups, rows, columns], and their columns.

    The last part has the padding of the rows, too.
    """
    padding = plan.params.stride - plan.params.columns if columns.begin + columns.count * columns.size == plan.params.columns else 0
    if padding:
        assert columns.count == 1
    wide = EqualParts(columns.first, columns.count, columns.begin, columns.size + padding)
    part = rows.of(groups.of(wide.of(partials, 3), 1), 2).slice(depth.first, depth.first + depth.count)
    part = part.reshape([depth.count, groups.count, groups.size, rows.count, rows.size, wide.count, wide.size])
    return part.dimShuffle([1, 3, 0, 5, 2, 4, 6]), wide.size
