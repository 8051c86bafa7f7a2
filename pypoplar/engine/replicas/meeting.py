"""What replicas do together where they meet. Runners, drivers and move lists know nothing of who takes part.

Here all replicas are of one process; `pypoplar.engine.processes.mpi_meeting` stands behind the same calls, which each process
makes for its own replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.engine.faults import Fault
from pypoplar.engine.streams import HostStreams

Told = TypeVar("Told")

FAULT, RAISED, BROKEN_OFF = range(3)  # what ends a run: faults are seen before services are done, in which errors are raised


@frozen(order=True)
class Failure:
    """What ended a run on some of the replicas; the least one is the first, however replicas are divided among processes."""

    round: int  # since the last meeting: in each a replica comes to one service
    kind: int  # FAULT, RAISED or BROKEN_OFF
    clock: int  # of a fault
    replica: int
    fault: Fault | None = field(default=None, eq=False, order=False)
    error: BaseException | None = field(default=None, eq=False, order=False)


class Meeting(Protocol):
    """All replicas of a program; those of this process are `ours`."""

    @property
    def ours(self) -> range:
        """The numbers of the replicas that this process runs."""

    @property
    def ends_together(self) -> bool:
        """Whether the end of a run is a meeting, too, as a replica of another process may have failed."""

    def come(self, services: Int64s, latest: int) -> int | None:
        """The latest clock of all replicas, with the services to which `ours` came; None if not all came to the same."""

    def gather(self, told: Sequence[Told]) -> Sequence[Told]:
        """What all replicas say, in order, of what `ours` say."""

    def exchange(self, number: int, service: Mapping[str, Any], streams: Sequence[HostStreams]) -> None:
        """Bring what each replica has sent to the one to which it sends, by a service; `streams` are those of `ours`."""

    def failed(self, failures: Sequence[Failure]) -> Fault:
        """The fault that ended the run; what was raised is raised. `failures` are those of `ours` in a round, at least one."""

    def cancel(self) -> None:
        """Let what waits for others come back, from another thread."""


@frozen
class OneProcess:
    """A meeting of so many replicas, which are all of this process."""

    replicas: int
    ends_together: bool = False

    @property
    def ours(self) -> range:
        """All of them."""
        return range(self.replicas)

    def come(self, services: Int64s, latest: int) -> int | None:
        """The latest clock, which is given."""
        return None if bool((services != services[0]).any()) else latest

    def gather(self, told: Sequence[Told]) -> Sequence[Told]:
        """What is told itself."""
        return told

    def exchange(self, number: int, service: Mapping[str, Any], streams: Sequence[HostStreams]) -> None:
        """Copy each array to its receiver's."""
        for own, receiver in zip(streams, service["receivers"], strict=True):
            np.copyto(streams[receiver].array(service["received"]), own.array(service["sent"]))

    def failed(self, failures: Sequence[Failure]) -> Fault:
        """The first one: that with the least time; of several the lowest."""
        first = min(failures)
        if first.error is not None:
            raise first.error
        assert first.fault is not None
        return first.fault

    def cancel(self) -> None:
        """Nobody waits."""


AGREED = "_pypoplar_agreed"  # an attribute of an error: the number of the process of which it is


def agreed(error: Any, process: int = 0) -> Any:
    """An error that all processes raise, as they have found it together."""
    error.__dict__[AGREED] = process
    return error
