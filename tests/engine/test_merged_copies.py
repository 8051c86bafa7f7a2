"""Copies that are one step give the results that they give one by one, need the same memory, and take no more cycles."""

import io
import random

import attrs
import numpy as np
import pytest
from copy_programs import CopyProgram
from engine_builder import Bench, everywhere
from hypothesis import example, given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    FLOAT,
    INT,
    Engine,
    Executable,
    Input,
    InvalidOption,
    IPUModel,
    Output,
    UnknownHandle,
    Vector,
    Vertex,
    compileGraph,
    pva,
    testing,
)
from pypoplar.program import Copy, Repeat, Sequence, Sync, SyncType
from pypoplar.report.making.make_report import make_report

SEEDS = st.integers(0, 2**32 - 1)
APART = {"pypoplar.merge_copies": False}


def machine(ipus):
    model = IPUModel("tiny")
    model.numIPUs, model.tilesPerIPU = ipus, 4
    return model.createDevice()


# Laws


@pytest.mark.parametrize("ipus", [1, 2])
@examples(30)
@given(seed=SEEDS)
@example(seed=1267)
def test_programs_give_the_same_in_the_same_memory_and_no_more_cycles(ipus, seed):
    """On two IPUs an IPU also waits, in a step that both are in, for what only the other one moves."""
    program = CopyProgram(random.Random(seed), machine(ipus))
    merged, single = program.compiled(), program.compiled(**APART)
    for name in attrs.fields_dict(type(merged.memory)):
        np.testing.assert_array_equal(getattr(merged.memory, name), getattr(single.memory, name))
    np.testing.assert_array_equal(merged.tile_bytes, single.tile_bytes)
    expected, most, _ = program.outcome(single, "interpret")
    for executable, mode in ((merged, "interpret"), (merged, "native"), (single, "native")):
        seen, cycles, moving = program.outcome(executable, mode)
        assert seen == expected
        waited = moving if ipus > 1 else [0] * len(cycles)
        assert all(taken <= other + wait for taken, other, wait in zip(cycles, most, waited, strict=True))


@examples(20)
@given(seed=SEEDS)
def test_programs_give_the_same_where_elements_are_recorded_and_unwritten_ones_are_errors(seed):
    program = CopyProgram(random.Random(seed), machine(1))
    for options in ({"pypoplar.races": "elements"}, {"pypoplar.uninitialised": "error"}):
        merged, single = program.compiled(**options), program.compiled(**options, **APART)
        assert program.outcome(merged, "native")[0] == program.outcome(single, "native")[0]


@examples(30)
@given(seed=SEEDS)
def test_a_saved_program_does_the_same(seed):
    program = CopyProgram(random.Random(seed), machine(2))
    merged = program.compiled()
    loaded = Executable.deserialize(merged.serialize())
    assert [exchange.names for exchange in loaded.exchanges] == [exchange.names for exchange in merged.exchanges]
    for mine, other in zip(loaded.exchanges, merged.exchanges, strict=True):
        for name in mine.names:
            assert mine.messages_of(name).tolist() == other.messages_of(name).tolist()
    assert program.outcome(loaded, "native") == program.outcome(merged, "native")


def steps_apart(executable, single):
    """The static steps of an executable, each with those that it consists of in one without merging."""
    details = dict(zip(executable.tree.step.tolist(), executable.tree.detail, strict=True))
    place = 1
    for number, step in enumerate(executable.steps[1:], 1):
        count = int(details[number].split()[-2].replace(",", "")) if details[number].endswith("copies") else 1
        yield step, single.steps[place : place + count]
        place += count
    assert place == len(single.steps)


def by_tile(steps, name):
    arrays = [getattr(step, name) for step in steps]
    return np.sum([array for array in arrays if len(array)], 0)


@pytest.mark.parametrize("ipus", [1, 2])
@examples(50)
@given(seed=SEEDS)
def test_a_step_takes_no_more_of_anything_than_its_copies_one_by_one(ipus, seed):
    program = CopyProgram(random.Random(seed), machine(ipus))
    merged, single = program.compiled(), program.compiled(**APART)
    for step, copies in steps_apart(merged, single):
        assert {copy.kind for copy in copies} == {step.kind}
        assert step.host_bytes == sum(copy.host_bytes for copy in copies)
        for name in ("fixed_cycles", "sync_cycles", "global_exchange_cycles", "host_cycles"):
            assert getattr(step, name) <= sum(getattr(copy, name) for copy in copies)
        for name in ("exchange_cycles", "rearrange_cycles"):
            assert (getattr(step, name) <= by_tile(copies, name)).all()


@pytest.mark.parametrize("ipus", [1, 2])
@examples(60)
@given(seed=SEEDS)
def test_messages_have_the_name_of_their_copy(ipus, seed):
    """Every copy of these programs has a name of its own."""
    program = CopyProgram(random.Random(seed), machine(ipus))
    merged, single = program.compiled(), program.compiled(**APART)
    for step, copies in steps_apart(merged, single):
        parts = [single.exchanges[copy.exchange] for copy in copies if copy.exchange >= 0]
        if step.kind not in ("copy", "stream") or not parts:
            continue
        exchange = merged.exchanges[step.exchange]
        assert exchange.names == tuple(dict.fromkeys(part.name for part in parts))
        rows = exchange.messages
        np.testing.assert_array_equal(
            np.bincount(rows["destination"], rows["bytes"], len(exchange.bytes_received)), exchange.bytes_received
        )
        assert (exchange.bytes_sent <= np.sum([part.bytes_sent for part in parts], 0)).all()
        if len(exchange.names) == len(parts):
            for part in parts:
                assert exchange.messages_of(part.name).tolist() == part.messages.tolist()
                assert exchange.share_of(part.name).bytes_sent == part.bytes_sent.sum()


# Names


class Sum(Vertex):
    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        self.out = 0.0
        for value in self.x:
            self.out += value


@pytest.fixture
def bench():
    bench = Bench()
    bench.x, bench.y, bench.z = (bench.variable(name, np.arange(12.0), [tile] * 12) for tile, name in enumerate("xyz", 3))
    return bench


def rows(bench, count, name="row {}", target=None):
    """Copies of as many floats of x, one each."""
    target = bench.y if target is None else target
    return [Copy(bench.x[row], target[row], name=name.format(row)) for row in range(count)]


def test_an_exchange_has_the_names_of_all_its_copies(bench):
    (exchange,) = bench.engine(Sequence(rows(bench, 2))).executable.exchanges
    assert (exchange.name, exchange.phase, exchange.names) == ("row 0, row 1", "copy", ("row 0", "row 1"))
    assert exchange.messages.tolist() == [(3, 4, 8, "x")]
    assert exchange.messages_of("row 1").tolist() == [(3, 4, 4, "x")]
    assert repr(exchange) == "<exchange copy 'row 0, row 1': 1 messages, 8 bytes>"


def test_a_long_list_of_names_is_cut_and_there_all_the_same(bench):
    (exchange,) = bench.engine(Sequence(rows(bench, 12))).executable.exchanges
    assert exchange.name == "row 0, row 1, row 2 and 9 more"
    assert exchange.names == tuple(f"row {row}" for row in range(12))


def test_copies_of_one_name_are_called_by_it_once(bench):
    first, second = rows(bench, 2, name="")
    (exchange,) = bench.engine(Sequence([first, second])).executable.exchanges
    assert (exchange.name, exchange.names) == ("Copy", ("Copy",))
    assert exchange.messages_of("Copy").tolist() == exchange.messages.tolist()
    mixed = [first, Copy(bench.x[5], bench.z[5], name="other"), second]
    (exchange,) = bench.engine(Sequence(mixed)).executable.exchanges
    assert (exchange.name, exchange.names) == ("Copy, other", ("Copy", "other"))
    assert exchange.messages_of("Copy").tolist() == [(3, 4, 4, "x"), (3, 4, 4, "x")]
    assert exchange.messages_of("other").tolist() == [(3, 5, 4, "x")]


def test_the_exchanges_of_a_compute_set_have_its_name(bench):
    out = bench.variable("out", 0.0, 9)
    before, _ = bench.engine(bench.execute(Sum, 9, x=bench.x, out=out)).executable.exchanges
    assert before.names == ("Sum",)
    assert before.messages_of("Sum").tolist() == before.messages.tolist() == [(3, 9, 48, "x")]


def test_a_name_that_no_copy_has_is_refused_with_the_nearest(bench):
    (exchange,) = bench.engine(Sequence(rows(bench, 2))).executable.exchanges
    with pytest.raises(UnknownHandle, match=r"'row 0, row 1': .* has no part called 'row1'; did you mean 'row 1'\?"):
        exchange.messages_of("row1")


def test_what_two_copies_bring_to_a_tile_alike_is_a_message_of_each_and_arrives_once(bench):
    program = Sequence([Copy(bench.x, bench.y, name="one"), Copy(bench.x, bench.variable("w", np.zeros(12), 4), name="two")])
    (exchange,) = bench.engine(program).executable.exchanges
    assert exchange.messages.tolist() == [(3, 4, 48, "x")]
    for name in exchange.names:
        assert exchange.messages_of(name).tolist() == [(3, 4, 48, "x")]
    testing.assert_exchange(exchange_owner(exchange), "two", {(3, 4): 48})


def exchange_owner(*exchanges):
    return type("Owner", (), {"exchanges": list(exchanges)})()


def test_streams_that_are_rearranged_together_have_one_exchange_with_the_names_of_all(bench):
    spread = bench.variable("spread", np.arange(12.0), [tile % 3 for tile in range(12)])
    streams = [bench.graph.addHostToDeviceFIFO(name, FLOAT, 6) for name in ("first", "second")]
    whole = bench.graph.addHostToDeviceFIFO("whole", FLOAT, 12)
    copies = [Copy(stream, spread[6 * n : 6 * n + 6]) for n, stream in enumerate(streams)]
    (exchange,) = bench.engine(Sequence([*copies, Copy(whole, bench.x)])).executable.exchanges
    assert (exchange.name, exchange.phase, exchange.names) == ("first, second", "stream", ("first", "second"))
    for copy in copies:
        (alone,) = bench.engine(copy).executable.exchanges
        assert exchange.messages_of(alone.name).tolist() == alone.messages.tolist()


def test_exchange_is_asserted_by_the_name_of_each_copy(bench):
    engine = bench.engine(Sequence([*rows(bench, 3), Copy(bench.x[4:6], bench.z[4:6], name="pair")]))
    testing.assert_exchange(engine, "row 1", {(3, 4): 4})
    testing.assert_exchange(engine, "pair", {(3, 5): 8}, "copy")
    testing.assert_no_exchange(engine, "pair", "before")
    testing.assert_exchange(engine, None, {(3, 4): 12, (3, 5): 8})
    testing.assert_exchange(engine, engine.executable.exchanges[0].name, {(3, 4): 12, (3, 5): 8})
    testing.assert_exchange_at_most(engine, 8, "pair")
    with pytest.raises(AssertionError, match=r"of 'pair' sends 8 bytes, more than 7:\n  pair \(copy\): 8 bytes"):
        testing.assert_exchange_at_most(engine, 7, "pair")
    with pytest.raises(AssertionError, match=r"of 'row 2' is not as expected:\n  tile 3 to tile 4: 4 bytes, expected 8"):
        testing.assert_exchange(engine, "row 2", {(3, 4): 8})
    with pytest.raises(AssertionError, match=r"called 'pairs': it has pair, row 0, .*; did you mean 'pair'"):
        testing.assert_exchange(engine, "pairs", {})


def test_a_multicast_by_several_copies_is_sent_once_by_all_and_once_by_each(bench):
    targets = [bench.variable(f"target {tile}", np.zeros(12), tile) for tile in (7, 8, 9)]
    engine = bench.engine(Sequence([Copy(bench.x, target, name=f"to {n}") for n, target in enumerate(targets)]))
    (exchange,) = engine.executable.exchanges
    assert (exchange.bytes_sent.sum(), exchange.bytes_received.sum()) == (48, 144)
    assert [exchange.share_of(name).bytes_sent for name in exchange.names] == [48] * 3


# Reports


def outline(report):
    return [
        f"{'  ' * depth}{program.type} {program.name} {program.detail}".rstrip()
        for depth, program in report.compilation.programs[0].walk()
    ]


def test_a_step_stands_in_every_sequence_that_has_a_copy_of_it(bench):
    first, second, third, fourth = rows(bench, 4)
    program = Sequence([Sequence([first, second], name="head"), third, Sequence([fourth], name="tail")])
    engine = bench.engine(program)
    step = "DoExchange row 0, row 1, row 2 and 1 more 4 copies"
    expected = ["Sequence", "  Sequence head", f"    {step}", f"  {step}", "  Sequence tail", f"    {step}"]
    assert outline(engine.getReport()) == expected
    engine.run()
    text = io.StringIO()
    engine.printProfileSummary(text, {"showExecutionSteps": "true"})
    assert "Sequence: head:" in text.getvalue()
    assert "Sequence: tail (its steps are above)" in text.getvalue()
    assert text.getvalue().count("DoExchange: row 0, row 1, row 2 and 1 more") == 1


def test_streams_that_share_a_step_are_named_together(bench):
    streams = [bench.graph.addHostToDeviceFIFO(f"in {number}", FLOAT, 4) for number in range(3)]
    copies = [Copy(stream, bench.x[4 * n : 4 * n + 4], name="" if n else "first") for n, stream in enumerate(streams)]
    report = bench.engine(Sequence(copies)).getReport()
    assert outline(report) == ["Sequence", "  StreamCopy first, in 1, in 2 48 bytes to the device in 3 copies"]


@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_reports_profiles_and_traces_have_a_step_for_all_its_copies(bench, mode, tmp_path):
    streams = [bench.graph.addHostToDeviceFIFO(f"in {number}", FLOAT, 6) for number in range(2)]
    fill = [Copy(stream, bench.x[6 * n : 6 * n + 6]) for n, stream in enumerate(streams)]
    engine = bench.engine(Sequence([*fill, Repeat(2, Sequence([*rows(bench, 3), Sync(SyncType.INTERNAL)]))]), mode)
    for number in range(2):
        engine.connectStream(f"in {number}", np.ones(6, np.float32))
    engine.run()
    report = engine.getReport()
    pva.save_report(report, tmp_path / "profile.pop")
    for shown in (report, pva.openReport(tmp_path / "profile.pop")):
        steps = [(step.name, step.type, step.executions) for step in shown.execution.steps]
        assert steps == [("in 0, in 1", "StreamCopy", 1), ("row 0, row 1, row 2", "DoExchange", 2), ("Sync", "Sync", 2)]
        assert shown.execution.steps[0].host_bytes == 48
        assert [(exchange.name, exchange.bytes.tolist()) for exchange in shown.compilation.exchanges] == [
            ("row 0, row 1, row 2", [12])
        ]
        assert outline(shown)[1] == "  StreamCopy in 0, in 1 48 bytes to the device in 2 copies"
    known = report.execution.trace.step > 0
    assert report.execution.trace.step[known].tolist() == [1, 2, 3, 2, 3]
    assert report.execution.totalCycles.total == sum(step.cycles for step in report.execution.steps)


def test_lives_go_by_the_step_that_copies_share(bench):
    """Up to a step, whichever copy is the last to read; from it, if the first one writes, else from the next."""
    first, second = (bench.graph.addVariable(FLOAT, [4], name) for name in ("first", "second"))
    for tile, hidden in enumerate((first, second)):
        bench.graph.setTileMapping(hidden, tile)
    sync = Sync(SyncType.INTERNAL)
    fill, take = [Copy(bench.x[:4], first), Copy(bench.x[:4], second)], [Copy(second, bench.y[:4]), Copy(first, bench.y[4:8])]
    executable = compileGraph(bench.graph, Sequence([*fill, sync, *take, sync]))
    assert [step.kind for step in executable.steps[1:]] == ["copy", "sync", "copy", "sync"]
    lives, numbers = executable.lives, [executable.variable_names.index(name) for name in ("first", "second")]
    assert (lives.begin[numbers].tolist(), lives.end[numbers].tolist()) == ([1, 2], [4, 4])


def test_no_more_lives_at_a_step_than_memory_holds(bench):
    """The second copy writes where the first reads, but for the bytes that they touch."""
    first, second = (bench.graph.addVariable(FLOAT, [2], name) for name in ("first", "second"))
    for hidden in (first, second):
        bench.graph.setTileMapping(hidden, 0)
    programs = [
        Copy(bench.x[:2], first),
        Copy(first[:1], bench.y[:1]),
        Copy(bench.x[:1], second[1:2]),
        Copy(second[1:2], bench.y[1:2]),
    ]
    executable = compileGraph(bench.graph, Sequence(programs))
    assert len(executable.steps) == 4
    assert executable.lives.live_bytes(4, 0).max() <= executable.memory.not_always_live[0] == 8


# The host


def test_callbacks_come_in_the_order_of_the_copies(bench, mode):
    names = ["a", "b", "c", "d"]
    inward = [bench.graph.addHostToDeviceFIFO(name, FLOAT, 3) for name in names[:2]]
    outward = [bench.graph.addDeviceToHostFIFO(name, FLOAT, 3) for name in names[2:]]
    copies = [
        Copy(inward[1], bench.x[3:6]),
        Copy(inward[0], bench.x[:3]),
        Copy(bench.x[:3], outward[1]),
        Copy(bench.x[3:6], outward[0]),
    ]
    engine = bench.engine(Sequence(copies), mode)
    assert len(engine.executable.steps) == 3
    called = []

    def callback(name, value):
        def fill(array):
            if value is not None:
                array[:] = value
            called.append((name, array.tolist()))

        return fill

    for name, value in zip(names, (1.0, 2.0, None, None), strict=True):
        engine.connectStreamToCallback(name, callback(name, value))
    engine.run()
    assert called == [("b", [2.0] * 3), ("a", [1.0] * 3), ("d", [1.0] * 3), ("c", [2.0] * 3)]


def test_a_callback_that_fails_ends_the_run_and_leaves_the_engine_usable(bench, mode):
    streams = [bench.graph.addHostToDeviceFIFO(name, FLOAT, 3) for name in "ab"]
    engine = bench.engine(Sequence([Copy(stream, bench.x[3 * n : 3 * n + 3]) for n, stream in enumerate(streams)]), mode)
    fails = [True]

    def callback(array):
        if fails[0]:
            raise ValueError("no data")
        array[:] = 7.0

    engine.connectStream("a", np.full(3, 5, np.float32))
    engine.connectStreamToCallback("b", callback)
    with pytest.raises(ValueError, match="no data"):
        engine.run()
    fails[0] = False
    engine.run()
    assert engine.readTensor("x")[:6].tolist() == [5, 5, 5, 7, 7, 7]
    assert [step.executions for step in engine.getReport().execution.steps] == [1]


def test_chunks_of_streams_are_consumed_as_they_are_one_by_one(bench):
    streams = [bench.graph.addHostToDeviceFIFO(name, INT, 2) for name in "ab"]
    out = bench.graph.addDeviceToHostFIFO("out", INT, 2)
    x, y = bench.variable("i", [0, 0], 1), bench.variable("j", [0, 0], 2)
    program = Repeat(3, Sequence([Copy(streams[0], x), Copy(streams[1], y), Copy(x, out), Copy(y, out)]))

    def work(mode, options):
        engine = bench.engine(program, mode, options)
        engine.connectStream("a", np.arange(4, dtype=np.int32))
        engine.connectStream("b", np.arange(10, 16, dtype=np.int32))
        taken = np.zeros(12, np.int32)
        engine.connectStream("out", taken)
        engine.run()
        return taken.tolist()

    expected = [0, 1, 10, 11, 2, 3, 12, 13, 0, 1, 14, 15]
    assert everywhere(work) == everywhere(work, APART) == expected


def test_merging_is_decided_when_a_graph_is_compiled(bench):
    executable = compileGraph(bench.graph, Sequence(rows(bench, 2)), APART)
    assert len(Engine(executable).executable.steps) == 3
    with pytest.raises(InvalidOption, match=r"pypoplar\.merge_copies is decided when the graph is compiled"):
        Engine(executable, options={"pypoplar.merge_copies": True})
    with pytest.raises(InvalidOption, match=r"opt\.maxCopyMergeSize is decided when the graph is compiled"):
        Engine(executable, options={"opt.maxCopyMergeSize": 8})
    assert Engine(executable, options={"opt.maxCopyMergeSize": "unlimited"}).executable.options.merge_copies is False


@pytest.mark.parametrize("value", [-1, "many", True, 1.5, "-1"])
def test_a_size_that_is_none_is_refused(value):
    with pytest.raises(InvalidOption, match=r"'opt\.maxCopyMergeSize' must be an integer of at least 0, or 'unlimited', got"):
        compileGraph(Bench().graph, Sequence(), {"opt.maxCopyMergeSize": value})


def test_a_report_of_merged_copies_is_made_of_the_executable_alone(bench):
    executable = compileGraph(bench.graph, Sequence(rows(bench, 3)))
    report = make_report(Executable.deserialize(executable.serialize()))
    assert outline(report) == ["Sequence", "  DoExchange row 0, row 1, row 2 3 copies"]
