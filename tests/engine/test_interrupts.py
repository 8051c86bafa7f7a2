"""Ctrl-C while a program runs: it stops soon, and the engine can be used again. Each in a process of its own."""

import subprocess
import sys
from pathlib import Path

import interrupted_programs
import pytest
from unmeasured import unmeasured

PROGRAMS = Path(interrupted_programs.__file__)


def output_of(name, mode):
    """What a program prints. Its coverage is not measured: an interrupt within coverage's own code leaves its lock closed."""
    command = [sys.executable, "-W", "error", str(PROGRAMS), name, mode]
    done = subprocess.run(command, env=unmeasured(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_an_interrupt_ends_a_loop_and_the_engine_goes_on(mode):
    assert output_of("loop", mode) == "interrupted\ndone\n"


@pytest.mark.parametrize("name", ["condition", "callback", "replicas"])
def test_an_interrupt_ends_whatever_waits(name, mode):
    assert output_of(name, mode) == "done\n"


@pytest.mark.no_cover
def test_an_interrupt_ends_vertices_that_run_for_years(mode):
    assert output_of("vertices", mode) == "done\n"


@pytest.mark.no_cover
def test_an_interrupt_may_come_at_any_time_on_any_number_of_threads():
    assert output_of("anywhere", "native") == "done\n"
