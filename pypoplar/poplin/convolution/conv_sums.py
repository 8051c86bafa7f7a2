"""Sums of the partial sums of a convolution, on the tiles that have them: each takes its part of what they have in common."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.convolution.conv_layout import blocks_of_outputs, layout_of_sums, numbers_of_parts, sharers
from pypoplar.poplin.convolution.conv_plan import SUMMED, ConvolutionPlan
from pypoplar.poplin.convolution.supersteps import SuperstepLane
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.row_layout import LaidRows
from pypoplar.poputil.vertex_templates import templateVertex


def add_up(graph: Graph, plan: ConvolutionPlan, partials: LaidRows, lane: SuperstepLane, debug: str | None) -> Tensor:
    """The sums [groups, batch, 3 axes, output channels] of partial sums. Single ones are converted."""
    sums = layout_of_sums(plan).variable(graph, plan.types.result, below(debug, "sums"))
    cs = lane.compute_set(below(debug, "reduce"))
    parts, sharing = numbers_of_parts(plan, SUMMED), sharers(plan, SUMMED)
    if len(parts) > 1:
        vertexType = templateVertex("poplin::ReduceAdd", plan.types.result, plan.types.partials)
    else:
        vertexType = templateVertex("poplin::ConvConversion", plan.types.partials, plan.types.result)
    block, rows = np.unique(blocks_of_outputs(plan, np.zeros(1, np.int64)), return_counts=True)
    low, size = _shares(rows, len(sharing))
    for number, (begin, end) in enumerate(pairwise(plan.partition.bounds(plan.shape)[9])):
        for length in np.unique(size[size > 0]).tolist():
            which, share = np.nonzero(size == length)
            tile, elements = block[which] + sharing[share], length * (end - begin)
            from_row = np.repeat(low[which, share], len(parts))
            own = partials.rows_of_tiles(np.add.outer(block[which], parts).ravel(), number, from_row, length)
            several = [len(parts)] if len(parts) > 1 else []
            connections = {
                "partials": own.reshape([len(tile), *several, elements]),
                "out": sums.rows_of_tiles(tile, number, np.zeros_like(tile), length),
            }
            graph.add_vertices(cs, vertexType, connections, tile + number * sums.layout.step)
    shape = plan.shape
    return sums.matrix.reshape([shape.groups, shape.batch, *shape.outputs, shape.out_channels])


def _shares(rows: Int64s, sharers: int) -> tuple[Int64s, Int64s]:
    """[blocks, sharers]: which of a block's rows each of its sharers has, the first one and how many."""
    few, more = np.divmod(rows[:, None], sharers)
    share = np.arange(sharers)
    return share * few + np.minimum(share, more), few + (share < more)
