"""What coverage is measured of: what sets of parameters and the first examples of laws reach, though not of all sets."""

import json
from pathlib import Path

import pytest
from measured_items import EXAMPLES, MOST_PASSING, Turns

pytest.importorskip("pytest_cov")

HELPERS = Path(__file__).parent / "helpers"
DOOR = """
def enter(number):
    if number < 0:
        raise ValueError(number)
    import inside

    return inside.walk(number)
"""
INSIDE = """
def walk(number):
    if number == 7:
        return "seven"
    if number < 100:
        return "few"
    return "many"
"""


SETTINGS = """
[run]
branch = true
source = .
parallel = true
patch = subprocess
omit = test_it.py
"""
ELSEWHERE = """
import subprocess, sys

def enter_elsewhere(number):
    subprocess.run([sys.executable, "-c", f"from door import enter; enter({number})"], check=True)
"""


@pytest.fixture
def missed(pytester, monkeypatch):
    """The lines of two modules that a run of tests does not reach, as pytest-cov has it; the first ends at a door."""
    for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG", "COVERAGE_FILE"):
        monkeypatch.delenv(name, raising=False)  # of a run that measures this one
    pytester.makepyfile(door=DOOR, inside=INSIDE)
    (pytester.path / ".coveragerc").write_text(SETTINGS)
    pytester.makeini(f"[pytest]\npythonpath = . {HELPERS}\nmarkers = no_cover: not measured")

    def run(tests, *options, together="elsewhere"):
        conftest = f"import measured_items\n\nmeasured_items.TOGETHER = ({together!r},)\npytest_plugins = ['measured_items']"
        pytester.makepyfile(test_it=f"import pytest\nfrom door import enter\n{tests}", conftest=conftest)
        pytester.runpytest_subprocess("--cov=.", "--cov-report=json", *options).assert_outcomes(passed=PASSED)
        files = json.loads((pytester.path / "coverage.json").read_text())["files"]
        return {name: files[name]["missing_lines"] for name in ("door.py", "inside.py")}

    return run


PASSED = 40
SETS = """
@pytest.mark.parametrize("number", {numbers})
def test_one_enters(number):
    if number < 0:
        with pytest.raises(ValueError):
            enter(number)
    else:
        enter(number)
"""


def test_what_is_behind_the_door_counts_where_the_first_set_does_not_get_in(missed):
    assert missed(SETS.format(numbers=[-1, 1, *[7] * (PASSED - 2)])) == {"door.py": [], "inside.py": [6]}


@pytest.mark.slow
def test_two_workers_measure_what_one_does(missed):
    pytest.importorskip("xdist")
    assert missed(SETS.format(numbers=[-1, 1, *[7] * (PASSED - 2)]), "-n", "2") == {"door.py": [], "inside.py": [6]}


def test_another_form_counts_that_many_sets_come_to_after_many_that_are_alike(missed):
    numbers = [*range(10, 39), *[100] * (PASSED - 29)]
    assert missed(SETS.format(numbers=numbers)) == {"door.py": [3], "inside.py": [3]}


def test_the_tests_of_a_file_that_go_through_all_rooms_take_turns_together(missed):
    tests = [f"def test_{number}():\n    enter(1)\n" for number in range(PASSED - 1)]
    second, third = ("\n".join([*tests[:at], "def test_many():\n    enter(100)\n", *tests[at:]]) for at in (1, 2))
    assert missed(second, together="test_it")["inside.py"] == [3]
    assert missed(third, together="test_it")["inside.py"] == [3, 6]
    assert missed(third, together="test_other")["inside.py"] == [3]


def test_what_only_slow_tests_reach_does_not_count(missed):
    tests = [f"def test_{number}():\n    enter(1)\n" for number in range(PASSED - 1)]
    slow = "@pytest.mark.slow\ndef test_many():\n    enter(100)\n"
    marks = "markers=slow: long\nno_cover: not measured"
    assert missed("\n".join([*tests, slow]), "-o", marks)["inside.py"] == [3, 6]


LAW = """
from hypothesis import given, settings, strategies

seen = set()

@settings(database=None)
@given(strategies.integers(0, 50))
def test_all_enter(number):
    seen.add(number)
    enter(LATER if len(seen) > FIRST else 1)

def test_as_many_were_drawn():
    assert len(seen) > 20
"""


def test_the_first_examples_of_a_law_count_and_no_others_and_the_tests_behind_it_count_again(missed):
    sets = SETS.format(numbers=[7] * (PASSED - 2))
    assert missed(f"LATER, FIRST = 100, {EXAMPLES - 2}\n{LAW}{sets}")["inside.py"] == []
    assert missed(f"LATER, FIRST = 100, {EXAMPLES}\n{LAW}{sets}")["inside.py"] == [6]


def test_what_only_tests_without_cover_and_their_processes_reach_does_not_count(missed):
    tests = """
@pytest.mark.no_cover
def test_many_enter():
    enter(100)

@pytest.mark.no_cover
def test_many_enter_elsewhere():
    enter_elsewhere(100)
"""
    assert missed(ELSEWHERE + tests + SETS.format(numbers=[-1] * (PASSED - 2)))["inside.py"] == [1, 2, 3, 4, 5, 6]


def test_what_processes_of_measured_tests_reach_counts(missed):
    started = "def test_many_enter_elsewhere():\n    enter_elsewhere(100)\n"
    assert missed(ELSEWHERE + started + SETS.format(numbers=[-1] * (PASSED - 1)))["inside.py"] == [3, 5]


def test_a_set_that_reaches_nothing_new_lets_one_pass_and_then_three():
    turns = Turns()
    measured = []
    for number in range(60):
        if turns.comes():
            measured.append(number)
            turns.reached(number == 30)
    assert MOST_PASSING == 3
    assert measured == [0, 2, *range(6, 31, 4), 31, 33, *range(37, 60, 4)]
