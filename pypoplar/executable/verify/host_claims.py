"""Claims about what the host does for a program: streams, handles, remote buffers, services."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.executable.claims import LARGEST, claim, claim_number
from pypoplar.executable.executable import Executable
from pypoplar.executable.host_plans import HostTensor
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.service_kinds import DETAILS, ServiceKind
from pypoplar.types import BY_NAME

TO_DEVICE, TO_HOST, INTERNAL = "to device", "to host", "internal"


def verify_host(executable: Executable) -> None:
    """Check everything that only names streams and remote buffers."""
    for number, stream in enumerate(executable.streams):
        where = f"streams[{number}]"
        claim(stream.kind in (TO_DEVICE, TO_HOST, INTERNAL), f"{where}: there are no streams {stream.kind!r}")
        claim(stream.type in BY_NAME, f"{where}: there is no type {stream.type!r}")
        claim_number(f"{where}.elements", stream.elements, 0, LARGEST // 8)
    for number, remote in enumerate(executable.remotes):
        where = f"remotes[{number}]"
        claim(remote.type in BY_NAME, f"{where}: there is no type {remote.type!r}")
        claim_number(f"{where}.elements", remote.elements, 0, LARGEST // 8)
        claim_number(f"{where}.repeats", remote.repeats, 0, LARGEST // 8)
        claim_number(f"the size of {where}", remote.elements * remote.repeats, 0, LARGEST // 8)
    for kind, handles in (("writes", executable.writes), ("reads", executable.reads)):
        for name, handle in handles.items():
            _verify_handle(executable, handle, f"{kind}[{name!r}]")
    for number, service in enumerate(executable.services):
        _Service(executable, service, f"services[{number}]").verify()


def chunk_bytes(executable: Executable) -> Int64s:
    """Bytes of one chunk of each stream."""
    return np.array([stream.elements * BY_NAME[stream.type].size for stream in executable.streams], np.int64)


def handle_streams(executable: Executable) -> set[int]:
    """The streams of host handles: the host lends them memory for each transfer, and they have none else."""
    return {handle.stream for handle in (*executable.writes.values(), *executable.reads.values())}


def _verify_handle(executable: Executable, handle: HostTensor, where: str) -> None:
    claim_number(f"{where}.stream", handle.stream, 0, len(executable.streams))
    stream = executable.streams[handle.stream]
    claim(stream.kind == INTERNAL, f"{where}.stream is {handle.stream}, a stream of the user's")
    claim(stream.type == handle.type, f"{where} is of type {handle.type}, its stream of type {stream.type}")
    _verify_shape(handle.shape, stream.elements, f"{where}.shape")


def _verify_shape(shape: Any, elements: int, where: str) -> None:
    sizes = isinstance(shape, list | tuple) and all(type(size) is int and 0 <= size < LARGEST for size in shape)
    claim(sizes and math.prod(shape) == elements, f"{where} is {shape!r}: expected the shape of {elements} elements")


class _Service:
    """One service while it is checked."""

    def __init__(self, executable: Executable, service: Mapping[str, Any], where: str) -> None:
        self.executable, self.service, self.where = executable, service, where

    def verify(self) -> None:
        kind = self.service.get("kind")
        claim(isinstance(kind, str) and kind in DETAILS, f"{self.where}: there is no service {kind!r}")
        expected = DETAILS[ServiceKind(str(kind))]
        wrong = sorted(self.service.keys() ^ (expected | {"kind"}))
        claim(not wrong, f"{self.where}: {', '.join(wrong)} surplus or missing")
        unknown = sorted(expected - CHECKS.keys())
        claim(not unknown, f"{self.where}: nothing says what {', '.join(unknown)} may be")
        for name, check in CHECKS.items():
            if name in expected:
                check(self, name)

    def text(self, name: str) -> None:
        claim(isinstance(self.service[name], str), f"{self.where}.{name} is not a text")

    def streams(self, name: str) -> None:
        claim(isinstance(self.service[name], list), f"{self.where}.{name} is not a list of streams")
        for stream in self.service[name]:
            self._stream(name, stream)

    def stream(self, name: str) -> None:
        self._stream(name, self.service[name], internal=self.service["kind"] != ServiceKind.CALLBACK)

    def shape(self, name: str) -> None:
        _verify_shape(self.service[name], self.executable.streams[self.service["stream"]].elements, f"{self.where}.{name}")

    def compute(self, name: str) -> None:
        claim(self.executable.touches is not None, f"{self.where}: there is nothing to judge by")
        self._number(name, self.service[name], 0, len(self.executable.computes.result_tile))

    def modifier(self, name: str) -> None:
        claim(type(self.service[name]) is int, f"{self.where}.{name} is not a whole number")
        stream = self.executable.streams[self.service["stream"]]
        claim(stream.type == "UNSIGNED_INT" and stream.elements == 2, f"{self.where}.stream does not carry a seed")

    def buffer(self, name: str) -> None:
        remote = self.executable.remotes[self._number(name, self.service[name], 0, len(self.executable.remotes))]
        stream = self.executable.streams[self.service["stream"]]
        claim(stream.type == remote.type, f"{self.where}: the stream carries {stream.type}, the remote buffer holds {remote.type}")

    def offsets(self, name: str) -> None:
        """Which rows of the remote buffer, whose number has been checked, are carried: -1 for one, or a stream of their numbers."""
        streams, rows = self.executable.streams, 1
        if self.service[name] != NOTHING:
            self._stream(name, self.service[name])
            offsets = streams[self.service[name]]
            claim(offsets.type in ("INT", "UNSIGNED_INT"), f"{self.where}.{name} carries {offsets.type}: expected row numbers")
            rows = offsets.elements
        elements = rows * self.executable.remotes[self.service["buffer"]].elements
        carried = streams[self.service["stream"]].elements == elements
        claim(carried, f"{self.where}: the stream does not carry {rows} rows of the remote buffer")

    def _number(self, name: str, value: Any, low: int, high: int) -> int:
        claim(type(value) is int, f"{self.where}.{name} is {value!r}: expected a whole number")
        claim_number(f"{self.where}.{name}", value, low, high)
        return int(value)

    def _stream(self, name: str, value: Any, *, internal: bool = True) -> None:
        number = self._number(name, value, 0, len(self.executable.streams))
        kind = self.executable.streams[number].kind
        claim((kind == INTERNAL) == internal, f"{self.where}.{name} is a stream {kind}")
        claim(number not in handle_streams(self.executable), f"{self.where}.{name} is the stream of a handle")


CHECKS: dict[str, Callable[[_Service, str], None]] = {
    "message": _Service.text,
    "location": _Service.text,
    "title": _Service.text,
    "name": _Service.text,
    "inputs": _Service.streams,
    "outputs": _Service.streams,
    "stream": _Service.stream,
    "shape": _Service.shape,
    "compute": _Service.compute,
    "modifier": _Service.modifier,
    "buffer": _Service.buffer,
    "offsets": _Service.offsets,
}
"""What each detail of a service may be, whatever the service. They are checked in this order: some look at those before them."""
