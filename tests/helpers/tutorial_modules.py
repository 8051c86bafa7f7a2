"""The scripts of the tutorials: what they print, and their modules."""

import importlib
import importlib.util
import runpy
import sys
from types import ModuleType

import pytest

from pypoplar import resources


def tutorial_module(name: str) -> ModuleType:
    """A new module of a tutorial's script; those beside it that it imports, such as ``_digits``, are its own."""
    directory = str(resources.directory("tutorials"))
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(directory)
        module = importlib.import_module(name)
    for added in set(sys.modules) - before:
        if str(getattr(sys.modules[added], "__file__", "")).startswith(directory):
            del sys.modules[added]
    return module


def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, *arguments: object) -> list[str]:
    """What a tutorial prints on stdout, as lines without trailing blanks."""
    path = resources.tutorial(name).path
    monkeypatch.setattr(sys, "argv", [str(path), *map(str, arguments)])
    monkeypatch.syspath_prepend(str(path.parent))
    code: object = None
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        code = end.code
    if code:
        pytest.fail(f"exit code {code}: {capsys.readouterr().err}")
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def tutorial_pages() -> ModuleType:
    """The module that makes the tutorials' pages, and runs what they show."""
    return _of_the_documents("tutorial_pages")


def gallery_pages() -> ModuleType:
    """The module that makes the gallery's pages."""
    return _of_the_documents("gallery_pages")


def _of_the_documents(name: str) -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(resources.directory("docs")))
        return importlib.import_module(name)
