"""Claims about the move lists: how far each reaches on both sides, so that who uses one can compare that with what is there."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray as Array
from pypoplar.executable.move_lists import LISTED_BYTES, Moves
from pypoplar.executable.verify.claims import LARGEST, claim, claim_each, claim_range, claim_running, claim_shape

COLUMNS = ("source", "target", "bytes", "count", "source_step", "target_step", "source_list", "target_list", "tile")


@frozen(eq=False)
class ListEnds:
    """Where the bytes end that each list touches; all begin at 0 or later."""

    source: Array  # int64 [lists]
    target: Array  # int64 [lists]


def verify_moves(moves: Moves, tiles: int) -> ListEnds:
    """Check all records; returns how far the lists reach."""
    records = len(moves.source)
    for name in COLUMNS:
        claim_shape(f"moves.{name}", getattr(moves, name), records)
    claim(moves.places.ndim == 1, "moves.places is not a plain list")
    claim(moves.first.ndim == 1 and len(moves.first) > 0, "moves.first is empty")
    claim_running("moves.first", moves.first, len(moves.first) - 1, records)
    for name, low in (
        ("source", 0),
        ("target", 0),
        ("bytes", 1),
        ("count", 1),
        ("source_step", -LARGEST),
        ("target_step", -LARGEST),
    ):
        claim_range(f"moves.{name}", getattr(moves, name), low, LARGEST)
    claim_range("moves.tile", moves.tile, 0, tiles)
    opens = np.zeros(records + 1, bool)
    opens[moves.first] = True
    claim_each("moves.tile", (moves.tile[1:] >= moves.tile[:-1]) | opens[1:-1], "is followed by a lower one in its list")
    one = (moves.count == 1) | (moves.target_list >= 0)
    claim_each("moves.target_step", one | (moves.target_step != 0), "is 0, for several pieces")
    claim_each("moves.source_list", (moves.source_list < 0) | (moves.target_list < 0), "stands beside a list of targets")
    return ListEnds(
        _list_ends(moves.first, _record_ends(moves, "source", "target")),
        _list_ends(moves.first, _record_ends(moves, "target", "source")),
    )


def _record_ends(moves: Moves, side: str, other: str) -> Array:
    """Where the bytes of each record end on a side, which begins at 0."""
    base, step, listed = (getattr(moves, side + what) for what in ("", "_step", "_list"))
    claim_range(f"moves.{side}_list", listed, -1, len(moves.places))
    named = listed >= 0
    claim_each(f"moves.{side}_step", named | (moves.count - 1 <= LARGEST // np.maximum(np.abs(step), 1)), "goes too far")
    span = np.where(named, 0, (moves.count - 1) * step)
    claim_each(f"moves.{side}", base + np.minimum(span, 0) >= 0, "goes below 0")
    ends: Array = base + np.maximum(span, 0) + moves.bytes
    here = np.flatnonzero(named)
    if len(here):
        first, count, size = listed[here], moves.count[here], moves.bytes[here]
        claim_each(f"the listed moves.{side}", (count > 1) & (size <= LISTED_BYTES), "is not of several small pieces")
        claim_each(f"the listed moves.{side}", getattr(moves, other + "_step")[here] == size, "has a gap on the other side")
        claim_each(f"moves.{side}_list", first + count <= len(moves.places), "is too long")
        limits = np.stack((first, first + count), 1).ravel()
        largest = np.maximum.reduceat(np.append(moves.places, np.uint32(0)), limits)[::2]
        ends[here] += largest.astype(np.int64) * size
    return ends


def _list_ends(first: Array, ends: Array) -> Array:
    made = np.zeros(len(first) - 1, np.int64)
    filled = first[1:] > first[:-1]
    if filled.any():
        made[filled] = np.maximum.reduceat(ends, first[:-1][filled])
    return made
