"""Compute sets as tables: their vertices by tile, what each vertex is given, how they are scheduled."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s


@frozen(eq=False)
class Computes:
    """Compute sets, laid out for the driver: each as tiles that are active in it, a tile as groups, a group as vertices.

    A group is a run of vertices of one codelet on one tile. Wherever a table says where the entries of others begin, those of i go
    from ``first[i]`` to ``first[i + 1]``. A compute set that programs execute with and without a result is two computes.
    """

    first_active: Int64s  # [computes + 1]: the compute's active tiles
    active_tile: Int64s  # [active tiles]: numbers of tiles, rising within a compute
    first_group: Int64s  # [active tiles + 1]: the tile's groups
    group_codelet: Int64s  # [groups]: index into `Executable.codelets`
    group_row: Int64s  # [groups]: first word of the group's edge rows in `words`
    group_count: Int64s  # [groups]: vertices
    group_position: Int64s  # [groups]: where the group's vertices begin in `vertex`
    group_kind: Int64s  # [groups]: `pypoplar.interface.vertex_kinds.VertexKind`
    first_vertex: Int64s  # [computes + 1]: the compute's vertices
    vertex: Int64s  # [vertices]: numbers in the graph
    list_order: Int64s  # [vertices]: for tiles with several groups, positions within the tile in the order of adding
    estimate: Int64s  # [vertices]: worker cycles given by the user or an estimator, -1 where the code decides; or empty
    flops: Int64s  # [vertices]: floating-point operations given with it, -1 where the code counts them; or empty
    words: Int64s  # edge rows, see `pypoplar.interface.edge_rows`: places are offsets in the memory of the vertex's tile
    row_table: Int64s  # the rows of list fields, `RowEntry` by `RowEntry`
    moves: Int64s  # [computes] of `pypoplar.interface.driver_records.Phase`: numbers of `Moves`, -1 for none
    result_tile: Int64s  # [computes]: where the BOOL lies that takes the AND of compute's results, -1 for none
    result_offset: Int64s  # [computes]: bytes in the tile's memory
    codelet_words: Int64s  # [codelets]: words of an edge row
    cost: Int64s  # [active tiles]: a guess at the host's work, to divide tiles among threads; a third of a nanosecond is 1
    first_buffer: Int64s  # [computes + 1]: the compute's entries in the next two, which are only reported
    buffer_tile: Int64s  # [buffers]: tiles that need some of their exchange buffer
    buffer_bytes: Int64s  # [buffers]: how much of it
