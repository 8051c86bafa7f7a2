"""What lies in the tiles' memories, in bytes by category."""

from __future__ import annotations

from attrs import frozen

from pypoplar.arrays.dtypes import Int64s


@frozen(eq=False)
class TileMemory:
    """Bytes of each tile by category, as they count against the target's memory: all int64 [tiles].

    Variables that share memory count as the memory that they share. `always_live` and `not_always_live` are the categories, without
    gaps, by whether their contents are needed from run to run: they add up to `total` without `gaps`.
    """

    variables: Int64s
    constants: Int64s
    constant_tables: Int64s  # of codelets, each once
    exchange_buffers: Int64s
    vertex_state: Int64s
    edge_pointers: Int64s
    code: Int64s
    stack: Int64s
    gaps: Int64s  # left empty by alignment
    always_live: Int64s
    not_always_live: Int64s  # what is shared by variables that live only at times, and exchange buffers

    def total(self) -> Int64s:
        """Bytes of each tile from the first in use to the last, with the gaps."""
        whole: Int64s = (
            self.variables
            + self.constants
            + self.constant_tables
            + self.exchange_buffers
            + self.vertex_state
            + self.edge_pointers
            + self.code
            + self.stack
            + self.gaps
        )
        return whole
