"""Writes a report's time line as a trace for the Perfetto UI (https://ui.perfetto.dev), with the `perfetto` package."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, assert_never

from pypoplar.errors import MissingFeature
from pypoplar.extras import install_command
from pypoplar.files import written_whole
from pypoplar.report.escaping import escaped
from pypoplar.report.report import Report
from pypoplar.report.timeline import Slices, Timeline, Track, Values, make_timeline

if TYPE_CHECKING:
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

SEQUENCE = 1  # all packets come from one writer
CYCLES = "cycles"  # what a slice lasts
ENDINGS = tuple(f".{kind}{packed}" for kind in ("pftrace", "perfetto-trace") for packed in (".gz", ""))
"""What the names of traces end in, as the Perfetto UI and its tools know them."""
TILES = 4  # tiles of each IPU that a trace shows


def write_trace(report: Report, path: str | os.PathLike[str], tiles: int = TILES) -> tuple[str, ...]:
    """Write the trace of all runs to `path`, compressed if it ends in ``.gz``, which the Perfetto UI opens too.

    Returns in sentences what the trace does not show. Equal reports give equal files.

    The main process has tracks for runs, the program's levels with numbered iterations, the slowest tile of each step, the phases
    of supersteps, and counters; each IPU a process with its `tiles` slowest tiles. Timestamps are nanoseconds: cycles divided by
    the clock frequency; every slice says its cycles.

    Raises `MissingFeature` without the `perfetto` package, `ApplicationRuntimeError` if no step was executed, and `OSError`.
    """
    try:
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder
    except ImportError:
        raise MissingFeature(f"a trace needs the perfetto package: {install_command('trace')}") from None
    timeline = make_timeline(report, tiles)
    with _opened(Path(path)) as file:
        _TraceWriter(StreamingTraceProtoBuilder(file), timeline).write()
    return timeline.notes


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    with written_whole(path) as part, part.open("wb") as file:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                yield packed
        else:
            yield file


class _TraceWriter:
    """Writes a time line packet by packet."""

    def __init__(self, builder: StreamingTraceProtoBuilder, timeline: Timeline) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

        self._builder = builder
        self._timeline = timeline
        self._protos: Any = protos
        self._uuid = 0
        self._arguments = {key: number for number, key in enumerate(self._keys(), 1)}

    def write(self) -> None:
        self._write_names()
        for number, group in enumerate(self._timeline.groups):
            process = self._write_process(number, group.name)
            for place, track in enumerate(group.tracks):
                uuid = self._write_track(process, place, track)
                match track.content:
                    case Slices():
                        self._write_slices(uuid, track.content)
                    case Values():
                        self._write_values(uuid, track.content)
                    case _:
                        assert_never(track.content)

    def _keys(self) -> Iterator[str]:
        yield CYCLES
        yield from dict.fromkeys(key for step in self._timeline.steps for key in step)

    def _packet(self) -> Any:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.sequence_flags = self._protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        return packet

    def _write_names(self) -> None:
        """The texts that packets refer to by number."""
        packet = self._packet()
        packet.sequence_flags = self._protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        for number, name in enumerate(self._timeline.names, 1):
            packet.interned_data.event_names.add(iid=number, name=escaped(name))
        for key, number in self._arguments.items():
            packet.interned_data.debug_annotation_names.add(iid=number, name=key)
        self._builder.write_packet(packet)

    def _next_uuid(self) -> int:
        self._uuid += 1
        return self._uuid

    def _write_process(self, number: int, name: str) -> int:
        packet, uuid = self._packet(), self._next_uuid()
        described = packet.track_descriptor
        described.uuid = uuid
        described.child_ordering = self._protos.TrackDescriptor.EXPLICIT
        described.process.pid = number + 1
        described.process.process_name = escaped(name)
        described.process.process_labels.extend(self._timeline.notes)
        self._builder.write_packet(packet)
        return uuid

    def _write_track(self, process: int, place: int, track: Track) -> int:
        packet, uuid = self._packet(), self._next_uuid()
        described = packet.track_descriptor
        described.uuid, described.parent_uuid, described.name = uuid, process, track.name
        described.sibling_order_rank = place
        if isinstance(track.content, Values):
            described.counter.unit_name = track.content.unit
        self._builder.write_packet(packet)
        return uuid

    def _write_slices(self, track: int, slices: Slices) -> None:
        """Begin and end of each slice in the order in which they happen: one that is inside another ends before it.

        Equal slices are written from one packet, which differs in its time and its cycles.
        """
        finish = self._event(track, "TYPE_SLICE_END")
        begins: dict[tuple[int, int], Any] = {}
        ends: list[int] = []
        columns = (slices.begin.tolist(), slices.end.tolist(), slices.cycles.tolist(), slices.name.tolist(), slices.step.tolist())
        for begin, end, cycles, name, step in zip(*columns, strict=True):
            while ends and ends[-1] <= begin:
                self._write_at(finish, ends.pop())
            start = begins.get((name, step))
            if start is None:
                start = begins[name, step] = self._event(track, "TYPE_SLICE_BEGIN")
                start.track_event.name_iid = name + 1
                start.track_event.debug_annotations.add(name_iid=self._arguments[CYCLES])
                if step >= 0:
                    self._annotate(start.track_event, self._timeline.steps[step])
            start.track_event.debug_annotations[0].int_value = cycles
            self._write_at(start, begin)
            ends.append(end)
        for end in reversed(ends):
            self._write_at(finish, end)

    def _write_values(self, track: int, values: Values) -> None:
        packet = self._event(track, "TYPE_COUNTER")
        for time, value in zip(values.time.tolist(), values.value.tolist(), strict=True):
            packet.track_event.double_counter_value = value
            self._write_at(packet, time)

    def _event(self, track: int, kind: str) -> Any:
        packet = self._packet()
        packet.track_event.track_uuid = track
        packet.track_event.type = getattr(self._protos.TrackEvent, kind)
        return packet

    def _annotate(self, event: Any, description: Mapping[str, str | int | float]) -> None:
        for key, value in description.items():
            annotation = event.debug_annotations.add(name_iid=self._arguments[key])
            match value:
                case str():
                    annotation.string_value = escaped(value)
                case int():
                    annotation.int_value = value
                case float():
                    annotation.double_value = value
                case _:
                    assert_never(value)

    def _write_at(self, packet: Any, time: int) -> None:
        packet.timestamp = time
        self._builder.write_packet(packet)
