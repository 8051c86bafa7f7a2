"""Bars for what takes long, on terminals only; and the progress callback."""

import io
import time
from types import SimpleNamespace

import numpy as np
import pytest
from engine_builder import Add, Bench

from pypoplar import FLOAT, Engine, compileGraph, host_memory, progress
from pypoplar.engine.native import driver_code
from pypoplar.host_code import cache
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


def test_a_bar_of_work_that_calls_nobody_shows_what_it_is_and_later_how_far(impatient):
    with progress.StageBar("lowering", unit="operations") as bar:
        assert "lowering, 00:00" in impatient.getvalue()
        bar(3, 10, "outer")
    assert "3/10 operations, 00:00, outer" in impatient.getvalue()


def test_a_bar_asks_what_stands_beside_it_whenever_it_is_drawn(impatient):
    taken = ["1.9 GB", "2.1 GB", ""]
    with progress.StageBar("lowering", unit="operations", beside=lambda: taken[0]) as bar:
        assert "lowering, 00:00, 1.9 GB" in impatient.getvalue()
        del taken[0]
        bar(3, 10, "outer")
    assert "3/10 operations, 00:00, outer, 2.1 GB" in impatient.getvalue()


def test_a_bar_of_a_compilation_shows_the_memory_of_the_process(impatient, monkeypatch):
    for own, shown in ((lambda: 1_940_000_000, ", 1.9 GB"), (lambda: 87_600_000, ", 88 MB"), (lambda: None, "passes, 00:00")):
        monkeypatch.setattr(host_memory, "resident", own)
        impatient.truncate(0)
        compileGraph(Bench().graph, Sequence(), {SHOW: "on"})
        assert f"5/5 passes, 00:00{shown.removeprefix('passes, 00:00')}" in impatient.getvalue()
        assert (" GB" in impatient.getvalue() or " MB" in impatient.getvalue()) is (own() is not None)


def test_a_bar_appears_while_work_goes_on_without_a_word(impatient, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with progress.StageBar("capturing"):
        end = time.monotonic() + 60
        while not impatient.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        assert "capturing, 00:00" in impatient.getvalue()


def test_what_a_bar_counts_does_not_change_the_report(impatient, mode):
    def report(option):
        bench = Bench()
        engine = bench.engine(looping(bench), mode, {SHOW: option})
        for _ in range(3):
            engine.run()
        return [(one.name, one.executions, one.cycles) for one in engine.getReport().execution.steps]

    assert report("on") == report("off")


@pytest.fixture
def slow_driver(monkeypatch, impatient):
    """The driver's units are made anew, each as soon as something is said of it, or nothing for some `seconds`."""
    object_code = {unit: driver_code._object_code(driver_code._identity(), *unit, "off") for unit in UNITS}
    driver = SimpleNamespace(compiled=[], seconds=0.3)

    def compile_unit(*unit):
        driver.compiled.append(unit)
        end = time.monotonic() + driver.seconds
        while not impatient.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        return object_code[unit]

    monkeypatch.setattr(driver_code, "_units", {})
    monkeypatch.setattr(driver_code, "cache", SimpleNamespace(load=lambda key: None, store=lambda key, code: True, **FINGERPRINT))
    monkeypatch.setattr(driver_code, "_compile", compile_unit)
    monkeypatch.setattr(driver_code, "COMPILING", progress.Announcement(driver_code.COMPILING._text))
    return driver


UNITS = (driver_code.MOVING, driver_code.SUPERSTEP, driver_code.DRIVER)
FINGERPRINT = {"fingerprint": cache.fingerprint}


@pytest.mark.parametrize("option", ["auto", "on"])
def test_a_driver_that_has_to_be_compiled_is_announced_once(slow_driver, impatient, option):
    slow_driver.seconds = 60
    for unit in UNITS:
        driver_code.load_unit(unit, option)
    driver_code.driver_function(option)
    assert slow_driver.compiled == [*UNITS]
    assert impatient.getvalue() == "compiling the driver, once\n"


def test_an_engine_announces_the_driver_as_its_option_says(slow_driver, impatient):
    bench = Bench()
    bench.engine(looping(bench), "native", {SHOW: "off"})
    assert len(slow_driver.compiled) == 3
    assert impatient.getvalue() == ""
    slow_driver.seconds = 60
    driver_code._units.clear()
    bench = Bench()
    bench.engine(looping(bench), "native", {SHOW: "on"})
    assert impatient.getvalue().count("compiling the driver, once\n") == 1


def test_a_driver_that_is_compiled_soon_or_where_no_terminal_is_is_not_announced(slow_driver, impatient, monkeypatch):
    monkeypatch.setattr(Terminal, "isatty", lambda self: False)
    driver_code.load_unit(UNITS[0])
    monkeypatch.setattr(progress, "PATIENCE", 1000.0)
    driver_code.load_unit(UNITS[1], "on")
    assert impatient.getvalue() == ""


def test_parts_of_one_work_are_announced_when_all_together_take_long(impatient, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    announcement = progress.Announcement("working")
    for _ in range(1000):
        with announcement.during("on"):
            time.sleep(0.001)
    assert impatient.getvalue() == "working\n"
