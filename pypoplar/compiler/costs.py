"""What sync, exchange and host transfers cost, by the formulas of the machine model; see ``docs/model.md``.

Cycles of compute are not here: they come from the code as it runs.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.compiler.plan import Array, Exchange, Pieces
from pypoplar.target import Target


@frozen
class ExchangePrices:
    """Prices of the exchange that no `Target` getter gives. Marks: S PopLibs' source, I inferred."""

    message_cycles: int = 3  # I: a tile handles at most one contiguous piece in three cycles
    # S: memcpy on a tile by the size of its atoms; ConvModel's rearrangement prices have the same ratio
    narrow_bytes_per_cycle: tuple[tuple[int, int], ...] = ((8, 8), (4, 4), (1, 2))


PRICES = ExchangePrices()


def exchange_cycles(target: Target, account: Exchange) -> Array:
    """Cycles of an exchange phase per tile: the slower of what it sends and receives, at 4 bytes a cycle, and 3 a piece."""
    rate = target.getExchangeBytesPerCycle()
    sent = -(-account.bytes_sent // rate)
    received = -(-account.bytes_received // rate)
    tiles = len(sent)
    pieces = np.maximum(np.bincount(account.messages["destination"], minlength=tiles), account.pieces_sent)
    cycles: Array = np.maximum(np.maximum(sent, received), pieces * PRICES.message_cycles).astype(np.int64)
    return cycles


def crosses_ipus(target: Target, account: Exchange) -> bool:
    """Whether any message goes from one IPU to another."""
    if target.getNumIPUs() == 1:
        return False
    tiles = target.getTilesPerIPU()
    return bool(np.any(account.messages["source"] // tiles != account.messages["destination"] // tiles))


def sync_cycles(target: Target, account: Exchange | None = None) -> int:
    """Cycles of the sync before a phase, as the farthest tile sees it; between IPUs where the phase needs it."""
    if account is not None and crosses_ipus(target, account):
        return target.getGlobalSyncCycles()
    return target.getMaxIPUSyncDelay()


def rearrange_cycles(target: Target, pieces: Pieces, tiles: int) -> Array:
    """Cycles per tile of the pieces that move within it, as the memcpy they are; pieces from other tiles cost nothing here."""
    here = pieces.source_tile == pieces.target_tile
    size = pieces.bytes[here]
    aligned = (pieces.source_offset[here] | pieces.target_offset[here] | size) & 7
    rate = np.full(len(size), PRICES.narrow_bytes_per_cycle[-1][1])
    rate[aligned & 3 == 0] = PRICES.narrow_bytes_per_cycle[1][1]
    rate[aligned == 0] = target.memcpy_bytes_per_cycle
    cycles = np.bincount(pieces.target_tile[here], weights=-(-size // rate), minlength=tiles)
    return cycles.astype(np.int64)


def host_cycles(target: Target, bytes: int, *, to_device: bool) -> int:
    """Cycles of one stream copy: its bytes over the host link plus a host sync."""
    rate = target.host_write_bytes_per_second if to_device else target.host_read_bytes_per_second
    seconds = bytes / rate + target.host_sync_seconds
    return round(seconds * target.getTileClockFrequency())
