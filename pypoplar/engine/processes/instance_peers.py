"""The instances of poprun, as each of them sees all: what library and data need of them beside engines."""

from __future__ import annotations

import contextlib
from typing import Any

from pypoplar.codelet.ir.terms import line_text
from pypoplar.engine.processes import instance_environment
from pypoplar.engine.processes.coming_together import gathered
from pypoplar.engine.processes.ending import end_together
from pypoplar.engine.processes.mpi import check_launcher, load_mpi
from pypoplar.engine.processes.peers import Peers
from pypoplar.engine.processes.shares import Shares
from pypoplar.engine.processes.start_watch import watched_start
from pypoplar.errors import InvalidOption
from pypoplar.graph.location import caller_location
from pypoplar.options import EngineOptions

_found: dict[int, Peers] = {}  # by the handle of the communicator


def peers_of(comm: Any, replicas: int, timeout: float) -> Peers:
    """The processes of a communicator, made once for each; all of them call it."""
    from mpi4py import MPI

    handle = int(MPI._handleof(comm))
    shares = Shares.of(replicas, comm.Get_size())
    if handle not in _found:
        with watched_start(shares.name(comm.Get_rank()), line_text(caller_location()), timeout):
            _found[handle] = Peers(comm, shares, timeout)
        end_together(_found[handle])
    peers = _found[handle]
    peers.shares, peers.timeout = shares, timeout
    return peers


def instance_peers() -> Peers | None:
    """All instances; None where there is only one. The first call is made by all of them."""
    if not instance_environment.is_set() or instance_environment.instances() == 1:
        return None
    timeout, replicas = float(EngineOptions.parse().mpi_timeout), instance_environment.TOTAL_REPLICAS.value()
    name = Shares(replicas, instance_environment.instances()).name(instance_environment.instance())
    with contextlib.nullcontext() if _found else watched_start(name, line_text(caller_location()), timeout):
        mpi = load_mpi("a program in several instances of poprun")
    check_launcher(mpi)
    comm = mpi.COMM_WORLD
    if comm.Get_size() != instance_environment.instances():
        raise InvalidOption(
            f"poprun has told this process of {instance_environment.instances()} instances, and MPI has {comm.Get_size()}: "
            "the launcher and mpi4py may have different MPIs"
        )
    return peers_of(comm, replicas, timeout)


def from_first_instance(value: Any, what: str) -> Any:
    """What the first instance has of a value; all of them ask."""
    peers = instance_peers()
    if peers is None:
        return value
    line = line_text(caller_location())
    return gathered(peers, value, what, lambda: f"{what} [{line}]")[0]
