"""The meeting of replicas that several processes hold: an Allreduce, and what they send to each other.

That lies in memory which processes of one machine share; between machines it goes by a persistent request for each pair of
processes.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from attrs import define, evolve, field

from pypoplar.arrays.dtypes import AnyArray, Bytes, Int64s
from pypoplar.engine.faults import Fault
from pypoplar.engine.processes.broadcast_checks import BroadcastChecks
from pypoplar.engine.processes.coming_together import BEGINS, HOST, different_places, first_failure
from pypoplar.engine.processes.peers import BrokenMeetingError, Peers, together
from pypoplar.engine.processes.shared_segments import SharedSegments
from pypoplar.engine.replicas.meeting import Failure
from pypoplar.engine.replicas.parting import place
from pypoplar.engine.streams import HostStreams
from pypoplar.errors import ApplicationRuntimeError
from pypoplar.executable.executable import Executable
from pypoplar.interface.layout import NOTHING

Told = TypeVar("Told")
PATIENCE = 0.6  # seconds for which a process that has failed waits for the others, so that all raise what it has raised


@define(eq=False)
class _Turns:
    """A stream with two buffers in memory that another process has, too: it has the one or the other."""

    streams: HostStreams
    number: int
    buffers: tuple[AnyArray, AnyArray]
    _addresses: tuple[int, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        first, second = (buffer.ctypes.data for buffer in self.buffers)
        self._addresses = first, second

    def take(self, which: int) -> None:
        """Let the stream have one of them."""
        self.streams.move(self.number, self.buffers[which], self._addresses[which])


@define(eq=False)
class _Route:
    """How what replicas send at a service goes: between replicas of this process, and to and from others."""

    inside: list[tuple[AnyArray, AnyArray]]  # from and to
    packed: list[tuple[Bytes, list[Bytes]]]  # what goes to a process in a buffer, and its parts
    unpacked: list[tuple[Bytes, list[Bytes]]]
    requests: list[Any]
    senders: list[_Turns]  # by shared memory; they fill one buffer while receivers read the other
    receivers: list[_Turns]
    turn: int = 0  # the buffer of senders: all processes have exchanged as often

    def take_turns(self) -> None:
        """Let receivers have what senders have filled, and senders the other buffer."""
        for one in self.receivers:
            one.take(self.turn)
        self.turn = 1 - self.turn
        for one in self.senders:
            one.take(self.turn)


@define(eq=False)
class MpiMeeting:
    """All replicas of a program, in equal shares of the processes of a communicator."""

    peers: Peers
    executable: Executable
    error_of: Callable[[Fault], BaseException]
    checks: BroadcastChecks
    segments: SharedSegments
    ends_together: bool = True
    _routes: dict[int, _Route] = field(factory=dict)
    _line: str = ""  # the user's line that has called run

    @property
    def ours(self) -> range:
        """The numbers of the replicas that this process runs."""
        return self.peers.shares.of_process(self.peers.rank)

    # Coming together

    def begin(self, program: int, line: str) -> None:
        """All processes begin to run a program; an error where they run different ones, or BROADCAST streams differ."""
        self._line = line
        self._meet(BEGINS - program, BEGINS - program, 0, self.checks.of_arrays(program))

    def come(self, services: Int64s, latest: int) -> int | None:
        """The latest clock of all replicas; None if not all came to the same service."""
        lowest, highest = int(services.min()), int(services.max())
        digest = self.checks.of_chunks() if highest == NOTHING else 0
        return self._meet(lowest, highest, latest, digest)

    def _meet(self, lowest: int, highest: int, latest: int, digest: int) -> int | None:
        words = (0, latest, highest, -lowest, digest, -digest)
        failed, last, high, low, digests, others = self.peers.greatest(words, lambda: self._place(highest))
        if failed:
            raise self._first(())
        if high != -low:
            if -low <= HOST:  # at least one process is not within a run
                raise different_places(self.peers, self._place(lowest))
            return None
        if digests != -others:
            self._compare(highest <= BEGINS)
        return last

    def _place(self, service: int) -> str:
        """Where a process stands, in words."""
        if service <= BEGINS:
            return f"the beginning of program {BEGINS - service} [{self._line}]"
        what = place(self.executable, service)
        return f"{what} of a run [{self._line}]" if service == NOTHING else what

    def _compare(self, begins: bool) -> None:
        found = self.checks.agree(self._gathered(self.checks.told(begins)))
        if found is None:
            return
        other, first = self.peers.name(found.process), self.peers.name(0)
        if found.stream:
            text = (
                f"{found.name} is BROADCAST: all replicas receive the same, but {other} gives other values than {first}; "
                "make it REPLICATE, or give the same (option pypoplar.mpi_checks)"
            )
        else:
            text = (
                f"{found.name} is not the same on {other} as on {first}: all instances begin with the same weights; call "
                "torch.manual_seed with one number before the model is made, or load one state_dict (option pypoplar.mpi_checks)"
            )
        raise together(ApplicationRuntimeError(text), found.process)

    def _gathered(self, told: Told) -> list[Told]:
        return self.peers.gather(told, lambda: "the comparison of what instances have")

    def gather(self, told: Sequence[Told]) -> Sequence[Told]:
        """What all replicas say, in order."""
        return [each for of_process in self._gathered([*told]) for each in of_process]

    # Failures

    def failed(self, failures: Sequence[Failure]) -> Fault:
        """Raise what the first failure of all processes was; what this one has found, if the others do not come to hear it."""
        first = min(failures)
        error = first.error if first.fault is None else self.error_of(first.fault)
        assert error is not None
        if isinstance(error, BrokenMeetingError) or self.peers.broken:
            raise error
        if not isinstance(error, Exception):  # Ctrl-C
            self.peers.broken = True
            raise error
        try:
            self.peers.greatest((1,), lambda: f"the end of a run that failed [{self._line}]", PATIENCE)
        except BrokenMeetingError:
            raise error from error.__cause__
        raise self._first([evolve(failure, error=error) if failure is first else failure for failure in failures])

    def _first(self, failures: Sequence[Failure]) -> BaseException:
        """The first failure of all processes as an error."""
        return first_failure(self.peers, min(failures, default=None))

    def cancel(self) -> None:
        """Let what waits for others come back, from another thread."""
        self.peers.cancel()

    # Exchanges

    def prepare(self, services: Sequence[Mapping[str, Any]], streams: Sequence[HostStreams]) -> None:
        """Make the buffers and requests of all exchanges, once; `streams` are those of each replica of this process."""
        for number, service in enumerate(services):
            if "receivers" in service and number not in self._routes:
                self._routes[number] = self._new_route(number, service, streams)

    def _new_route(self, number: int, service: Mapping[str, Any], streams: Sequence[HostStreams]) -> _Route:
        ours, holder = self.ours, self.peers.shares.holder
        outward: dict[int, list[Bytes]] = {}
        inward: dict[int, list[Bytes]] = {}
        inside, senders, receivers = [], list[_Turns](), list[_Turns]()
        for sender, receiver in enumerate(service["receivers"]):  # in the same order on both sides
            if sender not in ours and receiver not in ours:
                continue
            sent, received = service["sent"], service["received"]
            source = streams[sender - ours.start].array(sent) if sender in ours else None
            target = streams[receiver - ours.start].array(received) if receiver in ours else None
            if source is not None and target is not None:
                inside.append((source, target))
                continue
            own = target if source is None else source
            assert own is not None
            buffers = self.segments.buffers(self.peers.shares, number, sender, receiver, own)
            if source is not None and buffers is not None:
                senders.append(_Turns(streams[sender - ours.start], sent, buffers))
            elif buffers is not None:
                receivers.append(_Turns(streams[receiver - ours.start], received, buffers))
            elif source is not None:
                outward.setdefault(holder(receiver), []).append(_bytes(source))
            else:
                inward.setdefault(holder(sender), []).append(_bytes(own))
        for one in senders:
            one.take(0)
        return self._with_requests(inside, outward, inward, senders, receivers)

    def _with_requests(
        self,
        inside: list[tuple[AnyArray, AnyArray]],
        outward: Mapping[int, list[Bytes]],
        inward: Mapping[int, list[Bytes]],
        senders: list[_Turns],
        receivers: list[_Turns],
    ) -> _Route:
        out = {process: _buffer(parts) for process, parts in outward.items() if sum(map(len, parts))}
        into = {process: _buffer(parts) for process, parts in inward.items() if sum(map(len, parts))}
        requests = [self.peers.receiving(buffer, process) for process, buffer in into.items()]
        requests += [self.peers.sending(buffer, process) for process, buffer in out.items()]
        packed = [(buffer, outward[process]) for process, buffer in out.items() if len(outward[process]) > 1]
        unpacked = [(buffer, inward[process]) for process, buffer in into.items() if len(inward[process]) > 1]
        route = _Route(inside, packed, unpacked, requests, senders, receivers)
        weakref.finalize(route, _free, requests).atexit = False
        return route

    def exchange(self, number: int, service: Mapping[str, Any], streams: Sequence[HostStreams]) -> None:
        """Bring what each replica has sent to the one to which it sends."""
        route = self._routes[number]
        for buffer, parts in route.packed:
            np.concatenate(parts, out=buffer)
        if route.requests:
            kind = type(route.requests[0])
            kind.Startall(route.requests)
        for array, target in route.inside:
            np.copyto(target, array)
        route.take_turns()
        if route.requests:
            self.peers.wait(lambda: bool(kind.Testall(route.requests)), lambda: self._place(number))
        for buffer, parts in route.unpacked:
            begin = 0
            for part in parts:
                part[:] = buffer[begin : begin + len(part)]
                begin += len(part)


def _free(requests: Sequence[Any]) -> None:
    """Let MPI forget requests, which it does not do with the objects of mpi4py."""
    for request in requests:
        with contextlib.suppress(Exception):  # MPI may have ended
            request.Free()


def _bytes(array: AnyArray) -> Bytes:
    return array.view(np.uint8).reshape(-1)


def _buffer(parts: Sequence[Bytes]) -> Bytes:
    """What a message is sent from, or received in: one part where it is, several packed."""
    return parts[0] if len(parts) == 1 else np.empty(sum(map(len, parts)), np.uint8)
