"""Memory that processes of one machine share: what replicas send lies there, and others take it from there.

Each exchange has two buffers for each replica that sends to another process, which take turns: while the receiver still reads one,
the sender fills the other, and before it fills the first again both have met. So a meeting is all that an exchange needs.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray, Bytes
from pypoplar.engine.processes.coming_together import gathered
from pypoplar.engine.processes.peers import Peers
from pypoplar.engine.processes.shares import Shares
from pypoplar.executable.executable import Executable
from pypoplar.types import BY_NAME

BOOT = Path("/proc/sys/kernel/random/boot_id")
LINE = 64  # bytes: no two buffers are in one line of a cache
TOKEN = 16  # bytes at the beginning, by which others know that it is this segment


@frozen(eq=False)
class SharedSegments:
    """The segments of this process and of those whose it can read."""

    places: Mapping[tuple[int, int], int]  # by service and sender: where its buffers begin, in the segment of its process
    bytes: Mapping[int, Bytes]  # by process
    readers: frozenset[tuple[int, int]]  # processes, and those whose segments they read

    def buffers(self, shares: Shares, service: int, sender: int, receiver: int, like: AnyArray) -> tuple[AnyArray, AnyArray] | None:
        """The two buffers, each like an array, of what one replica sends to another; None where that goes by messages."""
        process = shares.holder(sender)
        if (shares.holder(receiver), process) not in self.readers or (service, sender) not in self.places:
            return None
        begin, size = self.places[service, sender], like.nbytes
        first, second = (self.bytes[process][at : at + size].view(like.dtype) for at in (begin, begin + _padded(size)))
        return first, second


NO_SEGMENTS = SharedSegments({}, {}, frozenset())


def share_segments(peers: Peers, executable: Executable, line: str) -> SharedSegments:
    """The segments of an executable's exchanges; all processes call it."""
    places, totals = _places(executable, peers.shares)
    if not places:
        return NO_SEGMENTS

    def doing() -> str:
        return f"the exchange of what machines processes are on [{line}]"

    own = _new_segment(totals.get(peers.rank, TOKEN))
    told = gathered(peers, None if own is None else own.told, "machines", doing)
    found: dict[int, Any] = {}
    for process, segment in enumerate(told):
        if process != peers.rank and segment is not None and own is not None:
            found[process] = _read_segment(own.told, segment, totals.get(process, TOKEN))
    read = {process: whole for process, whole in found.items() if whole is not None}
    reached = gathered(peers, sorted(read), "machines", doing)
    if own is not None:
        os.close(own.told.file)
        read[peers.rank] = own.bytes
    return SharedSegments(places, read, frozenset((reader, of) for reader, others in enumerate(reached) for of in others))


def _places(executable: Executable, shares: Shares) -> tuple[dict[tuple[int, int], int], dict[int, int]]:
    """Where the buffers of each sender to another process begin; and the bytes of the segment of each process that has some."""
    places: dict[tuple[int, int], int] = {}
    totals: dict[int, int] = {}
    for number, service in enumerate(executable.services):
        if "receivers" not in service:
            continue
        stream = executable.streams[service["sent"]]
        size = _padded(stream.elements * BY_NAME[stream.type].dtype.itemsize)
        for sender, receiver in enumerate(service["receivers"]):
            process = shares.holder(sender)
            if size and process != shares.holder(receiver):
                places[number, sender] = totals.get(process, _padded(TOKEN))
                totals[process] = places[number, sender] + 2 * size
    return places, totals


def _padded(size: int) -> int:
    return -(-size // LINE) * LINE


@frozen
class _Told:
    """What others need to find a segment."""

    machine: str
    process: int  # for the system
    file: int
    token: bytes


@frozen(eq=False)
class _Own:
    """A segment of this process."""

    told: _Told
    bytes: Bytes


def _new_segment(size: int) -> _Own | None:
    """A segment without a name, which is gone with the last process that has it; None where the system has none."""
    with contextlib.suppress(OSError):
        if hasattr(os, "memfd_create"):
            token = os.urandom(TOKEN)
            machine = BOOT.read_text(encoding="ascii")
            file = os.memfd_create("pypoplar")
            os.ftruncate(file, size)
            whole = np.frombuffer(mmap.mmap(file, size), np.uint8)
            whole[:TOKEN] = np.frombuffer(token, np.uint8)
            return _Own(_Told(machine, os.getpid(), file, token), whole)
    return None


def _read_segment(own: _Told, other: _Told, size: int) -> Bytes | None:
    """Another process's segment, to read; None where that is on another machine, or another user's, or otherwise hidden."""
    if other.machine != own.machine:
        return None
    with contextlib.suppress(OSError):
        file = os.open(f"/proc/{other.process}/fd/{other.file}", os.O_RDONLY)
        try:
            if os.fstat(file).st_size == size:
                whole = np.frombuffer(mmap.mmap(file, size, prot=mmap.PROT_READ), np.uint8)
                if whole[:TOKEN].tobytes() == other.token:  # else it is a process of another container that has the same number
                    return whole
        finally:
            os.close(file)
    return None
