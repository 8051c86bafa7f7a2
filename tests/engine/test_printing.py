"""What programs and vertices print, and programs that stop themselves."""

import io

import numpy as np
import pytest
from engine_builder import Add, Bench, logged

from pypoplar import BOOL, HALF, INT, LONGLONG, ApplicationRuntimeError, Input, MultiVertex, Vector, Vertex, ipu, testing
from pypoplar.program import Abort, AbortOnCondition, Call, ErrorProgram, Execute, PrintTensor, Repeat, Sequence


class Speak(Vertex):
    values: Input[Vector[HALF]]
    name: INT

    def compute(self):
        for value in self.values:
            ipu.debug_print(f"{self.name} has {value}")
        ipu.debug_print("done")


class Workers(MultiVertex):
    flag: Input[BOOL]

    def compute(self, worker):
        if worker % 2 == 0:
            ipu.debug_print(f"worker {worker}: {self.flag}, {1.5}, {worker * 2000000000}")


def printed(bench, program, mode, runs=1):
    engine = bench.engine(program, mode)
    out = io.StringIO()
    engine.setPrintStream(out)
    for _ in range(runs):
        engine.run()
    return out.getvalue()


@pytest.mark.parametrize(
    ("values", "type", "text"),
    [
        ([1.0, 1.5, -2.25], None, "[1.0000000 1.5000000 -2.2500000]"),
        ([0.1], HALF, "[0.0999756]"),
        ([1e10, np.inf, -np.inf, np.nan], None, "[10000000000.0000000 inf -inf nan]"),
        ([1, -2, 3], None, "[1 -2 3]"),
        ([-(2**62)], LONGLONG, f"[{-(2**62)}]"),
        ([True, False], None, "[1 0]"),
        (7, None, "7"),
        ([[1, 2], [3, 4]], None, "[\n  [1 2]\n  [3 4]\n]"),
        ([[[1], [2]], [[3], [4]]], None, "[\n  [\n    [1]\n    [2]\n  ]\n  [\n    [3]\n    [4]\n  ]\n]"),
        (np.zeros(0, np.int32), None, "[]"),
    ],
)
def test_a_tensor_is_printed_under_its_title(mode, values, type, text):
    bench = Bench()
    x = bench.variable("x", values, type=type)
    assert printed(bench, PrintTensor("the title", x), mode) == f"the title: {text}\n"


def test_views_are_printed_as_they_are_when_the_program_comes_by(mode):
    bench = Bench()
    x = bench.variable("x", np.arange(4).reshape(2, 2), [3, 2, 1, 0])
    step = Sequence([PrintTensor("x", x.transpose().reverse(0)[0]), bench.execute(Add, value=x[1, 1], amount=1)])
    assert printed(bench, Repeat(2, step), mode, runs=2) == "x: [1 3]\nx: [1 4]\nx: [1 5]\nx: [1 6]\n"


def test_without_a_title_a_tensor_has_its_own_name(mode):
    bench = Bench()
    x = bench.variable("x", [1])
    assert "x" in printed(bench, PrintTensor(x), mode)
    assert printed(bench, PrintTensor("", x), mode) == "[1]\n"


def test_prints_go_to_standard_error_unless_told_otherwise(mode, capsys):
    bench = Bench()
    engine = bench.engine(PrintTensor("x", bench.variable("x", [1])), mode)
    engine.run()
    assert capsys.readouterr() == ("", "x: [1]\n")


def test_vertices_print_in_the_order_of_steps_then_vertices():
    bench = Bench()

    def build(graph, values):
        compute_set = graph.addComputeSet("speak")
        for tile in (5, 1, 3):
            graph.setTileMapping(graph.addVertex(compute_set, Speak, {"values": values[tile : tile + 2], "name": tile}), tile)
        return Repeat(2, Execute(compute_set))

    halves = np.arange(8).astype(np.float16) / 2
    lines = [
        *("[tile 5, vertex 0] 5 has 2.5000000", "[tile 5, vertex 0] 5 has 3.0000000", "[tile 5, vertex 0] done"),
        *("[tile 1, vertex 1] 1 has 0.5000000", "[tile 1, vertex 1] 1 has 1.0000000", "[tile 1, vertex 1] done"),
        *("[tile 3, vertex 2] 3 has 1.5000000", "[tile 3, vertex 2] 3 has 2.0000000", "[tile 3, vertex 2] done"),
    ]
    result = testing.run(build, {"values": halves}, device=bench.device)
    assert result.printed.splitlines() == lines * 2


def test_workers_print_in_order_all_kinds_of_values():
    result = testing.run_vertex(Workers, {"flag": True})
    assert result.printed.splitlines() == [
        "[tile 0, vertex 0] worker 0: 1, 1.5000000, 0",
        f"[tile 0, vertex 0] worker 2: 1, 1.5000000, {4 * 10**9 - 2**32}",
        f"[tile 0, vertex 0] worker 4: 1, 1.5000000, {8 * 10**9 - 2**33}",
    ]


def test_vertices_and_programs_print_in_the_order_of_the_program(mode):
    bench = Bench()
    x, halves = bench.variable("x", 0), bench.variable("h", [0.5], type=HALF)
    step = [bench.execute(Speak, 3, values=halves, name=1), PrintTensor("x", x), bench.execute(Add, value=x, amount=1)]
    lines = printed(bench, Repeat(2, Sequence(step)), mode).splitlines()
    said = ["[tile 3, vertex 0] 1 has 0.5000000", "[tile 3, vertex 0] done"]
    assert lines == [*said, "x: 0", *said, "x: 1"]


class Table(Vertex):
    x: Input[Vector[HALF]]
    n: Input[INT]
    flag: Input[BOOL]

    def compute(self):
        for value in self.x:
            print(value, end=" ")
        print()
        print("n", self.n, self.flag, 2.5, sep="|", end=".\n")
        print(f"{self.x[0]:.2f}; {self.n:+05d}; {self.n:x}; {self.flag:2}; {self.n=}, { self.x[1] = }; {self.n * 2=:3d}; {{}}")
        print(sep="", end="")
        print("two\nlines", NAME, f"<{NAME}>")
        print("open", end="")


NAME = "{name}"
TABLE = [
    "0.5000000 0.0999756 ",
    "n|7|1|2.5000000.",
    "0.50; +0007; 7;  1; self.n=7,  self.x[1] = 0.0999756; self.n * 2= 14; {}",
    "two",
    "lines {name} <{name}>",
    "open",
]


def test_print_prints_as_debug_print_does_with_formats_separators_and_ends(mode):
    bench = Bench()
    x, n, flag = bench.variable("x", [0.5, 0.1], type=HALF), bench.variable("n", 7), bench.variable("flag", True)
    program = Sequence([bench.execute(Table, tile, x=x, n=n, flag=flag) for tile in (3, 1)])
    expected = []
    for vertex, tile in enumerate((3, 1)):
        expected += [text if text.startswith("lines") else f"[tile {tile}, vertex {vertex}] {text}" for text in TABLE]
    assert printed(bench, program, mode).splitlines() == expected


def test_a_line_that_a_vertex_leaves_open_ends_before_another_vertex_prints():
    def build(graph, values):
        compute_set = graph.addComputeSet("open")
        for tile in (2, 1):
            graph.setTileMapping(graph.addVertex(compute_set, Open, {"value": values[tile], "name": tile}), tile)
        return Repeat(2, Execute(compute_set))

    class Open(Vertex):
        value: Input[HALF]
        name: INT

        def compute(self):
            print(self.name, end="")
            print(f" {self.value:g}", end="")

    lines = ["[tile 2, vertex 0] 2 1", "[tile 1, vertex 1] 1 0.5"]
    result = testing.run(build, {"values": np.float16([0, 0.5, 1])}, device=Bench().device)
    assert result.printed.splitlines() == lines * 2


class Chatter(Vertex):
    count: Input[INT]

    def compute(self):
        for i in range(self.count):
            ipu.debug_print(f"number {i}")


def test_a_long_run_prints_everything(mode):
    bench = Bench()
    count = bench.variable("count", 2000)
    steps = 30 if mode == "native" else 3
    lines = printed(bench, Repeat(steps, bench.execute(Chatter, count=count)), mode).splitlines()
    assert lines == [f"[tile 0, vertex 0] number {i}" for i in range(2000)] * steps


def test_a_step_that_prints_more_than_is_kept_says_so():
    bench = Bench()
    count = bench.variable("count", 60_000)
    program = Sequence([bench.execute(Chatter, count=count), bench.execute(Chatter, count=bench.variable("few", 1))])
    for _ in range(2):
        lines = printed(bench, program, "native", runs=2).splitlines()
        kept = lines.index("[pypoplar] more was printed by one step than is kept; the rest is lost")
        assert kept > 30_000
        assert lines[:kept] == [f"[tile 0, vertex 0] number {i}" for i in range(kept)]
        assert lines[kept + 1 : kept + 3] == ["[tile 0, vertex 1] number 0", lines[0]]


# Programs that stop


def stopped(bench, program, mode):
    """The message of a program that stops, which the engine survives."""
    engine = bench.engine([Sequence([bench.enter(1), program, bench.enter(2)]), bench.enter(3)], mode)
    with pytest.raises(ApplicationRuntimeError) as caught:
        engine.run(0)
    engine.run(1)
    assert logged(engine) == [1, 3]
    return str(caught.value)


@pytest.fixture
def bench(bench):
    bench.log()
    return bench


def test_abort_stops_with_its_message_and_the_users_line(bench, mode):
    text = stopped(bench, Abort("no more digits"), mode)
    assert "no more digits" in text
    assert "test_printing.py:" in text


def test_an_abort_in_a_function_in_a_loop_stops_too(bench, mode):
    function = bench.graph.addFunction(Sequence([Abort("deep"), bench.enter(9)]))
    assert "deep" in stopped(bench, Repeat(3, Call(function)), mode)


@pytest.mark.parametrize("value", [1, -1, 256])
def test_abort_on_condition_stops_where_it_is_not_zero(bench, mode, value):
    flag = bench.variable("flag", value, 4)
    assert "too many" in stopped(bench, AbortOnCondition(flag, "too many"), mode)


def test_abort_on_condition_goes_on_where_it_is_zero(bench, mode):
    flag = bench.variable("flag", False, 4)
    engine = bench.engine(Sequence([AbortOnCondition(flag, "never"), bench.enter(1)]), mode)
    engine.run()
    assert logged(engine) == [1]


def test_an_error_program_shows_the_tensor(bench, mode):
    x = bench.variable("x", [1.5, 2.0], 4)
    text = stopped(bench, ErrorProgram("bad values", x), mode)
    assert "bad values" in text
    assert "[1.5000000 2.0000000]" in text
    assert "test_printing.py:" in text


def test_what_was_printed_before_an_error_is_printed(bench, mode):
    x = bench.variable("x", [1])
    halves = bench.variable("h", [0.5], type=HALF)
    engine = bench.engine(
        Sequence([PrintTensor("before", x), bench.execute(Speak, values=halves, name=1), Abort(), PrintTensor("after", x)]), mode
    )
    out = io.StringIO()
    engine.setPrintStream(out)
    with pytest.raises(ApplicationRuntimeError):
        engine.run()
    assert "before: [1]\n" in out.getvalue()
    assert "1 has 0.5000000" in out.getvalue()
    assert "after" not in out.getvalue()
