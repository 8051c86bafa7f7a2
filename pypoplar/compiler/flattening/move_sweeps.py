"""The sweeps that fold pieces of moves into records."""

from __future__ import annotations

from pypoplar.arrays.dtypes import Int64s
from pypoplar.host_code.sweep import sweep

SHORTEST_LIST = 4
NO_LIST, OF_SOURCES, OF_TARGETS = 0, 1, 2  # what a record has a list of
LISTED_PLACES = 1 << 32  # units of pieces that a list can name


@sweep
def fold_rows(
    source: Int64s,
    target: Int64s,
    bytes: Int64s,
    tile: Int64s,
    first: Int64s,
    count: Int64s,
) -> int:
    """First piece and number of pieces of each record: rows of three and more that follow in equal steps, and what is left alone.

    Neighbouring rows share a piece, which the earlier one takes. There is room for as many records as pieces.
    """
    rows, piece, taken, last = 0, 0, 0, len(source) - 1
    while piece < last:
        source_step, target_step = source[piece + 1] - source[piece], target[piece + 1] - target[piece]
        end = piece
        while (
            end < last
            and bytes[end + 1] == bytes[end]
            and tile[end + 1] == tile[end]
            and source[end + 1] - source[end] == source_step
            and target[end + 1] - target[end] == target_step
        ):
            end += 1
        if end >= piece + 2:
            first[rows], count[rows] = piece + taken, end - piece + 1 - taken
            rows += 1
            piece, taken = end, 1
            continue
        if taken == 0:
            first[rows], count[rows] = piece, 1
            rows += 1
        piece, taken = piece + 1, 0
    if piece == last and taken == 0:
        first[rows], count[rows] = piece, 1
        rows += 1
    return rows


@sweep
def list_singles(  # noqa: PLR0913
    listed: Int64s,
    dense: Int64s,
    bytes: Int64s,
    tile: Int64s,
    most: int,
    which: int,
    rows: int,
    first: Int64s,
    count: Int64s,
    kind: Int64s,
) -> int:
    """Four and more records of a piece each, which follow each other on the dense side, become one with a list: what is left.

    `first` and `count` tell the pieces of each of the `rows` records. Pieces of up to `most` bytes may be listed; `which` says of
    what, and is noted in `kind`.
    """
    kept, row = 0, 0
    while row < rows:
        end, size = row, bytes[first[row]]
        if size <= most and size != 3:
            while (
                end < rows
                and count[end] == 1
                and bytes[first[end]] == size
                and tile[first[end]] == tile[first[row]]
                and listed[first[end]] % size == 0
                and listed[first[end]] // size < LISTED_PLACES
                and (end == row or dense[first[end]] - dense[first[end - 1]] == size)
            ):
                end += 1
        if end - row >= SHORTEST_LIST:
            first[kept], count[kept], kind[kept] = first[row], end - row, which
            kept += 1
        else:
            end = max(end, row + 1)
            for place in range(row, end):
                first[kept], count[kept], kind[kept] = first[place], count[place], kind[place]
                kept += 1
        row = end
    return kept
