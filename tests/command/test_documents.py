"""`pypoplar docs` makes the pages of the installed version, or says what it lacks."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from pypoplar import documents, resources
from pypoplar.cli import main


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path))
    return lambda *arguments: CliRunner().invoke(main, ["docs", *arguments])


def test_what_is_missing_is_named(run, monkeypatch):
    monkeypatch.setattr(documents, "NEEDED", ("no-such-package", "click"))
    result = run()
    assert result.exit_code == 1
    assert "made with no-such-package, not installed here: pip install 'pypoplar[docs]'" in result.stderr


def test_the_pages_are_made_from_the_documents_and_opened(run, monkeypatch, tmp_path):
    """Sphinx itself is tried where the site is checked."""
    calls, opened = [], []

    def make(command, **how):
        calls.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(documents, "NEEDED", ())
    monkeypatch.setattr(documents.subprocess, "run", make)
    monkeypatch.setattr("click.launch", opened.append)
    page = Path(run("--no-open").stdout.strip())
    assert page.name == "index.html"
    assert page.is_relative_to(tmp_path)
    assert not opened
    run()
    assert opened == [page.as_uri()]
    source, target = calls[0][-2:]
    assert Path(source) == resources.directory("docs")
    assert (Path(source) / "conf.py").is_file()
    assert Path(target) == page.parent


def test_what_sphinx_says_is_told(run, monkeypatch):
    monkeypatch.setattr(documents, "NEEDED", ())
    monkeypatch.setattr(
        documents.subprocess, "run", lambda command, **how: subprocess.CompletedProcess(command, 2, "", "no theme\n")
    )
    result = run()
    assert result.exit_code == 1
    assert "the pages could not be made:\nno theme" in result.stderr
