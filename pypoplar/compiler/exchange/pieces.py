"""Lists of memory pieces to be moved: how they are made, turned round, joined and sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

from pypoplar.arrays.columns import as_one, rows_of
from pypoplar.arrays.dtypes import AnyArray, Bools, Int64s
from pypoplar.arrays.groups import sorting_order
from pypoplar.compiler.exchange_plan import ComputePlan, Pieces


def make_pieces(
    source_tile: Int64s,
    source_offset: Int64s,
    target_tile: Int64s,
    target_offset: Int64s,
    bytes: Int64s,
    *,
    source_in_buffer: Bools | bool = False,
    target_in_buffer: Bools | bool = False,
) -> Pieces:
    def flags(given: Bools | bool) -> Bools:
        return np.broadcast_to(given, len(bytes)) if isinstance(given, bool) else given

    return Pieces(source_tile, source_offset, target_tile, target_offset, bytes, flags(source_in_buffer), flags(target_in_buffer))


def no_pieces() -> Pieces:
    none = np.zeros(0, np.int64)
    return make_pieces(none, none, none, none, none)


def without_pieces(plan: ComputePlan) -> ComputePlan:
    """What a plan says of its vertices, their edges and the account of its exchanges."""
    nothing: dict[str, Any] = dict(nothing_moves())
    return evolve(plan, **nothing)


def counted_pieces(plan: ComputePlan) -> ComputePlan:
    """The same with one piece in the place of several, which says that there are some."""
    first: dict[str, Any] = {
        name: Pieces(*(column[:1].copy() for column in columns(getattr(plan, name)))) for name in nothing_moves()
    }
    return evolve(plan, **first)


def nothing_moves() -> dict[str, Pieces]:
    """All that a plan moves, by the names of its fields, where it moves nothing."""
    return dict.fromkeys(
        ("exchange_before", "gather", "parted", "preload", "scatter", "exchange_after", "copied_before", "copied_after"),
        no_pieces(),
    )


def chosen(pieces: Pieces, which: Bools | Int64s) -> Pieces:
    """The pieces of a mask or of a list of positions, in that order."""
    if which.dtype == bool and bool(which.all()):
        return pieces
    return Pieces(*rows_of(columns(pieces), which))


def columns(pieces: Pieces) -> tuple[AnyArray, ...]:
    return (
        pieces.source_tile,
        pieces.source_offset,
        pieces.target_tile,
        pieces.target_offset,
        pieces.bytes,
        pieces.source_in_buffer,
        pieces.target_in_buffer,
    )


def turned(pieces: Pieces) -> Pieces:
    """The same pieces on the way back."""
    return Pieces(
        pieces.target_tile,
        pieces.target_offset,
        pieces.source_tile,
        pieces.source_offset,
        pieces.bytes,
        pieces.target_in_buffer,
        pieces.source_in_buffer,
    )


def appended(first: Pieces, second: Pieces) -> Pieces:
    if len(first.bytes) == 0:
        return second
    if len(second.bytes) == 0:
        return first
    return end_to_end([first, second])


def end_to_end(lists: list[Pieces]) -> Pieces:
    """The pieces of several lists, one list after the other."""
    if len(lists) == 1:
        return lists[0]
    return Pieces(*(as_one(column) for column in zip(*map(columns, lists), strict=True)))


def sorted_by_target_tile(pieces: Pieces) -> Pieces:
    """Stable: pieces of a tile keep their order."""
    order = sorting_order(pieces.target_tile)
    return pieces if order is None else chosen(pieces, order)


def joined(pieces: Pieces) -> Pieces:
    """Neighbours in the list that continue each other in both memories become one piece."""
    return joined_where(pieces, continue_each_other(pieces))


def continue_each_other(pieces: Pieces) -> Bools:
    """bool [pieces - 1]: whether the next piece continues this one in both memories."""
    going_on: Bools = (
        (pieces.source_offset[1:] == pieces.source_offset[:-1] + pieces.bytes[:-1])
        & (pieces.target_offset[1:] == pieces.target_offset[:-1] + pieces.bytes[:-1])
        & (pieces.source_tile[1:] == pieces.source_tile[:-1])
        & (pieces.target_tile[1:] == pieces.target_tile[:-1])
        & (pieces.source_in_buffer[1:] == pieces.source_in_buffer[:-1])
        & (pieces.target_in_buffer[1:] == pieces.target_in_buffer[:-1])
    )
    return going_on


def joined_where(pieces: Pieces, going_on: Bools) -> Pieces:
    """Some neighbours that continue each other become one piece."""
    if not bool(going_on.any()):
        return pieces
    starts = np.flatnonzero(np.concatenate(([True], ~going_on)))
    bytes = np.add.reduceat(pieces.bytes, starts)
    first = chosen(pieces, starts)
    return Pieces(
        first.source_tile,
        first.source_offset,
        first.target_tile,
        first.target_offset,
        bytes,
        first.source_in_buffer,
        first.target_in_buffer,
    )
