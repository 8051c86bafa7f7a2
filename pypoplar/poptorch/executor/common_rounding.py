"""Stochastic rounding of updates, which has to be the same on all replicas: else they would not keep the same weights."""

from __future__ import annotations

import numpy as np

from pypoplar import popops, poprand
from pypoplar.graph.graph import Graph
from pypoplar.graph.views import concat
from pypoplar.program import Sequence
from pypoplar.types import UNSIGNED_INT

COMMON, HANDLE = 0xFFFFFFFF, "optimizer/rounding"
"""The first word of a seed for all replicas, for each it is its number; and the handle of the second, which counts updates."""


def rounded_alike(graph: Graph, update: Sequence) -> Sequence:
    """An update for which the generators of all replicas start alike, and differ behind it."""
    if graph.getReplicationFactor() == 1:
        return update
    count, common = graph.addVariable(UNSIGNED_INT, [1], HANDLE), graph.addConstant(UNSIGNED_INT, [1], COMMON, f"{HANDLE}/common")
    own = graph.addReplicationIndexConstant(f"{HANDLE}/own").reshape([1])
    for tensor in (count, common, own):
        graph.setTileMapping(tensor, 0)
    graph.setInitialValue(count, np.zeros(1, np.uint32))
    graph.createHostWrite(HANDLE, count)  # by which calls that fail are undone
    before, behind = Sequence(), Sequence()
    popops.addInPlace(graph, count, 1, before, HANDLE)
    poprand.setSeed(graph, concat([common, count]), 0, before, HANDLE)
    poprand.setSeed(graph, concat([own, count]), 0, behind, HANDLE)
    return Sequence([before, update, behind])
