"""Programs as users write them please type checkers."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PROGRAM = """
from pypoplar import FLOAT, Engine, Graph, IPUModel, pva
from pypoplar.program import Sequence

device = IPUModel("tiny").createDevice()
engine = Engine(Graph(device.getTarget()), Sequence())
engine.loadAndRun(device)
report = engine.getReport()
cycles = report.execution.totalCycles.total
names = [step.name for step in pva.openReport("profile.pop").execution.steps]
if report.execution is None:
    print("has not run")
"""


@pytest.mark.slow
def test_a_program_that_reads_its_report_needs_no_assert(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", str(program)]
    done = subprocess.run(command, cwd=tmp_path, env={"MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert [line for line in done.stdout.splitlines() if line.startswith("program.py")] == []
    assert "error: " not in done.stdout or "pypoplar" in done.stdout


def test_the_execution_of_a_report_is_typed_as_one_that_is_there():
    from typing import Any, get_type_hints

    from pypoplar.report.execution import Execution
    from pypoplar.report.report import Report

    assert get_type_hints(Report)["execution"] == Execution | Any
