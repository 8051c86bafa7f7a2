"""The summary's cycles by source line: codelets' text with what lines cost, and slowest vertices."""

import itertools

import pytest
from attrs import evolve
from page_reports import compute, ran_without_steps, report
from profile_reports import full_lines, full_report

from pypoplar.report.line_profile import CodeletText, LinePart, LineProfile, SourceLine, VertexGroup
from pypoplar.report.text.summary import summary
from pypoplar.report.text.summary_lines import lines_section, text_lines


def test_lines_stand_with_slots_share_compiled_and_bound():
    assert lines_section(full_lines()) == [
        "  Cycles by source line, in worker slots of all executions:",
        "    Multiply<float> (8 instances): 9,000 slots, 99.9% of all",
        "      slots  share  compiled  bound  line  text",
        "                                           -- compute, codelets/multiply.py",
        "      1,728  19.2%     1,728  1,728     7      def compute(self):",
        "      2,250  25.0%     2,250    288     8          for i in range(len(self.x)):",
        "      5,022  55.8%     5,022  3,348     9              self.x[i] *= self.k",
        "    1 more vertex type: 7 slots",
        "  Slowest vertex of each compute set, in tile cycles of one execution:",
        "    multiply: 400 tile cycles, Multiply<float> on tile 2, x 93, rows 12 in 3 rows",
    ]


def test_scalar_prices_have_no_compiled_and_no_bound():
    lines = lines_section(evolve(full_lines(), compiled=False))
    assert lines[2].split() == ["slots", "share", "line", "text"]
    assert lines[4] == "      1,728  19.2%     7      def compute(self):"


def test_long_texts_are_shown_as_far_as_they_cost():
    rows = tuple(SourceLine("compute", "f.py", 10 + place, f"line {place}") for place in range(9))
    helper = (SourceLine("helper", "g.py", 3, "helper"),)
    blocks = ((LinePart(1, 5, 0), LinePart(7, 15, 0), LinePart(9, 20, 0)),)
    profile = LineProfile(False, (CodeletText("Long", 1, rows + helper, blocks),), (VertexGroup("set", "Long", 1, 40, (1,)),))
    texts = [line.split()[-1] if "--" not in line else line.split("-- ")[1] for line in lines_section(profile)[3:]]
    assert texts == ["compute, f.py", "0", "1", "2", "...", "6", "7", "8", "helper, g.py", "helper"]


def shown(lines, costly):
    """The numbers of the lines that are shown, "..." for gaps, where lines at these places cost something."""
    rows = tuple(SourceLine("compute", "f.py", 10 + place, text) for place, text in enumerate(lines))
    text = CodeletText("Long", 1, rows, (tuple(LinePart(place, 5, 0) for place in costly),))
    profile = LineProfile(False, (text,), (VertexGroup("set", "Long", 1, 5 * len(costly), (1,)),))
    entries = [line.split() for line in text_lines(profile.lines("Long"))][2:]
    return [entry[0] if entry[0] == "..." else int(entry[2 if "%" in entry[1] else 0]) for entry in entries]


@pytest.mark.parametrize(("between", "gap"), [(0, []), (1, []), (2, []), (3, []), (4, []), (5, ["..."]), (9, ["..."])])
def test_a_gap_stands_for_three_lines_at_least(between, gap):
    lines = ["def compute(self):", *["a line"] * (between + 1)]
    numbers = shown(lines, [0, between + 1])
    assert [number for number in numbers if number == "..."] == gap
    if not gap:
        assert numbers == list(range(10, 12 + between))


def test_a_function_begins_with_its_head_also_behind_a_long_docstring():
    lines = ["@decorated", "def body(self, i):", '    """Says', *["much"] * 5, '    """', "    # comment", "    self.x[i] *= 2.0"]
    assert shown(lines, [10]) == [11, "...", 19, 20]


def test_no_heading_stands_without_anything_below_it():
    assert lines_section(LineProfile(True)) == []
    ran = ran_without_steps()
    nothing = evolve(ran, execution=evolve(ran.execution, lines=LineProfile(True)))
    for empty in (ran, nothing, evolve(nothing, execution=evolve(nothing.execution, cycles_by_vertex_type={}))):
        text = summary(empty, {"showExecutionSteps": "true", "showVarStorage": "true"}, top=3)
        lines = [*text.splitlines(), ""]
        for line, after in itertools.pairwise(lines):
            if line.endswith(":") and line.strip() not in ("By Category:", "By Data Type:"):
                assert len(after) - len(after.lstrip()) > len(line) - len(line.lstrip()), line


def test_the_summary_has_the_section_only_where_lines_are_known():
    assert "Cycles by source line" in summary(full_report())
    assert "Cycles by source line" not in summary(report(compute("even", 0, [100] * 4)))
