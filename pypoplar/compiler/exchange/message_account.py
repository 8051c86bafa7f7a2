"""The account of an exchange: who sends what to whom.

A message is a contiguous piece of one variable in the source's memory, sent to one receiver: what a receiver gets several times is
counted once, and pieces that touch in the source's memory are one message. Sending one piece to several tiles is sending once.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s, Integers, StructuredArray
from pypoplar.arrays.groups import is_sorted
from pypoplar.arrays.interval_algebra import keys, union
from pypoplar.executable.exchange_account import MESSAGE, Exchange


@frozen(eq=False)
class Transfers:
    """Bytes that leave one tile's memory for another tile: the raw material of an account, in any order."""

    source: Int64s  # tiles
    destination: Int64s  # tiles
    variable: Int64s
    offset: Int64s  # bytes in the source's memory
    bytes: Int64s  # at least 1


@frozen(eq=False)
class MessageAccount:
    exchange: Exchange  # its messages are sorted by receiver, source and place in the source's memory
    offset: Int64s  # [messages], bytes in the source's memory


def account(tiles: int, transfers: Transfers, machines: int = 1) -> MessageAccount:
    """The account of these transfers.

    Exchanges of several machines are accounted at once: tile t of machine m is tile ``m * tiles + t``, and nothing goes from one
    machine to another.
    """
    if len(transfers.bytes) == 0:
        nothing = np.zeros(machines * tiles, np.int64)
        return MessageAccount(Exchange(np.zeros(0, MESSAGE), nothing, nothing), np.zeros(0, np.int64))
    span = int((transfers.offset + transfers.bytes).max()) + 1
    begin, size, variable = _sorted(tiles, transfers, span)
    reach = begin + size
    np.maximum.accumulate(reach, out=reach)
    opens = np.ones(len(begin), bool)
    np.greater(begin[1:], reach[:-1], out=opens[1:])
    if variable.strides[0]:
        opens[1:] |= variable[1:] != variable[:-1]
    starts = np.flatnonzero(opens)

    messages = np.empty(len(starts), MESSAGE)
    messages["variable"] = variable[starts]
    messages["bytes"] = reach[np.append(starts[1:], len(begin)) - 1] - begin[starts]
    pair, offset = np.divmod(begin[starts], span)
    destination, source = np.divmod(pair, tiles)
    messages["destination"], messages["source"] = destination, destination - destination % tiles + source
    received = _per_tile(machines * tiles, messages["destination"], messages["bytes"])
    return MessageAccount(Exchange(messages, _sent(machines * tiles, messages, offset, span), received), offset)


def _sorted(tiles: int, transfers: Transfers, span: int) -> tuple[Int64s, Int64s, Int64s]:
    """The transfers by receiver, source and offset: key of the first byte, bytes, variable."""
    begin = keys(transfers.destination * tiles + transfers.source % tiles, transfers.offset, span)
    size, variable = _constant(transfers.bytes), _constant(transfers.variable)
    if is_sorted(begin):
        return begin, size, variable
    if not size.strides[0] and not variable.strides[0]:
        begin.sort()  # many times faster than finding the order that sorts
        return begin, size, variable
    order = np.argsort(begin)
    return begin[order], size[order] if size.strides[0] else size, variable[order] if variable.strides[0] else variable


def _constant(values: Int64s) -> Int64s:
    """The same values, without memory of their own (stride 0) where all are equal."""
    return np.broadcast_to(values[0], values.shape) if bool((values == values[0]).all()) else values


def _sent(tiles: int, messages: StructuredArray, offset: Int64s, span: int) -> Int64s:
    """Bytes that each tile sends; what several tiles receive counts once."""
    begin = keys(messages["source"], offset, span)
    once_begin, once_end = union(begin, begin + messages["bytes"])
    return _per_tile(tiles, once_begin // span, once_end - once_begin)


def _per_tile(tiles: int, tile: Integers, bytes: Int64s) -> Int64s:
    # the weights are doubles: exact up to 2**53 bytes
    return np.bincount(tile, weights=bytes, minlength=tiles).astype(np.int64)
