"""When variables live."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import sums_between


@frozen(eq=False)
class Lives:
    """When variables live, in static steps (see `Executable.steps`), and how much each takes on each tile.

    A variable that lives only at times has a range of steps in every program and function in which it lives: variable v those from
    ``first_range[v]`` to ``first_range[v + 1]``, half-open, sorted. A range is empty where only the host uses the variable. Rows
    ``first[v]`` to ``first[v + 1]`` of `tile` and `bytes` are what it takes on its tiles, alignment not counted, of `offset`
    where it begins in the tile's memory, and of `span` how many bytes it is from there to its end: more where elements of less than
    a word lie on the tile in several pieces, as each begins with a word. There are neither ranges nor rows of variables that no
    program uses.
    """

    always: Bools  # [variables]: constants, and variables whose values are needed from run to run
    first_range: Int64s  # [variables + 1]
    range_begin: Int64s  # the first step
    range_end: Int64s  # the step after the last
    first: Int64s  # [variables + 1]
    tile: Int64s
    bytes: Int64s
    offset: Int64s
    span: Int64s

    @property
    def begin(self) -> Int64s:
        """int64 [variables]: the first step of all ranges, -1 for variables that are always live or not used."""
        return self._bound(self.range_begin, np.minimum)

    @property
    def end(self) -> Int64s:
        """int64 [variables]: the step after the last of all ranges, -1 for variables that are always live or not used."""
        return self._bound(self.range_end, np.maximum)

    def _bound(self, values: Int64s, choose: np.ufunc) -> Int64s:
        bound = np.full(len(self.always), -1, np.int64)
        some = np.flatnonzero(np.diff(self.first_range))
        if len(some):
            bound[some] = choose.reduceat(values, self.first_range[some])
        return bound

    def live_bytes(self, steps: int, tile: int | None = None) -> Int64s:
        """int64 [steps]: bytes that live at each static step and not always, on one tile or on all together."""
        counted = np.ones(len(self.tile), bool) if tile is None else self.tile == tile
        total = sums_between(self.first, np.where(counted, self.bytes, 0))
        size = np.repeat(total, np.diff(self.first_range))
        change = np.zeros(steps + 1, np.int64)
        np.add.at(change, self.range_begin, size)
        np.subtract.at(change, self.range_end, size)
        alive: Int64s = np.cumsum(change)[:steps]
        return alive
