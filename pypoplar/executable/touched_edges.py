"""What an engine that judges races by touched elements knows of the edges."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s


@frozen(eq=False)
class Touches:
    """With `pypoplar.races = "elements"`: the edges of all computes, to judge which elements their vertices touched.

    A byte per element of every edge lies behind the tiles' memories, in the order of the edges: bit 0 it was read, bit 1 written.
    """

    first_edge: Int64s  # [computes + 1]
    edge_vertex: Int64s
    edge_field: Int64s
    edge_address: Int64s  # where the vertex finds the edge
    edge_width: Int64s  # bytes of an element
    edge_touch: Int64s  # [edges]: address of the edge's first byte
    first_run: Int64s  # [edges + 1]
    run_start: Int64s  # element ids; see pypoplar.graph.frozen
    run_count: Int64s
    run_step: Int64s
    home_begin: Int64s  # element ids
    home_address: Int64s
    home_width: Int64s
    first_element: Int64s  # [variables + 1]
    vertex_codelet: Int64s  # [vertices]
