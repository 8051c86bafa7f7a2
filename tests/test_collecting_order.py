"""What collecting tests does: workers of xdist go through the files from both ends and name their tests in one order."""

import gc
import sys

import collecting_order
import pytest

IMPORTED = ["tests/first/test_a.py", "tests/first/test_b.py", "tests/second/test_c.py", "tests/test_d.py"]


class Worker:
    """Makes a run that of a worker."""

    def __init__(self, name):
        self.name = name

    def pytest_configure(self, config):
        config.workerinput = {"workerid": self.name}


@pytest.fixture
def collected(pytester):
    """The modules in the order in which a worker imports them, and its tests in theirs."""
    for path in IMPORTED:
        file = pytester.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"print('imports {path}')\n\ndef test_z(): pass\n\ndef test_a(): pass\n")

    def run(*plugins):
        lines = pytester.runpytest_inprocess("-s", "-q", "--collect-only", "--import-mode=importlib", plugins=plugins).outlines
        modules = [line.removeprefix("imports ") for line in lines if line.startswith("imports ")]
        return modules, [line for line in lines if "::" in line]

    return run


def test_every_second_worker_imports_from_the_end(collected):
    assert [collected(Worker(f"gw{number}"), collecting_order)[0] for number in range(4)] == [IMPORTED, IMPORTED[::-1]] * 2


def test_workers_name_tests_in_the_order_of_a_run_without_workers(collected):
    modules, tests = collected(collecting_order)
    assert modules == IMPORTED
    assert tests == [f"{path}::{test}" for path in IMPORTED for test in ("test_z", "test_a")]
    for number in range(2):
        assert collected(Worker(f"gw{number}"), collecting_order)[1] == tests


def test_what_was_collected_is_not_looked_through_for_garbage(request):
    if "mypy.build" in sys.modules:
        pytest.skip("mypy, which another test has called in this process, thaws all that is frozen")
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(request.session.items)
