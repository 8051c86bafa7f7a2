"""What the host does for a program: streams, handles, remote buffers."""

from __future__ import annotations

from attrs import frozen


@frozen(eq=False)
class StreamPlan:
    """A host stream. Handles, prints and host functions use streams of their own (`kind` "internal"), which nobody connects."""

    name: str
    kind: str  # "to device", "to host" or "internal"
    type: str  # the name of an element type, as everywhere here
    elements: int  # of one chunk


@frozen(eq=False)
class HostTensor:
    """A host handle: the internal stream that carries the tensor, and the program that copies it."""

    type: str
    shape: tuple[int, ...]
    stream: int  # index into `Executable.streams`
    entry: int  # first row of its program


@frozen(eq=False)
class RemotePlan:
    """A remote buffer: rows in the host's memory, which streams of their own carry to and fro."""

    name: str
    type: str
    elements: int  # of a row
    repeats: int  # rows
