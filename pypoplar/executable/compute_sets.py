"""Compute sets as tables: their vertices by tile, what each vertex is given, how they are scheduled."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

Array = np.ndarray[Any, np.dtype[Any]]


@frozen(eq=False)
class Computes:
    """Compute sets, laid out for the driver. A group is a run of vertices of one codelet on one tile."""

    first_active: Array  # int64 [computes + 1]: the compute's entries in the next two
    active_tile: Array  # int64
    first_group: Array  # int64 [active tiles + 1]
    group_codelet: Array  # int64
    group_row: Array  # int64: first word of the group's edge rows in `words`
    group_count: Array  # int64
    group_position: Array  # int64: where the group's vertices begin in `vertex`
    group_kind: Array  # int64: 0 vertex, 1 MultiVertex, 2 SupervisorVertex
    first_vertex: Array  # int64 [computes + 1]
    vertex: Array  # int64: graph vertex numbers
    list_order: Array  # int64: for tiles with several groups, positions within the tile in the order of adding
    estimate: Array  # int64: worker cycles given by the user or an estimator, -1 where derived from the code
    flops: Array  # int64: floating-point operations given with it, -1 where the code counts them; empty if none are given
    words: Array  # int64: edge rows
    row_table: Array  # int64: pairs (address, length) of the rows of list fields
    moves: Array  # int64 [computes, 5]: move lists exchange before, fan-out of it, gather, scatter, exchange after; -1 for none
    result: Array  # int64 [computes]: address of the BOOL that takes the AND of compute's results, -1 for none
    codelet_words: Array  # int64 [codelets]: words of an edge row
    cost: Array  # int64 [active tiles]: a guess at the host's work, to divide tiles among threads
    first_buffer: Array  # int64 [computes + 1]: the compute's entries in the next two, which are only reported
    buffer_tile: Array  # int64: tiles that need some of their exchange buffer
    buffer_bytes: Array  # int64: how much of it
