"""The tutorials for PopTorch train, on few tiles."""

import re

import pytest
import torch
from tutorial_modules import printed, tutorial_module, tutorial_pages

PAGES = tutorial_pages()
NAMES = ("poptorch_lstm", "poptorch_bert", "poptorch_replicas", "poptorch_instances", "poptorch_pipeline", "poptorch_predict")
RUNS = [(name, number) for name in NAMES for number in range(len(PAGES.record(name).runs))]


pytestmark = pytest.mark.slow


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


def test_bert_trains_as_in_pytorch(run):
    lines = run("poptorch_bert", 3, "--width", 16, "--rate", 0.01)
    bert = tutorial_module("poptorch_bert")
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = bert.TinyBert(width=16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(3):
        _, loss = model(*bert.texts(8, 64, 16, generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses(lines) == [pytest.approx(float(loss.detach()), rel=1e-3)]
    assert lines[-1].startswith("Words told right: ")


@pytest.mark.parametrize(("name", "number"), RUNS)
def test_a_command_prints_what_its_page_shows(name, number):
    record = PAGES.record(name)
    run = record.runs[number]
    printed = record.run(run)
    assert PAGES.agrees(run.printed, printed), f"run: python docs/tutorial_pages.py {name}\n{run.commands}printed:\n{printed}"
