"""Products by blocks: each tile multiplies a block of the left matrix by one of the right."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.codelet.language.fields import NEAREST
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.matmul.block_costs import worker_columns
from pypoplar.poplin.matmul.block_layout import BlockMatrix, Parts, blocked
from pypoplar.poplin.matmul.block_plan import BlockPlan
from pypoplar.poplin.splitting import EqualParts, equal_parts, share_bounds
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_parts
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence


@frozen(eq=False)
class BlockProduct:
    """A product of matrices that lie in blocks, or are sliced into them. Each step of the plan has a vertex on each of its tiles.

    A tile receives its blocks in the exchange before the compute set. Its part of the result stays on it, or where the depth is cut
    is added to the others' in a second compute set, each tile of those that have some adding a share.
    """

    graph: Graph
    plan: BlockPlan
    left: BlockMatrix
    right: BlockMatrix
    result: BlockMatrix
    debug: str | None

    def add(self, prog: Sequence) -> None:
        """Extend the program."""
        tiles = self.plan.cuts.tiles(self.graph.getTarget().getNumTiles())
        for row_step, column_step in self.plan.cuts.steps:
            self._step(row_step, column_step, tiles, prog)

    def _step(self, row_step: int, column_step: int, tiles: Int64s, prog: Sequence) -> None:
        params, cuts = self.plan.params, self.plan.cuts
        cs = self.graph.addComputeSet(below(self.debug, "matMul"))
        rounding = (NEAREST,) if params.always_nearest else ()
        vertexType = templateVertex("poplin::BlockProduct", *rounding, params.type, params.partials)
        sums = []
        for groups, rows, columns in self._parts(row_step, column_step):
            written = cuts.padded(columns)
            shape = [groups.count, rows.count, columns.count, cuts.depth_parts, groups.size * rows.size * written.size]
            own = tiles[_range(groups), _step_range(rows, cuts.row_parts), :, _step_range(columns, cuts.column_parts)]
            own = own.transpose(0, 1, 3, 2)
            result = self.result.of((groups, rows, written))
            partials = self._partials(shape, own) if self.plan.summed else result.expand([3])
            sums.append((partials, result, own))
            for depth in equal_parts(cuts.depth_bounds()):
                left = self.left.of((groups, rows, depth)).expand([2]).broadcast(columns.count, 2)
                right = self.right.of((groups, depth, columns)).dimShuffle([0, 2, 1, 3]).expand([1]).broadcast(rows.count, 1)
                count = prod(shape[:3]) * depth.count
                fields = {
                    "a": left.reshape([count, left.dim(4)]),
                    "b": right.reshape([count, right.dim(4)]),
                    "out": partials.slice(depth.first, depth.first + depth.count, 3).reshape([count, shape[4]]),
                    "groups": groups.size,
                    "depth": depth.size,
                    "columns": columns.size,
                    "stride": written.size,
                    "rowGroups": self.plan.row_groups,
                    "columnShare": worker_columns(columns.size, self.plan.row_groups, cuts.grain),
                }
                self.graph.add_vertices(cs, vertexType, fields, own[..., _range(depth)].flatten())
        prog.add(Execute(cs))
        if self.plan.summed:
            self._add_up(sums, prog)

    def _parts(self, row_step: int, column_step: int) -> Iterator[Parts]:
        """Parts of a step, those of one size at a time, numbered through all steps."""
        cuts = self.plan.cuts
        rows = equal_parts(cuts.row_bounds(row_step), row_step * cuts.row_parts)
        columns = equal_parts(cuts.column_bounds(column_step), column_step * cuts.column_parts)
        return product(equal_parts(cuts.group_bounds()), rows, columns)

    def _partials(self, shape: list[int], tiles: Int64s) -> Tensor:
        """Partial products [parts of groups, rows, columns and depth, elements] on their tiles."""
        partials = self.graph.addVariable(self.plan.params.partials, shape, below(self.debug, "partials"))
        place_parts(self.graph, partials, tiles)
        return partials

    def _add_up(self, sums: list[tuple[Tensor, Tensor, Int64s]], prog: Sequence) -> None:
        """Sums of partial products, as the type of the result."""
        params = self.plan.params
        cs = self.graph.addComputeSet(below(self.debug, "reduce"))
        vertexType = templateVertex("poplin::ReduceAdd", params.result, params.partials)
        for partials, result, own in sums:
            parts = partials.dim(3)
            for share in equal_parts(share_bounds(partials.dim(4), parts)):
                counts = [*result.shape()[:3], share.count]
                rows = share.of(partials, 4).reshape([*counts[:3], parts, share.count, share.size])
                fields = {
                    "partials": rows.dimShuffle([0, 1, 2, 4, 3, 5]).reshape([prod(counts), parts, share.size]),
                    "out": share.of(result, 3).reshape([prod(counts), share.size]),
                }
                self.graph.add_vertices(cs, vertexType, fields, own[..., _range(share)].flatten())
        prog.add(Execute(cs))


def new_result(graph: Graph, plan: BlockPlan, debug: str) -> BlockMatrix:
    """A new result in blocks, where its product computes them."""
    cuts, params = plan.cuts, plan.params
    blocks = blocked(graph, params.result, cuts.result_bounds(), debug)
    tiles = cuts.tiles(graph.getTarget().getNumTiles())
    steps = np.tile(tiles, (1, cuts.row_steps, 1, cuts.column_steps))
    for parts, tensor in blocks.by_size.values():
        own = steps[_range(parts[0]), _range(parts[1]), :, _range(parts[2])].transpose(0, 1, 3, 2)
        for share in equal_parts(share_bounds(tensor.dim(3), cuts.depth_parts)):
            shape = [*tensor.shape()[:3], share.count, share.size]
            place_parts(graph, share.of(tensor, 3).reshape(shape), own[..., _range(share)])
    return blocks


def _range(parts: EqualParts) -> slice:
    return slice(parts.first, parts.first + parts.count)


def _step_range(parts: EqualParts, in_step: int) -> slice:
    """The parts by their numbers in their step."""
    first = parts.first % in_step
    return slice(first, first + parts.count)
