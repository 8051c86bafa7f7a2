"""Scripts in the form of Graphcore's Keras tutorial and of its talk run to their end, with the stand-in of ``tensorflow``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import keras_rig  # noqa: F401 (skips without Keras)
import pytest
from keras_scripts import STAGES, TALK

pytestmark = pytest.mark.slow


def lines_of(folder: Path, script: str, *arguments: str) -> list[str]:
    """What a script prints."""
    (folder / "script.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "pypoplar.keras", str(folder / "script.py"), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_of_the_tutorial_runs_to_its_end(tmp_path, stage):
    script, updates = STAGES[stage]
    assert lines_of(tmp_path, script)[-1] == f"ran 2 {updates} (64, 10) True True"


def test_the_network_of_the_talk_runs_to_its_end(tmp_path):
    lines = lines_of(tmp_path, TALK, "--batch-size", "8", "--examples", "16", "--filters", "8")
    assert lines[-1] == "ran 2 4 True"
