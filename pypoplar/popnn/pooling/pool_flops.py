"""What pooling takes at least: operations, and cycles if all tiles did nothing else."""

from __future__ import annotations

from math import prod

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.popnn.pooling.pool_arguments import pool_axes
from pypoplar.popnn.pooling.pool_params import PoolingType, PoolParams, check_params
from pypoplar.poputil.arguments import check_graph
from pypoplar.tracebacks import public

WORD = 8  # bytes that a tile computes at once


@public
def getFwdFlops(params: PoolParams) -> int:
    """The operations of `pool`.

    Parameters
    ----------
    params:
        The parameters of the pooling.

    Returns
    -------
    int
        One for each place of each window that is no padding, for means one more for each window.
    """
    check_params("popnn.pooling.getFwdFlops", params)
    return _flops(params, back=False)


@public
def getBwdFlops(params: PoolParams) -> int:
    """The operations of `poolInputGradient`.

    PopLibs counts the zeros between the windows of a stride, too.

    Parameters
    ----------
    params:
        The parameters of the pooling.

    Returns
    -------
    int
        One for each place of each window, for means one more for each place.
    """
    check_params("popnn.pooling.getBwdFlops", params)
    return _flops(params, back=True)


@public
def getFwdPerfectCycleCount(graph: Graph, params: PoolParams) -> float:
    """The cycles of `pool` if each tile did 8 bytes of operations in each cycle.

    Parameters
    ----------
    params:
        The parameters of the pooling.

    Returns
    -------
    float
        Cycles.
    """
    check_graph("popnn.pooling.getFwdPerfectCycleCount", graph)
    check_params("popnn.pooling.getFwdPerfectCycleCount", params)
    return getFwdFlops(params) / (WORD // params.dType.size * graph.getTarget().getNumTiles())


@public
def getBwdPerfectCycleCount(graph: Graph, params: PoolParams) -> float:
    """The cycles of `poolInputGradient` if each tile was busy all the time.

    Parameters
    ----------
    params:
        The parameters of the pooling.

    Returns
    -------
    float
        Twice those of `getFwdPerfectCycleCount`, as in PopLibs.
    """
    check_graph("popnn.pooling.getBwdPerfectCycleCount", graph)
    check_params("popnn.pooling.getBwdPerfectCycleCount", params)
    return 2 * getFwdPerfectCycleCount(graph, params)


def _flops(params: PoolParams, back: bool) -> int:
    met = [[len(others) for others in axis.meeting(0, axis.size)] for axis in pool_axes(params, 1, back)[2:]]
    flops = prod(sum(counts) for counts in met)
    if params.poolingType is PoolingType.AVG:
        flops += prod(int(np.count_nonzero(counts)) for counts in met)
    return params.batchSize * params.numChannels * flops
