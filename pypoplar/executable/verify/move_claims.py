"""Claims about moves: on the side of an IPU every list stays in its memory; what they do on the host's is left to who uses them."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s, Integers
from pypoplar.arrays.groups import sums_between
from pypoplar.executable.claims import LARGEST, Where
from pypoplar.executable.executable import Executable
from pypoplar.executable.memory_layout import MemoryLayout
from pypoplar.executable.move_lists import LISTED_BYTES, Moves
from pypoplar.executable.verify.named_checks import (
    check_each,
    check_least,
    check_most,
    check_range,
    check_running,
    check_shape,
)
from pypoplar.interface.header_slots import HOST
from pypoplar.interface.layout import NOTHING

COLUMNS = ("source", "target", "bytes", "count", "source_step", "target_step", "source_list", "target_list", "tile")

AT_ONCE = 1 << 16  # records: what is worked out of them on the way stays within a processor's cache


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
    lists = moves.source_ipu.size
    for name in ("source_ipu", "target_ipu"):
        check_shape(f"moves.{name}", getattr(moves, name), lists)
        check_range(f"moves.{name}", getattr(moves, name), HOST, ipus)
    on_an_ipu = (moves.source_ipu != HOST) | (moves.target_ipu != HOST)
    check_each("moves between hosts", on_an_ipu, "leads from the host to the host", "moves.target_ipu")
    check_running("moves.first_list", moves.first_list, None, lists)
    check_running("moves.first", moves.first, lists, len(moves.source))


def _verify_records(moves: Moves, tiles: int) -> None:
    """What can be said of each record on its own, and of its thread."""
    records = len(moves.source)
    for name in COLUMNS:
        check_shape(f"moves.{name}", getattr(moves, name), records)
    check_shape("moves.places", moves.places, moves.places.size)
    for name, low in (
        ("source", 0),
        ("target", 0),
        ("bytes", 1),
        ("count", 1),
        ("source_step", -LARGEST),
        ("target_step", -LARGEST),
    ):
        check_range(f"moves.{name}", getattr(moves, name), low, LARGEST)
    check_range("moves.tile", moves.tile, 0, tiles)
    opens = np.zeros(records + 1, bool)
    opens[moves.first] = True
    before = np.where(opens[1:-1], 0, moves.tile[:-1])
    check_most("moves.tile order", before, moves.tile[1:], "is followed by a lower one in its list", "moves.tile")
    alone = (moves.count == 1) | (moves.target_list != NOTHING)
    check_each("moves.target_step zero", alone | (moves.target_step != 0), "is 0, for several pieces", "moves.target_step")
    one_sided = (moves.source_list == NOTHING) | (moves.target_list == NOTHING)
    check_each("moves.source_list alone", one_sided, "stands beside a list of targets", "moves.source_list")


def _host_ends(moves: Moves, layout: MemoryLayout, side: str, other: str) -> Int64s:
    """Where the bytes of each list end on the host's side, 0 for lists that do not touch it; those of IPUs lie in their memory."""
    ends = _list_ends(moves, side, other)
    ipu = getattr(moves, side + "_ipu")
    reached = np.where(ipu == HOST, 0, ends)
    where = f"the end of moves.{side} in list"
    check_most(f"moves.{side} end", reached, layout.ipu_bytes[ipu], "lies beyond the memory of the IPU", where)
    return ends - reached


def _list_ends(moves: Moves, side: str, other: str) -> Int64s:
    """Where the bytes of each list end on a side, which begins at 0; 0 where it has no records."""
    listed = getattr(moves, side + "_list")
    check_range(f"moves.{side}_list", listed, NOTHING, len(moves.places))
    list_ends = np.zeros(len(moves.first) - 1, np.int64)
    for begin in range(0, len(listed), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        ends = _stepped_ends(moves, side, part)
        named = np.flatnonzero(listed[part] != NOTHING)
        if len(named):
            records = named + begin
            ends[named] += _largest_places(moves, side, other, records) * moves.bytes[records]
        np.maximum(list_ends, _largest(np.clip(moves.first - begin, 0, len(ends)), ends), out=list_ends)
    return list_ends


def _stepped_ends(moves: Moves, side: str, part: slice) -> Int64s:
    """Where the bytes of some records end that go in steps; of those with a list, where a first place of 0 ends."""
    ends = _wide(getattr(moves, side)[part]) + moves.bytes[part]
    several = np.flatnonzero((moves.count[part] > 1) & (getattr(moves, side + "_list")[part] == NOTHING))
    if len(several) == 0:
        return ends
    records = several + part.start
    steps, step = _wide(moves.count[records]) - 1, _wide(getattr(moves, side + "_step")[records])

    def where(name: str) -> Where:
        return lambda entry: f"{name}[{records[entry]}]"

    most = LARGEST // np.maximum(np.abs(step), 1)
    check_most(f"moves.{side}_step span", steps, most, "goes too far", where(f"moves.{side}_step"))
    span = steps * step
    base = _wide(getattr(moves, side)[records])
    check_least(f"moves.{side} begin", base + np.minimum(span, 0), 0, "goes below 0", where(f"moves.{side}"))
    ends[several] += np.maximum(span, 0)
    return ends


def _wide(column: Integers) -> Int64s:
    """A column whose sums and products stay within their type."""
    return column.astype(np.int64)


def _largest_places(moves: Moves, side: str, other: str, records: Int64s) -> Int64s:
    """The largest place of each of these records, which have a list."""
    first, count, size = map(_wide, (getattr(moves, side + "_list")[records], moves.count[records], moves.bytes[records]))

    def where(entry: int) -> str:
        return f"the listed moves.{side}[{records[entry]}]"

    check_least(f"moves.{side}_list count", count, 2, "is not of several small pieces", where)
    check_most(f"moves.{side}_list bytes", size, LISTED_BYTES, "is not of several small pieces", where)
    apart = _wide(getattr(moves, other + "_step")[records])
    check_each(f"moves.{side}_list gap", apart == size, "has a gap on the other side", where)
    check_most(
        f"moves.{side}_list end", first + count, len(moves.places), "is too long", lambda at: f"moves.{side}_list[{records[at]}]"
    )
    low, high = int(first.min()), int((first + count).max())
    places = np.append(moves.places[low:high], np.uint32(0))  # the last list ends before what is added
    largest: Int64s = np.maximum.reduceat(places, np.stack((first, first + count), 1).ravel() - low)[::2].astype(np.int64)
    return largest


def _largest(first: Int64s, values: Int64s) -> Int64s:
    """The largest value of each part, 0 where it has none."""
    largest = np.zeros(len(first) - 1, np.int64)
    filled = first[1:] > first[:-1]
    if filled.any():
        largest[filled] = np.maximum.reduceat(values, first[:-1][filled])
    return largest
