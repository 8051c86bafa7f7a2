"""The pages of the tutorials: their commands print what they show, exercises have solutions, solutions fit their scripts."""

import re

import pytest
from tutorial_modules import tutorial_pages

from pypoplar import resources

PAGES = tutorial_pages()
OF_EXTRAS = ("poptorch_", "keras_")  # tests/poptorch and tests/keras run them
WITHOUT_TORCH = [name for name in PAGES.recorded() if not name.startswith(OF_EXTRAS)]
NETWORKS = {"digits_lstm", "mnist_cnn", "transformer"}  # which train


def commands():
    """The commands of every page: the name of the page, and the command's number."""
    return [
        pytest.param(name, number, marks=[pytest.mark.slow] if name in NETWORKS else [])
        for name in WITHOUT_TORCH
        for number in range(len(PAGES.record(name).runs))
    ]


@pytest.mark.parametrize(("name", "number"), commands())
def test_a_command_prints_what_its_page_shows(name, number):
    record = PAGES.record(name)
    run = record.runs[number]
    printed = record.run(run)
    assert PAGES.agrees(run.printed, printed), f"run: python docs/tutorial_pages.py {name}\n{run.commands}printed:\n{printed}"


@pytest.mark.parametrize("name", PAGES.recorded())
def test_a_page_has_all_of_its_script_and_a_solution_of_every_exercise(name):
    tutorial, record = resources.tutorial(name), PAGES.record(name)
    code = re.findall(r"^```py\n(.*?)^```\n", PAGES.page(name), re.S | re.M)
    lines = [line for part in code for line in part.splitlines() if line]
    source = tutorial.path.read_text(encoding="utf-8")
    assert lines == [line for line in source.partition('"""\n')[2].splitlines() if line]
    count = len(PAGES.Text.of(name).exercises)
    assert count == len(re.findall(r"^\d+\. ", tutorial.text(), re.M))
    assert [*record.solutions] == [*range(1, count + 1)], "each exercise has a solution, each solution an exercise"


@pytest.mark.parametrize("name", PAGES.recorded())
def test_every_block_of_a_record_is_run(name):
    record = PAGES.record(name)
    kinds = re.findall(r"^```(\w+)\n", record.text, re.M)
    assert set(kinds) <= {"sh", "text", "diff"}
    assert len(record.runs) == kinds.count("sh") == kinds.count("text")
    assert {change for run in record.runs for change in run.changes} == set(
        re.findall(r"^```diff\n(.*?)^```\n", record.text, re.S | re.M)
    )
    for run in record.runs:
        assert run.changes or "pypoplar run " not in run.commands


def test_every_tutorial_has_a_page():
    assert sorted(PAGES.recorded()) == [name for name in resources.tutorials() if not name.startswith("gallery/")]


def test_a_change_of_lines_that_a_script_lacks_or_has_twice_is_refused(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("a = 1\nb = 2\nb = 2\nd = 4\nd = 4\n")
    PAGES.apply(" a = 1\n+a += 1\n@@\n-b = 2\n-b = 2\n+b = 3\n+++ new.py\n+c = 4\n", tmp_path, "script.py")
    assert script.read_text() == "a = 1\na += 1\nb = 3\nd = 4\nd = 4\n"
    assert (tmp_path / "new.py").read_text() == "c = 4\n"
    for lines, times in (("-c = 4\n", 0), ("-d = 4\n", 2)):
        with pytest.raises(ValueError, match=rf"script\.py has {times} times"):
            PAGES.apply(lines, tmp_path, "script.py")


def test_an_output_may_leave_lines_out_and_is_refreshed_all_the_same():
    assert PAGES.agrees("a\n...\nc\n", "a\nb\nb\nc\n")
    assert PAGES.agrees("a\n...\n", "a\n")
    assert not PAGES.agrees("a\nc\n", "a\nb\nc\n")
    assert PAGES.refreshed("x: 1\n...\nz 3 of 4\n", "x: 2\ny\nz 30 of 4\n") == "x: 2\n...\nz 30 of 4\n"
    with pytest.raises(ValueError, match="not printed any more"):
        PAGES.refreshed("x: 1\n...\nz\n", "x: 1\ny\n")
    with pytest.raises(ValueError, match=r"lines are new that no \.\.\. stands for, behind those of:\nx: 2\n\.\.\.\nz\n"):
        PAGES.refreshed("x: 1\n...\nz\n", "x: 2\ny\nz\nnew\n")
