"""Listings: the user's lines with their bundles, and what is said of loops; by a function and by the command."""

import re

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


def test_the_command_shows_lines_with_their_bundles_and_why_a_loop_is_as_it_is(file):
    result = listed(file, "Dot", "--target", "ipu2")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Dot, a Vertex, as compiled for ipu2 (in worker slots)"
    loop = lines.index("      -- loop of line 24, counted down (brnzdec): nothing says that it has at most 65,536 rounds")
    assert lines[loop + 1 : loop + 8] == [
        "      -- not on vectors: it takes a value from round to round, such as a sum",
        "   25 total += self.a[i] * self.b[i]",
        "          1  ld32",
        "          1  ld32",
        "          1                      mul_f32",
        "   24 for i in range(len(self.a)):",
        "          1  brnzdec             add_f32",
    ]


def test_a_loop_on_vectors_is_listed_for_several_rounds_and_for_one(file):
    text = listed(file, "Scale<float>", "--target", "ipu1").stdout
    assert "-- on vectors, 6 slots for 2 rounds" in text
    assert "-- what is left over, 5 slots a round" in text
    assert text.count("brnzdec\n") == 2


def test_a_supervisors_listing_says_what_an_instruction_takes(file):
    text = listed(file, "Alone").stdout
    assert text.startswith("Alone, a SupervisorVertex, as compiled for ipu2 (an instruction takes 6 cycles)\n")


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
