"""What an engine that judges races by touched elements knows of the edges."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s


@frozen(eq=False)
class Touches:
    """With `pypoplar.races = "elements"`: the edges of all computes, to judge which elements their vertices touched.

    A byte per element of an edge is its mark; see `pypoplar.interface.edge_rows`. The marks of a compute set's edges lie end to
    end, behind them those of its vertices' plain fields; every compute set uses the same bytes anew.
    """

    first_edge: Int64s  # [computes + 1]: the compute's edges
    edge_vertex: Int64s  # [edges]: numbers in the graph
    edge_field: Int64s  # [edges]: position among the codelet's fields
    edge_tile: Int64s  # [edges]: where the vertex finds the edge: on its own tile
    edge_offset: Int64s  # [edges]: bytes in the tile's memory
    edge_width: Int64s  # [edges]: bytes of an element
    edge_touch: Int64s  # [edges]: which mark is that of its first element
    first_run: Int64s  # [edges + 1]: the runs of elements that the edge connects, in order
    run_start: Int64s  # [runs]: element ids; see pypoplar.graph.frozen
    run_count: Int64s  # [runs]: elements
    run_step: Int64s  # [runs]: between element ids
    home_begin: Int64s  # [homes]: element ids, rising; a home is a stretch of elements that lie end to end
    home_tile: Int64s  # [homes]
    home_offset: Int64s  # [homes]: bytes in the tile's memory
    home_width: Int64s  # [homes]: bytes of an element
    first_element: Int64s  # [variables + 1]: element ids
    vertex_codelet: Int64s  # [vertices]: index into `Executable.codelets`
