"""Flattens what replicas do together, and says of a program what its replicas do not have in common."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from pypoplar.arrays.dtypes import Int64s
from pypoplar.codelet.ir.terms import line_text
from pypoplar.compiler.exchange.exchange_costs import sync_cycles
from pypoplar.compiler.exchange.host_copies import host_pieces
from pypoplar.compiler.exchange.replica_exchange import plan_replica_exchange
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.compiler.flattening.flattening_state import Flattening
from pypoplar.compiler.flattening.rules import Leaf, Rules
from pypoplar.executable.replication import Replication
from pypoplar.executable.steps import StaticStep
from pypoplar.graph.frozen import ElementRuns, FrozenGraph
from pypoplar.graph.host_links import ReplicatedStreamMode
from pypoplar.graph.tiles import GraphReplicas
from pypoplar.interface.opcodes import Opcode, ProgramRow
from pypoplar.program.replicating import AssumeEqualAcrossReplicas, CrossReplicaCopy


def flatten_cross_replica_copy(flattening: Flattening, copy: CrossReplicaCopy) -> None:
    """What is sent is brought to a buffer of the engine's, and what is received comes from another: that costs nothing.

    The time of the exchange is that of the step that takes it out of the buffer, once all replicas have met.
    """
    plan = plan_replica_exchange(flattening.target, flattening.homes, copy.source.runs(), copy.destination.runs(), copy.receivers)
    name = copy.name or "CrossReplicaCopy"
    exchange = flattening.exchange(name, "replicas", plan.account)
    sync, nothing = sync_cycles(flattening.target, between_ipus=True), np.zeros(0, np.int64)
    own = StaticStep(name, "copy", sync, nothing, -1, exchange, depth=flattening.depth, global_exchange_cycles=plan.cycles)
    step = flattening.step(evolve(own, joins_ipus=True))
    sent = flattening.fetch(copy.source)
    received = flattening.internal_stream(copy.destination.elementType(), copy.destination.numElements())
    details = {"sent": sent, "received": received, "receivers": list(copy.receivers), "step": step}
    flattening.serve("exchange", name=name, location=line_text(copy.location), **details)
    flattening.transfer(received, copy.destination, inward=True, step=step)


def flatten_assume_equal(flattening: Flattening, claim: AssumeEqualAcrossReplicas) -> None:
    if flattening.replicas > 1:
        stream = flattening.fetch(claim.tensor)
        flattening.serve("agree", stream=stream, name=claim.tensor._described(), location=line_text(claim.location))


def make_replication(flattening: Flattening, replicas: GraphReplicas) -> Replication | None:
    """What the replicas of a program do not have in common; None where there is only one."""
    if replicas.count == 1:
        return None
    streams = flattening.host.streams.values()
    broadcast = [flattening.add_stream(stream) for stream in streams if stream.replicatedMode() is ReplicatedStreamMode.BROADCAST]
    return Replication(
        factor=replicas.count,
        index=_index_places(flattening.graph, flattening.homes, replicas.index),
        broadcast=tuple(sorted(broadcast)),
        parted=tuple(sorted(replicas.parted & flattening.host.writes.keys())),
        branches=_branches(flattening),
    )


def _index_places(graph: FrozenGraph, homes: Homes, constants: list[int]) -> Int64s:
    """[places, 2]: tile and offset of the replica's number, of constants that are used."""
    used = sorted(set(constants) & set(homes.variable.tolist()))
    first = graph.variables.first[used]
    one = np.ones(len(used), np.int64)
    pieces = host_pieces(homes, ElementRuns(first, one, one))
    return np.column_stack((pieces.tile, pieces.offset))


def _branches(flattening: Flattening) -> tuple[tuple[int, str], ...]:
    """The rows that decide by a value, and the programs to which they belong, as messages call them."""
    found = []
    for number, (row, owner) in enumerate(zip(flattening.rows, flattening.row_owners, strict=True)):
        if row[ProgramRow.OPERATION] in (Opcode.BRANCH, Opcode.UNLESS_EQUAL) and owner is not None:
            predicate = owner.reads()[0]._described()
            found.append((number, f"{type(owner).__name__} on {predicate}, made at {line_text(owner.location)}"))
    return tuple(found)


RULES: Rules = {
    CrossReplicaCopy: Leaf(flatten_cross_replica_copy, is_steps=True),
    AssumeEqualAcrossReplicas: Leaf(flatten_assume_equal),
}
