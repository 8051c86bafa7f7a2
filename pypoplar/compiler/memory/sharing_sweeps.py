"""The sweep that gives parts of variables their places in the memory that they share."""

from __future__ import annotations

from pypoplar.arrays.dtypes import Int64s
from pypoplar.host_code.sweep import sweep


@sweep
def _lives_overlap(begin: Int64s, end: Int64s, columns: int, left: int, right: int) -> int:
    """Whether two variables live at the same time: 1, or 0. `columns` ranges of each stand side by side, empty ones among them."""
    for i in range(left * columns, (left + 1) * columns):
        for j in range(right * columns, (right + 1) * columns):
            if begin[i] < end[j] and begin[j] < end[i]:
                return 1
    return 0


@sweep
def place_parts(  # noqa: PLR0913
    first: Int64s,
    variable: Int64s,
    size: Int64s,
    alignment: Int64s,
    life_begin: Int64s,
    life_end: Int64s,
    columns: int,
    offset: Int64s,
    behind: Int64s,
) -> int:
    """The offset of each part: the lowest aligned one that is free for as long as the part's variable lives.

    Tile k has the parts from ``first[k]`` up to ``first[k + 1]``, which get their places in this order. `columns` ranges of a
    variable's life stand side by side, see `_lives_overlap`. On the way, `behind` has for each part that has its place the one of
    its tile that begins next: all are gone through from the lowest on, but not farther than to the first gap.
    """
    for tile in range(len(first) - 1):
        lowest = -1
        for part in range(first[tile], first[tile + 1]):
            unit, before, at, reach, start = alignment[part], -1, lowest, 0, 0
            while at >= 0:
                if _lives_overlap(life_begin, life_end, columns, variable[part], variable[at]) > 0:
                    if offset[at] - start >= size[part]:
                        break
                    reach = max(reach, offset[at] + size[at])
                    start = -(-reach // unit) * unit
                if offset[at] <= start:
                    before = at
                at = behind[at]
            following = lowest if before < 0 else behind[before]
            while following >= 0 and offset[following] <= start:
                before, following = following, behind[following]
            offset[part], behind[part] = start, following
            if before < 0:
                lowest = part
            else:
                behind[before] = part
    return len(variable)
