"""The guide's program in several processes prints what the guide shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_launching import environment, require_mpi

from pypoplar.poprun.launchers import MPICH, OPEN_MPI

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "processes.md"


@pytest.mark.parametrize("kind", [MPICH, OPEN_MPI])
def test_the_guides_program_prints_what_stands_below_it_with_each_mpi(kind, tmp_path):
    require_mpi(kind)
    text = PAGE.read_text(encoding="utf-8")
    (program,) = re.findall(r"^```py\n(# ring\.py\n.*?)^```$", text, re.M | re.S)
    (printed,) = re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S)
    (tmp_path / "ring.py").write_text(program, encoding="utf-8")
    options = ["--num-replicas", "4", "--num-instances", "2", "--allow-run-as-root", "yes"]
    command = [sys.executable, "-m", "pypoplar.poprun", *options, sys.executable, str(tmp_path / "ring.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(printed.splitlines())
