"""Splitting a dimension into parts."""

from __future__ import annotations

from pypoplar.poputil.cycles import ceiling


def bounds(size: int, parts: int, grain: int = 1) -> list[int]:
    """Where the `parts` of `size` elements begin, and the end: nearly equal parts of whole grains."""
    grains = ceiling(size, grain)
    return [min(size, part * grains // parts * grain) for part in range(parts)] + [size]


def largest(size: int, parts: int, grain: int = 1) -> int:
    """Elements of the largest part."""
    return min(size, ceiling(ceiling(size, grain), parts) * grain)
