"""`import pypoplar.poptorch` takes seconds, and says so: on a terminal by a bar, and in the log."""

import io
import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from pypoplar import progress
from pypoplar.poptorch.importing import importing

OPTIONS = "POPLAR_ENGINE_OPTIONS"


@pytest.fixture
def shown(monkeypatch):
    """Bars appear at once; what is on the terminal."""
    text = io.StringIO()
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=text))  # pytest exchanges that of the whole process
    return text


def test_the_first_import_tells_pytorch_and_what_is_needed_of_it_in_the_log():
    environment = {**os.environ, "POPTORCH_LOG_LEVEL": "INFO"}
    environment.pop(OPTIONS, None)
    command = [sys.executable, "-c", "import pypoplar.poptorch"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    told = [line.split("[INFO] ")[1].split(" took ")[0] for line in ran.stderr.splitlines() if "[INFO]" in line]
    capture = "importing PyTorch's capture and the libraries"
    assert told == ["importing PyTorch", "importing PyTorch", capture, capture]


@pytest.mark.parametrize(("option", "bar"), [("on", True), ("auto", False), ("off", False)])
def test_an_import_has_a_bar_where_the_environment_or_a_terminal_asks_for_one(monkeypatch, shown, option, bar):
    monkeypatch.setenv(OPTIONS, f'{{"pypoplar.progress": "{option}"}}')
    with importing("no_module_of_this_name", "a large thing"):
        pass
    assert ("importing a large thing, 00:0" in shown.getvalue()) is bar


def test_what_is_imported_already_is_not_told(monkeypatch, shown, caplog):
    monkeypatch.setenv(OPTIONS, '{"pypoplar.progress": "on"}')
    with caplog.at_level(logging.INFO, logger="poptorch"), importing("torch", "PyTorch"):
        pass
    assert (shown.getvalue(), caplog.records) == ("", [])


def test_options_that_are_wrong_are_no_matter_of_an_import(monkeypatch, shown):
    monkeypatch.setenv(OPTIONS, '{"no.such": "option"}')
    with importing("no_module_of_this_name", "a large thing"):
        pass
    assert shown.getvalue() == ""
