"""Where remote buffers lie: each is of one IPU, in the streaming memory of its machine, which holds so much."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import define, field

from pypoplar.codelet.ir.terms import line_text
from pypoplar.errors import ControlProgramError, StreamMemoryAllocationError
from pypoplar.graph.host_links import RemoteBuffer
from pypoplar.presets import IPUS_OF_MACHINE
from pypoplar.program.copying import Copy
from pypoplar.target import Target

MOST_TOLD = 3  # buffers, the largest first


@define(eq=False)
class RemotePlaces:
    """The IPU of each remote buffer that programs use, and the copy that uses it first."""

    _first: dict[RemoteBuffer, tuple[int, Copy]] = field(factory=dict)

    def use(self, copy: Copy, buffer: RemoteBuffer, ipus: Sequence[int]) -> None:
        """A copy between a buffer and tensors on some IPUs: `ControlProgramError` unless all of its copies are of one IPU."""
        name = f"remote buffer {buffer.handle()!r}, made at {line_text(buffer.location)}"
        here = f"the Copy made at {line_text(copy.location)} goes between {name}, and"
        if len(ipus) > 1:
            listed = f"{', '.join(map(str, ipus[:-1]))} and {ipus[-1]}"
            raise ControlProgramError(f"{here} a tensor on IPUs {listed}: a remote buffer is of one IPU")
        for ipu in ipus:
            known, first = self._first.setdefault(buffer, (ipu, copy))
            if known != ipu:
                of = f"IPU {known} by the Copy made at {line_text(first.location)}"
                raise ControlProgramError(f"{here} a tensor on IPU {ipu}: it is of {of}; make a remote buffer for each IPU")

    def check_capacity(self, target: Target, replicas: int, buffers: Iterable[RemoteBuffer]) -> None:
        """`StreamMemoryAllocationError` where a machine's buffers take more than its memory; unused ones are of IPU 0."""
        sizes = {buffer: buffer.getRepeats() * buffer.numElements() * buffer.elementType().size for buffer in buffers}
        taken: dict[int, int] = {}
        copies: dict[int, dict[str, int]] = {}
        for buffer, size in sizes.items():
            ipu = self._first[buffer][0] if buffer in self._first else 0
            machine = (ipu + target.num_ipus * np.arange(replicas)) // IPUS_OF_MACHINE
            for number, times in zip(*np.unique(machine, return_counts=True), strict=True):
                taken[int(number)] = taken.get(int(number), 0) + int(times) * size
                copies.setdefault(int(number), {})[_told(buffer, size, int(times))] = int(times) * size
        for number, size in sorted(taken.items()):
            if size > target.streaming_memory_bytes:
                largest = sorted(copies[number], key=lambda told: -copies[number][told])[:MOST_TOLD]
                raise StreamMemoryAllocationError(
                    f"remote buffers take {size:,} bytes of machine {number}, whose streaming memory has "
                    f"{target.streaming_memory_bytes:,}; the largest are {'; '.join(largest)}"
                )


def _told(buffer: RemoteBuffer, size: int, times: int) -> str:
    several = f" in each of {times} replicas" if times > 1 else ""
    return f"{buffer.handle()!r}, {size:,} bytes{several}, made at {line_text(buffer.location)}"
