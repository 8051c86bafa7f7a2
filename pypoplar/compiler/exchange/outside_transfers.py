"""What it takes to move bytes between IPUs and what is outside: their host, and the streaming memory of their machine.

A target of one IPU without replicas has a link to the host of its own. Of several, those of a machine have one together, beside
which each has its own; remote buffers lie in their machine's memory, and take each IPU's link to its gateway.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Float64s, Int64s
from pypoplar.presets import IPUS_OF_MACHINE
from pypoplar.target import Target


@frozen
class OutsideTransfer:
    """A transfer of all replicas at the same time."""

    cycles: int
    limit: str  # what it waits for, in words: "the host link of machine 1"; empty where there is one link only


@frozen
class OutsideLinks:
    """Bytes in a second, one way, of what transfers of one direction go through."""

    target: Target
    replicas: int
    to_device: bool
    remote: bool  # whether to or from remote buffers

    @property
    def _is_single(self) -> bool:
        return self.replicas * self.target.num_ipus == 1

    @property
    def of_ipu(self) -> float:
        """What an IPU's own link carries."""
        if self.remote:
            return self.target.gateway_bytes_per_second / 2
        return self.target.host_write_bytes_per_second if self.to_device else self.target.host_read_bytes_per_second

    @property
    def of_machine(self) -> float:
        """What all IPUs of a machine together have."""
        if self.remote:
            return self.target.streaming_memory_bytes_per_second
        return self.of_ipu if self._is_single else self.target.machine_host_bytes_per_second

    def seconds(self, bytes: Int64s) -> tuple[Float64s, Float64s]:
        """How long each IPU's link and what each machine shares are busy; ``bytes[ipu]`` are those of each replica."""
        every = np.tile(bytes, self.replicas)
        machine = np.arange(len(every)) // IPUS_OF_MACHINE
        shared: Float64s = np.bincount(machine, every) / self.of_machine
        return bytes / self.of_ipu, shared

    def cycles(self, bytes: Int64s) -> int:
        """Cycles of a transfer with a sync; none where nothing moves."""
        if not bytes.any():
            return 0
        own, shared = self.seconds(bytes)
        seconds = max(float(own.max()), float(shared.max())) + self.target.host_sync_seconds
        return round(seconds * self.target.getTileClockFrequency())

    def limit(self, bytes: Int64s) -> str:
        """What takes the longest; the first one of those that take as long, shared ones first."""
        if not bytes.any() or (self._is_single and not self.remote):
            return ""
        own, shared = self.seconds(bytes)
        if shared.max() >= own.max():
            what = "streaming memory" if self.remote else "host link"
            return f"the {what} of machine {int(shared.argmax())}"
        return f"the link between IPU {int(own.argmax())} and {'its gateway' if self.remote else 'the host'}"


def outside_transfer(links: OutsideLinks, bytes: Int64s) -> OutsideTransfer:
    """What copies take that go together: ``bytes[copy, ipu]``, with one sync.

    Rounding adds nothing to what they take one by one.
    """
    together = bytes.sum(0)
    cycles = min(links.cycles(together), sum(map(links.cycles, bytes)))
    return OutsideTransfer(cycles, links.limit(together))
