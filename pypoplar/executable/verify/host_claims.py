"""Claims about what the host does for a program: streams, handles, remote buffers, services."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.executable.claims import LARGEST
from pypoplar.executable.executable import Executable
from pypoplar.executable.host_plans import HostTensor
from pypoplar.executable.verify.named_checks import check, check_limit, check_number
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.service_kinds import DETAILS, ServiceKind
from pypoplar.types import BY_NAME

TO_DEVICE, TO_HOST, INTERNAL = "to device", "to host", "internal"


def verify_host(executable: Executable) -> None:
    """Check everything that only names streams and remote buffers."""
    for number, stream in enumerate(executable.streams):
        where = f"streams[{number}]"
        check("streams.kind", stream.kind in (TO_DEVICE, TO_HOST, INTERNAL), f"{where}: there are no streams {stream.kind!r}")
        check("streams.type", stream.type in BY_NAME, f"{where}: there is no type {stream.type!r}")
        check_number("streams.elements", stream.elements, 0, LARGEST // 8, f"{where}.elements")
    for number, remote in enumerate(executable.remotes):
        where = f"remotes[{number}]"
        check("remotes.type", remote.type in BY_NAME, f"{where}: there is no type {remote.type!r}")
        check_number("remotes.elements", remote.elements, 0, LARGEST // 8, f"{where}.elements")
        check_number("remotes.repeats", remote.repeats, 0, LARGEST // 8, f"{where}.repeats")
        size, most = remote.elements * remote.repeats, LARGEST // 8 - 1
        check_limit("remotes size", size, most, f"the size of {where} is {size}: expected at most {most}")
    for kind, handles in (("writes", executable.writes), ("reads", executable.reads)):
        for name, handle in handles.items():
            _verify_handle(executable, handle, f"{kind}[{name!r}]")
    for number in range(len(executable.services)):
        verify_service(executable, number)


def verify_service(executable: Executable, number: int) -> None:
    """Check a service of an executable whose streams and remote buffers have been checked."""
    _Service(executable, executable.services[number], f"services[{number}]").verify()


def chunk_bytes(executable: Executable) -> Int64s:
    """Bytes of one chunk of each stream."""
    return np.array([stream.elements * BY_NAME[stream.type].size for stream in executable.streams], np.int64)


def handle_streams(executable: Executable) -> set[int]:
    """The streams of host handles: the host lends them memory for each transfer, and they have none else."""
    return {handle.stream for handle in (*executable.writes.values(), *executable.reads.values())}


def _verify_handle(executable: Executable, handle: HostTensor, where: str) -> None:
    check_number("handles.stream", handle.stream, 0, len(executable.streams), f"{where}.stream")
    stream = executable.streams[handle.stream]
    check("handles.stream kind", stream.kind == INTERNAL, f"{where}.stream is {handle.stream}, a stream of the user's")
    check("handles.type", stream.type == handle.type, f"{where} is of type {handle.type}, its stream of type {stream.type}")
    check("handles.shape", *_has_shape(handle.shape, stream.elements, f"{where}.shape"))


def _has_shape(shape: Any, elements: int, where: str) -> tuple[bool, str]:
    """Whether so many elements have a shape, and what to say if not."""
    sizes = isinstance(shape, list | tuple) and all(type(size) is int and 0 <= size < LARGEST for size in shape)
    return sizes and math.prod(shape) == elements, f"{where} is {shape!r}: expected the shape of {elements} elements"


class _Service:
    """One service while it is checked."""

    def __init__(self, executable: Executable, service: Mapping[str, Any], where: str) -> None:
        self.executable, self.service, self.where = executable, service, where

    def verify(self) -> None:
        kind = self.service.get("kind")
        check("services.kind", isinstance(kind, str) and kind in DETAILS, f"{self.where}: there is no service {kind!r}")
        expected = DETAILS[ServiceKind(str(kind))]
        wrong = sorted(self.service.keys() ^ (expected | {"kind"}))
        check("services details", not wrong, f"{self.where}: {', '.join(wrong)} surplus or missing")
        for name, verify_detail in CHECKS.items():
            if name in expected:
                verify_detail(self, name)

    def text(self, name: str) -> None:
        check(f"services.{name} text", isinstance(self.service[name], str), f"{self.where}.{name} is not a text")

    def streams(self, name: str) -> None:
        check(f"services.{name} list", isinstance(self.service[name], list), f"{self.where}.{name} is not a list of streams")
        for stream in self.service[name]:
            self._stream(name, stream)

    def stream(self, name: str) -> None:
        self._stream(name, self.service[name], internal=self.service["kind"] != ServiceKind.CALLBACK)

    def shape(self, name: str) -> None:
        elements = self.executable.streams[self.service["stream"]].elements
        check("services.shape", *_has_shape(self.service[name], elements, f"{self.where}.{name}"))

    def compute(self, name: str) -> None:
        check("services.compute touches", self.executable.touches is not None, f"{self.where}: there is nothing to judge by")
        self._number(name, self.service[name], 0, len(self.executable.computes.result_tile))

    def sent(self, name: str) -> None:
        self._stream(name, self.service[name])

    def received(self, name: str) -> None:
        """What a replica receives, as much as another one sends, which has been checked."""
        self._stream(name, self.service[name])
        sent, received = (self.executable.streams[self.service[end]] for end in ("sent", "received"))
        alike = (sent.type, sent.elements) == (received.type, received.elements)
        check("services.received sent", alike, f"{self.where}: what is sent is not what another replica receives")

    def receivers(self, name: str) -> None:
        given, count = self.service[name], self.executable.replicas
        whole = isinstance(given, list) and all(type(number) is int for number in given)
        others = whole and sorted(given) == list(range(count)) and all(to != replica for replica, to in enumerate(given))
        text = f"{self.where}.{name} does not give each of {count} replicas another one"
        check("services.receivers", others, text)

    def step(self, name: str) -> None:
        self._number(name, self.service[name], 0, len(self.executable.steps))

    def modifier(self, name: str) -> None:
        check("services.modifier", type(self.service[name]) is int, f"{self.where}.{name} is not a whole number")
        stream = self.executable.streams[self.service["stream"]]
        seed = stream.type == "UNSIGNED_INT" and stream.elements == 2
        check("services.stream seed", seed, f"{self.where}.stream does not carry a seed")

    def buffer(self, name: str) -> None:
        remote = self.executable.remotes[self._number(name, self.service[name], 0, len(self.executable.remotes))]
        stream = self.executable.streams[self.service["stream"]]
        text = f"{self.where}: the stream carries {stream.type}, the remote buffer holds {remote.type}"
        check("services.buffer type", stream.type == remote.type, text)

    def offsets(self, name: str) -> None:
        """Which rows of the remote buffer, whose number has been checked, are carried: -1 for one, or a stream of their numbers."""
        streams, rows = self.executable.streams, 1
        if self.service[name] != NOTHING:
            self._stream(name, self.service[name])
            offsets = streams[self.service[name]]
            numbers = offsets.type in ("INT", "UNSIGNED_INT")
            check("services.offsets type", numbers, f"{self.where}.{name} carries {offsets.type}: expected row numbers")
            rows = offsets.elements
        elements = rows * self.executable.remotes[self.service["buffer"]].elements
        carried = streams[self.service["stream"]].elements == elements
        check("services.stream rows", carried, f"{self.where}: the stream does not carry {rows} rows of the remote buffer")

    def _number(self, name: str, value: Any, low: int, high: int) -> int:
        check(f"services.{name} number", type(value) is int, f"{self.where}.{name} is {value!r}: expected a whole number")
        check_number(f"services.{name}", value, low, high, f"{self.where}.{name}")
        return int(value)

    def _stream(self, name: str, value: Any, *, internal: bool = True) -> None:
        number = self._number(name, value, 0, len(self.executable.streams))
        kind = self.executable.streams[number].kind
        check(f"services.{name} kind", (kind == INTERNAL) == internal, f"{self.where}.{name} is a stream {kind}")
        lent = number in handle_streams(self.executable)
        check(f"services.{name} handle", not lent, f"{self.where}.{name} is the stream of a handle")


CHECKS: dict[str, Callable[[_Service, str], None]] = {
    "message": _Service.text,
    "location": _Service.text,
    "title": _Service.text,
    "name": _Service.text,
    "inputs": _Service.streams,
    "outputs": _Service.streams,
    "stream": _Service.stream,
    "sent": _Service.sent,
    "received": _Service.received,
    "receivers": _Service.receivers,
    "step": _Service.step,
    "shape": _Service.shape,
    "compute": _Service.compute,
    "modifier": _Service.modifier,
    "buffer": _Service.buffer,
    "offsets": _Service.offsets,
}
"""What each detail of a service may be, whatever the service. They are checked in this order: some look at those before them."""
