"""Host streams: what the user connects, and the chunks that the driver moves.

A connected array is held by reference and consumed chunk by chunk; at its end it starts again. A callback fills or empties one
chunk at a time in a buffer of the engine's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.braces import ordered
from pypoplar.engine.engine_state import EngineState
from pypoplar.engine.host_arrays import host_array
from pypoplar.errors import ApplicationRuntimeError, StreamConnectionError, UnknownHandle
from pypoplar.executable.host_plans import StreamPlan
from pypoplar.interface.driver_records import STREAM_WORDS, Stream
from pypoplar.interface.header_slots import Slot
from pypoplar.signatures import misfit
from pypoplar.spelling import nearest
from pypoplar.types import BY_NAME


class StreamCallback:
    """Base of callbacks that want Poplar's protocol: `prefetch`, `fetch`, `complete`, `invalidatePrefetched`.

    `fetch` gets an array of one chunk: to fill for a stream to the device, to read for a stream to the host. `complete` is called
    when the chunk has been used. With the engine options ``exchange.streamBufferOverlap`` not ``"any"`` and
    ``exchange.enablePrefetch``, `prefetch` is called after that for a stream to the device, and `fetch` only where it did not
    succeed.

    Examples
    --------
    >>> from pypoplar import StreamCallback
    >>> class Numbers(StreamCallback):
    ...     def __init__(self):
    ...         self.given = 0
    ...
    ...     def fetch(self, chunk):
    ...         chunk[:] = range(self.given, self.given + len(chunk))
    ...
    ...     def complete(self):
    ...         self.given += 1
    """

    class Result(Enum):
        """Whether `StreamCallback.prefetch` has filled the chunk.

        Attributes
        ----------
        Success:
            It has; `StreamCallback.fetch` is not called for it.
        NotAvailable:
            It has not.
        """

        Success = "Success"
        NotAvailable = "NotAvailable"

    def prefetch(self, chunk: AnyArray) -> StreamCallback.Result:
        """Fill the chunk that will be due next, if there is data already.

        The next copy may be in a later run, or never come.

        Parameters
        ----------
        chunk:
            Of rank 1, with the elements of one transfer and the dtype of the stream.

        Returns
        -------
        StreamCallback.Result
            Whether it is filled; without a method of its own a callback never fills it.
        """
        return StreamCallback.Result.NotAvailable

    def fetch(self, chunk: AnyArray) -> None:
        """Fill the chunk of a stream to the device, or read that of a stream to the host; each callback defines it.

        Parameters
        ----------
        chunk:
            Of rank 1, with the elements of one transfer and the dtype of the stream; its memory is used again for the next.
        """
        raise NotImplementedError

    def complete(self) -> None:
        """Called when the chunk of the last `fetch` or `prefetch` has been used."""

    def invalidatePrefetched(self) -> None:
        """What was prefetched will not be used: another callback was connected, or the program was loaded again."""


Callback = Callable[[AnyArray], object] | StreamCallback | Iterator[object]


def unknown_name(kind: str, name: object, known: list[str]) -> UnknownHandle:
    """The error for a name that nothing has: with the nearest, or with those that there are."""
    listed = f"; known: {', '.join(map(repr, known[:10]))}" if known else "; there are none"
    return UnknownHandle(f"no {kind} is called {name!r}{nearest(name, known, listed)}")


def check_callback(name: str, callback: Callback) -> None:
    """Raise `StreamConnectionError` unless a callback can be called as it will be."""
    if isinstance(callback, StreamCallback):
        for method, *arguments in (("prefetch", "chunk"), ("fetch", "chunk"), ("complete",), ("invalidatePrefetched",)):
            wrong = misfit(getattr(callback, method), *arguments)
            if wrong:
                raise StreamConnectionError(f"stream {name!r}: expected a method {method}({', '.join(arguments)}), got {wrong}")
        if type(callback).fetch is StreamCallback.fetch:
            raise StreamConnectionError(f"stream {name!r}: expected a method fetch(chunk), {type(callback).__name__} has none")
        return
    wrong = "" if hasattr(callback, "__next__") else misfit(callback, "chunk")
    if wrong:
        hint = "; call it for its iterator" if inspect.isgeneratorfunction(callback) else ""
        raise StreamConnectionError(
            f"stream {name!r}: expected a function of one array, an iterator or a StreamCallback, got {wrong}{hint}"
        )


def check_stream_array(plan: StreamPlan, array: AnyArray) -> None:
    """`StreamConnectionError` for what is no host memory of a stream."""
    name = plan.name
    dtype = BY_NAME[plan.type].dtype
    if not isinstance(ordered(array, f"stream {name!r}", "numpy.array([1.0, 2.0])"), np.ndarray):
        hint = "connectStreamToCallback takes functions" if callable(array) else f"write numpy.array(values, numpy.{dtype})"
        raise StreamConnectionError(f"stream {name!r}: expected a NumPy array of {dtype}, got {type(array).__name__}; {hint}")
    if array.dtype != dtype:
        raise StreamConnectionError(
            f"stream {name!r} carries {plan.type}: expected an array of {dtype}, got {array.dtype}; "
            f"write array.astype(numpy.{dtype})"
        )
    if not array.flags.c_contiguous:
        raise StreamConnectionError(f"stream {name!r}: the array has to be C-contiguous; pass numpy.ascontiguousarray(...)")
    if plan.kind == "to host" and not array.flags.writeable:
        raise StreamConnectionError(f"stream {name!r} writes to the host, but the array is read-only")
    if (array.size == 0 and plan.elements > 0) or (plan.elements > 0 and array.size % plan.elements):
        raise StreamConnectionError(
            f"stream {name!r} moves {plan.elements} elements at a time: the array has {array.size}, no multiple of that"
        )


@define(eq=False)
class HostStreams:
    """The streams of one engine."""

    plans: tuple[StreamPlan, ...]
    state: EngineState
    handles: frozenset[int]  # streams of host handles: their memory is lent for each transfer
    prefetches: bool = False  # whether callbacks are asked for chunks ahead of time
    _arrays: dict[int, AnyArray] = field(factory=dict)  # what is connected, or the buffer of a callback or of the engine
    _callbacks: dict[int, Callback] = field(factory=dict)
    _chunks: dict[int, int] = field(factory=dict)  # chunks that a callback has served, for messages
    _prefetched: dict[int, AnyArray] = field(factory=dict)  # chunks that callbacks have filled ahead of time
    watch: Callable[[int, AnyArray], None] | None = None  # is told of each chunk that a callback has filled

    def __attrs_post_init__(self) -> None:
        for number, plan in enumerate(self.plans):
            if plan.kind == "internal" and number not in self.handles:
                self._bind(number, self._buffer(number))

    def _rows(self) -> AnyArray:
        return self.state.rows(Slot.STREAMS, STREAM_WORDS)

    def _buffer(self, number: int) -> AnyArray:
        plan = self.plans[number]
        return np.zeros(plan.elements, BY_NAME[plan.type].dtype)

    def _bind(self, number: int, array: AnyArray) -> None:
        self._arrays[number] = array
        row = self._rows()[number]
        row[Stream.ADDRESS] = array.ctypes.data
        row[Stream.BYTES] = max(array.nbytes, 1)
        row[Stream.CHUNK] = self.plans[number].elements * array.itemsize
        row[Stream.POSITION] = 0
        row[Stream.CALLBACK] = number in self._callbacks

    def lend(self, number: int, array: AnyArray) -> None:
        """Let a handle's stream use this memory, of the stream's type and size, until `take_back`."""
        self._bind(number, array)

    def take_back(self, number: int) -> None:
        """Take away the array that was connected to a stream."""
        del self._arrays[number]

    def move(self, number: int, array: AnyArray, address: int) -> None:
        """Let a stream between the engine and itself use other memory, at an address, like that which it has."""
        self._arrays[number] = array
        self.state.tables[Slot.STREAMS][STREAM_WORDS * number + Stream.ADDRESS] = address

    def array(self, number: int) -> AnyArray:
        """The host memory of a stream."""
        return self._arrays[number]

    def find(self, name: str) -> int:
        """The number of the stream of a name; `UnknownHandle` if there is none."""
        named = {plan.name: number for number, plan in enumerate(self.plans) if plan.kind != "internal"}
        if name not in named:
            raise unknown_name("stream", name, list(named))
        return named[name]

    def connect(self, name: str, array: AnyArray) -> None:
        """Connect host memory: see `Engine.connectStream`."""
        number = self.find(name)
        check_stream_array(self.plans[number], array)
        self._invalidate(number)
        self._callbacks.pop(number, None)
        self._bind(number, array)

    def connect_callback(self, name: str, callback: Callback) -> None:
        """Connect a callback: see `Engine.connectStreamToCallback`."""
        number = self.find(name)
        check_callback(name, callback)
        self._invalidate(number)
        self._callbacks[number] = callback
        self._chunks[number] = 0
        self._bind(number, self._buffer(number))

    def rewind(self) -> None:
        """Start all arrays again, as `Engine.load` does."""
        self._rows()[:, Stream.POSITION] = 0
        for number in tuple(self._prefetched):
            self._invalidate(number)

    def _invalidate(self, number: int) -> None:
        """Throw away what a callback has prefetched."""
        callback = self._callbacks.get(number)
        if self._prefetched.pop(number, None) is not None and isinstance(callback, StreamCallback):
            callback.invalidatePrefetched()

    def require(self, numbers: tuple[int, ...], whose: str = "") -> None:
        """`StreamConnectionError` unless all these streams are connected; the message says `whose` they are."""
        missing = [repr(self.plans[number].name) for number in numbers if number not in self._arrays]
        if missing:
            plural = "streams are" if len(missing) > 1 else "stream is"
            raise StreamConnectionError(
                f"{plural} not connected: {', '.join(missing)}{whose}; use connectStream or connectStreamToCallback"
            )

    def serve(self, number: int) -> None:
        """Let the callback of a stream fill its buffer, or take what is in it."""
        plan, callback, chunk = self.plans[number], self._callbacks[number], self._arrays[number]
        served = self._chunks[number]
        self._rows()[number, Stream.POSITION] = 0
        try:
            if isinstance(callback, StreamCallback):
                self._serve_protocol(number, callback, chunk)
                given = None
            elif callable(callback):
                given = callback(chunk)
            else:
                given = next(callback)
        except StopIteration:
            raise ApplicationRuntimeError(
                f"stream {plan.name!r}: its callback is exhausted after {served} chunk{'' if served == 1 else 's'}"
            ) from None
        self._chunks[number] = served + 1
        if given is not None and plan.kind == "to device":
            self._take(plan, chunk, given)
        if self.watch is not None and plan.kind == "to device":
            self.watch(number, chunk)

    def left(self, number: int) -> AnyArray | None:
        """The bytes of a connected array in the order in which they will be taken; None for other streams."""
        array = self._arrays.get(number)
        if array is None or number in self._callbacks:
            return None
        position, whole = int(self._rows()[number, Stream.POSITION]), array.view(np.uint8).reshape(-1)
        return np.concatenate((whole[position:], whole[:position])) if position else whole

    def _serve_protocol(self, number: int, callback: StreamCallback, chunk: AnyArray) -> None:
        ready = self._prefetched.pop(number, None)
        if ready is None:
            callback.fetch(chunk)
        else:
            chunk[...] = ready
        callback.complete()
        if not self.prefetches or self.plans[number].kind != "to device":
            return
        ahead = self._buffer(number)
        try:
            result: object = callback.prefetch(ahead)
        except StopIteration:
            result = StreamCallback.Result.NotAvailable
        if not isinstance(result, StreamCallback.Result):
            name = self.plans[number].name
            raise ApplicationRuntimeError(f"stream {name!r}: prefetch returns a StreamCallback.Result, got {result!r}")
        if result is StreamCallback.Result.Success:
            self._prefetched[number] = ahead

    @staticmethod
    def _take(plan: StreamPlan, chunk: AnyArray, given: Any) -> None:
        what = f"stream {plan.name!r}: from its callback"
        ordered(given, what, "[1.0, 2.0]")
        try:
            values = host_array(given, chunk.dtype)
        except ValueError as problem:
            raise ApplicationRuntimeError(f"{what} {problem}") from None
        if values.size != chunk.size:
            raise ApplicationRuntimeError(f"{what} expected {chunk.size} elements, got {values.size} (shape {values.shape})")
        chunk[...] = values.reshape(chunk.shape)
