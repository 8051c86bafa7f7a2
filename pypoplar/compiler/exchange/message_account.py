"""The account of an exchange: who sends what to whom.

A message is a contiguous piece of one variable in the source's memory, sent to one receiver: what a receiver gets several times is
counted once, and pieces that touch in the source's memory are one message. Sending one piece to several tiles is sending once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import fields_dict, frozen

from pypoplar.arrays.columns import as_one, constant
from pypoplar.arrays.dtypes import Int64s, Integers, StructuredArray
from pypoplar.arrays.groups import in_order, is_sorted, stable_order, whole_groups
from pypoplar.arrays.interval_algebra import LARGEST_KEY, keys, union
from pypoplar.arrays.swept import filled
from pypoplar.compiler.exchange.message_sweeps import join_messages
from pypoplar.executable.exchange_account import MESSAGE, Exchange

AT_ONCE = 1 << 16  # transfers: what the processor's caches hold
MANY = 1 << 20  # transfers: more take too much memory at once, in whatever order they come


@frozen(eq=False)
class Transfers:
    """Bytes that leave one tile's memory for another tile: the raw material of an account, in any order.

    What stays on its tile may be among them where it is said.
    """

    source: Int64s  # tiles
    destination: Int64s  # tiles
    variable: Int64s
    offset: Int64s  # bytes in the source's memory
    bytes: Int64s  # at least 1

    def crossing(self, part: slice | Int64s) -> Transfers:
        """A part of them without what stays on its tile."""
        columns = [column[part] for column in (self.source, self.destination, self.variable, self.offset, self.bytes)]
        crosses = columns[0] != columns[1]
        return Transfers(*(columns if bool(crosses.all()) else (column[crosses] for column in columns)))


def joined_transfers(parts: Sequence[Transfers]) -> Transfers:
    """Those of parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    return Transfers(*(as_one([getattr(part, name) for part in parts]) for name in fields_dict(Transfers)))


@frozen(eq=False)
class MessageAccount:
    """The messages of an exchange, and where each lies in its source's memory."""

    exchange: Exchange  # its messages are sorted by receiver, source and place in the source's memory
    offset: Int64s  # [messages], bytes in the source's memory
    stretches: Int64s  # [tiles]: of its memory that each sends; what several tiles receive is one


def account(tiles: int, transfers: Transfers, machines: int = 1) -> MessageAccount:
    """The account of these transfers; what stays on its tile is left out.

    Exchanges of several machines are accounted at once: tile t of machine m is tile ``m * tiles + t``, and nothing goes from one
    machine to another.
    """
    messages, offset, received = _by_receiver(tiles, transfers, machines)
    if len(messages) == 0:
        nothing = np.zeros(machines * tiles, np.int64)
        return MessageAccount(Exchange(messages, nothing, nothing), offset, nothing)
    source, size = _sent(messages["source"], messages["bytes"], offset)
    exchange = Exchange(messages, _per_tile(machines * tiles, source, size), received)
    return MessageAccount(exchange, offset, np.bincount(source, minlength=machines * tiles))


def _by_receiver(tiles: int, transfers: Transfers, machines: int) -> tuple[StructuredArray, Int64s, Int64s]:
    """The messages, their places in the source's memory, and what tiles receive; many are looked at receiver by receiver."""
    received = np.zeros(machines * tiles, np.int64)
    parts = _parts(transfers.destination)
    messages, offsets = [np.zeros(0, MESSAGE)], [np.zeros(0, np.int64)]
    for part in parts:
        some = transfers.crossing(part)
        if len(some.bytes) == 0:
            continue
        sender = some.source if machines == 1 else some.source % tiles
        rows, offset = _messages(some.destination * tiles + sender, some, tiles).rows()
        if machines > 1:
            rows["source"] += rows["destination"] // tiles * tiles
        messages.append(rows)
        offsets.append(offset)
        received += _per_tile(len(received), rows["destination"], rows["bytes"])
    return behind_each_other(messages), np.concatenate(offsets), received


def _parts(destination: Int64s) -> Sequence[slice | Int64s]:
    """All transfers, many of them receiver by receiver."""
    if is_sorted(destination):
        return whole_groups(destination, AT_ONCE)
    if len(destination) < MANY:
        return [slice(None)]
    order = stable_order(destination)
    return [order[part] for part in whole_groups(destination[order], MANY // 4)]


def behind_each_other(messages: Sequence[StructuredArray]) -> StructuredArray:
    """All messages; as bytes, since NumPy joins rows field by field, ten times as slowly."""
    return np.concatenate([rows.view(np.uint8) for rows in messages]).view(MESSAGE)


def share_out(transfers: Transfers, copy: Int64s, copies: int) -> tuple[StructuredArray, Int64s, Int64s]:
    """The messages of each of several copies as if it were alone, sorted by copy; the copy of each; and bytes that each sends.

    `copy` is that of each transfer. What a copy sends to several tiles counts once.
    """
    if len(transfers.bytes) == 0:
        return np.zeros(0, MESSAGE), np.zeros(0, np.int64), np.zeros(copies, np.int64)
    span = int(max(transfers.source.max(), transfers.destination.max())) + 1
    pair = transfers.destination * span + transfers.source
    known = None
    if copies * span * span * (int((transfers.offset + transfers.bytes).max()) + 1) > LARGEST_KEY:
        known, pair = np.unique(pair, return_inverse=True)
    pairs = span * span if known is None else len(known)
    found = _messages(copy * pairs + pair, transfers, pairs)
    messages, offset = found.rows()
    owner, pair = found.destination, found.source  # a message goes to its copy
    messages["destination"], messages["source"] = np.divmod(pair if known is None else known[pair], span)
    source, size = _sent(owner * span + messages["source"], messages["bytes"], offset)
    return messages, owner, _per_tile(copies, source // span, size)


@frozen(eq=False)
class _Messages:
    """Messages as columns, sorted by destination, source and offset."""

    destination: Int64s
    source: Int64s
    offset: Int64s
    bytes: Int64s
    variable: Int64s

    def rows(self) -> tuple[StructuredArray, Int64s]:
        """As rows, with their offsets."""
        rows = np.empty(len(self.bytes), MESSAGE)
        for name in ("destination", "source", "bytes", "variable"):
            rows[name] = getattr(self, name)
        return rows, self.offset


def _messages(group: Int64s, transfers: Transfers, sources: int) -> _Messages:
    """What is sent within each group, which is ``destination * sources + source``."""
    span = int((transfers.offset + transfers.bytes).max()) + 1
    begin, size, variable = _sorted(group, transfers, span)
    code = join_messages.code(len(begin))
    if code is None:
        return joined_by_reach(begin, size, variable, span, sources)
    return _Messages(*filled(code, (begin, size, variable, span, sources), len(begin), 5))


def joined_by_reach(begin: Int64s, size: Int64s, variable: Int64s, span: int, sources: int) -> _Messages:
    """The same of few transfers, sorted by their keys, or where there is no machine code."""
    reach = begin + size
    np.maximum.accumulate(reach, out=reach)
    opens = np.ones(len(begin), bool)
    np.greater(begin[1:], reach[:-1], out=opens[1:])
    if variable.strides[0]:
        opens[1:] |= variable[1:] != variable[:-1]
    starts = np.flatnonzero(opens)
    group, offset = np.divmod(begin[starts], span)
    bytes = reach[np.append(starts[1:], len(begin)) - 1] - begin[starts]
    return _Messages(*np.divmod(group, sources), offset, bytes, variable[starts])


def _sorted(group: Int64s, transfers: Transfers, span: int) -> tuple[Int64s, Int64s, Int64s]:
    """The transfers by group and offset: key of the first byte, bytes, variable."""
    begin = keys(group, transfers.offset, span)
    size, variable = constant(transfers.bytes), constant(transfers.variable)
    if is_sorted(begin):
        return begin, size, variable
    if not size.strides[0] and not variable.strides[0]:
        return in_order(begin), size, variable  # many times faster than finding the order that sorts
    order = np.argsort(begin, kind="stable")  # of parts that rise each, as here, many times faster than the usual way
    return begin[order], size[order] if size.strides[0] else size, variable[order] if variable.strides[0] else variable


def _sent(source: Integers, bytes: Int64s, offset: Int64s) -> tuple[Int64s, Int64s]:
    """Stretches that sources send, by source, and their bytes; what several tiles receive is there once."""
    span = int((offset + bytes).max()) + 1
    begin = keys(source, offset, span)
    once_begin, once_end = union(begin, begin + bytes)
    return once_begin // span, once_end - once_begin


def _per_tile(tiles: int, tile: Integers, bytes: Int64s) -> Int64s:
    # the weights are doubles: exact up to 2**53 bytes
    return np.bincount(tile, weights=bytes, minlength=tiles).astype(np.int64)
