"""The tutorials for PopTorch learn, on few tiles."""

import re

import pytest
from tutorial_modules import printed


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)
    return lambda name, *arguments: printed(capsys, monkeypatch, name, *arguments)


def losses(lines):
    return [float(found[1]) for line in lines if (found := re.search(r"loss ([\d.]+)", line))]


def test_an_lstm_learns_digits(run):
    lines = run("poptorch_lstm", 1)
    assert lines[0] == "Training on 1,498 images"
    assert losses(lines)[-1] < 2.3
    assert lines[-1].startswith("Test accuracy: ")


def test_bert_learns_to_fill_in(run):
    lines = run("poptorch_bert", 20, "--width", 16)
    first, last = losses(lines)
    assert last < first
    assert lines[-1].startswith("Words told right: ")
