"""Whether all processes give their replicas the same of a BROADCAST stream: digests of what they have connected."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from attrs import define, field

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.engine.streams import HostStreams
from pypoplar.executable.executable import Executable

MOST = 1 << 26  # bytes of an array, from its position on, that are compared at each run
KEPT = 1 << 16  # chunks of callbacks in a run that are compared


@define(eq=False)
class BroadcastChecks:
    """The BROADCAST streams of the first replica of this process, which has what all of them have."""

    executable: Executable
    streams: HostStreams
    wanted: bool
    _digests: dict[str, list[int]] = field(factory=dict)  # by stream, of the run that goes on

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
        return zlib.crc32(repr(sorted(self._digests.items())).encode()) if self.wanted else 0

    def told(self) -> Mapping[str, Sequence[int]]:
        """The digests of chunks, by stream, that others compare with theirs."""
        return dict(self._digests)

    @staticmethod
    def difference(told: Sequence[Mapping[str, Sequence[int]]]) -> tuple[str, int] | None:
        """The first stream and process of which a digest is not that of process 0; not all need have had as many chunks."""
        for process, digests in enumerate(told):
            for stream in sorted(digests.keys() & told[0].keys()):
                if any(one != other for one, other in zip(digests[stream], told[0][stream], strict=False)):
                    return stream, process
        return None
