"""The account of an exchange: who sends what to whom.

A message is a contiguous piece of one variable in the source's memory, sent to one receiver: what a receiver gets several times is
counted once, and pieces that touch in the source's memory are one message. Sending one piece to several tiles is sending once.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.compiler.intervals import Array, keys, sorting_order, union
from pypoplar.compiler.plan import MESSAGE, Exchange


@frozen(eq=False)
class Transfers:
    """Bytes that leave one tile's memory for another tile: the raw material of an account, in any order."""

    source: Array  # int64, tiles
    destination: Array  # int64, tiles
    variable: Array  # int64
    offset: Array  # int64, bytes in the source's memory
    bytes: Array  # int64, at least 1


def account(tiles: int, transfers: Transfers) -> tuple[Exchange, Array]:
    """The account, its messages sorted by receiver and source, and for each transfer the number of its message."""
    if len(transfers.bytes) == 0:
        nothing = np.zeros(tiles, np.int64)
        return Exchange(np.zeros(0, MESSAGE), nothing, nothing.copy()), np.zeros(0, np.int64)
    span = int((transfers.offset + transfers.bytes).max()) + 1
    begin = keys(transfers.destination * tiles + transfers.source, transfers.offset, span)
    order = sorting_order(begin)
    size, variable = transfers.bytes, transfers.variable
    if order is not None:
        begin, size, variable = begin[order], size[order], variable[order]
    reach = np.maximum.accumulate(begin + size)
    opens = np.concatenate(([True], (begin[1:] > reach[:-1]) | (variable[1:] != variable[:-1])))
    starts = np.flatnonzero(opens)
    row = np.cumsum(opens) - 1
    if order is not None:
        unsorted = np.empty_like(row)
        unsorted[order] = row
        row = unsorted

    pair, offset = np.divmod(begin[starts], span)
    messages = np.empty(len(starts), MESSAGE)
    messages["destination"], messages["source"] = np.divmod(pair, tiles)
    messages["bytes"] = reach[np.append(starts[1:], len(begin)) - 1] - begin[starts]
    messages["variable"] = variable[starts]
    received = _per_tile(tiles, messages["destination"], messages["bytes"])
    return Exchange(messages, _sent(tiles, messages, offset, span), received), row


def _sent(tiles: int, messages: Array, offset: Array, span: int) -> Array:
    source = messages["source"].astype(np.int64)
    begin = keys(source, offset, span)
    once_begin, once_end = union(begin, begin + messages["bytes"])
    return _per_tile(tiles, once_begin // span, once_end - once_begin)


def _per_tile(tiles: int, tile: Array, bytes: Array) -> Array:
    # the weights are doubles: exact up to 2**53 bytes
    return np.bincount(tile, weights=bytes, minlength=tiles).astype(np.int64)
