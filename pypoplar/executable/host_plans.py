"""What the host does for a program: streams, handles, remote buffers."""

from __future__ import annotations

from attrs import frozen


@frozen(eq=False)
class StreamPlan:
    """A host stream. Handles, prints and host functions use streams of their own (`kind` "internal"), which nobody connects."""

    name: str
    kind: str  # "to device", "to host" or "internal"
    type: str
    elements: int  # of one chunk


@frozen(eq=False)
class HostTensor:
    """A host handle: the internal stream that carries the tensor, and the program that copies it."""

    type: str
    shape: tuple[int, ...]
    stream: int
    entry: int


@frozen(eq=False)
class RemotePlan:
    name: str
    type: str
    elements: int
    repeats: int
