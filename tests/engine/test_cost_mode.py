"""An engine with mode="cost" finds what a run would cost, without running anything."""

import io
import random

import numpy as np
import pytest
from engine_builder import Add, Bench, Less, tiny
from hypothesis import given, reject
from hypothesis import strategies as st
from law_examples import examples
from priced_programs import PricedProgram, profile, same_profiles

from pypoplar import (
    BOOL,
    INT,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    ApplicationRuntimeError,
    AtomicStoreError,
    CodeletIndexError,
    CodeletRuntimeError,
    ControlProgramError,
    Engine,
    Executable,
    GraphMemoryAllocationError,
    Input,
    InvalidOption,
    Output,
    PoplarError,
    PoplarTypeError,
    StreamConnectionError,
    UnknownHandle,
    Vector,
    Vertex,
    assume,
    assume_count,
    assume_share,
    compileGraph,
    cycleCount,
    ipu,
    popops,
    pva,
)
from pypoplar.compiler.flattening.decisions import DECIDED
from pypoplar.engine.auto_report import save
from pypoplar.program import (
    AbortOnCondition,
    Copy,
    Execute,
    If,
    PrintTensor,
    Repeat,
    RepeatWhileFalse,
    RepeatWhileTrue,
    Sequence,
    Switch,
    WriteUndef,
)

SEEDS = st.integers(0, 2**32 - 1)
OPTIONS = {
    "plain": {},
    "flops": {"profiler.includeFlopEstimates": True},
    "scalar": {"pypoplar.codelet_cost": "scalar"},
    "few runs kept": {"autoReport.executionProfileProgramRunCount": 1},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("timing", ["model", "hardware"])
@examples(40)
@given(seed=SEEDS, steps=st.integers(1, 8), tiles=st.sampled_from([1, 2, 3, 16]))
def test_the_profile_is_that_of_a_run(tmp_path_factory, options, timing, seed, steps, tiles):
    made = PricedProgram(random.Random(seed), tiny(tiles, timing), steps=steps)
    try:
        executable = compileGraph(made.graph, made.programs, options)
    except AtomicStoreError:
        reject()
    priced = compileGraph(made.graph, made.programs, options, mode="cost", assumptions=made.assumptions)
    runs = [*range(len(made.programs)), 0, 0]
    same_profiles(made, executable, priced, tmp_path_factory.mktemp("profiles"), options, runs=runs)


def test_a_repeat_of_a_million_rounds_is_multiplied():
    bench = Bench()
    x = bench.variable("x", [0])
    program = Repeat(10**6, Repeat(1000, bench.execute(Add, value=x[0], amount=1)))
    engine = bench.engine(program, mode="cost")
    engine.run()
    (step,) = engine.getReport().execution.steps
    once = bench.engine(bench.execute(Add, value=x[0], amount=1))
    once.run()
    assert step.executions == 10**9
    assert step.cycles == 10**9 * once.getReport().execution.totalCycles.total
    assert len(engine.getReport().execution.trace) == 65_536


class Search(Vertex):
    """The place of the first key that is not below `wanted`, searched from the left."""

    keys: Input[Vector[INT]]
    wanted: Input[INT]
    place: Output[INT]

    def compute(self) -> None:
        self.place = len(self.keys)
        for i in range(len(self.keys)):
            if self.keys[i] >= self.wanted:
                self.place = i
                break


def searching(bench):
    keys, wanted, place = (bench.variable(name, values) for name, values in (("keys", range(100)), ("wanted", [7]), ("place", [0])))
    return bench.execute(Search, keys=keys, wanted=wanted[0], place=place[0])


def test_a_codelet_whose_data_decide_is_refused_with_its_lines_and_fields():
    bench = Bench()
    program = searching(bench)
    engine = bench.engine(program, mode="cost")
    with pytest.raises(ControlProgramError) as raised:
        engine.run()
    text = str(raised.value)
    line = Search.compute.__code__.co_firstlineno + 3
    assert f"the value of 'keys' decides a branch at {__file__}:{line}" in text
    assert f"the value of 'wanted' decides a branch at {__file__}:{line}" in text
    assert "sample={'Search': {'keys': (low, high), 'wanted': (low, high)}}" in text
    assert "added at" in text


def test_a_sample_gives_the_largest_of_three_draws_and_shows_the_range():
    bench = Bench()
    engine = Engine(bench.graph, searching(bench), mode="cost", sample={"Search": {"keys": (0, 9), "wanted": (9, 9)}})
    engine.load(bench.device)
    engine.run()
    report = engine.getReport()
    (sampled,) = report.cost.sampled
    assert (sampled.name, sampled.values) == ("Search", "keys from 0 to 9, wanted from 9 to 9")
    assert sampled.least_slots < sampled.most_slots
    (step,) = report.execution.steps
    assert step.compute_cycles == 6 * sampled.most_slots
    assert report.cost.validity.startswith("sampled: Search; assumed: nothing; not modelled: ")
    assert "  sampled: Search, keys from 0 to 9, wanted from 9 to 9: " in "\n".join(report.cost.told())


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"Serach": {}}, "no codelet of the program is called 'Serach'; did you mean 'Search'?"),
        ({"Search": {"key": (0, 1)}}, "'Search' has no field 'key'; did you mean 'keys'?"),
        ({"Search": {"place": (0, 1)}}, "nothing that 'Search' does depends on the values of 'place': leave it out"),
        ({"Search": {"keys": (2, 1)}}, "sample['Search']['keys']: there is no value from 2 to 1"),
        ({"Search": {"keys": 3}}, "sample['Search']['keys']: expected the least and the largest value, (low, high), got 3"),
        ({"Search": {"keys": (0, 0.5)}}, "sample['Search']['keys']: expected whole numbers, got (0, 0.5)"),
        ({"Search": {"keys": (0, 2**31)}}, "sample['Search']['keys']: INT has values from -2147483648 to 2147483647"),
        ({"Search": {"keys": (0, 10**400)}}, "sample['Search']['keys']: INT has values from -2147483648 to 2147483647"),
        ({"Search": {"keys": (0, float("inf"))}}, "sample['Search']['keys']: expected whole numbers, got (0, inf)"),
        ({"Search": 3}, "sample['Search']: expected a dict of fields, {'field': (low, high)}, got 3"),
        ([1], "sample: expected a dict of codelets"),
    ],
)
def test_a_sample_that_is_none_is_refused(sample, message):
    bench = Bench()
    with pytest.raises(PoplarError) as raised:
        Engine(bench.graph, searching(bench), mode="cost", sample=sample)
    assert message in str(raised.value)


class Table(Vertex):
    where: Input[INT]
    table: Input[Vector[INT]]
    out: Output[INT]

    def compute(self) -> None:
        self.out = self.table[self.where]


def test_draws_that_all_fault_refuse_with_the_line():
    bench = Bench()
    where, table, out = (bench.variable(name, values) for name, values in (("where", [1]), ("table", [1, 2]), ("out", [0])))
    program = bench.execute(Table, where=where[0], table=table, out=out[0])
    for low, high in ((5, 9), (-9, -1)):
        engine = Engine(bench.graph, program, mode="cost", sample={"Table": {"where": (low, high)}})
        engine.load(bench.device)
        with pytest.raises(CodeletIndexError, match="is out of range for a length of 2"):
            engine.run()
    engine = Engine(bench.graph, program, mode="cost", sample={"Table": {"where": (0, 1)}})
    engine.load(bench.device)
    engine.run()


class Growing(Vertex):
    out: Output[INT]
    rounds: INT
    steps: Vector[INT]

    def compute(self) -> None:
        total = 0
        for _ in range(self.rounds):
            total += 1
        for step in self.steps:
            for _ in range(step):
                total += 1
        self.out = total
        self.rounds += 1
        self.steps[0] += 1


@pytest.mark.parametrize(("rounds", "steps"), [(1, 1), (9, 1), (1, 9), (4, 6)])
def test_plain_fields_that_are_written_are_drawn(rounds, steps):
    bench = Bench()
    program = bench.execute(Growing, out=bench.variable("out", [0])[0], rounds=rounds, steps=[steps] * 3)
    run = bench.engine(program)
    run.run()
    sample = {"Growing": {"rounds": (rounds, rounds), "steps": (steps, steps)}}
    other = bench.execute(Growing, out=bench.variable("other", [0])[0], rounds=2, steps=[2] * 3)
    engine = Engine(bench.graph, other, mode="cost", sample=sample)
    engine.load(bench.device)
    engine.run()
    assert engine.getReport().execution.totalCycles.total == run.getReport().execution.totalCycles.total


class Share(Vertex):
    parts: Input[INT]
    out: Output[INT]

    def compute(self) -> None:
        assert self.parts > 3
        self.out = 100 // (self.parts - 1)


def test_a_fault_of_data_that_are_ones_says_which_to_draw():
    bench = Bench()
    parts, out = bench.variable("parts", [5]), bench.variable("out", [0])
    compute_set = bench.graph.addComputeSet("shares")
    bench.vertex(compute_set, Share, parts=parts[0], out=out[0])
    program = Execute(compute_set)
    with pytest.raises(CodeletRuntimeError) as raised:
        bench.engine(program, mode="cost").run()
    assert "in compute set 'shares', added at" in str(raised.value)
    assert str(raised.value).endswith("give values to draw, sample={'Share': {'parts': (low, high)}}")
    engine = Engine(bench.graph, program, mode="cost", sample={"Share": {"parts": (4, 9)}})
    engine.load(bench.device)
    engine.run()
    run = bench.engine(program)
    run.run()
    assert engine.getReport().execution.totalCycles.total == run.getReport().execution.totalCycles.total
    engine = Engine(bench.graph, program, mode="cost", sample={"Share": {"parts": (0, 3)}})
    engine.load(bench.device)
    with pytest.raises(CodeletRuntimeError) as raised:
        engine.run()
    assert "give values to draw" not in str(raised.value)


def test_an_estimate_holds_where_data_that_are_ones_fault():
    bench = Bench()
    parts, out = bench.variable("parts", [5]), bench.variable("out", [0])
    compute_set = bench.graph.addComputeSet("estimated")
    bench.graph.setPerfEstimate(bench.vertex(compute_set, Share, parts=parts[0], out=out[0]), 100)
    for counts in (False, True):
        engine = Engine(bench.graph, Execute(compute_set), {"profiler.includeFlopEstimates": counts}, mode="cost")
        engine.load(bench.device)
        engine.run()
        assert engine.getReport().execution.steps[0].compute_cycles == 600
    assert engine.getReport().cost.uncounted == ("Share",)


def test_an_estimate_makes_any_codelet_known():
    bench = Bench()
    keys, place = bench.variable("keys", range(3)), bench.variable("place", [0])
    compute_set = bench.graph.addComputeSet("estimated")
    vertex = bench.vertex(compute_set, Search, keys=keys, wanted=keys[0], place=place[0])
    bench.graph.setPerfEstimate(vertex, 100)
    engine = bench.engine(Execute(compute_set), mode="cost")
    engine.run()
    assert engine.getReport().execution.steps[0].compute_cycles == 600


def loop_of(bench, kind):
    more = bench.variable("more", [1], type=BOOL)
    x = bench.variable("x", [0])
    check = bench.execute(Less, value=x[0], out=more[0], limit=5)
    return kind(check, more[0], bench.execute(Add, value=x[0], amount=1)), more


@pytest.mark.parametrize("kind", [RepeatWhileTrue, RepeatWhileFalse])
def test_a_loop_whose_end_data_decide_is_refused_unless_its_rounds_are_assumed(kind):
    bench = Bench()
    program, _ = loop_of(bench, kind)
    engine = bench.engine(program, mode="cost")
    with pytest.raises(ControlProgramError) as raised:
        engine.run()
    assert f"does not know how {kind.__name__} at {__file__}:" in str(raised.value)
    assert "it reads 'more', which is data" in str(raised.value)
    assert "assumptions=[assume_count(program, n)]" in str(raised.value)
    for rounds in (0, 5):
        engine = Engine(bench.graph, program, mode="cost", assumptions=[assume_count(program, rounds)])
        engine.load(bench.device)
        engine.run()
        assert [step.executions for step in engine.getReport().execution.steps] == [rounds + 1, *([rounds] if rounds else [])]
    (assumed,) = engine.getReport().cost.assumptions
    assert assumed.share == 1.0
    assert assumed.text.startswith(f"assume_count({kind.__name__}, 5) at {__file__}:")


def test_a_share_is_taken_of_all_times_that_the_program_comes_there():
    bench = Bench()
    found, x = bench.variable("found", [1], type=BOOL), bench.variable("x", [0, 0])
    first, second = (bench.execute(Add, value=x[place], amount=1) for place in (0, 1))
    choice = If(found[0], first, second)
    engine = Engine(bench.graph, Repeat(1000, choice), mode="cost", assumptions=[assume_share(choice, 0.3)])
    engine.load(bench.device)
    engine.run()
    report = engine.getReport()
    assert [step.executions for step in report.execution.steps] == [300, 700]
    assert report.execution.totalCycles.total == sum(step.cycles for step in report.execution.steps)


@pytest.mark.parametrize(("share", "times"), [(0.3, 1), (0.5, 1), (0.5, 3), (0.25, 10)])
def test_a_share_of_too_few_times_for_whole_steps_is_refused(share, times):
    bench = Bench()
    found, x = bench.variable("found", [1], type=BOOL), bench.variable("x", [0, 0])
    first, second = (bench.execute(Add, value=x[place], amount=1) for place in (0, 1))
    choice = If(found[0], first, second)
    engine = Engine(bench.graph, Repeat(times, choice), mode="cost", assumptions=[assume_share(choice, np.float32(share))])
    engine.load(bench.device)
    with pytest.raises(ControlProgramError) as raised:
        engine.run()
    assert str(raised.value).startswith(f"assume_share(If, {share}) at {__file__}:")
    assert "Price it in a Repeat of 100 rounds or more" in str(raised.value)
    assert engine.getReport().execution is None or not engine.getReport().execution.totalCycles.total


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_a_share_that_whole_steps_show_is_priced_however_seldom(share):
    bench = Bench()
    found, x = bench.variable("found", [1], type=BOOL), bench.variable("x", [0])
    choice = If(found[0], bench.execute(Add, value=x[0], amount=1), Sequence())
    engine = Engine(bench.graph, Repeat(2, choice), mode="cost", assumptions=[assume_share(choice, share)])
    engine.load(bench.device)
    engine.run()
    assert sum(step.executions for step in engine.getReport().execution.steps) == 2 * share


@pytest.mark.parametrize(
    ("assumptions", "message"),
    [
        (lambda loop, more, other: [assume(other, 1)], "no program of the engine decides by such a tensor or program"),
        (lambda loop, more, other: [assume_count(loop, 2), assume_count(loop, 3)], "is about the same as assume_count"),
        (lambda loop, more, other: [assume_count(loop, 2), assume(more, 0)], "is about the same as assume_count"),
        (lambda loop, more, other: [loop], "assumptions are made by assume, assume_count and assume_share"),
        (lambda loop, more, other: [assume(more, 1)], "never ends, as 'more' is 1 whenever it is asked"),
    ],
)
def test_assumptions_that_cannot_be_are_refused(assumptions, message):
    bench = Bench()
    loop, more = loop_of(bench, RepeatWhileTrue)
    other = bench.variable("other", [0])
    with pytest.raises(PoplarError) as raised:
        engine = Engine(bench.graph, loop, mode="cost", assumptions=assumptions(loop, more[0], other[0]))
        engine.load(bench.device)
        engine.run()
    assert message in str(raised.value)


def test_an_assumption_is_refused_where_no_data_decide_at_all():
    bench = Bench()
    loop, more = loop_of(bench, RepeatWhileTrue)
    with pytest.raises(PoplarError, match="no program of the engine decides by such a tensor or program"):
        Engine(bench.graph, Repeat(3, Sequence()), mode="cost", assumptions=[assume(more[0], 1)])
    with pytest.raises(PoplarError, match="is about the same as"):
        Engine(bench.graph, Sequence(), mode="cost", assumptions=[assume_count(loop, 2), assume_count(loop, 3)])


@pytest.mark.parametrize("kind", sorted(DECIDED, key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_every_kind_of_program_that_asks_data_says_so_in_cost_mode(kind):
    bench = Bench()
    _, more = loop_of(bench, RepeatWhileTrue)
    asking = {
        If: lambda: If(more[0], Sequence()),
        Switch: lambda: Switch(bench.variable("number", [0])[0], [(1, Sequence())]),
        RepeatWhileTrue: lambda: RepeatWhileTrue(Sequence(), more[0], Sequence()),
        RepeatWhileFalse: lambda: RepeatWhileFalse(Sequence(), more[0], Sequence()),
        AbortOnCondition: lambda: AbortOnCondition(more[0], "no more"),
    }
    executable = compileGraph(bench.graph, asking[kind](), mode="cost")
    assert [decision.kind for decision in executable.cost.decisions] == [kind.__name__]


def test_numbers_of_assumptions_are_checked():
    bench = Bench()
    loop, more = loop_of(bench, RepeatWhileTrue)
    choice = If(more[0], Sequence())
    for wrong in (
        lambda: assume_count(loop, -1),
        lambda: assume_count(loop, 2**48 + 1),
        lambda: assume_share(choice, 10**400),
        lambda: assume_share(choice, 1.5),
        lambda: assume_share(choice, -0.1),
        lambda: assume_share(choice, float("nan")),
        lambda: assume_count(choice, 1),
        lambda: assume_share(loop, 0.5),
        lambda: assume_share(choice, True),
        lambda: assume(more, 0.5),
        lambda: assume(3, 1),
    ):
        with pytest.raises(PoplarError):
            wrong()


def test_an_assumption_about_another_graph_is_refused():
    bench, other = Bench(), Bench()
    loop, _ = loop_of(bench, RepeatWhileTrue)
    _, more = loop_of(other, RepeatWhileTrue)
    with pytest.raises(PoplarError, match="another graph"):
        Engine(bench.graph, loop, mode="cost", assumptions=[assume(more[0], 1)])


def test_what_needs_data_is_refused_with_what_to_use():
    bench = Bench()
    x = bench.variable("x", [1, 2])
    stream = bench.graph.addDeviceToHostFIFO("out", INT, 2)
    engine = bench.engine([Copy(x, stream), PrintTensor(x)], mode="cost")
    engine.connectStream("out", np.zeros(2, np.int32))
    engine.run(0)
    for wrong in (np.zeros(3, np.int32), np.zeros(2), [0, 0], np.zeros((2, 2), np.int32)[:, 0]):
        with pytest.raises(StreamConnectionError):
            engine.connectStream("out", wrong)
    for refused in (
        lambda: engine.writeTensor("x", [1, 2]),
        lambda: engine.readTensor("x"),
        lambda: engine.connectStreamToCallback("out", print),
        lambda: engine.connectHostFunction("f", print),
        lambda: engine.run(1),
    ):
        with pytest.raises(ApplicationRuntimeError, match=r"mode='cost' has no data: .*mode='native'"):
            refused()
    with pytest.raises(UnknownHandle):
        engine.connectStream("in", np.zeros(2, np.int32))
    engine.run(0)


def test_an_executable_of_one_mode_is_refused_by_the_others(tmp_path):
    bench = Bench()
    x = bench.variable("x", [1])
    program = bench.execute(Add, value=x[0], amount=1)
    priced, whole = compileGraph(bench.graph, program, mode="cost"), compileGraph(bench.graph, program)
    assert (priced.mode, whole.mode) == ("cost", "run")
    for mode in ("native", "interpret"):
        with pytest.raises(ApplicationRuntimeError, match="was compiled with mode='cost'"):
            Engine(priced, mode=mode)
    with pytest.raises(ApplicationRuntimeError, match="was compiled to be run"):
        Engine(whole, mode="cost")
    with pytest.raises(InvalidOption, match="assumptions are decided when the graph is compiled"):
        Engine(priced, mode="cost", assumptions=[assume(x[0], 1)])
    with pytest.raises(InvalidOption, match="for mode='cost' only"):
        Engine(bench.graph, program, sample={})
    with pytest.raises(InvalidOption, match="judges what vertices touch as they run"):
        compileGraph(bench.graph, program, {"pypoplar.races": "elements"}, mode="cost")
    with pytest.raises(InvalidOption, match="expected 'run' or 'cost'"):
        compileGraph(bench.graph, program, mode="native")


def test_an_executable_is_saved_and_loaded_with_what_it_assumes(tmp_path):
    bench = Bench()
    loop, _ = loop_of(bench, RepeatWhileTrue)
    compileGraph(bench.graph, loop, mode="cost", assumptions=[assume_count(loop, 4)]).save(tmp_path / "priced.npz")
    engine = Engine(Executable.load(tmp_path / "priced.npz"), mode="cost")
    engine.load(bench.device)
    engine.run()
    assert [step.executions for step in engine.getReport().execution.steps] == [5, 4]


def test_messages_are_refused_and_their_bytes_are_there():
    bench = Bench()
    x, y = bench.variable("x", [1, 2], tile=0), bench.variable("y", [0, 0], tile=1)
    (exchange,) = compileGraph(bench.graph, Copy(x, y), mode="cost").exchanges
    with pytest.raises(ApplicationRuntimeError, match="does not keep the messages"):
        _ = exchange.messages
    assert exchange.bytes_received[1] == 8
    assert "8 bytes" in repr(exchange)


def test_the_profile_and_the_summary_say_what_prices_stand_on(tmp_path):
    bench = Bench()
    loop, _ = loop_of(bench, RepeatWhileTrue)
    engine = Engine(bench.graph, loop, mode="cost", assumptions=[assume_count(loop, 4)])
    engine.load(bench.device)
    engine.run()
    report = engine.getReport()
    save(report, tmp_path / "priced.pop")
    read = pva.openReport(str(tmp_path / "priced.pop"))
    assert read.cost == report.cost
    assert (read.compilation.mode, report.compilation.mode) == ("cost", "cost")
    out = io.StringIO()
    engine.printProfileSummary(out)
    assert "Priced without running." in out.getvalue()
    assert "assumed: assume_count(RepeatWhileTrue, 4) at " in out.getvalue()


def test_a_program_that_does_not_fit_is_refused_as_by_a_run():
    bench = Bench()
    x = bench.graph.addVariable(INT, [10**6], "x")
    bench.graph.setTileMapping(x, 0)
    with pytest.raises(GraphMemoryAllocationError):
        Engine(bench.graph, Copy(bench.graph.addHostToDeviceFIFO("x", INT, 10**6), x), mode="cost")


def counted_loop(bench, limit):
    """A loop of the libraries whose body does one of two things, by its counter."""
    popops.addCodelets(bench.graph)
    x = bench.variable("x", [0, 0])
    end = bench.graph.addConstant(INT, [], limit)
    bench.graph.setTileMapping(end, 0)
    count = bench.graph.addVariable(INT, [1], "count")
    bench.graph.setTileMapping(count, 3)
    first, second = (bench.execute(Add, value=x[place], amount=1) for place in (0, 1))
    body = Switch(count[0], [(2, first), (3, Repeat(2, first))], second)
    return popops.countedForLoop(bench.graph, count, 0, end, 1, body)


@pytest.mark.parametrize("limit", [0, 1, 7])
def test_counters_are_known(tmp_path, limit):
    bench = Bench()
    program = Repeat(2, counted_loop(bench, limit))
    profiles = []
    for number, mode in enumerate(("native", "cost")):
        engine = bench.engine(program, mode=mode)
        engine.run()
        engine.run()
        profiles.append(profile(engine.getReport(), tmp_path / f"{number}.pop"))
    assert profiles[1] == profiles[0]


def test_counters_are_known_from_a_file_and_begin_anew_when_loaded(tmp_path):
    bench = Bench()
    compileGraph(bench.graph, counted_loop(bench, 5), mode="cost").save(tmp_path / "priced.npz")
    engine = Engine(Executable.load(tmp_path / "priced.npz"), mode="cost")
    cycles = []
    for _ in range(2):
        engine.load(bench.device)
        engine.run()
        cycles.append(engine.getReport().execution.totalCycles.total)
    assert cycles[0] == cycles[1] > 0


class Draw(Vertex):
    out: Output[INT]

    def compute(self) -> None:
        self.out = INT(ipu.random_uint() % 2)


def written_by_the_host(bench, x):
    bench.graph.createHostWrite("x", x)
    return Sequence()


def cycle_count_to(bench, x):
    program = Sequence(bench.execute(Draw, out=bench.variable("drawn", [0])[0]))
    cycles = cycleCount(bench.graph, program, 0)
    return Sequence(program, Copy(cycles.reinterpret(INT)[0:1], x))


def test_what_data_change_is_not_known():
    """A loop on a counter that a vertex counts is known, but not if something of the host, undefined or random goes into it."""

    def loop(bench, changing=None):
        more, x = (bench.graph.addVariable(type, [1], name) for type, name in ((BOOL, "more"), (INT, "x")))
        for tensor in (more, x):
            bench.graph.setTileMapping(tensor, 0)
        bench.graph.setInitialValue(x, [0])
        before = Sequence() if changing is None else changing(bench, x)
        check = bench.execute(Less, value=x[0], out=more[0], limit=5)
        return Sequence(before, RepeatWhileTrue(check, more[0], bench.execute(Add, value=x[0], amount=1)))

    bench = Bench()
    engine = bench.engine(loop(bench), mode="cost")
    engine.run()
    assert [step.executions for step in engine.getReport().execution.steps] == [6, 5]
    for changing in (
        lambda bench, x: Copy(bench.graph.addHostToDeviceFIFO("in", INT, 1), x),
        lambda bench, x: WriteUndef(x),
        lambda bench, x: bench.execute(Draw, out=x[0]),
        written_by_the_host,
        lambda bench, x: Copy(bench.variable("given", [3]), x),
        cycle_count_to,
    ):
        bench = Bench()
        engine = bench.engine(loop(bench, changing), mode="cost")
        with pytest.raises(ControlProgramError, match="reads 'more', which is data"):
            engine.run()


@pytest.mark.parametrize(("type", "value"), [(BOOL, 2), (BOOL, -1), (INT, 2**31), (INT, -(2**31) - 1), (UNSIGNED_INT, -1)])
def test_a_value_that_the_type_does_not_have_is_not_assumed(type, value):
    bench = Bench()
    index = bench.graph.addVariable(type, [], "index")
    with pytest.raises(ControlProgramError, match=rf"assume: .*'index'.* has values from .*, got {value}"):
        assume(index, value)


@pytest.mark.parametrize("value", [1, 2**31, 2**31 + 1, 2**32 - 1])
@pytest.mark.parametrize("known", ["constant", "initial", "assumed"])
def test_a_switch_on_a_large_unsigned_number_takes_its_case(value, known):
    bench = Bench()
    x = bench.variable("x", [0, 0, 0, 0])
    index = bench.graph.addConstant(UNSIGNED_INT, [], value) if known == "constant" else bench.graph.addVariable(UNSIGNED_INT, [])
    bench.graph.setTileMapping(index, 0)
    if known == "initial":
        bench.graph.setInitialValue(index, value)
    cases = [(case, Repeat(case % 7 + 2, bench.execute(Add, value=x[0], amount=1))) for case in (1, 2**31, 2**31 + 1, 2**32 - 1)]
    assumptions = [assume(index, value)] if known == "assumed" else []
    engine = Engine(bench.graph, Switch(index, cases), mode="cost", assumptions=assumptions)
    engine.load(bench.device)
    engine.run()
    assert [step.executions for step in engine.getReport().execution.steps] == [value % 7 + 2]


def test_a_predicate_of_64_bits_may_be_large():
    bench = Bench()
    x = bench.variable("x", [0])
    index = bench.graph.addConstant(UNSIGNED_LONGLONG, [], 2**63)
    bench.graph.setTileMapping(index, 0)
    engine = bench.engine(If(index, bench.execute(Add, value=x[0], amount=1)), mode="cost")
    engine.run()
    assert [step.executions for step in engine.getReport().execution.steps] == [1]


def test_assumptions_may_come_one_by_one_and_are_not_one_alone():
    bench = Bench()
    loop, _ = loop_of(bench, RepeatWhileTrue)
    assumed = assume_count(loop, 4)
    engine = Engine(compileGraph(bench.graph, loop, mode="cost", assumptions=(one for one in [assumed])), mode="cost")
    engine.load(bench.device)
    engine.run()
    for wrong in (assumed, None, 3):
        with pytest.raises(PoplarTypeError, match="assumptions"):
            Engine(bench.graph, loop, mode="cost", assumptions=wrong)
