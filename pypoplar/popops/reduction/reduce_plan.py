"""The plan of a reduction: in how many stages, of how many partial results each."""

from __future__ import annotations

from math import isqrt

from attrs import frozen

from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target


@frozen
class Stage:
    """A compute set after an exchange: so many partial results go into one, columns are cut into parts."""

    partials: int
    parts: int
    grain: int
    splits: bool = False

    def column_bounds(self, columns: int) -> list[int]:
        grains = ceiling(columns, self.grain)
        parts = min(self.parts, grains)
        return [min(columns, part * grains // parts * self.grain) for part in range(parts)] + [columns]


def plan_stages(target: Target, partials: int, outputs: int) -> tuple[Stage, ...]:
    tiles = target.getNumTiles()
    if partials <= 16:
        return (Stage(partials, tiles, 8),)
    root = isqrt(partials - 1) + 1
    groups = ceiling(partials, root)
    return (Stage(root, max(tiles // groups, 1), 8), Stage(partials, tiles, 8))
