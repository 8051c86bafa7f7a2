"""What sync, exchange and host transfers cost, by the formulas of the machine model; see ``docs/model.md``.

Cycles of compute are not here: they come from the code as it runs.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Float64s, Int64s, StructuredArray
from pypoplar.arrays.groups import in_order, is_sorted, whole_groups
from pypoplar.arrays.interval_algebra import keys, overlay, union
from pypoplar.compiler.exchange.pieces import chosen
from pypoplar.compiler.exchange_plan import CopyShares, Pieces
from pypoplar.executable.exchange_account import Exchange
from pypoplar.executable.pod_links import Wiring
from pypoplar.target import Target


@frozen
class ExchangePrices:
    """Prices of moving data that no `Target` getter gives. Marks: S PopLibs' source, I inferred."""

    message_cycles: int = 3  # I: a tile handles at most one contiguous piece in three cycles
    copy_slots: int = 35  # S: a vertex that copies, beside the bytes; BroadcastSelectorSelectCycles for LongMemcpy
    # S: memcpy on a tile by the size of its atoms, bytes a cycle; ConvModel's rearrangement prices have the same order
    narrow_bytes_per_cycle: tuple[tuple[int, int], ...] = ((8, 8), (4, 4), (1, 2))


PRICES = ExchangePrices()
AT_ONCE = 1 << 16  # messages: what the processor's caches hold


@frozen(eq=False)
class Messages:
    """Some messages of an exchange, with where they begin in their source's memory."""

    rows: StructuredArray  # of MESSAGE
    offset: Int64s  # bytes

    def chosen(self, which: Int64s | Bools | slice) -> Messages:
        return Messages(self.rows[which], self.offset[which])


@frozen(eq=False)
class ExchangeCost:
    """What an exchange phase costs."""

    cycles: Int64s  # [tiles]: within the IPUs
    pieces: Int64s  # [tiles]: contiguous pieces that the tile's port handles in one direction, of the one with more
    global_cycles: int  # between IPUs, of the slowest link or tile
    crosses: bool  # whether anything goes from one IPU to another


def price_exchange(
    target: Target, account: Exchange, offset: Int64s, pieces: Int64s, stretches: Int64s | None = None
) -> ExchangeCost:
    """The cost of an exchange phase.

    A tile takes as long as the slower of what it sends and receives, at 4 bytes a cycle, and 3 cycles a contiguous piece. `offset`
    is where each message begins in its source's memory, `pieces` counts the pieces that each tile puts or takes in memory where
    these are more than its messages, `stretches` those that it sends, if they are known. What goes from one IPU to another is an
    exchange of its own, at the pace of the slowest link.
    """
    return price_exchanges(target, account, offset, pieces_within(target, account.messages, pieces), 1, stretches)[0]


def price_exchanges(
    target: Target, account: Exchange, offset: Int64s, pieces: Int64s, machines: int, stretches: Int64s | None = None
) -> list[ExchangeCost]:
    """The costs of exchanges of several machines, whose tiles are numbered through; each as `price_exchange` tells it.

    `pieces` are those that come from the same IPU, as `pieces_within` and `pieces_of_copies` count them.
    """
    tiles = target.getNumTiles()
    messages = Messages(account.messages, offset)
    between = np.zeros(machines, np.int64)
    crosses = np.zeros(machines, bool)
    across = _goes_across(target, messages.rows)
    sent = None if stretches is None else (account.bytes_sent, stretches)
    if across.any():
        between, crosses = _between_ipus(target, messages.chosen(across), machines)
        messages, sent = messages.chosen(~across), None
    exchanges = np.zeros(machines, bool)
    exchanges[messages.rows["destination"] // tiles] = True
    cycles, handled = (ports.reshape(machines, tiles) for ports in _ports(target, messages, pieces, machines, sent))
    cycles[~exchanges], handled[~exchanges] = 0, 0  # pieces alone keep no port busy
    return [ExchangeCost(*of_machine) for of_machine in zip(cycles, handled, between.tolist(), crosses.tolist(), strict=True)]


def pieces_within(target: Target, messages: StructuredArray, pieces: Int64s) -> Int64s:
    """By tile the pieces that do not come from another IPU: all but as many as the tile has messages that cross."""
    across = messages[_goes_across(target, messages)]
    if len(across) == 0:
        return pieces
    ends = np.concatenate((across["source"], across["destination"]))
    left: Int64s = np.maximum(pieces - np.bincount(ends, minlength=len(pieces)), 0)
    return left


def pieces_of_copies(target: Target, shares: CopyShares, machine: Int64s, pieces: Int64s) -> Int64s:
    """The same for copies that share machines: on one where messages cross, what counts of each copy as if it were alone.

    `machine` is that of each copy, `pieces` count those that arrive on each tile of all machines.
    """
    across, tiles = _goes_across(target, shares.messages), target.getNumTiles()
    if not across.any():
        return pieces
    arriving, count = np.unique(shares.arriving_copy * tiles + shares.arriving_tile, return_counts=True)
    outside, copy = shares.messages[across], shares.copy[across] * tiles
    ends, beyond = np.unique(np.concatenate((copy + outside["source"], copy + outside["destination"])), return_counts=True)
    count[np.isin(arriving, ends)] -= beyond[np.isin(ends, arriving)]
    copy, tile = np.divmod(arriving, tiles)
    counts = (count > 0) & np.isin(copy, shares.copy[~across])  # a copy whose messages all cross has no exchange within an IPU
    alone = np.bincount(machine[copy[counts]] * tiles + tile[counts], count[counts], len(pieces)).astype(np.int64)
    crosses = np.zeros(len(pieces) // tiles, bool)
    crosses[machine[shares.copy[across]]] = True
    return np.where(np.repeat(crosses, tiles), alone, pieces)


def _goes_across(target: Target, messages: StructuredArray) -> Bools:
    """bool [messages]: which go from one IPU to another."""
    if target.getNumIPUs() == 1:
        return np.zeros(len(messages), bool)
    per_ipu = target.getTilesPerIPU()
    across: Bools = messages["source"] // per_ipu != messages["destination"] // per_ipu
    return across


def _between_ipus(target: Target, messages: Messages, machines: int) -> tuple[Int64s, Bools]:
    """Of each machine the cycles between its IPUs, and whether anything goes there; the messages are sorted by receiver."""
    tiles = target.getNumTiles()
    cycles, crosses = np.zeros(machines, np.int64), np.zeros(machines, bool)
    machine = messages.rows["destination"] // tiles
    crosses[machine] = True
    for number in np.flatnonzero(crosses):
        outside = messages.chosen(machine == number)
        outside.rows["source"] %= tiles
        outside.rows["destination"] %= tiles
        cycles[number] = max(port_cycles(target, outside), link_cycles(target, link_flows(target, outside)))
    return cycles, crosses


def port_cycles(target: Target, messages: Messages) -> int:
    """Cycles of the busiest port of a tile with messages that all go between IPUs."""
    return int(_ports(target, messages, np.zeros(target.getNumTiles(), np.int64))[0].max())


def _ports(
    target: Target, messages: Messages, pieces: Int64s, machines: int = 1, known: tuple[Int64s, Int64s] | None = None
) -> tuple[Int64s, Int64s]:
    """Cycles that each tile's exchange port is busy with these messages, and the pieces that it handles in one direction.

    What `_sent` says of them may be known.
    """
    tiles, rate = machines * target.getNumTiles(), target.getExchangeBytesPerCycle()
    if len(messages.rows) == 0:
        return np.zeros(tiles, np.int64), np.zeros(tiles, np.int64)
    sent, stretches = known or _sent(messages, tiles)
    received = np.bincount(messages.rows["destination"], weights=messages.rows["bytes"], minlength=tiles).astype(np.int64)
    sharing = target.getTilesPerSharedExchangeBus() if target.supportsExchangeBusSharing() else 1
    if sharing > 1:
        shared = _shared(target, messages, sharing, machines)
        received -= shared - -(-shared // sharing)
    most = np.maximum(stretches, np.bincount(messages.rows["destination"], minlength=tiles))
    handled: Int64s = np.maximum(most, pieces).astype(np.int64)
    cycles: Int64s = np.maximum(np.maximum(-(-sent // rate), -(-received // rate)), handled * PRICES.message_cycles)
    return cycles.astype(np.int64), handled


def _sent(messages: Messages, tiles: int) -> tuple[Int64s, Int64s]:
    """By tile the bytes that it sends, and the stretches of memory that these are; a multicast is sent once."""
    span = int((messages.offset + messages.rows["bytes"]).max()) + 1
    begin = keys(messages.rows["source"], messages.offset, span)
    once_begin, once_end = union(begin, begin + messages.rows["bytes"])
    source = once_begin // span
    bytes = np.bincount(source, weights=once_end - once_begin, minlength=tiles).astype(np.int64)
    return bytes, np.bincount(source, minlength=tiles)


def _shared(target: Target, messages: Messages, sharing: int, machines: int) -> Int64s:
    """Bytes by tile that all tiles of its super tile receive alike: these come over all their buses together."""
    tiles, per_ipu = target.getNumTiles(), target.getTilesPerIPU()
    groups = -(-per_ipu // sharing)  # of an IPU
    ipu, tile = np.divmod(np.arange(machines * tiles), per_ipu)
    group, member = ipu * groups + tile // sharing, tile % sharing
    to = messages.rows["destination"]
    by_group = np.zeros(machines * tiles // per_ipu * groups, np.int64)
    for part in whole_groups(group[to], AT_ONCE) if is_sorted(to) else [slice(None)]:
        some = messages.chosen(part)
        pair = group[to[part]] * tiles + some.rows["source"] % tiles
        pair, bytes = _received_by_all(some, member[to[part]], pair, sharing)
        by_group += np.bincount(pair // tiles, weights=bytes, minlength=len(by_group)).astype(np.int64)
    shared: Int64s = by_group[group]
    return shared


def _received_by_all(messages: Messages, member: Int64s, pair: Int64s, members: int) -> tuple[Int64s, Int64s]:
    """What all members of a super tile receive alike: pairs of super tile and source, and bytes."""
    span = int((messages.offset + messages.rows["bytes"]).max()) + 1
    begin = keys(pair, messages.offset, span)
    end = begin + messages.rows["bytes"]
    first = member == 0
    common_begin, common_end = union(begin[first], end[first])
    for number in range(1, members):
        this = member == number
        common = overlay(common_begin, common_end, *union(begin[this], end[this]))
        common_begin, common_end = common.begin, common.end
    return common_begin // span, common_end - common_begin


def link_flows(target: Target, messages: Messages) -> Int64s:
    """int64 [IPUs, IPUs]: bytes from one to the other. What several tiles of an IPU receive crosses once."""
    ipus, per_ipu, tiles = target.getNumIPUs(), target.getTilesPerIPU(), target.getNumTiles()
    span = int((messages.offset + messages.rows["bytes"]).max()) + 1
    to = messages.rows["destination"].astype(np.int64) // per_ipu
    begin = keys(to * tiles + messages.rows["source"], messages.offset, span)
    once_begin, once_end = union(begin, begin + messages.rows["bytes"])
    to, source = np.divmod(once_begin // span, tiles)
    flow = np.bincount(source // per_ipu * ipus + to, weights=once_end - once_begin, minlength=ipus * ipus)
    return flow.astype(np.int64).reshape(ipus, ipus)


def link_cycles(target: Target, flows: Int64s) -> int:
    """Cycles for the bytes ``flows[source, destination]`` between IPUs.

    Flows are routed over IPU-Links and gateways, and take as long as the fullest link; one has half its bandwidth for each
    direction. The flows that a `GlobalExchangeConstraint` names share its bandwidth instead.
    """
    free = flows.copy()
    seconds = 0.0
    for limit in target.getGlobalExchangeConstraints():
        named = [(flow.src, flow.dst) for flow in limit.flows if max(flow.src, flow.dst) < len(flows)]
        for flow in named:
            free[flow] = 0
        seconds = max(seconds, 8 * sum(int(flows[pair]) for pair in named) / limit.bandwidth)
    fullest = float(Wiring.of(target).links().busy(free, link_bandwidths(target)).max())
    return math.ceil(max(seconds, fullest) * target.getTileClockFrequency())


def link_bandwidths(target: Target) -> Float64s:
    """float64 [`LinkKind`]: bytes that links carry in a second, one way."""
    both = (target.ipu_link_bytes_per_second, target.gateway_bytes_per_second, target.gateway_link_bytes_per_second)
    ways: Float64s = np.array(both) / 2
    return ways


def sync_cycles(target: Target, *, between_ipus: bool = False) -> int:
    """Cycles of the sync before a phase, as the farthest tile sees it; between IPUs where the phase needs it."""
    return target.getGlobalSyncCycles() if between_ipus else target.getMaxIPUSyncDelay()


def vertex_side_pieces(tiles: int, arriving: Pieces, gathered: Pieces) -> Int64s:
    """Contiguous pieces that each tile receives for its vertices: each is written straight to its place.

    `arriving` comes into the landing area, from where `gathered` would take it. Departing pieces are counted the same way, turned.
    """
    landed = chosen(gathered, gathered.source_in_buffer)
    if len(arriving.bytes) == 0:
        return np.zeros(tiles, np.int64)
    span = int((arriving.target_offset + arriving.bytes).max()) + 1
    begin = in_order(keys(arriving.target_tile, arriving.target_offset, span))
    from_key = keys(landed.target_tile, landed.source_offset, span)
    first = np.searchsorted(begin, from_key, "right") - 1
    last = np.searchsorted(begin, from_key + landed.bytes, "left")
    touched = np.zeros(len(begin) + 1, np.int64)
    np.add.at(touched, first, 1)
    np.add.at(touched, last, -1)
    left = begin[np.cumsum(touched[:-1]) == 0] // span
    pieces: Int64s = np.bincount(left, minlength=tiles)
    return pieces + np.bincount(landed.target_tile, weights=last - first, minlength=tiles).astype(np.int64)


def rearrange_cycles(target: Target, pieces: Pieces, tiles: int) -> Int64s:
    """Cycles per tile of the pieces that move within it, as the memcpy they are; pieces from other tiles cost nothing here."""
    local = pieces.source_tile == pieces.target_tile
    size, tile = pieces.bytes[local], pieces.target_tile[local]
    aligned = (pieces.source_offset[local] | pieces.target_offset[local] | size) & 7
    rate = np.full(len(size), PRICES.narrow_bytes_per_cycle[-1][1])
    rate[aligned & 3 == 0] = PRICES.narrow_bytes_per_cycle[1][1]
    rate[aligned == 0] = target.memcpy_bytes_per_cycle
    cycles: Int64s = np.bincount(tile, weights=-(-size // rate), minlength=tiles).astype(np.int64)
    cycles[cycles > 0] += PRICES.copy_slots * target.getNumWorkerContexts()
    return cycles
