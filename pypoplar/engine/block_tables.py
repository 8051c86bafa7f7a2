"""Where an engine counts how often blocks of codelets run: a row of words for each codelet in each compute set."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.codelet.ir.block_numbers import most_blocks
from pypoplar.executable.executable import Executable
from pypoplar.interface.driver_records import SLOWEST_WORDS, VertexCount


@frozen(eq=False)
class BlockTables:
    """The places of the rows, `VertexCount` each: row i has the vertices of ``codelet[i]`` in ``compute[i]``."""

    compute: Int64s  # [rows]
    codelet: Int64s  # [rows]
    first: Int64s  # [rows + 1]: words
    of_group: Int64s  # [groups]: first word of the group's row
    computes: int

    @property
    def words(self) -> int:
        """Of all rows."""
        return int(self.first[-1])

    @property
    def slowest_words(self) -> int:
        """Of the table of the compute sets' slowest vertices."""
        return SLOWEST_WORDS * self.computes


def block_tables(executable: Executable) -> BlockTables:
    """The tables of an executable whose codelets are translated."""
    computes, codelets = executable.computes, len(executable.codelets)
    count = len(computes.result_tile)
    groups = np.diff(computes.first_group[computes.first_active])
    compute = np.repeat(np.arange(count), groups)
    kind, row = np.unique(compute * codelets + computes.group_codelet, return_inverse=True)
    sizes = np.array([VertexCount.BLOCKS + most_blocks(codelet.typed) for codelet in executable.codelets], np.int64)
    of_row = kind % max(codelets, 1)
    first = offsets(sizes[of_row])
    return BlockTables(kind // max(codelets, 1), of_row, first, first[row].astype(np.int64), count)
