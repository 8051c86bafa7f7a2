"""Whether all processes give their replicas the same of what these have in common: digests of BROADCAST streams and of weights."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence

from attrs import define, field, frozen

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.engine.streams import HostStreams
from pypoplar.executable.executable import Executable

MOST = 1 << 26  # bytes of an array, from its position on, that are compared at each run
KEPT = 1 << 16  # chunks of callbacks in a run that are compared


@define(eq=False)
class BroadcastChecks:
    """BROADCAST streams of the first replica of this process, which has what all of them have, and what the host has written."""

    executable: Executable
    streams: HostStreams
    wanted: bool
    _digests: dict[str, list[int]] = field(factory=dict)  # by stream, of the run that goes on
    _written: dict[str, int] = field(factory=dict)  # by what messages call it, of what the host has written since they were equal
    _on_device: Callable[[], Mapping[str, int]] | None = None  # the same of what the device has now

    def __attrs_post_init__(self) -> None:
        if self.wanted and self._numbers():
            self.streams.watch = self._served

    def _numbers(self) -> Sequence[int]:
        replication = self.executable.replication
        return () if replication is None else replication.broadcast

    def _served(self, number: int, chunk: AnyArray) -> None:
        """A callback has filled a chunk."""
        if number in self._numbers():
            digests = self._digests.setdefault(self.executable.streams[number].name, [])
            if len(digests) < KEPT:
                digests.append(zlib.crc32(chunk.tobytes()))

    def keep_equal(self, written: Mapping[str, int], on_device: Callable[[], Mapping[str, int]]) -> None:
        """Compare digests of what the host of each process has written, by names for messages, from the next run on.

        One process alone may write what all of them have: where digests differ, those of what is `on_device` count.
        """
        self._written |= written
        self._on_device = on_device

    def of_arrays(self, program: int) -> int:
        """A digest of what a program will find in arrays; a run begins here."""
        self._digests.clear()
        if self.wanted:
            used = set(self.executable.entry_streams[program])
            for number in self._numbers():
                if number in used and (left := self.streams.left(number)) is not None:
                    self._digests[self.executable.streams[number].name] = [zlib.crc32(left[:MOST].tobytes())]
        return self._digest()

    def of_chunks(self) -> int:
        """A digest of what callbacks have given in the run."""
        return self._digest()

    def _digest(self) -> int:
        return zlib.crc32(repr((sorted(self._digests.items()), sorted(self._written.items()))).encode()) if self.wanted else 0

    def told(self, begins: bool) -> Told:
        """What others compare with theirs, as a run begins, or later, when only chunks may differ."""
        return Told(dict(self._digests), dict(self._on_device()) if begins and self._on_device is not None else {})

    def agree(self, told: Sequence[Told]) -> UnequalInput | None:
        """The first thing that a process has otherwise than process 0; without one all begin anew with what is on their devices.

        Of streams not all need have had as many chunks.
        """
        first = told[0]
        for process, other in enumerate(told):
            for stream in sorted(other.streams.keys() & first.streams.keys()):
                if any(one != another for one, another in zip(other.streams[stream], first.streams[stream], strict=False)):
                    return UnequalInput(f"stream {stream!r}", process, True)
            for name in sorted(other.written.keys() | first.written.keys()):
                if other.written.get(name) != first.written.get(name):
                    return UnequalInput(name, process, False)
        self._written = dict(first.written) or self._written
        return None


@frozen
class Told:
    """Digests of a process: of the chunks of each stream, and of what its device has of what hosts write."""

    streams: Mapping[str, Sequence[int]]
    written: Mapping[str, int]


@frozen
class UnequalInput:
    """What a process has otherwise than process 0."""

    name: str
    process: int
    stream: bool
