"""Compute sets as tables: their vertices by tile, what each vertex is given, how they are scheduled."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s


@frozen(eq=False)
class Computes:
    """Compute sets, laid out for the driver. A group is a run of vertices of one codelet on one tile."""

    first_active: Int64s  # [computes + 1]: the compute's entries in the next two
    active_tile: Int64s
    first_group: Int64s  # [active tiles + 1]
    group_codelet: Int64s
    group_row: Int64s  # first word of the group's edge rows in `words`
    group_count: Int64s
    group_position: Int64s  # where the group's vertices begin in `vertex`
    group_kind: Int64s  # 0 vertex, 1 MultiVertex, 2 SupervisorVertex
    first_vertex: Int64s  # [computes + 1]
    vertex: Int64s  # graph vertex numbers
    list_order: Int64s  # for tiles with several groups, positions within the tile in the order of adding
    estimate: Int64s  # worker cycles given by the user or an estimator, -1 where derived from the code
    flops: Int64s  # floating-point operations given with it, -1 where the code counts them; empty if none are given
    words: Int64s  # edge rows, see `pypoplar.interface.edge_rows`: addresses are offsets in the memory of the vertex's tile
    row_table: Int64s  # `RowEntry` by `RowEntry`: the rows of list fields
    moves: Int64s  # [computes] of `pypoplar.interface.driver_records.Phase`: numbers of moves, -1 for none
    result_tile: Int64s  # [computes]: where the BOOL lies that takes the AND of compute's results, -1 for none
    result_offset: Int64s  # [computes]: bytes in the tile's memory
    codelet_words: Int64s  # [codelets]: words of an edge row
    cost: Int64s  # [active tiles]: a guess at the host's work, to divide tiles among threads
    first_buffer: Int64s  # [computes + 1]: the compute's entries in the next two, which are only reported
    buffer_tile: Int64s  # tiles that need some of their exchange buffer
    buffer_bytes: Int64s  # how much of it
