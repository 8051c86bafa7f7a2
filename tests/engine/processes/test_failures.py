"""Where one instance fails all end, soon, and the message names it, once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mpi_launching import environment, require_mpi

from pypoplar.poprun.launchers import MPICH

SCRIPT = Path(__file__).with_name("failing_program.py")
WAYS = {
    "callback": r"instance 1 (replicas 2 to 3): ValueError: no more",
    "graph": "variable 'x', INT [4] [",
    "foreign": "connectStreamToCallback: replica 3 is of instance 1 (replicas 2 to 3)",
    "script": "instance 1 (replicas 2 to 3): RuntimeError: in the script",
    "ended": "instance 1 (replicas 2 to 3) has ended; instance 0 (replicas 0 to 1) waits at the beginning of program 0 [",
    "late": "instance 1 (replicas 2 to 3) has not come within 1 s (option pypoplar.mpi_timeout); instance 0 (replicas 0 to 1) wait",
    "other": "has come to the beginning of program 0",
    "host": "instance 0 (replicas 0 to 1) has come to the beginning of program 0 [",
    "killed": "instance 1 (replicas 2 to 3): killed by signal 9 (SIGKILL)",
}


@pytest.fixture(autouse=True)
def mpi():
    require_mpi()


def start(*words):
    options = ["--num-replicas", "4", "--num-instances", "2", "--allow-run-as-root", "yes"]
    command = [sys.executable, "-m", "pypoplar.poprun", *options, sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(CASE=words[-1]))


def finish(process):
    _, told = process.communicate(timeout=100)
    return process.returncode, told


def left_behind(mark):
    """Processes of a case that still run."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if f"CASE={mark}\0".encode() in (directory / "environ").read_bytes() and directory.name != str(os.getpid()):
                found.append((directory / "cmdline").read_bytes())
        except OSError:  # it has ended, or is another's
            continue
    return found


def none_left(mark):
    """Whether no process of a case runs any more, now or in a little while."""
    deadline = time.monotonic() + 5
    while left_behind(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left_behind(mark) == []


USUAL = ("callback", "killed")


@pytest.mark.parametrize("way", [pytest.param(one, marks=[] if one in USUAL else pytest.mark.slow) for one in WAYS])
def test_a_failure_of_one_instance_ends_all_and_is_told_once(way):
    mark = f"0.5{random.randrange(10**9)}"
    status, told = finish(start(way, 1, mark))
    assert status == 1, told
    assert told.count(WAYS[way]) == 1, told
    assert sum("Error: " in line for line in told.splitlines()) == (way != "killed"), told
    assert none_left(mark)


@pytest.mark.slow
def test_a_script_that_ends_by_a_status_ends_all_with_it():
    mark = f"0.5{random.randrange(10**9)}"
    status, told = finish(start("status", 1, mark))
    assert status == 3, told
    assert told.count("instance 1 (replicas 2 to 3): ended with exit status 3") == 1, told
    assert "Error: " not in told
    assert none_left(mark)


@pytest.mark.slow
def test_an_instance_that_never_comes_is_told_by_those_that_wait_for_mpi_to_start():
    require_mpi(MPICH)  # Open MPI's launcher ends all by itself then
    never = "from pypoplar import popdist\nif popdist.getInstanceIndex() == 0: popdist.synchronize()"
    options = {"POPLAR_ENGINE_OPTIONS": '{"pypoplar.mpi_timeout": "3"}'}
    command = [sys.executable, "-m", "pypoplar.poprun", "--num-replicas", "2", "--num-instances", "2", "--allow-run-as-root", "yes"]
    done = subprocess.run(
        [*command, sys.executable, "-c", never],
        capture_output=True,
        text=True,
        env=environment(**options),
        timeout=100,
        check=False,
    )
    assert done.returncode == 1
    assert (
        "have not come within 3 s (option pypoplar.mpi_timeout); instance 0 (replica 0) waits at the start of MPI [" in done.stderr
    )


@pytest.mark.slow
def test_ctrl_c_at_poprun_ends_all():
    mark = f"9{random.randrange(10**8):08}"  # seconds, as long as a program can sleep
    process = start("script", 1, mark)
    deadline = time.monotonic() + 60
    while sum(b"failing_program" in line and b"guard" not in line for line in left_behind(mark)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    status, told = finish(process)
    assert time.monotonic() - begin < 20  # a hang, on the busiest of machines
    assert status == 130, told
    assert none_left(mark)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_of_failures_at_any_moment_none_hangs_and_each_is_named(seed):
    chosen = random.Random(seed)
    who, way = chosen.randrange(2), chosen.choice(["killed", "killed", "script", "callback"])
    mark = f"{chosen.uniform(0.0, 2.0):.3f}{seed:03}{random.randrange(10**6)}"
    status, told = finish(start(way, who, mark))
    name = ("instance 0 (replicas 0 to 1): ", "instance 1 (replicas 2 to 3): ")[who]
    assert status == 1, told
    assert sum(name in line for line in told.splitlines()) == 1, told
    assert none_left(mark)
