"""Claims about moves: on the side of an IPU every list stays in its memory; what they do on the host's is left to who uses them."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import sums_between
from pypoplar.executable.claims import LARGEST, claim, claim_each, claim_range, claim_running, claim_shape
from pypoplar.executable.executable import Executable
from pypoplar.executable.memory_layout import MemoryLayout
from pypoplar.executable.move_lists import LISTED_BYTES, Moves
from pypoplar.interface.header_slots import HOST

COLUMNS = ("source", "target", "bytes", "count", "source_step", "target_step", "source_list", "target_list", "tile")


@frozen(eq=False)
class MoveEnds:
    """What the lists of each move have to do with the host; on the IPUs' sides, all lie in memory."""

    lists: Int64s  # [moves]
    from_host: Int64s  # [moves]: lists whose source is the host
    to_host: Int64s  # [moves]: lists whose target is the host
    source_end: Int64s  # [moves]: where the bytes end that come from the host
    target_end: Int64s  # [moves]: where the bytes end that go to the host


def verify_moves(executable: Executable) -> MoveEnds:
    """Check all records; returns what the moves have to do with the host."""
    moves, layout = executable.moves, executable.layout
    _verify_lists(moves, layout.ipus)
    _verify_records(moves, len(layout.tile_bytes))
    source = _host_ends(moves, layout, "source", "target")
    target = _host_ends(moves, layout, "target", "source")
    first = moves.first_list
    return MoveEnds(
        np.diff(first),
        sums_between(first, moves.source_ipu == HOST),
        sums_between(first, moves.target_ipu == HOST),
        _largest(first, source),
        _largest(first, target),
    )


def _verify_lists(moves: Moves, ipus: int) -> None:
    """Every move has its lists, and each list its pair of memories and its records."""
    claim(moves.first_list.ndim == 1 and len(moves.first_list) > 0, "moves.first_list is empty")
    claim(moves.first.ndim == 1 and len(moves.first) > 0, "moves.first is empty")
    lists = len(moves.first) - 1
    for name in ("source_ipu", "target_ipu"):
        claim_shape(f"moves.{name}", getattr(moves, name), lists)
        claim_range(f"moves.{name}", getattr(moves, name), HOST, ipus)
    claim_each("moves.target_ipu", (moves.source_ipu != HOST) | (moves.target_ipu != HOST), "leads from the host to the host")
    claim_running("moves.first_list", moves.first_list, len(moves.first_list) - 1, lists)
    claim_running("moves.first", moves.first, lists, len(moves.source))


def _verify_records(moves: Moves, tiles: int) -> None:
    """What can be said of each record on its own, and of its thread."""
    records = len(moves.source)
    for name in COLUMNS:
        claim_shape(f"moves.{name}", getattr(moves, name), records)
    claim(moves.places.ndim == 1, "moves.places is not a plain list")
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
    alone = (moves.count == 1) | (moves.target_list >= 0)
    claim_each("moves.target_step", alone | (moves.target_step != 0), "is 0, for several pieces")
    claim_each("moves.source_list", (moves.source_list < 0) | (moves.target_list < 0), "stands beside a list of targets")


def _host_ends(moves: Moves, layout: MemoryLayout, side: str, other: str) -> Int64s:
    """Where the bytes of each list end on the host's side, 0 for lists that do not touch it; those of IPUs lie in their memory."""
    ends = _largest(moves.first, _record_ends(moves, side, other))
    ipu = getattr(moves, side + "_ipu")
    fits = (ipu == HOST) | (ends <= layout.ipu_bytes[ipu])
    claim_each(f"the end of moves.{side} in list", fits, "lies beyond the memory of the IPU")
    return np.where(ipu == HOST, ends, 0)


def _record_ends(moves: Moves, side: str, other: str) -> Int64s:
    """Where the bytes of each record end on a side, which begins at 0."""
    base, step, listed = (getattr(moves, side + what) for what in ("", "_step", "_list"))
    claim_range(f"moves.{side}_list", listed, -1, len(moves.places))
    named = listed >= 0
    claim_each(f"moves.{side}_step", named | (moves.count - 1 <= LARGEST // np.maximum(np.abs(step), 1)), "goes too far")
    span = np.where(named, 0, (moves.count - 1) * step)
    claim_each(f"moves.{side}", base + np.minimum(span, 0) >= 0, "goes below 0")
    ends: Int64s = base + np.maximum(span, 0) + moves.bytes
    chosen = np.flatnonzero(named)
    if len(chosen):
        first, count, size = listed[chosen], moves.count[chosen], moves.bytes[chosen]
        claim_each(f"the listed moves.{side}", (count > 1) & (size <= LISTED_BYTES), "is not of several small pieces")
        claim_each(f"the listed moves.{side}", getattr(moves, other + "_step")[chosen] == size, "has a gap on the other side")
        claim_each(f"moves.{side}_list", first + count <= len(moves.places), "is too long")
        limits = np.stack((first, first + count), 1).ravel()
        largest = np.maximum.reduceat(np.append(moves.places, np.uint32(0)), limits)[::2]
        ends[chosen] += largest.astype(np.int64) * size
    return ends


def _largest(first: Int64s, values: Int64s) -> Int64s:
    """The largest value of each part, 0 where it has none."""
    largest = np.zeros(len(first) - 1, np.int64)
    filled = first[1:] > first[:-1]
    if filled.any():
        largest[filled] = np.maximum.reduceat(values, first[:-1][filled])
    return largest
