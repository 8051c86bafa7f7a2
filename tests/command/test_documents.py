"""`pypoplar docs` makes the pages of the installed version, or says what it lacks."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from pypoplar import documents, progress, resources
from pypoplar.cli import main


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path))
    return lambda *arguments: CliRunner().invoke(main, ["docs", *arguments])


class Sphinx:
    """What stands for the process: prints lines and ends with a code."""

    def __init__(self, lines, code=0, problems=""):
        self.lines, self.code, self.problems = lines, code, problems
        self.commands = []

    def __call__(self, command, *, stderr, **how):
        self.commands.append(command)
        stderr.write(self.problems)
        self.stdout, self.returncode = iter(self.lines), self.code
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def sphinx(monkeypatch):
    def stand_in(*arguments):
        process = Sphinx(*arguments)
        monkeypatch.setattr(documents, "NEEDED", ())
        monkeypatch.setattr(documents.subprocess, "Popen", process)
        return process

    return stand_in


def test_what_is_missing_is_named(run, monkeypatch):
    monkeypatch.setattr(documents, "NEEDED", ("no-such-package", "click"))
    result = run()
    assert result.exit_code == 1
    assert "made with no-such-package, not installed here: pip install -e '.[docs]' in a checkout of pypoplar" in result.stderr


def test_the_pages_are_made_from_the_documents_and_opened(run, sphinx, monkeypatch, tmp_path):
    """Sphinx itself is tried where the site is checked."""
    opened = []
    process = sphinx([])
    monkeypatch.setattr("click.launch", opened.append)
    page = Path(run("--no-open").stdout.strip())
    assert page.name == "index.html"
    assert page.is_relative_to(tmp_path)
    assert not opened
    run()
    assert opened == [page.as_uri()]
    source, target = process.commands[0][-2:]
    assert Path(source) == resources.directory("docs")
    assert (Path(source) / "conf.py").is_file()
    assert Path(target) == page.parent


def test_what_sphinx_says_is_told(run, sphinx):
    sphinx(["Running Sphinx\n"], 2, "no theme\n")
    result = run()
    assert result.exit_code == 1
    assert "the pages could not be made:\nno theme" in result.stderr


LINES = [
    "Running Sphinx v9\n",
    "reading sources... [  1%] api/codelets\n",
    "reading sources... [100%] tutorials\n",
    "writing output... \n",
    "writing output... [ 50%] model\n",
    "copying images... [ 10%] a.png\n",
]


def test_how_far_the_pages_are_is_told_in_order(sphinx, monkeypatch, tmp_path):
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path))
    sphinx(LINES)
    told = []
    documents.start_page(lambda *so_far: told.append(so_far))
    assert told == [(0, "api/codelets"), (25, "tutorials"), (57, "model")]


def test_pages_that_are_written_are_not_all_as_the_index_comes_last(sphinx, monkeypatch, tmp_path):
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path))
    sphinx(["writing output... [100%] tutorials\n"])
    told = []
    documents.start_page(lambda *so_far: told.append(so_far))
    assert told == [(85, "tutorials")]


def test_a_terminal_shows_a_bar_while_pages_are_made(run, sphinx, monkeypatch):
    sphinx(LINES)
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    run("--no-open")
    assert "making the pages:  57%" in terminal.getvalue()
    assert ", model" in terminal.getvalue()
