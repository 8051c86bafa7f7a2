"""Claims about what the host does for a program: streams, handles, remote buffers, services."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import AnyArray as Array
from pypoplar.executable.executable import Executable
from pypoplar.executable.host_plans import HostTensor
from pypoplar.executable.verify.claims import LARGEST, claim, claim_number
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


def chunk_bytes(executable: Executable) -> Array:
    """Bytes of one chunk of each stream."""
    return np.array([one.elements * BY_NAME[one.type].size for one in executable.streams], np.int64)


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
    fine = isinstance(shape, list | tuple) and all(type(one) is int and 0 <= one < LARGEST for one in shape)
    claim(fine and math.prod(shape) == elements, f"{where} is {shape!r}: expected the shape of {elements} elements")


class _Service:
    """One service while it is checked."""

    def __init__(self, executable: Executable, service: Mapping[str, Any], where: str) -> None:
        self.executable, self.service, self.where = executable, service, where

    def verify(self) -> None:
        kind = self.service.get("kind")
        claim(isinstance(kind, str) and kind in DETAILS, f"{self.where}: there is no service {kind!r}")
        expected = DETAILS[ServiceKind(str(kind))] | {"kind"}
        wrong = sorted(self.service.keys() ^ expected)
        claim(not wrong, f"{self.where}: {', '.join(wrong)} surplus or missing")
        for name in ("message", "location", "title", "name"):
            claim(name not in expected or isinstance(self.service[name], str), f"{self.where}.{name} is not a text")
        for name in ("inputs", "outputs"):
            if name in expected:
                claim(isinstance(self.service[name], list), f"{self.where}.{name} is not a list of streams")
                for stream in self.service[name]:
                    self._stream(name, stream)
        if "stream" in expected:
            self._stream("stream", self.service["stream"], internal=kind != ServiceKind.CALLBACK)
        if "shape" in expected:
            _verify_shape(self.service["shape"], self.executable.streams[self.service["stream"]].elements, f"{self.where}.shape")
        if kind == ServiceKind.JUDGE:
            claim(self.executable.touches is not None, f"{self.where}: there is nothing to judge by")
            self._number("compute", self.service["compute"], 0, len(self.executable.computes.result_tile))
        if kind == ServiceKind.SEED:
            self._seed()
        if "buffer" in expected:
            self._remote()

    def _number(self, name: str, value: Any, low: int, high: int) -> int:
        claim(type(value) is int, f"{self.where}.{name} is {value!r}: expected a whole number")
        claim_number(f"{self.where}.{name}", value, low, high)
        return int(value)

    def _stream(self, name: str, value: Any, *, internal: bool = True) -> None:
        number = self._number(name, value, 0, len(self.executable.streams))
        kind = self.executable.streams[number].kind
        claim((kind == INTERNAL) == internal, f"{self.where}.{name} is a stream {kind}")
        claim(number not in handle_streams(self.executable), f"{self.where}.{name} is the stream of a handle")

    def _seed(self) -> None:
        claim(type(self.service["modifier"]) is int, f"{self.where}.modifier is not a whole number")
        stream = self.executable.streams[self.service["stream"]]
        claim(stream.type == "UNSIGNED_INT" and stream.elements == 2, f"{self.where}.stream does not carry a seed")

    def _remote(self) -> None:
        streams, remotes = self.executable.streams, self.executable.remotes
        remote = remotes[self._number("buffer", self.service["buffer"], 0, len(remotes))]
        stream = streams[self.service["stream"]]
        claim(stream.type == remote.type, f"{self.where}: the stream carries {stream.type}, the remote buffer holds {remote.type}")
        rows = 1
        if self.service["offsets"] != -1:
            self._stream("offsets", self.service["offsets"])
            offsets = streams[self.service["offsets"]]
            claim(offsets.type in ("INT", "UNSIGNED_INT"), f"{self.where}.offsets carries {offsets.type}: expected row numbers")
            rows = offsets.elements
        claim(
            stream.elements == rows * remote.elements, f"{self.where}: the stream does not carry {rows} rows of the remote buffer"
        )
