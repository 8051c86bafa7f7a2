"""What a copy from each replica to another sends, and what that costs: all replicas send alike, from and to the same places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from pypoplar.compiler.exchange.copy_plan import all_pieces
from pypoplar.compiler.exchange.exchange_costs import Messages, link_cycles, link_flows, port_cycles
from pypoplar.compiler.exchange.message_account import Transfers, account
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.executable.exchange_account import Exchange
from pypoplar.graph.frozen import ElementRuns
from pypoplar.presets import MOST_OF_DOMAIN
from pypoplar.target import Target


@frozen(eq=False)
class ReplicaExchange:
    """An exchange between replicas, as one has it: senders are its tiles, receivers those of the replica to which it sends."""

    account: Exchange
    cycles: int  # of the slowest link or tile


def plan_replica_exchange(
    target: Target, homes: Homes, source: ElementRuns, destination: ElementRuns, receivers: Sequence[int]
) -> ReplicaExchange:
    """The exchange in which replica r sends `source` to the `destination` of replica ``receivers[r]``; `target` is that of one.

    Messages and ports are accounted on a machine of two replicas, where one sends to the other; the links are those of the machine
    of all, whose IPUs are numbered by replica.
    """
    tiles, ipus = target.getNumTiles(), target.getNumIPUs()
    moved = all_pieces(homes, source, destination)
    pieces = moved.pieces
    arriving = pieces.target_tile + tiles
    sent = Transfers(pieces.source_tile, arriving, moved.variable, pieces.source_offset, pieces.bytes)
    both = account(2 * tiles, sent)
    messages = both.exchange.messages.copy()
    if len(messages) == 0:
        nothing = np.zeros(tiles, np.int64)
        return ReplicaExchange(Exchange(messages, nothing, nothing), 0)
    joined: dict[str, Any] = {"ipu_link_domain_size": MOST_OF_DOMAIN, "gateway_mode": True}  # its links are not asked for
    pair = evolve(target, num_ipus=2 * ipus, global_exchange_constraints=(), **joined)
    crossing = Messages(both.exchange.messages, both.offset)
    one = link_flows(pair, crossing)[:ipus, ipus:]
    flows = np.zeros((len(receivers), ipus, len(receivers), ipus), np.int64)
    for sender, receiver in enumerate(receivers):
        flows[sender, :, receiver] = one
    whole = evolve(target, num_ipus=len(receivers) * ipus)
    links = link_cycles(whole, flows.reshape(len(receivers) * ipus, -1))
    messages["destination"] -= tiles
    own = Exchange(messages, both.exchange.bytes_sent[:tiles], both.exchange.bytes_received[tiles:])
    return ReplicaExchange(own, max(port_cycles(pair, crossing), links))
