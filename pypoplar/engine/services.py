"""What a running program needs Python for: prints, callbacks, host functions, remote buffers, seeds, aborts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TextIO, assert_never

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import AnyArray, Int64s
from pypoplar.braces import ordered
from pypoplar.engine.debug_prints import DebugRecord, write_prints
from pypoplar.engine.element_races import judge_touches
from pypoplar.engine.engine_state import UNINITIALISED, EngineState
from pypoplar.engine.host_arrays import host_array
from pypoplar.engine.printing import format_tensor
from pypoplar.engine.remote_rows import RemoteRows
from pypoplar.engine.streams import HostStreams, unknown_name
from pypoplar.engine.worker_races import judge_sub_words
from pypoplar.errors import ApplicationRuntimeError, PoplarIndexError, StreamConnectionError, TensorIOStateError
from pypoplar.executable.executable import Executable
from pypoplar.host_values import misshapen
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.service_kinds import ServiceKind
from pypoplar.types import BY_NAME


@define(eq=False)
class Services:
    """The host's side of one engine."""

    executable: Executable
    state: EngineState
    streams: HostStreams
    replica: int = 0
    stream_out: TextIO | None = None
    remotes: dict[int, RemoteRows] = field(factory=dict)
    host_functions: dict[str, Callable[..., Any]] = field(factory=dict)

    def serve(self, number: int) -> None:
        """Do service `number` of the executable."""
        service = self.executable.services[number]
        kind = ServiceKind(service["kind"])
        match kind:
            case ServiceKind.PRINT:
                self._do_print(service)
            case ServiceKind.CALLBACK:
                self.streams.serve(service["stream"])
            case ServiceKind.UNDEFINED:
                self.streams.array(service["stream"]).view(np.uint8)[:] = UNINITIALISED
            case ServiceKind.JUDGE:
                judge_sub_words(self.executable, self.state.memory, service["compute"], service["name"])
                judge_touches(self.executable, self.state.memory, service["compute"], service["name"])
            case ServiceKind.ABORT:
                raise ApplicationRuntimeError(f"the program aborted: {service['message']} [{service['location']}]")
            case ServiceKind.ERROR:
                raise self._error(service)
            case ServiceKind.HOST_FUNCTION:
                self._do_host_function(service)
            case ServiceKind.SEED:
                self._do_seed(service)
            case ServiceKind.REMOTE_READ:
                self._do_remote_read(service)
            case ServiceKind.REMOTE_WRITE:
                self._do_remote_write(service)
            case ServiceKind.PRINTS | ServiceKind.AGREE | ServiceKind.EXCHANGE:
                raise AssertionError("whoever runs the program does this: see writes_prints, and the crew of replicas")
            case _:
                assert_never(kind)

    def writes_prints(self, number: int) -> bool:
        """Whether service `number` is to write what vertices have printed, which whoever runs the program knows."""
        return bool(self.executable.services[number]["kind"] == ServiceKind.PRINTS)

    def write_prints(self, prints: list[DebugRecord]) -> None:
        """Write what vertices have printed."""
        whose = f"replica {self.replica}, " if self.executable.replicas > 1 else ""
        write_prints(prints, self.executable.vertex_names.tile, self.print_stream(), whose)

    def _tensor(self, service: Mapping[str, Any]) -> AnyArray:
        return self.streams.array(service["stream"]).reshape(service["shape"])

    def print_stream(self) -> TextIO:
        """Where prints go."""
        return self.stream_out or sys.stderr

    def _print(self, text: str) -> None:
        self.print_stream().write(text + "\n")

    def _do_print(self, service: Mapping[str, Any]) -> None:
        whose = f"replica {self.replica}, " if self.executable.replicas > 1 else ""
        title = f"{whose}{service['title']}: " if service["title"] else whose
        self._print(title + format_tensor(self._tensor(service)))

    def _error(self, service: Mapping[str, Any]) -> ApplicationRuntimeError:
        tensor = format_tensor(self._tensor(service))
        return ApplicationRuntimeError(f"the program stopped with an error: {service['message']}: {tensor} [{service['location']}]")

    def _do_host_function(self, service: Mapping[str, Any]) -> None:
        function = self.host_functions.get(service["name"])
        if function is None:
            raise StreamConnectionError(f"host function {service['name']!r} is not connected; use connectHostFunction")
        function(*(self.streams.array(stream) for stream in (*service["inputs"], *service["outputs"])))

    def _do_seed(self, service: Mapping[str, Any]) -> None:
        low, high = (int(half) for half in self.streams.array(service["stream"])[:2])
        self.state.seed(low | high << 32, service["modifier"])

    def remote_rows(self, number: int) -> RemoteRows:
        """The rows of a remote buffer."""
        plan = self.executable.remotes[number]
        if number not in self.remotes:
            self.remotes[number] = RemoteRows(plan.repeats, plan.elements, BY_NAME[plan.type])
        return self.remotes[number]

    def _rows_of(self, service: Mapping[str, Any]) -> tuple[RemoteRows, Int64s, AnyArray]:
        rows = self.remote_rows(service["buffer"])
        plan = self.executable.remotes[service["buffer"]]
        given = np.zeros(1, np.int64) if service["offsets"] == NOTHING else self.streams.array(service["offsets"])
        numbers = given.astype(np.int64).ravel()
        wrong = np.flatnonzero((numbers < 0) | (numbers >= plan.repeats))
        if len(wrong):
            row = numbers[wrong[0]]
            raise ApplicationRuntimeError(f"remote buffer {plan.name!r}: row {row} is out of range for {plan.repeats} rows")
        return rows, numbers, self.streams.array(service["stream"]).reshape(len(numbers), plan.elements)

    def _do_remote_read(self, service: Mapping[str, Any]) -> None:
        rows, numbers, chunk = self._rows_of(service)
        rows.read(numbers, chunk)

    def _do_remote_write(self, service: Mapping[str, Any]) -> None:
        rows, numbers, chunk = self._rows_of(service)
        rows.write(numbers, chunk)

    def find_remote(self, name: Any, row: int) -> tuple[int, AnyArray]:
        """A remote buffer's number and one row of it, for the host."""
        if not isinstance(name, str):
            raise TensorIOStateError(f"the name of a remote buffer is a string, got {name!r}")
        named = {plan.name: number for number, plan in enumerate(self.executable.remotes)}
        if name not in named:
            raise unknown_name("remote buffer", name, list(named))
        rows = self.remote_rows(named[name])
        if not 0 <= row < rows.repeats:
            raise PoplarIndexError(f"remote buffer {name!r}: row {row} is out of range for {rows.repeats} rows")
        return named[name], rows.row(row)

    @staticmethod
    def check_host_array(what: str, array: Any, dtype: np.dtype[Any], shape: Sequence[int], *, writes: bool = False) -> AnyArray:
        """`array` if it can be copied to or from a tensor of `shape` and `dtype`; else `TensorIOStateError`."""
        ordered(array, what, "[1.0, 2.0]")
        if writes and not isinstance(array, np.ndarray):
            raise TensorIOStateError(f"{what}: expected an array of {dtype}, got {type(array).__name__}")
        try:
            checked = host_array(array, dtype)
        except ValueError as problem:
            raise TensorIOStateError(f"{what}: {problem}") from None
        elements = prod(shape)
        if checked.size != elements:
            raise TensorIOStateError(f"{what}: expected {elements} elements, got {checked.size} (shape {checked.shape})")
        wrong = misshapen(checked, shape)
        if wrong:
            raise TensorIOStateError(f"{what}: {wrong}")
        if writes and not checked.flags.writeable:
            raise TensorIOStateError(f"{what}: the array is read-only")
        return checked
