"""The tutorials for Keras print what their pages show, and train on the IPU as on the host."""

from __future__ import annotations

import re

import keras_rig  # noqa: F401 (which skips these tests where Keras is not there)
import pytest
from tutorial_modules import printed, tutorial_pages

PAGES = tutorial_pages()
NAMES = ("keras_digits",)
RUNS = [(name, number) for name in NAMES for number in range(len(PAGES.record(name).runs))]

pytestmark = pytest.mark.slow


def test_digits_are_learnt_on_the_ipu_as_on_the_host(capsys, monkeypatch):
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)
    lines = printed(capsys, monkeypatch, "keras_digits", 1, "--images", 160)
    epochs = [line for line in lines if line.startswith("  Epoch 1: ")]
    assert len(epochs) == 4
    assert epochs[0] == epochs[1] == epochs[2]
    cycles = [int(found[1].replace(",", "")) for line in lines if (found := re.match(r"  A step takes ([\d,]+) cycles", line))]
    assert len(cycles) == 3
    assert cycles[0] == cycles[1]


@pytest.mark.parametrize(("name", "number"), RUNS)
def test_a_command_prints_what_its_page_shows(name, number):
    record = PAGES.record(name)
    run = record.runs[number]
    shown = record.run(run)
    assert PAGES.agrees(run.printed, shown), f"run: python docs/tutorial_pages.py {name}\n{run.commands}printed:\n{shown}"
