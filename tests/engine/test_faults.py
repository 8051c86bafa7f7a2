"""Vertices that fail while they run: which error, for which vertex, with which words, and what is left behind."""

import gc
import io

import numpy as np
import pytest
from engine_builder import Add, Bench, everywhere

from pypoplar import (
    FLOAT,
    INT,
    LONGLONG,
    SHORT,
    UNSIGNED_INT,
    CodeletIndexError,
    CodeletRuntimeError,
    CycleLimitError,
    InOut,
    Input,
    MultiVertex,
    Output,
    PoplarRuntimeError,
    SupervisorVertex,
    Vector,
    VectorList,
    Vertex,
    ipu,
    pva,
)
from pypoplar.program import Copy, Execute, If, Repeat, Sequence
from pypoplar.report.failed_runs import FailedRun


class Pick(Vertex):
    values: Input[Vector[INT]]
    out: Output[INT]
    index: INT

    def compute(self):
        self.out = 1
        self.out = self.values[self.index]


class Put(Vertex):
    values: Output[Vector[SHORT]]
    index: INT

    def compute(self):
        self.values[self.index] = 5


class PickRow(Vertex):
    rows: Input[VectorList[INT]]
    out: Output[INT]
    row: INT
    index: INT

    def compute(self):
        self.out = self.rows[self.row][self.index]


class PickSlice(Vertex):
    values: Input[Vector[INT]]
    out: Output[INT]
    begin: INT
    end: INT
    index: INT

    def compute(self):
        part = self.values[self.begin : self.end]
        self.out = part[self.index]


class Calculate(Vertex):
    """Operations that have no result for some numbers."""

    out: Output[INT]
    kind: INT
    a: INT
    b: INT
    wide: LONGLONG
    small: SHORT
    whole: UNSIGNED_INT

    def compute(self):
        if self.kind == 0:
            self.out = self.a // self.b
        elif self.kind == 1:
            self.out = self.a % self.small
        elif self.kind == 2:
            self.out = int(self.wide // self.wide)
        elif self.kind == 3:
            self.out = self.a << self.b
        elif self.kind == 4:
            self.out = self.a >> self.b
        elif self.kind == 5:
            self.out = self.a**self.b
        elif self.kind == 6:
            for i in range(0, 10, self.b):
                self.out = i
        elif self.kind == 7:
            ipu.check(self.a == self.b, "a is b")
        elif self.kind == 8:
            ipu.check(self.a == self.b)
        elif self.kind == 9:
            self.out = int(self.whole // self.whole)


def helper(values, at):
    return values[at]


class Helped(Vertex):
    values: Input[Vector[INT]]
    out: Output[INT]

    def compute(self):
        self.out = helper(self.values, 3)


class Forever(Vertex):
    out: InOut[INT]
    stop: Input[INT]

    def compute(self):
        while self.stop == 0:
            self.out += 1


class Counted(Vertex):
    out: InOut[INT]
    count: LONGLONG

    def compute(self):
        for _ in range(self.count):
            self.out += 1


class CountedTwice(Vertex):
    out: InOut[INT]
    n: Input[INT]
    m: Input[INT]

    def compute(self):
        for i in range(self.n):
            for j in range(self.m):
                self.out += i ^ j


class CountedByWorkers(MultiVertex):
    out: InOut[Vector[INT]]
    n: Input[INT]

    def compute(self, worker):
        for i in range(self.n if worker == 3 else 2):
            for _ in range(2):
                self.out[worker] += i


class CountedBySupervisor(SupervisorVertex):
    out: InOut[Vector[INT]]
    n: Input[INT]

    def compute(self):
        for i in range(self.n):
            if i % 3 != 0:
                self.out[i % 5] += i


class Third(MultiVertex):
    """Worker 3 fails."""

    out: Output[Vector[INT]]

    def compute(self, worker):
        self.out[worker] = worker + 1
        ipu.check(worker != 3, "not worker 3")


class Alone(SupervisorVertex):
    values: Input[Vector[INT]]
    out: Output[INT]

    def compute(self):
        self.out = self.values[len(self.values)]


class Fill(Vertex):
    """Fills from the front until it fails."""

    values: Output[Vector[INT]]
    count: INT

    def compute(self):
        for i in range(self.count):
            self.values[i] = i + 1


class Modulo(Vertex):
    value: Input[INT]

    def compute(self):
        ipu.check(1 // (5 - self.value) < 2)


class Countdown(Vertex):
    n: InOut[INT]

    def compute(self):
        while self.n > 0:
            self.n -= 1


def variables(bench, name, value):
    """Numbers stay, lists become variables, lists of lists lists of variables."""
    if isinstance(value, list) and any(isinstance(one, list) for one in value):
        return [bench.variable(f"{name}{row}", one) for row, one in enumerate(value)]
    return bench.variable(name, value) if isinstance(value, list | np.ndarray) else value


def failure(codelet, error=CodeletRuntimeError, options=None, **fields):
    """The message of a single vertex that fails, on tile 3; tensors are given as lists."""

    def work(mode, options):
        bench = Bench()
        given = {name: variables(bench, name, value) for name, value in fields.items()}
        if "out" in codelet.__annotations__:
            given["out"] = bench.variable("out", 0, 5)
        bench.engine(bench.execute(codelet, 3, **given), mode, options).run()

    with pytest.raises(error) as caught:
        everywhere(work, options)
    assert isinstance(caught.value, PoplarRuntimeError)
    text = str(caught.value)
    assert f"vertex 0 on tile 3 in compute set '{codelet.__name__}', added at" in text
    assert "engine_builder.py" in text.splitlines()[-1]
    return text


@pytest.mark.parametrize("index", [-1, 4, 2**31 - 1, -(2**31)])
def test_an_index_beyond_the_field_is_named_with_the_length(index):
    text = failure(Pick, CodeletIndexError, values=[1, 2, 3, 4], index=index)
    assert f"index {index} is out of range for a length of 4" in text
    assert "self.out = self.values[self.index]" in text
    assert "Pick.compute" in text
    assert "test_faults.py:" in text.splitlines()[0]


@pytest.mark.parametrize("index", [-1, 0, 1])
def test_an_empty_field_has_no_index(index):
    text = failure(Put, IndexError, values=np.zeros(0, np.int16), index=index)
    assert f"index {index} is out of range for a length of 0" in text


@pytest.mark.parametrize(
    ("row", "index", "message"),
    [
        (2, 0, "row 2 is out of range for a list of 2 rows"),
        (-1, 0, "row -1 is out of range for a list of 2 rows"),
        (1, 1, "index 1 is out of range for a length of 1"),
        (0, -1, "index -1 is out of range for a length of 2"),
    ],
)
def test_rows_and_their_elements_have_their_own_bounds(row, index, message):
    assert message in failure(PickRow, CodeletIndexError, rows=[[1, 2], [3]], row=row, index=index)


@pytest.mark.parametrize(
    ("begin", "end", "index", "message"),
    [
        (0, 5, 0, "a slice bound 5 is out of range for a length of 4"),
        (-1, 2, 0, "a slice bound -1 is out of range for a length of 2"),
        (3, 2, 0, "a slice bound 3 is out of range for a length of 2"),
        (1, -1, 0, "a slice bound -1 is out of range for a length of 4"),
        (1, 3, 2, "index 2 is out of range for a length of 2"),
        (4, 4, 0, "index 0 is out of range for a length of 0"),
    ],
)
def test_slices_are_checked_and_are_the_bounds_of_what_is_in_them(begin, end, index, message):
    assert message in failure(PickSlice, CodeletIndexError, values=[1, 2, 3, 4], begin=begin, end=end, index=index)


@pytest.mark.parametrize(
    ("kind", "a", "b", "message"),
    [
        (0, 7, 0, "integer division by zero"),
        (1, 7, 0, "integer division by zero"),
        (2, 0, 0, "integer division by zero"),
        (9, 0, 0, "integer division by zero"),
        (3, 1, 32, "shift by 32 is outside the width"),
        (3, 1, -1, "shift by -1 is outside the width"),
        (4, 1, 100, "shift by 100 is outside the width"),
        (5, 2, -3, "integer power with the negative exponent -3"),
        (6, 0, 0, "the step of range() is zero"),
        (7, 1, 2, "check failed: a is b"),
        (8, 1, 2, "check failed"),
    ],
)
def test_operations_without_a_result_end_the_run(kind, a, b, message):
    error = CodeletRuntimeError if kind in (7, 8) else ArithmeticError
    text = failure(Calculate, error, kind=kind, a=a, b=b, wide=0, small=0, whole=0)
    assert message in text


def test_a_helper_function_is_named_with_its_own_line():
    text = failure(Helped, IndexError, values=[1, 2])
    assert "Helped.helper: index 3 is out of range for a length of 2" in text
    assert "return values[at]" in text


def test_a_loop_without_end_comes_to_the_cycle_limit():
    text = failure(Forever, TimeoutError, {"pypoplar.cycle_limit": 6000}, stop=[0])
    assert "ran longer than the cycle limit of" in text
    assert "pypoplar.cycle_limit" in text


@pytest.mark.parametrize("limit", [{"pypoplar.cycle_limit": 6000}, {}])
def test_a_loop_whose_rounds_would_go_beyond_the_limit_does_not_begin(limit):
    text = failure(Counted, CycleLimitError, limit, count=2**62)
    shown = limit.get("pypoplar.cycle_limit", 100_000_000_000)
    assert f"with all rounds of this loop the vertex would run longer than the cycle limit of {shown} (option pypoplar" in text
    assert "for _ in range(self.count):" in text


def test_without_a_limit_there_is_the_end_of_counting():
    text = failure(Counted, CycleLimitError, {"pypoplar.cycle_limit": 0}, count=2**62)
    assert "with all rounds of this loop the vertex would run longer than cycles can be counted" in text


def test_a_nest_of_data_dependent_loops_comes_to_the_limit():
    text = failure(CountedTwice, CycleLimitError, {"pypoplar.cycle_limit": 60_000}, n=[2**31 - 1], m=[0])
    assert "the vertex ran longer than the cycle limit of 60000 (option pypoplar.cycle_limit)" in text
    assert "for i in range(self.n):" in text
    text = failure(CountedTwice, CycleLimitError, {"pypoplar.cycle_limit": 60_000}, n=[2**31 - 1], m=[2**31 - 1])
    assert "with all rounds of this loop" in text
    assert "for j in range(self.m):" in text


@pytest.mark.parametrize("kind", [MultiVertex, SupervisorVertex])
def test_loops_of_every_kind_of_vertex_come_to_the_limit_with_the_same_memory(kind):
    codelet = CountedByWorkers if kind is MultiVertex else CountedBySupervisor

    def work(mode, options):
        bench = Bench()
        out = bench.variable("out", np.zeros(6, np.int32), 1)
        n = bench.variable("n", 2**31 - 1, 1)
        engine = bench.engine(bench.execute(codelet, 2, out=out, n=n), mode, {"pypoplar.cycle_limit": 3000, **options})
        with pytest.raises(CycleLimitError) as caught:
            engine.run()
        return str(caught.value), engine.readTensor("out")

    assert everywhere(work)[1].sum() > 0


class Idle(SupervisorVertex):
    rounds: InOut[INT]

    def compute(self):
        while self.rounds > 0:  # 36 cycles a round
            self.rounds -= 1


@pytest.mark.parametrize(("limit", "passes"), [(3700, True), (3500, False)])
def test_the_limit_of_a_supervisor_is_in_cycles_as_that_of_a_worker(limit, passes):
    def work(mode, options):
        bench = Bench()
        rounds = bench.variable("rounds", 100, 2)
        engine = bench.engine(
            bench.execute(Idle, 2, rounds=rounds),
            mode,
            {"pypoplar.cycle_limit": limit, "pypoplar.codelet_cost": "scalar", **options},
        )
        try:
            engine.run()
        except CycleLimitError as error:
            return str(error)
        return engine.readTensor("rounds").tolist()

    outcome = everywhere(work)
    assert outcome == 0 if passes else f"the vertex ran longer than the cycle limit of {limit}" in outcome


def test_a_worker_that_fails_stops_its_vertex():
    def work(mode, options):
        bench = Bench()
        out = bench.variable("out", np.zeros(6, np.int32), 1)
        engine = bench.engine(bench.execute(Third, 2, out=out), mode, options)
        with pytest.raises(CodeletRuntimeError, match="check failed: not worker 3"):
            engine.run()
        return engine.readTensor("out")

    assert everywhere(work).tolist() == [1, 2, 3, 4, 0, 0]


def test_a_supervisor_that_fails_is_named_alike():
    assert "index 2 is out of range for a length of 2" in failure(Alone, IndexError, values=[1, 2])


# Of many vertices


def filling(bench, counts, tiles, name="fill"):
    """A compute set of a vertex for each count, four elements each."""
    values = bench.variable(name, np.zeros((len(counts), 4), np.int32), np.repeat(tiles, 4))
    compute_set = bench.graph.addComputeSet(name)
    for row, (count, tile) in enumerate(zip(counts, tiles, strict=True)):
        bench.vertex(compute_set, Fill, tile, values=values[row], count=count)
    return Execute(compute_set)


def test_the_lowest_vertex_is_named_and_the_step_finishes():
    def work(mode, options):
        bench = Bench()
        program = filling(bench, [4, 3, 5, 4, 6, 2, 7, 1], [9, 3, 12, 3, 0, 15, 3, 4])
        engine = bench.engine(program, mode, options)
        with pytest.raises(IndexError) as caught:
            engine.run()
        return str(caught.value), engine.readTensor("fill")

    text, left = everywhere(work)
    assert "vertex 2 on tile 12" in text
    assert "index 4 is out of range for a length of 4" in text
    full = [1, 2, 3, 4]
    assert left.tolist() == [full, [1, 2, 3, 0], full, full, full, [1, 2, 0, 0], full, [1, 0, 0, 0]]


def test_the_first_step_that_fails_is_named_and_later_ones_do_not_run():
    def work(mode, options):
        bench = Bench()
        counts = {"one": 4, "two": 9, "three": 8, "four": 2}
        steps = [filling(bench, [count, count], [5, 11], name) for name, count in counts.items()]
        engine = bench.engine(Sequence([steps[0], Repeat(3, Sequence(steps[1:]))]), mode, options)
        with pytest.raises(IndexError) as caught:
            engine.run()
        return str(caught.value), [engine.readTensor(name) for name in counts]

    text, left = everywhere(work)
    assert "vertex 2 on tile 5 in compute set 'two'" in text
    assert [one.sum() for one in left] == [20, 20, 0, 0]


def test_a_vertex_may_fail_in_a_later_round():
    def work(mode, options):
        bench = Bench()
        bench.log()
        round_number = bench.variable("round", 0, 3)
        step = Sequence(
            [bench.execute(Add, 3, value=round_number, amount=1), bench.execute(Modulo, 3, value=round_number), bench.enter(7)]
        )
        engine = bench.engine(Repeat(10, step), mode, options)
        with pytest.raises(ArithmeticError):
            engine.run()
        return engine.readTensor("log")[:6], engine.readTensor("round")

    log, rounds = everywhere(work)
    assert log.tolist() == [4, 7, 7, 7, 7, 0]
    assert rounds == 5


def test_the_engine_goes_on_after_a_fault():
    def work(mode, options):
        bench = Bench()
        values = bench.variable("values", [1, 2, 3], 7)
        out = bench.variable("out", 0, 1)
        flag = bench.variable("flag", True, 6)
        wrong = bench.execute(Pick, 2, values=values, out=out, index=3)
        right = bench.execute(Pick, 2, values=values, out=out, index=2)
        engine = bench.engine([If(flag, wrong, right), right], mode, options)
        texts = []
        for _ in range(2):
            with pytest.raises(CodeletIndexError) as caught:
                engine.run(0)
            texts.append(str(caught.value))
        engine.run(1)
        between = engine.readTensor("out")
        engine.writeTensor("flag", False)
        engine.writeTensor("values", [4, 5, 6])
        engine.run(0)
        return texts, between, engine.readTensor("out"), engine.getReport().execution.totalCycles.total

    texts, between, last, _ = everywhere(work)
    assert texts[0] == texts[1]
    assert (between, last) == (3, 6)


def test_a_run_that_fails_is_not_in_the_report():
    def work(mode, options):
        bench = Bench()
        good, bad = filling(bench, [4, 2], [3, 4], "good"), filling(bench, [4, 9], [3, 4], "bad")
        engine = bench.engine([good, Sequence([good, bad])], mode, options)
        with pytest.raises(IndexError):
            engine.run(1)
        assert engine.getReport().execution is None
        engine.run(0)
        before = engine.getReport().execution
        with pytest.raises(IndexError):
            engine.run(1)
        after = engine.getReport().execution
        assert [one.name for one in after.steps] == [one.name for one in before.steps]
        assert after.totalCycles == before.totalCycles
        assert after.cycles_by_vertex_type == before.cycles_by_vertex_type
        return [one.cyclesByTile for one in after.steps]

    everywhere(work)


def test_the_report_tells_how_far_a_run_came_that_failed():
    """Whether runs are kept apart or counted together."""

    def work(mode, options):
        bench = Bench()
        good, bad = filling(bench, [4, 2], [3, 4], "good"), filling(bench, [4, 9], [3, 4], "bad")
        programs = [good, Sequence([Repeat(3, good), bad, good])]
        engine = bench.engine(programs, mode, {**options, "autoReport.executionProfileProgramRunCount": "1"})
        told = []
        for _ in range(2):
            with pytest.raises(IndexError):
                engine.run(1)
            engine.run(0)
            report = engine.getReport()
            told.append(report.failed_runs)
            (step,) = report.execution.steps
        (first,), (_, second) = told
        assert first == second  # the first had an account of its own, the second one with others
        assert (first.name, [(step.name, step.executions) for step in first.steps]) == ("program 1", [("good", 3)])
        assert first.error.startswith("CodeletIndexError: ")
        assert first.cycles == 3 * step.cycles // step.executions
        text = io.StringIO()
        engine.printProfileSummary(text)
        assert f"  before it, 3 steps took {first.cycles:,} cycles, which are in no other figure:" in text.getvalue()
        engine.load(bench.device)
        assert engine.getReport().failed_runs == ()
        return first

    everywhere(work)


def test_a_run_that_fails_at_once_and_one_of_a_callback_are_told(tmp_path):
    bench = Bench()
    stream = bench.graph.addHostToDeviceFIFO("in", FLOAT, 1)
    value = bench.variable("value", 0.0, 3)
    options = {"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
    engine = bench.engine(Copy(stream, value), "native", options)

    def refuse(_):
        raise RuntimeError("no data\nat all")

    engine.connectStreamToCallback("in", refuse)
    with pytest.raises(RuntimeError):
        engine.run(name="epoch")
    report = engine.getReport()
    assert (report.execution, report.failed_runs) == (None, (FailedRun("epoch", "RuntimeError: no data"),))
    text = io.StringIO()
    engine.printProfileSummary(text)
    assert text.getvalue().endswith("Failed runs:\n  epoch: RuntimeError: no data\n    no step was complete before it\n")
    del engine
    gc.collect()
    assert pva.openReport(tmp_path).failed_runs == report.failed_runs  # written though no run has come to its end


def test_the_last_ten_runs_that_failed_are_told():
    bench = Bench()
    engine = bench.engine(filling(bench, [9], [3], "bad"))
    for number in range(12):
        with pytest.raises(IndexError):
            engine.run(name=f"run {number}")
    assert [run.name for run in engine.getReport().failed_runs] == [f"run {number}" for number in range(2, 12)]


def test_a_result_of_execute_keeps_its_value_when_a_vertex_fails():
    def work(mode, options):
        bench = Bench()
        values, out, result = bench.variable("values", [1]), bench.variable("out", 0, 1), bench.variable("result", True, 4)
        compute_set = bench.graph.addComputeSet("pick")
        bench.vertex(compute_set, Pick, 2, values=values, out=out, index=3)
        engine = bench.engine(Execute(compute_set, result), mode, options)
        with pytest.raises(IndexError):
            engine.run()
        return engine.readTensor("result"), engine.readTensor("out")

    result, out = everywhere(work)
    assert result
    assert out == 1  # what the vertex wrote before it failed


def test_a_limit_of_zero_is_no_limit():
    def work(mode, options):
        bench = Bench()
        n = bench.variable("n", 200, 3)
        bench.engine(bench.execute(Countdown, 3, n=n), mode, options).run()

    everywhere(work, {"pypoplar.cycle_limit": 0})
    with pytest.raises(CycleLimitError):
        everywhere(work, {"pypoplar.cycle_limit": 600})
