"""What an engine that judges races by touched elements knows of the edges."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s


@frozen(eq=False)
class Touches:
    """With `pypoplar.races = "elements"`: the edges of all computes, to judge which elements their vertices touched.

    A byte per element of an edge is its mark, of `pypoplar.interface.edge_rows.Touch` bits. The marks of a compute set's edges
    lie end to end; every compute set uses the same bytes anew.
    """

    first_edge: Int64s  # [computes + 1]
    edge_vertex: Int64s
    edge_field: Int64s
    edge_tile: Int64s  # where the vertex finds the edge: its own tile
    edge_offset: Int64s  # and bytes in the tile's memory
    edge_width: Int64s  # bytes of an element
    edge_touch: Int64s  # [edges]: where the edge's marks begin
    first_run: Int64s  # [edges + 1]
    run_start: Int64s  # element ids; see pypoplar.graph.frozen
    run_count: Int64s
    run_step: Int64s
    home_begin: Int64s  # element ids
    home_tile: Int64s
    home_offset: Int64s  # bytes in the tile's memory
    home_width: Int64s  # bytes of an element
    first_element: Int64s  # [variables + 1]
    vertex_codelet: Int64s  # [vertices]
