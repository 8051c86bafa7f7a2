"""A model's first call says what it waits for: on a terminal by bars, and in the log."""

import io
import itertools
import logging
import re
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from pypoplar import poptorch, progress


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)


@pytest.fixture
def terminal(monkeypatch):
    """Bars appear at once; what is on the terminal."""
    text = io.StringIO()
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=text))  # pytest exchanges that of the whole process
    return text


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 4)
        self.outer = nn.Linear(4, 3)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


def call(monkeypatch, option, model=None):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", f'{{"pypoplar.progress": "{option}"}}')
    return poptorch.inferenceModel(model or Small())(torch.zeros(2, 6))


def test_every_stage_of_a_first_call_is_on_the_terminal_lowering_by_module(monkeypatch, terminal):
    call(monkeypatch, "on")
    shown = terminal.getvalue()
    stages = ["capturing Small", "lowering Small", "building the program of Small", "compiling", "making an engine for Small"]
    assert [stage for stage in stages if stage not in shown] == []
    assert sorted(stages, key=shown.index) == stages
    assert "operations" in shown
    assert re.search(r"\d [GM]B", shown)


def test_bars_are_not_there_without_a_terminal_and_where_the_option_is_off(monkeypatch, terminal):
    for option in ("auto", "off"):
        call(monkeypatch, option)
        assert terminal.getvalue() == ""


def test_the_log_has_each_stage_with_its_time_and_what_came_of_it(monkeypatch, caplog):
    with caplog.at_level(logging.INFO, logger="poptorch"):
        call(monkeypatch, "off")
    told = [record.getMessage() for record in caplog.records]
    assert told[0] == "capturing Small"
    assert any(text.startswith("capturing Small took ") and text.endswith(" nodes") for text in told)
    (lowered,) = [text for text in told if text.startswith("lowering Small took ")]
    assert "vertices; longest: " in lowered
    assert "inner " in lowered
    assert any(text.startswith("compiling Small took ") and text.endswith(" vertices") for text in told)


def test_the_log_has_the_memory_in_use_and_the_modules_with_which_it_grew_most(monkeypatch, caplog):
    taken = itertools.count(1_000_000_000, 2_000_000)
    monkeypatch.setattr("pypoplar.host_memory.resident", lambda: 3_200_000_000)
    monkeypatch.setattr("pypoplar.poptorch.executor.stages.resident", lambda: next(taken))
    with caplog.at_level(logging.INFO, logger="poptorch"):
        call(monkeypatch, "off")
    told = [record.getMessage() for record in caplog.records if " took " in record.getMessage()]
    assert all(" s, 3.2 GB" in text for text in told)
    (lowered,) = [text for text in told if text.startswith("lowering")]
    assert re.search(r"; longest: .*; most memory: (inner|outer) \d+ MB, (inner|outer) \d+ MB", lowered)
    assert not any("most memory" in text for text in told if text is not lowered)


def test_where_the_system_does_not_say_what_a_process_takes_the_log_is_silent_about_it(monkeypatch, caplog):
    for name in ("pypoplar.host_memory.resident", "pypoplar.poptorch.executor.stages.resident"):
        monkeypatch.setattr(name, lambda: None)
    with caplog.at_level(logging.INFO, logger="poptorch"):
        call(monkeypatch, "off")
    told = " ".join(record.getMessage() for record in caplog.records)
    assert "GB" not in told
    assert "MB" not in told
    assert "memory" not in told


def test_the_log_tells_modules_at_level_debug(monkeypatch, caplog):
    with caplog.at_level(logging.DEBUG, logger="poptorch"):
        call(monkeypatch, "off")
    assert any(record.getMessage().endswith("next is outer") for record in caplog.records)


def test_a_log_of_warnings_says_nothing_of_stages(monkeypatch, caplog):
    with caplog.at_level(logging.WARNING, logger="poptorch"):
        call(monkeypatch, "off")
    assert caplog.records == []


def test_a_model_of_the_cache_says_where_it_is_from(monkeypatch, caplog, tmp_path):
    options = poptorch.Options().enableExecutableCaching(str(tmp_path))
    model = Small()
    poptorch.inferenceModel(model, options)(torch.zeros(2, 6))
    with caplog.at_level(logging.INFO, logger="poptorch"):
        poptorch.inferenceModel(model, options)(torch.zeros(2, 6))
    told = [record.getMessage() for record in caplog.records]
    assert any(text.startswith(f"Small is neither lowered nor compiled: {tmp_path}") for text in told)
    assert not any(text.startswith("lowering") for text in told)


def test_a_stage_that_fails_takes_its_bar_away(monkeypatch, terminal):
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        call(monkeypatch, "on", Broken())
    import threading

    assert not [thread for thread in threading.enumerate() if thread.name == "pypoplar progress"]
