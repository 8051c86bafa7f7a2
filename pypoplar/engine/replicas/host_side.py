"""What the host connects with replicas: arrays and tensors have an axis for them, callbacks and functions are of one or of all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.engine.replicas.replica import Replica
from pypoplar.engine.streams import Callback, StreamCallback, check_callback
from pypoplar.errors import PoplarIndexError, PoplarTypeError, StreamConnectionError
from pypoplar.executable.executable import Executable
from pypoplar.executable.host_plans import HostTensor
from pypoplar.types import BY_NAME


def replica_number(replica: object, count: int, call: str) -> int:
    """The number of one of so many replicas; `PoplarIndexError` if it is that of none."""
    if isinstance(replica, bool) or not hasattr(replica, "__index__"):
        raise PoplarTypeError(f"{call} takes the number of a replica, got {replica!r}")
    number = int(replica.__index__())
    if not 0 <= number < count:
        raise PoplarIndexError(f"{call}: replica {number} is out of range, the program has {count}, from 0 on")
    return number


@frozen(eq=False)
class HostSide:
    """The replicas of an engine as the host sees them. Where there is only one, arrays have no axis for it."""

    executable: Executable
    replicas: Sequence[Replica]  # of this process
    holder: Callable[[int], str] | None = None  # what messages call the process of another's
    _shared: dict[str, _SharedChunks] = field(factory=dict)  # by stream, of callbacks that all replicas have together

    @property
    def _is_one(self) -> bool:
        """Whether the program has one replica, and arrays no axis for them."""
        return self.executable.replicas == 1

    def rewind(self) -> None:
        """Let no replica receive what another one has received before, as `Engine.load` does."""
        for shared in self._shared.values():
            shared.forget()

    # Streams

    def connect(self, name: str, array: AnyArray) -> None:
        """Connect host memory: see `Engine.connectStream`."""
        streams = [replica.streams for replica in self.replicas]
        number = streams[0].find(name)
        if self._is_one or self._is_broadcast(number) or not isinstance(array, np.ndarray):
            for own in streams:
                own.connect(name, array)
            return
        if array.shape[:1] != (len(streams),):
            raise StreamConnectionError(
                f"stream {name!r} has {len(streams)} replicas{self._here()}: expected an array whose first axis has one entry "
                f"for each, got the shape {list(array.shape)}"
            )
        for replica, own in enumerate(streams):
            own.connect(name, array[replica : replica + 1])

    def connect_callback(self, name: str, replica: object, callback: Callback) -> None:
        """Connect a callback to a stream of one replica, or of all for None: see `Engine.connectStreamToCallback`."""
        streams = [each.streams for each in self.replicas]
        number = streams[0].find(name)
        if replica is not None:
            self.one(replica, "connectStreamToCallback").streams.connect_callback(name, callback)
        elif len(streams) > 1 and self._is_broadcast(number):
            check_callback(name, callback)
            plan = self.executable.streams[number]
            shared = self._shared[name] = _SharedChunks(callback, plan.elements, BY_NAME[plan.type].dtype, len(streams))
            for each, own in enumerate(streams):
                own.connect_callback(name, shared.of(each))
        else:
            for own in streams:
                own.connect_callback(name, callback)

    def _is_broadcast(self, number: int) -> bool:
        replication = self.executable.replication
        return replication is not None and number in replication.broadcast

    # Replicas by number

    def _here(self) -> str:
        return "" if len(self.replicas) == self.executable.replicas else " in this process"

    def one(self, replica: object, call: str) -> Replica:
        """A replica by its number among all; `PoplarIndexError` if there is none of it, or another process has it."""
        number = replica_number(replica, self.executable.replicas, call) - self.replicas[0].number
        if not 0 <= number < len(self.replicas):
            first, last = self.replicas[0].number, self.replicas[-1].number
            which = f"{first}" if first == last else f"{first} to {last}"
            held = "another process" if self.holder is None else self.holder(number + first)
            raise PoplarIndexError(f"{call}: replica {number + first} is of {held}; this one has {which}, and serves no other")
        return self.replicas[number]

    def chosen(self, replica: object, call: str) -> Sequence[Replica]:
        """One replica, or all of this process for None."""
        return self.replicas if replica is None else [self.one(replica, call)]

    # Tensors by handle

    def written_shape(self, handle: str, tensor: HostTensor) -> tuple[int, ...]:
        """The shape of what the host writes to a handle: one for all, or values for each replica."""
        return self.read_shape(tensor) if self._is_parted(handle) else tensor.shape

    def read_shape(self, tensor: HostTensor) -> tuple[int, ...]:
        """The shape of what the host reads."""
        return tensor.shape if self._is_one else (len(self.replicas), *tensor.shape)

    def of_each(self, handle: str, values: AnyArray) -> Iterable[AnyArray]:
        """What each replica is written."""
        if self._is_parted(handle):
            return self.rows(values)
        return [values] * len(self.replicas)

    def rows(self, values: AnyArray) -> Sequence[AnyArray]:
        """The values of each replica."""
        count = len(self.replicas)
        return [*values.reshape(count, values.size // count)]

    def _is_parted(self, handle: str) -> bool:
        replication = self.executable.replication
        return replication is not None and handle in replication.parted

    def transfer(self, tensor: HostTensor, values: Iterable[AnyArray], run: Callable[[int], None]) -> None:
        """Move each replica's tensor to or from an array, by the program of its handle."""
        for replica, array in zip(self.replicas, values, strict=True):
            replica.streams.lend(tensor.stream, array)
        try:
            run(tensor.entry)
        finally:
            for replica in self.replicas:
                replica.streams.take_back(tensor.stream)


@define(eq=False)
class _SharedChunks:
    """A callback whose chunks all replicas receive: it is asked for each once, by the first that needs it."""

    callback: Callback
    elements: int
    dtype: np.dtype[Any]
    replicas: int
    _chunks: deque[tuple[AnyArray, object]] = field(factory=deque)  # that not all have received: filled, and returned
    _first: int = 0  # number of the first of these
    _taken: list[int] = field(init=False)  # chunks that each replica has received

    def __attrs_post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Let all replicas receive what the callback gives next."""
        self._chunks.clear()
        self._first, self._taken = 0, [0] * self.replicas

    def of(self, replica: int) -> Callable[[AnyArray], object]:
        """The callback of one replica."""

        def fill(chunk: AnyArray) -> object:
            if self._taken[replica] - self._first == len(self._chunks):
                self._chunks.append(self._next())
            filled, given = self._chunks[self._taken[replica] - self._first]
            chunk[...] = filled
            self._taken[replica] += 1
            if min(self._taken) > self._first:
                self._chunks.popleft()
                self._first += 1
            return given

        return fill

    def _next(self) -> tuple[AnyArray, object]:
        chunk = np.zeros(self.elements, self.dtype)
        if isinstance(self.callback, StreamCallback):
            self.callback.fetch(chunk)
            self.callback.complete()
            return chunk, None
        return chunk, self.callback(chunk) if callable(self.callback) else next(self.callback)
