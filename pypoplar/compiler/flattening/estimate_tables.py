"""What estimates say of vertices, as the tables hold it."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import AnyArray as Array
from pypoplar.executable.graph_facts import PRICED_BY
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.interface.layout import NOTHING


def given_by_vertex(graph: FrozenGraph, given: Array) -> Array:
    """What estimates give (cycles or flops), by vertex; `NOTHING` where the code decides; empty if it decides everywhere."""
    if not (given != NOTHING).any():
        return np.zeros(0, np.int64)
    whole = np.full(len(graph.vertices.codelet), NOTHING, np.int64)
    whole[graph.estimates.vertex] = given
    return whole


def count_priced_by(graph: FrozenGraph, used: Array) -> Array:
    """int64 [codelets, 3]: how many of the vertices numbered `used` are priced by each of `PRICED_BY`."""
    by = np.full(len(graph.vertices.codelet), PRICED_BY.index("code"))
    by[graph.estimates.vertex] = graph.estimates.by_estimator  # 0 or 1
    codelets, kinds = len(graph.codelets), len(PRICED_BY)
    counted: Array = np.bincount(graph.vertices.codelet[used] * kinds + by[used], minlength=codelets * kinds)
    return counted.astype(np.int64).reshape(codelets, kinds)
