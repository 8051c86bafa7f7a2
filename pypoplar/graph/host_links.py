"""What connects a graph with its host: streams, remote buffers, host functions; and functions, which programs call."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, assert_never

from attrs import Factory, field, frozen

from pypoplar.braces import OPTIONS, ordered
from pypoplar.codelet.ir.terms import Location, line_text
from pypoplar.errors import InvalidOption, PoplarTypeError, StreamMemoryAllocationError, TensorIOStateError, TensorShapeError
from pypoplar.graph.runnable import Runnable
from pypoplar.spelling import nearest_or_all
from pypoplar.types import ElementType, check_type

if TYPE_CHECKING:
    from pypoplar.graph.tensor import Tensor

FIFO_OPTIONS = ("splitLimit", "bufferingDepth")  # whole numbers; they change nothing here
TRANSFER_LIMIT = 128 * 1024 * 1024  # bytes of one transfer


class ReplicatedStreamMode(Enum):
    """What replicas of a graph receive from a stream.

    Attributes
    ----------
    REPLICATE:
        Each its own chunks.
    BROADCAST:
        All the same chunks.
    """

    REPLICATE = "REPLICATE"
    BROADCAST = "BROADCAST"


@frozen(eq=False)
class DataStream:
    """A stream of one direction, made by `Graph.addHostToDeviceFIFO` or `Graph.addDeviceToHostFIFO`.

    Each Copy transfers `numElements()` elements of it.

    Attributes
    ----------
    direction:
        "to device" or "to host".
    location:
        The user's line that made it.
    options:
        Its options as text; they change nothing here.
    """

    _handle: str
    _type: ElementType
    _elements: int
    direction: str  # "to device" or "to host"
    location: Location
    _mode: ReplicatedStreamMode = ReplicatedStreamMode.REPLICATE
    options: Mapping[str, str] = field(default=Factory(dict))

    def handle(self) -> str:
        """The name of the stream, by which `Engine.connectStream` finds it."""
        return self._handle

    def numElements(self) -> int:
        """The number of elements that one transfer of the stream moves."""
        return self._elements

    def elementType(self) -> ElementType:
        """The type of the elements that the stream carries."""
        return self._type

    def replicatedMode(self) -> ReplicatedStreamMode:
        """What replicas of the graph receive: each its own chunks, or all the same."""
        return self._mode

    def __repr__(self) -> str:
        return f"<DataStream {self._handle!r} {self.direction}, {self._type!r} [{self._elements}]>"


@frozen(eq=False)
class RemoteBuffer:
    """Memory outside the device, made by `Graph.addRemoteBuffer`: rows of elements, which start as zeros.

    Attributes
    ----------
    location:
        The user's line that made it.
    """

    _handle: str
    _type: ElementType
    _elements: int
    _repeats: int
    location: Location

    def handle(self) -> str:
        """The name of the buffer, which `Engine.copyToRemoteBuffer` and `Engine.copyFromRemoteBuffer` take."""
        return self._handle

    def numElements(self) -> int:
        """The number of elements that each row of the buffer has."""
        return self._elements

    def getRepeats(self) -> int:
        """The number of rows of the buffer, each of `numElements()` elements."""
        return self._repeats

    def elementType(self) -> ElementType:
        """The type of the elements that the buffer holds."""
        return self._type

    def __repr__(self) -> str:
        return f"<RemoteBuffer {self._handle!r} {self._type!r} [{self._repeats}, {self._elements}]>"


@frozen(eq=False)
class HostFunction:
    """A function of the host that a program calls; made by `Graph.addHostFunction`.

    Attributes
    ----------
    inputs:
        A (type, elements) pair for each tensor that it gets.
    outputs:
        A (type, elements) pair for each tensor that it fills.
    location:
        The user's line that made it.
    """

    _handle: str
    inputs: tuple[tuple[ElementType, int], ...]
    outputs: tuple[tuple[ElementType, int], ...]
    location: Location

    def handle(self) -> str:
        """The name of the function, by which `Engine.connectHostFunction` finds it."""
        return self._handle

    def __repr__(self) -> str:
        return f"<HostFunction {self._handle!r}>"


@frozen(eq=False)
class Function:
    """A program that several places call; made by `Graph.addFunction`.

    Attributes
    ----------
    number:
        Its number in the graph, from 0.
    program:
        What it runs.
    location:
        The user's line that made it.
    """

    number: int
    program: Runnable
    location: Location


class HostConnections:
    """The tables of a graph's streams, host handles, remote buffers, host functions and functions, by name."""

    __slots__ = ("functions", "handles", "host_functions", "reads", "remote_buffers", "streams", "writes")

    def __init__(self) -> None:
        self.streams: dict[str, DataStream] = {}
        self.remote_buffers: dict[str, RemoteBuffer] = {}
        self.host_functions: dict[str, HostFunction] = {}
        self.writes: dict[str, Tensor] = {}
        self.reads: dict[str, Tensor] = {}
        self.functions: list[Function] = []
        self.handles: dict[tuple[str, str], Location] = {}  # of host writes and reads: where they were made

    def reading(self, tensors: Mapping[str, Tensor]) -> HostConnections:
        """The same, with no handles but reads of these tensors."""
        other = HostConnections()
        for name in ("streams", "remote_buffers", "host_functions", "functions"):
            setattr(other, name, getattr(self, name))
        other.reads.update(tensors)
        return other

    def has(self, link: DataStream | RemoteBuffer | HostFunction | Function) -> bool:
        """Whether something is of this graph."""
        match link:
            case DataStream():
                return self.streams.get(link.handle()) is link
            case RemoteBuffer():
                return self.remote_buffers.get(link.handle()) is link
            case HostFunction():
                return self.host_functions.get(link.handle()) is link
            case Function():
                return self.functions[link.number : link.number + 1] == [link]
            case _:
                assert_never(link)

    def add_stream(
        self,
        handle: Any,
        type: Any,
        elements: Any,
        direction: str,
        location: Location,
        mode: ReplicatedStreamMode = ReplicatedStreamMode.REPLICATE,
        options: Mapping[str, str] | None = None,
    ) -> DataStream:
        """A new stream; an error for a handle that another has, and for what cannot move."""
        name = check_handle(handle, self.streams, "stream")
        checked, count = check_elements(type, elements, f"stream {name!r}")
        chosen = check_fifo_options(options, f"stream {name!r}")
        if not isinstance(mode, ReplicatedStreamMode):
            raise PoplarTypeError(f"stream {name!r}: a mode is a ReplicatedStreamMode, got {mode!r}; options come after it")
        stream = self.streams[name] = DataStream(name, checked, count, direction, location, mode, chosen)
        return stream

    def add_handle(self, what: str, handle: Any, tensor: Tensor, location: Location) -> None:
        """A "host write" or a "host read"."""
        table = self.writes if what == "host write" else self.reads
        name = check_handle(handle, table, what, self.handles.get((what, handle)) if isinstance(handle, str) else None)
        table[name] = tensor
        self.handles[what, name] = location

    def add_remote_buffer(self, handle: Any, type: Any, elements: Any, repeats: Any, location: Location) -> RemoteBuffer:
        """A new remote buffer; an error for a handle that another has, and for rows or types that cannot be."""
        name = check_handle(handle, self.remote_buffers, "remote buffer")
        checked, count = check_elements(type, elements, f"remote buffer {name!r}")
        rows = _count(repeats, f"remote buffer {name!r}", "rows", least=1)
        buffer = self.remote_buffers[name] = RemoteBuffer(name, checked, count, rows, location)
        return buffer

    def add_host_function(self, handle: Any, inputs: Iterable[Any], outputs: Iterable[Any], location: Location) -> HostFunction:
        """A new function of the host; an error for a handle that another has, and for arguments that cannot be."""
        name = check_handle(handle, self.host_functions, "host function")
        what = f"host function {name!r}"
        function = HostFunction(name, check_signature(inputs, what), check_signature(outputs, what), location)
        self.host_functions[name] = function
        return function

    def add_function(self, program: Runnable, location: Location) -> Function:
        """A new function of the graph, numbered after those before."""
        function = Function(len(self.functions), program, location)
        self.functions.append(function)
        return function


def check_fifo_options(options: Mapping[str, object] | None, what: str) -> dict[str, str]:
    """The options of a stream as text; `InvalidOption` for one that Poplar does not have, with the nearest name."""
    checked = {}
    for name, value in (ordered(options, f"the options of {what}", OPTIONS) or {}).items():
        if name not in FIFO_OPTIONS:
            raise InvalidOption(f"{what} has no option {name!r}{nearest_or_all(name, FIFO_OPTIONS)}")
        if not str(value).isdecimal():
            raise InvalidOption(f"{what}: the option {name!r} is a whole number of at least 0, got {value!r}")
        checked[name] = str(value)
    return checked


def check_handle(handle: Any, known: Mapping[str, Any], what: str, user_location: Location | None = None) -> str:
    """The name of something new; `TensorIOStateError` if `known` has it, with the line where it was made."""
    if not isinstance(handle, str) or not handle:
        raise PoplarTypeError(f"the name of a {what} is a string, got {handle!r}")
    if handle in known:
        location = user_location or getattr(known[handle], "location", None)
        raise TensorIOStateError(f"there is a {what} {handle!r} already" + (f", made at {line_text(location)}" if location else ""))
    return handle


def check_elements(type: Any, elements: Any, what: str) -> tuple[ElementType, int]:
    """Type and count of one transfer; `StreamMemoryAllocationError` beyond 128 MB."""
    checked = check_type(type)
    count = _count(elements, what, "elements")
    if count * checked.size > TRANSFER_LIMIT:
        raise StreamMemoryAllocationError(
            f"{what} transfers {count} elements of {checked!r}, {count * checked.size} bytes at a time; "
            f"the limit is {TRANSFER_LIMIT} bytes (128 MB): transfer it in parts"
        )
    return checked, count


def check_signature(arguments: Iterable[Any], what: str) -> tuple[tuple[ElementType, int], ...]:
    """The (type, elements) pairs of a host function."""
    checked = []
    if not isinstance(arguments, Iterable):
        raise PoplarTypeError(f"{what} takes lists of (type, elements) pairs, got {arguments!r}; write [(FLOAT, 4)]")
    for argument in ordered(arguments, f"the arguments of {what}", "[(FLOAT, 4)]"):
        ordered(argument, f"an argument of {what}", "(FLOAT, 4)")
        if not isinstance(argument, tuple | list) or len(argument) != 2:
            raise PoplarTypeError(f"{what} takes (type, elements) pairs, got {argument!r}")
        checked.append(check_elements(argument[0], argument[1], what))
    return tuple(checked)


def _count(given: Any, what: str, of: str, least: int = 0) -> int:
    try:
        count = operator.index(given)
    except TypeError:
        raise PoplarTypeError(f"{what} needs a whole number of {of}, got {given!r}") from None
    if count < least:
        raise TensorShapeError(f"{what} needs at least {least} {of}, got {count}")
    return count
