"""What an engine that judges races by touched elements knows of the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

Array = np.ndarray[Any, np.dtype[Any]]


@frozen(eq=False)
class Touches:
    """With `pypoplar.races = "elements"`: the edges of all computes, to judge which elements their vertices touched.

    A byte per element of every edge lies behind the tiles' memories, in the order of the edges: bit 0 it was read, bit 1 written.
    """

    first_edge: Array  # int64 [computes + 1]
    edge_vertex: Array  # int64
    edge_field: Array  # int64
    edge_address: Array  # int64: where the vertex finds the edge
    edge_width: Array  # int64, bytes of an element
    edge_touch: Array  # int64 [edges]: address of the edge's first byte
    first_run: Array  # int64 [edges + 1]
    run_start: Array  # int64, element ids; see pypoplar.graph.frozen
    run_count: Array  # int64
    run_step: Array  # int64
    home_begin: Array  # int64, element ids
    home_address: Array  # int64
    home_width: Array  # int64
    first_element: Array  # int64 [variables + 1]
    vertex_codelet: Array  # int64 [vertices]
