"""Traces for the Perfetto UI, read back with the package's own messages: slices nest, last what the report says, and count it."""

import sys

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from page_reports import ran_without_steps
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceMessage
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from profile_reports import full_report, program_trees, reports

from pypoplar import FLOAT, ApplicationRuntimeError, Engine, Graph, InOut, IPUModel, MissingFeature, Vertex
from pypoplar.program import Call, Copy, Execute, Repeat, Sequence
from pypoplar.report.execution import no_tiles
from pypoplar.report.file.sqlite_file import load_report, save_report
from pypoplar.report.nesting import Nesting
from pypoplar.report.perfetto.perfetto_trace import write_trace
from pypoplar.report.program_nodes import Program
from pypoplar.report.program_table import ProgramTable
from pypoplar.report.timeline import END_TO_END, WAIT
from pypoplar.report.trace import Trace


class Read:
    """A trace file: slices and counters by process and track, every slice as (begin, end, name, depth, what it says)."""

    def __init__(self, path):
        message = TraceMessage()
        message.ParseFromString(path.read_bytes())
        names, keys, open_slices = {}, {}, {}
        self.processes, self.tracks, self.slices, self.counters, self.labels = {}, {}, {}, {}, []
        for packet in message.packet:
            names |= {name.iid: name.name for name in packet.interned_data.event_names}
            keys |= {name.iid: name.name for name in packet.interned_data.debug_annotation_names}
            track = packet.track_descriptor
            if track.HasField("process"):
                self.processes[track.uuid] = track.process.process_name
                self.labels += track.process.process_labels
            elif track.uuid:
                self.tracks[track.uuid] = (self.processes[track.parent_uuid], track.name)
                into = self.counters if track.HasField("counter") else self.slices
                into[self.tracks[track.uuid]] = []
            if packet.HasField("track_event"):
                event, place = packet.track_event, self.tracks[packet.track_event.track_uuid]
                stack = open_slices.setdefault(place, [])
                if event.type == TrackEvent.TYPE_COUNTER:
                    self.counters[place].append((packet.timestamp, event.double_counter_value))
                elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
                    description = {
                        keys[annotation.name_iid]: getattr(annotation, annotation.WhichOneof("value"))
                        for annotation in event.debug_annotations
                    }
                    stack.append((packet.timestamp, names[event.name_iid], description, len(self.slices[place])))
                    self.slices[place].append(None)
                else:
                    begin, name, description, number = stack.pop()
                    self.slices[place][number] = (begin, packet.timestamp, name, len(stack), description)
        assert not any(open_slices.values())

    def main(self, track):
        return self.slices[next(iter(self.processes.values())), track]

    def counter(self, track):
        return self.counters[next(iter(self.processes.values())), track]

    def spans(self, track):
        return [span[:3] for span in self.main(track)]


@pytest.fixture
def written(tmp_path):
    def write(report, **options):
        path = tmp_path / "trace.pftrace"
        notes = write_trace(report, path, **options)
        read = Read(path)
        assert tuple(read.labels[: len(notes)]) == notes
        return read

    return write


def test_phases_follow_one_another_and_last_what_the_report_says(written):
    report = full_report()
    read = written(report)
    assert read.spans("Exchange") == [(begin + 20, begin + 50, "gather") for begin in (0, 5520, 11040, 16560)]
    assert read.spans("Compute")[:2] == [(70, 470, "multiply"), (5590, 5990, "multiply")]
    assert read.spans("Sync")[:3] == [(0, 20, "gather"), (50, 70, "multiply"), (470, 520, "out")]
    for phase, attribute in (("Sync", "sync_cycles"), ("Exchange", "exchange_cycles"), ("Compute", "compute_cycles")):
        cycles = sum(getattr(step, attribute) for run in report.execution.runs[:2] for step in run.steps)
        assert sum(end - begin for begin, end, _ in read.spans(phase)) == cycles  # the clock has 1 GHz


def test_slices_say_what_a_mean_execution_did(written):
    description = written(full_report()).main("Compute")[0][-1]
    assert description == {
        "step": 1,
        "type": "OnTileExecute",
        "run": 0,
        "executions": 2,
        "active tiles": 3,
        "tile balance": 0.5625,
        "flops": 1000,
        "cycles": 400,
        "slowest tile": 0,
        "vertices": "8 Multiply<float>, 1 Zero",
        "vertices of the slowest tile": "4 vertices of Multiply<float> (x 10 to 12, y 10), 1 vertex of Zero",
    }
    assert written(full_report()).main("Exchange")[0][-1]["bytes sent"] == 64
    assert written(full_report()).main("Host exchange")[0][-1]["host bytes"] == 256


def test_slices_say_how_many_cycles_they_last(written):
    report = full_report()
    slow = evolve(report, execution=evolve(report.execution, clockFrequency=0.25e9))  # 4 ns a cycle
    read = written(slow)
    for track in ("Runs", "Program", "Slowest tile", "Sync", "Exchange", "Compute"):
        spans = read.main(track)
        assert spans
        assert all(4 * description["cycles"] == end - begin for begin, end, *_, description in spans), track


def test_the_slowest_tile_of_each_step_has_a_lane(written):
    assert written(full_report()).spans("Slowest tile")[:3] == [(0, 50, "Tile 0"), (50, 470, "Tile 0"), (5520, 5570, "Tile 0")]


def test_tiles_of_several_ipus_are_named_with_their_ipu(written):
    report = full_report()
    target = evolve(report.compilation.target, numIPUs=2, tilesPerIpu=2)
    runs = [evolve(run, waiting_by_ipu=no_tiles()) for run in report.execution.runs]  # one clock for both, as in older profiles
    execution = evolve(report.execution, runs=runs)
    read = written(evolve(report, compilation=evolve(report.compilation, target=target), execution=execution))
    assert [name for _, name in read.slices if name.startswith("Tile ")] == [
        "Tile 0 (tile 0 of IPU 0)",
        "Tile 1 (tile 1 of IPU 0)",
        "Tile 2 (tile 0 of IPU 1)",
    ]


def test_a_step_right_inside_a_loop_has_the_number_of_its_iteration(written):
    read = written(profiled(lambda graph, increase, copy: Sequence([Repeat(3, increase), copy])))
    names = [name for *_, name, _, _ in read.main("Program") if name.startswith("increase")]
    assert names == [f"increase (iteration {number})" for number in (1, 2, 3)]


def test_inner_loops_count_their_own_iterations(written):
    read = written(profiled(lambda graph, increase, copy: Repeat(2, Sequence([Repeat(2, Sequence([increase, copy])), copy]))))
    names = [name for *_, name, _, _ in read.main("Program") if name.startswith("iteration")]
    assert names == ["iteration 1", "iteration 1", "iteration 2", "iteration 2", "iteration 1", "iteration 2"]


def test_timestamps_are_cycles_at_the_clock(written):
    report = full_report()
    slow = evolve(report, execution=evolve(report.execution, clockFrequency=0.25e9))
    assert written(slow).spans("Compute")[0] == (280, 1880, "multiply")


def test_runs_and_the_programs_levels_nest(written):
    read = written(full_report())
    assert read.spans("Runs") == [(0, 11040, "main"), (11040, 22080, "main")]
    program = [(name, depth) for *_, name, depth, _ in read.main("Program")]
    # Which of the two places runs the shared sequence cannot be told, so that neither Repeat nor Call is there.
    once = [("Sequence step", 1), ("gather", 2), ("multiply", 2), ("out", 1)]
    assert program == [("Sequence", 0), *once, *once] * 2


def test_counters_have_the_values_of_each_step(written):
    report = full_report()
    read = written(report)
    assert read.counter("Bytes exchanged")[:3] == [(0, 64.0), (50, 0.0), (5520, 64.0)]
    assert read.counter("Active tiles")[:4] == [(0, 3.0), (470, 0.0), (5520, 3.0), (5990, 0.0)]
    exchange, compute, _ = report.execution.steps
    assert read.counter("Tile balance")[:3] == [(0, exchange.tileBalance), (50, compute.tileBalance), (470, 0.0)]
    assert read.counter("FLOP/s")[:3] == [(0, 0.0), (50, 1000 / 420e-9), (470, 0.0)]
    assert read.counter("Live memory")[:2] == [(0, 714 + 100.0), (470, 714.0)]
    assert read.counter("Tile balance")[-1][1] == 0.0


def test_slowest_tiles_compute_and_wait(written):
    read = written(full_report(), tiles=2)
    tiles = {track: slices for (process, track), slices in read.slices.items() if process == "IPU 0: slowest tiles"}
    assert list(tiles) == ["Tile 0", "Tile 1"]
    assert [span[:3] for span in tiles["Tile 0"]][:2] == [(70, 470, "multiply"), (5590, 5990, "multiply")]
    recorded, later = (70, 320, 470), (5590, 5940, 5990)
    shown = [span[:3] for span in tiles["Tile 1"]][:4]
    assert shown == [
        span for begin, middle, end in (recorded, later) for span in ((begin, middle, "multiply"), (middle, end, WAIT))
    ]
    mean = [span[:2] for span in tiles["Tile 1"]][4]
    assert mean[1] - mean[0] == 300
    assert len(written(full_report(), tiles=0).processes) == 1


def test_without_recorded_executions_steps_lie_end_to_end_and_the_trace_says_so(written):
    report = full_report()
    unrecorded = evolve(report, execution=evolve(report.execution, trace=Trace()))
    read = written(unrecorded)
    assert END_TO_END in read.labels
    assert [(end - begin, name) for begin, end, name in read.spans("Runs")] == [
        (11040, "main"),
        (11040, "main"),
        (55200, "main (5 runs)"),
    ]
    assert read.spans("Compute")[0] == (140, 940, "multiply")  # two executions as one
    alone = evolve(report, execution=evolve(report.execution, trace=Trace(), runs=()))
    (run,) = written(alone).spans("Runs")
    assert run == (0, report.execution.totalCycles.total, "all runs")


def test_what_was_not_recorded_is_said(written):
    assert written(full_report()).labels[0] == "30 later executions of steps were not recorded"


def test_a_saved_report_gives_the_same_trace(tmp_path):
    report = full_report()
    save_report(report, tmp_path / "profile.pop")
    write_trace(report, tmp_path / "one.pftrace")
    write_trace(load_report(tmp_path / "profile.pop"), tmp_path / "other.pftrace")
    assert (tmp_path / "one.pftrace").read_bytes() == (tmp_path / "other.pftrace").read_bytes()


def test_a_compressed_trace_is_the_same_trace(tmp_path):
    import gzip

    write_trace(full_report(), tmp_path / "one.pftrace")
    write_trace(full_report(), tmp_path / "other.pftrace.gz")
    packed = (tmp_path / "other.pftrace.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "one.pftrace").read_bytes()
    assert len(packed) < (tmp_path / "one.pftrace").stat().st_size


def test_a_report_of_nothing_that_ran_is_refused(tmp_path):
    with pytest.raises(ApplicationRuntimeError, match="no runs to trace"):
        write_trace(evolve(full_report(), execution=None), tmp_path / "trace.pftrace")
    with pytest.raises(ApplicationRuntimeError, match="has run, and no step was executed"):
        write_trace(ran_without_steps(), tmp_path / "trace.pftrace")
    assert list(tmp_path.iterdir()) == []


def test_runs_that_are_too_long_are_refused(tmp_path):
    report = full_report()
    for clock in (1e-12, 1e-300):
        with pytest.raises(ApplicationRuntimeError, match="longer than the 64-bit nanoseconds"):
            write_trace(evolve(report, execution=evolve(report.execution, clockFrequency=clock)), tmp_path / "trace.pftrace")


def test_without_the_package_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder.proto_builder", None)
    with pytest.raises(MissingFeature, match=r"pip install -e '.\[trace\]' in a checkout"):
        write_trace(full_report(), tmp_path / "trace.pftrace")


@given(report=reports(), tiles=st.integers(0, 3))
def test_slices_of_any_report_nest(tmp_path_factory, report, tiles):
    path = tmp_path_factory.getbasetemp() / "any.pftrace"
    if report.execution is None or not report.execution.steps:
        with pytest.raises(ApplicationRuntimeError):
            write_trace(report, path, tiles)
        return
    write_trace(evolve(report, execution=evolve(report.execution, clockFrequency=1e9)), path, tiles)
    read = Read(path)
    for slices in read.slices.values():
        around = []
        for begin, end, _, depth, _ in slices:
            assert begin <= end
            del around[depth:]
            assert all(outer[0] <= begin and end <= outer[1] for outer in around)
            around.append((begin, end))


class Increase(Vertex):
    x: InOut[FLOAT]

    def compute(self):
        self.x = self.x + 1.0


def profiled(make):
    """The report of a run of ``make(increase, x, y)``, a program."""
    device = IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    x, y = graph.addVariable(FLOAT, [], "x"), graph.addVariable(FLOAT, [], "y")
    increase = graph.addComputeSet("increase")
    graph.setTileMapping(graph.addVertex(increase, Increase, {"x": x}), 0)
    graph.setTileMapping(x, 0)
    graph.setTileMapping(y, 1)
    engine = Engine(graph, make(graph, Execute(increase), Copy(x, y)))
    engine.loadAndRun(device)
    return engine.getReport()


def test_a_loops_body_begins_anew_in_each_iteration(written):
    read = written(profiled(lambda graph, increase, copy: Sequence([Repeat(3, Sequence([increase, copy])), copy])))
    levels = [(name, depth) for *_, name, depth, _ in read.main("Program")]
    (repeat,) = [depth for name, depth in levels if name.startswith("Repeat")]
    assert [name for name, depth in levels if depth == repeat + 1] == ["iteration 1", "iteration 2", "iteration 3"]
    assert [depth for name, depth in levels if name == "increase"] == [repeat + 2] * 3
    begin, end = read.spans("Runs")[0][:2]
    assert sum(span[1] - span[0] for span in read.main("Program") if span[3] == 0) == end - begin


def test_what_two_calls_share_begins_anew_in_each(written):
    def make(graph, increase, copy):
        function = graph.addFunction(Sequence([increase, copy]))
        return Sequence([Call(function), Call(function)])

    read = written(profiled(make))
    steps = [name for *_, name, _, _ in read.main("Program") if name == "increase"]
    assert len(steps) == 2
    bodies = [span for span in read.main("Program") if span[3] == 1]
    assert len(bodies) == 2


@given(program_trees(4), st.lists(st.integers(0, 3), max_size=8))
def test_levels_are_what_is_on_every_way_to_a_step(trees, steps):
    roots, leaves = trees
    table = ProgramTable()
    nesting = Nesting(roots, leaves)

    def ways(program, above):
        number = table.add(program)
        yield number, above
        for child in program.children:
            yield from ways(child, (*above, number))

    all_ways = [way for root in roots for way in ways(root, ())]
    numbers = {number: key for key, number in table.programs.items()}
    for event, step in enumerate(steps):
        (*levels, last) = nesting.levels([event], [step])
        assert (last.first, last.last, last.title) == (0, 0, None)
        paths = [above for number, above in all_ways if number == table.add(leaves[step])]
        certain = [program for program in paths[0] if all(program in above for above in paths)] if paths else []
        expected = []
        for kind, name, detail, parts in (
            (numbers[program][1], numbers[program][0], numbers[program][3], numbers[program][-1]) for program in certain
        ):
            expected.append(" ".join(part for part in (kind, name, f"({detail})" if detail else "") if part))
            expected += ["iteration"] if kind == "Repeat" and len(parts) > 1 else []
        assert [level.title for level in levels] == expected


def test_one_program_may_stand_in_another():
    leaf = Program("a", "OnTileExecute", (), 0)
    inner = Program("inner", "Sequence", (leaf,))
    outer = Program("outer", "Repeat", (inner,), -1, "2 times")
    assert [level.title for level in Nesting((outer,), (leaf,)).levels([0, 0], [0, 0])] == [
        "Repeat outer (2 times)",
        "Sequence inner",
        None,
        "Sequence inner",
        None,
    ]
    assert [level.title for level in Nesting((outer, inner), (leaf,)).levels([0], [0])] == ["Sequence inner", None]
    assert np.array_equal([level.last for level in Nesting((outer,), (leaf,)).levels([0, 1], [0, 0])], [0, 0, 0, 1, 1, 1])
