"""Listings: the user's lines with their bundles, and what is said of loops; by a function and by the command."""

import re
import sys

import pytest
from click.testing import CliRunner

import pypoplar
from pypoplar import FLOAT, CodeletError, InOut, InvalidOption, IPUModel, PoplarTypeError, UnknownVertexType, Vector, Vertex
from pypoplar.cli import main

TEXT = """\
from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, InOut, Input, Output, SupervisorVertex, Vector, Vertex

T = TypeVar("T", FLOAT, HALF)


class Scale(Vertex, Generic[T]):
    x: InOut[Vector[T]]
    k: T

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] *= self.k


class Dot(Vertex):
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for i in range(len(self.a)):
            total += self.a[i] * self.b[i]
        self.out = total


class Alone(SupervisorVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        self.x[0] = 1.0
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "codelets.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


def listed(*arguments):
    return CliRunner().invoke(main, ["listing", *map(str, arguments)])


def test_a_file_imports_the_modules_beside_it(file, monkeypatch):
    (file.parent / "sizes_beside.py").write_text("FACTOR = 2.0\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "sizes_beside", None)  # so that the test leaves no module behind
    monkeypatch.delitem(sys.modules, "sizes_beside")
    file.write_text("from sizes_beside import FACTOR\n" + TEXT.replace("= self.k", "= FACTOR"), encoding="utf-8")
    search = sys.path[:]
    result = listed(file, "Scale<float>")
    assert result.exit_code == 0, result.output
    assert "self.x[i] *= FACTOR" in result.output
    assert sys.path == search


def test_the_command_shows_lines_with_their_bundles_and_why_a_loop_is_as_it_is(file):
    result = listed(file, "Dot", "--target", "ipu2")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Dot, a Vertex, as compiled for ipu2 (in worker slots)"
    loop = lines.index("      -- loop of line 24, counted down (brnzdec): nothing says that it has at most 65,536 rounds")
    assert lines[loop + 1 : loop + 9] == [
        "      -- not on vectors: it takes a value from round to round, such as a sum",
        "   25 total += self.a[i] * self.b[i]",
        "          1  ld32",
        "          1  ld32",
        "          1                      mul_f32",
        "   24 for i in range(len(self.a)):",
        "          1  brnzdec             add_f32             of line 25",
        "      -- end of the loop of line 24",
    ]


def test_a_loop_on_vectors_is_listed_for_several_rounds_and_for_one(file):
    text = listed(file, "Scale<float>", "--target", "ipu1").stdout
    assert "-- on vectors, 6 slots for 2 rounds" in text
    assert "-- what is left over, 5 slots a round" in text
    assert text.count("brnzdec\n") == 2


def test_a_supervisors_listing_says_what_an_instruction_takes(file):
    text = listed(file, "Alone").stdout
    assert text.startswith("Alone, a SupervisorVertex, as compiled for bow, architecture ipu2 (an instruction takes 6 cycles)\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Dott",), "no codelet is called 'Dott'; did you mean 'Dot'?"),
        (("Dot", "--target", "bwo"), "no IPU version is called 'bwo': .* did you mean 'bow'?"),
        (("Scale",), "template"),
    ],
)
def test_what_cannot_be_listed_is_said_in_one_line(file, arguments, message):
    result = listed(file, *arguments)
    assert result.exit_code == 1
    assert re.search(message, result.stderr), result.stderr
    assert "Traceback" not in result.stderr


LOOPS = """\
from pypoplar import FLOAT, InOut, Vector, Vertex


class Loops(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for row in range(2):
            for i in range({rounds}):
                self.x[i] = self.x[i] * 2.0
        while self.x[0] > 1.0:
            self.x[0] = self.x[0] * 0.5
        self.x[1] = 3.0
"""


def loops_of(tmp_path, rounds):
    path = tmp_path / f"loops{rounds}.py"
    path.write_text(LOOPS.format(rounds=rounds), encoding="utf-8")
    result = listed(path, "Loops", "--target", "ipu1")
    assert result.exit_code == 0, result.output
    return [line.strip()[3:] for line in result.stdout.splitlines() if line.startswith("      --")]


def test_a_listing_says_where_each_loop_begins_and_ends(tmp_path):
    lines = loops_of(tmp_path, 7)
    assert [line for line in lines if " line " in line] == [
        "loop of line 8, counted down (brnzdec): there is a loop in it",
        "loop of line 9, a hardware repeat (rpt)",
        "end of the loop of line 9",
        "end of the loop of line 8",
        "loop of line 11, compare and branch: nothing counts its rounds",
        "end of the loop of line 11",
    ]


def test_what_ends_a_round_stands_at_the_end_of_its_loop(tmp_path):
    path = tmp_path / "loops.py"
    path.write_text(LOOPS.format(rounds=7), encoding="utf-8")
    lines = [line.strip() for line in listed(path, "Loops").stdout.splitlines()]
    outer = lines.index("-- end of the loop of line 8")
    assert lines[outer - 2 : outer] == ["8 for row in range(2):", "1  brnzdec"]
    assert lines.index("-- end of the loop of line 9") < outer


@pytest.mark.parametrize(("rounds", "left"), [(6, False), (7, True)])
def test_what_is_left_over_is_listed_where_something_is(tmp_path, rounds, left):
    lines = loops_of(tmp_path, rounds)
    assert any("on vectors, " in line for line in lines)
    assert any("what is left over" in line for line in lines) == left


def test_a_loop_of_one_round_is_not_on_vectors(tmp_path):
    assert "not on vectors: a vector takes 2 rounds, and there are 1" in loops_of(tmp_path, 1)


def test_the_heading_names_the_target_and_its_architecture(file):
    assert listed(file, "Dot").stdout.startswith("Dot, a Vertex, as compiled for bow, architecture ipu2 (in worker slots)\n")


BROKEN = (
    TEXT
    + """

class Broken(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        self.x[0] = open("file")
"""
)


def test_a_codelet_that_cannot_be_translated_does_not_hide_the_others(tmp_path):
    path = tmp_path / "codelets.py"
    path.write_text(BROKEN, encoding="utf-8")
    result = listed(path)
    assert result.exit_code == 1
    headings = re.findall(r"^(\w.*)$", result.stdout, re.MULTILINE)
    assert [heading.split(",")[0] for heading in headings] == ["Dot", "Alone", "Scale<T>"]
    assert "open" in result.stderr
    assert "Traceback" not in result.stderr
    assert listed(path, "Dot").exit_code == 0
    assert listed(path, "Broken").stderr == result.stderr


def test_without_a_codelet_all_of_a_file_are_listed(file):
    result = listed(file)
    assert result.exit_code == 0
    assert result.stdout.startswith(listed(file, "Dot").stdout)
    assert "Scale<T>, a template: list an instance of it by its name" in result.stdout


@pytest.mark.parametrize("target", ["IPU2", "Bow", "POD16"])
def test_a_target_that_differs_in_capitals_is_named(file, target):
    result = listed(file, "Dot", "--target", target)
    assert result.exit_code == 1
    assert f"no IPU version is called {target!r}" in result.stderr
    assert f"did you mean {target.lower()!r}?" in result.stderr


class One(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        self.x[0] = 1.0


def test_the_function_takes_classes_and_targets_devices_or_names():
    device = IPUModel("ipu1").createDevice()
    texts = [pypoplar.listing(One, target) for target in ("ipu1", device, device.getTarget())]
    assert texts[0] == texts[1] == texts[2]
    assert texts[0].startswith("One, a Vertex, as compiled for ipu1")
    assert "self.x[0] = 1.0" in texts[0]


@pytest.mark.parametrize(
    ("codelet", "target", "error"),
    [(3, "bow", PoplarTypeError), (One, 3, PoplarTypeError), (One, "bwo", InvalidOption), ("One", "bow", UnknownVertexType)],
)
def test_the_function_refuses_anything_else(codelet, target, error):
    with pytest.raises(error):
        pypoplar.listing(codelet, target)


def test_a_class_without_compute_is_no_codelet():
    class Nothing(Vertex):
        x: InOut[Vector[FLOAT]]

    with pytest.raises(CodeletError):
        pypoplar.listing(Nothing)


@pytest.mark.parametrize(
    ("text", "ending"), [("def (\n", "SyntaxError: invalid syntax"), ("1 / 0\n", "ZeroDivisionError: division by zero")]
)
def test_an_error_of_the_file_is_shown_from_its_own_line_on(tmp_path, text, ending):
    path = tmp_path / "broken.py"
    path.write_text(text, encoding="utf-8")
    result = listed(path, "X")
    assert result.exit_code == 1
    assert result.stderr.rstrip().endswith(ending)
    assert "click" not in result.stderr
    assert "registry" not in result.stderr
