"""Sums of the partial sums of a convolution, on the tiles that have them: each takes its part of what they have in common."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.convolution.conv_layout import map_sums, sharers
from pypoplar.poplin.convolution.conv_partition import OUT
from pypoplar.poplin.convolution.conv_plan import SUMMED, ConvolutionPlan
from pypoplar.poplin.convolution.supersteps import SuperstepLane
from pypoplar.poplin.splitting import bounds, equal_parts
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex

CUT = (0, 1, 9)  # groups, batch, output channels: parts of equal size are done at once


def add_up(graph: Graph, plan: ConvolutionPlan, partials: Tensor, lane: SuperstepLane, debug: str | None) -> Tensor:
    """The sums [groups, batch, 3 axes, output channels] of partial sums [parts, groups, batch, 3 axes, output channels].

    Single ones are converted.
    """
    sums = graph.addVariable(plan.types.result, partials.shape()[1:], below(debug, "sums"))
    map_sums(graph, plan, sums)
    cs = lane.compute_set(below(debug, "reduce"))
    if len(partials) > 1:
        vertexType = templateVertex("poplin::ReduceAdd", plan.types.result, plan.types.partials)
    else:
        vertexType = templateVertex("poplin::ConvConversion", plan.types.partials, plan.types.result)
    cuts, steps, sharing = plan.partition.bounds(plan.shape), plan.partition.steps(), sharers(plan, SUMMED)
    fields = [list(enumerate(pairwise(cuts[dimension]))) for dimension in range(OUT.start, OUT.stop)]
    for windows in product(*fields):
        base = sum(number * steps[OUT.start + place] for place, (number, _) in enumerate(windows))
        rows, out = partials, sums
        for place, (_, window) in enumerate(windows):
            rows, out = rows.slice(*window, 3 + place), out.slice(*window, 2 + place)
        for parts in product(*(equal_parts(cuts[dimension]) for dimension in CUT)):
            tile: Int64s = np.array([base])
            for of_dimension, dimension in zip(parts, CUT, strict=True):
                tile = np.add.outer(tile, np.array(of_dimension.numbers) * steps[dimension]).ravel()
            of_rows, of_out = rows, out
            for of_dimension, place in reversed(list(zip(parts, (0, 1, 5), strict=True))):
                sizes = [of_dimension.count, of_dimension.size]
                of_rows = of_dimension.of(of_rows, 1 + place).reshapePartial(1 + place, 2 + place, sizes)
                of_out = of_dimension.of(of_out, place).reshapePartial(place, 1 + place, sizes)
            positions = prod(of_out.shape()[place] for place in (1, 3, 4, 5, 6))
            of_rows = of_rows.dimShuffle([1, 3, 8, 0, 2, 4, 5, 6, 7, 9])
            of_rows = of_rows.reshape([len(tile), len(sharing), positions, parts[2].size])
            of_out = of_out.dimShuffle([0, 2, 7, 1, 3, 4, 5, 6, 8]).reshape([len(tile), positions, parts[2].size])
            for share in equal_parts(bounds(positions, min(positions, len(sharing)))):
                elements = share.size * parts[2].size
                own = share.of(of_rows, 2).reshape([len(tile), len(sharing), share.count, elements]).dimShuffle([0, 2, 1, 3])
                several = [len(sharing)] if len(sharing) > 1 else []
                connections = {
                    "partials": own.reshape([len(tile) * share.count, *several, elements]),
                    "out": share.of(of_out, 1).reshape([len(tile) * share.count, elements]),
                }
                places = np.add.outer(tile, sharing[share.numbers.start : share.numbers.stop]).ravel()
                graph.add_vertices(cs, vertexType, connections, places)
    return sums
