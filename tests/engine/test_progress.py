"""Bars for what takes long, on terminals only; and the progress callback."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from engine_builder import Add, Bench

from pypoplar import FLOAT, Engine, compileGraph
from pypoplar.engine import progress
from pypoplar.program import Copy, Repeat, Sequence

SHOW = "pypoplar.progress"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def impatient(monkeypatch):
    """Bars appear at once, on what seems to be a terminal; returns its text."""
    terminal = Terminal()
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))  # pytest exchanges that of the whole process
    return terminal


def looping(bench, rounds=200):
    return Repeat(rounds, bench.execute(Add, 3, value=bench.variable("value", 0, 3), amount=1))


def test_a_run_shows_its_name_its_steps_and_the_cycles(impatient):
    bench = Bench()
    engine = bench.engine(looping(bench), "interpret")
    engine.run(0, "train")
    text = impatient.getvalue()
    assert "train" in text
    assert " steps" in text
    assert " cycles" in text


def test_both_engines_show_runs_that_wait_for_the_host(impatient, mode):
    bench = Bench()
    x = bench.variable("x", np.zeros(4), 2)
    stream = bench.graph.addDeviceToHostFIFO("out", FLOAT, 4)
    engine = bench.engine(Repeat(5, Copy(x, stream)), mode)
    engine.connectStreamToCallback("out", lambda values: None)
    engine.run(0, "give")
    assert "give" in impatient.getvalue()


@pytest.mark.parametrize(
    ("option", "terminal", "shown"),
    [(one, terminal, one == "on" or (one == "auto" and terminal)) for one in ("auto", "on", "off") for terminal in (True, False)],
)
def test_the_option_decides_and_auto_asks_for_a_terminal(impatient, monkeypatch, option, terminal, shown):
    monkeypatch.setattr(Terminal, "isatty", lambda self: terminal)
    bench = Bench()
    engine = bench.engine(looping(bench), "interpret", {SHOW: option})
    engine.run()
    assert ("compiling" in impatient.getvalue()) is shown
    assert ("program 0" in impatient.getvalue()) is shown


def test_short_work_shows_nothing(impatient, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 1000.0)
    bench = Bench()
    bench.engine(looping(bench), "interpret", {SHOW: "on"}).run()
    assert impatient.getvalue() == ""


def test_no_standard_error_is_no_terminal(monkeypatch):
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=None))
    assert not progress.wanted("auto")


@pytest.mark.parametrize("option", ["on", "off"])
def test_the_callback_is_called_with_and_without_a_bar(impatient, option):
    bench = Bench()
    calls = []
    compileGraph(bench.graph, Sequence(), {SHOW: option}, lambda done, total: calls.append((done, total)))
    Engine(bench.graph, Sequence(), {SHOW: option}, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(done, 5) for done in range(6)] * 2


def test_what_a_bar_counts_does_not_change_the_report(impatient, mode):
    def report(option):
        bench = Bench()
        engine = bench.engine(looping(bench), mode, {SHOW: option})
        for _ in range(3):
            engine.run()
        return [(one.name, one.executions, one.cycles) for one in engine.getReport().execution.steps]

    assert report("on") == report("off")
