"""Products by blocks: each tile multiplies a block of the left matrix by one of the right."""

from __future__ import annotations

from itertools import pairwise, product

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.block_plan import BlockPlan, worker_columns
from pypoplar.poplin.partial_sums import add_partials
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
    parts = [list(enumerate(pairwise(bounds))) for bounds in (plan.row_bounds(), plan.depth_bounds(), plan.column_bounds())]
    for (i, (top, bottom)), (p, (begin, end)), (j, (left, right)) in product(*parts):
        block = partials[p].slice([top, left], [bottom, right])
        fields = {
            "a": a.slice([top, begin], [bottom, end]),
            "b": b.slice([begin, left], [end, right]),
            "out": block,
            "rowGroups": plan.row_groups,
            "columnShare": worker_columns(right - left, plan.row_groups, plan.grain),
        }
        vertex = graph.addVertex(cs, vertexType, fields)
        tile = plan.tile(i, p, j, tiles)
        graph.setTileMapping(vertex, tile)
        graph.setTileMapping(block, tile)
    prog.add(Execute(cs))
    if plan.depth_parts == 1 and result is FLOAT:
        return partials[0]
    return add_partials(graph, partials, result, prog, below(debug, "reduce"))
