"""The site of the documents, made for the version that is installed and kept beside the cache of codelets."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile

from pypoplar import resources
from pypoplar.errors import MissingFeature, PoplarRuntimeError
from pypoplar.extras import install_command
from pypoplar.host_code import cache

NEEDED = ("sphinx", "myst-parser", "furo", "sphinx-copybutton")
"""The packages that make the site: those of the extra `docs`. Their modules are called like them."""


def place() -> Path:
    """The directory of the site of this version, whether or not it is made."""
    installed = f"{version('pypoplar')} {resources.directory('docs').resolve()}"
    return cache.location() / "documents" / hashlib.sha256(installed.encode()).hexdigest()[:16]


STEPS = {"reading sources": (0, 25), "writing output": (30, 85)}
"""What takes Sphinx its time, with the percents of the whole that it goes through meanwhile, as was measured: the rest goes to
the references between pages, and to the search's index, which comes last.
"""
SAID = re.compile(r"(reading sources|writing output)\.\.\. +\[ *([0-9]+)%\] *(.*)")


def _ignore(percent: int, page: str) -> None:
    pass


def start_page(tell: Callable[[int, str], None] = _ignore) -> Path:
    """The first page of the site, which is made, or made anew where a page or a docstring has changed.

    Parameters
    ----------
    tell:
        Called as ``tell(percent, page)`` while pages are made.

    Raises
    ------
    MissingFeature
        Without the packages of the extra `docs`.
    PoplarRuntimeError
        If the pages cannot be made; with what Sphinx says.
    """
    missing = [package for package in NEEDED if importlib.util.find_spec(package.replace("-", "_")) is None]
    if missing:
        raise MissingFeature(f"the pages are made with {', '.join(missing)}, not installed here: {install_command('docs')}")
    site = place()
    options = ["--no-color", "-j", "auto", "-d", str(site / "trees")]
    command = [sys.executable, "-u", "-m", "sphinx", *options, str(resources.directory("docs")), str(site / "html")]
    with TemporaryFile("w+", encoding="utf-8") as wrong:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=wrong, text=True, encoding="utf-8")
        said = list(_followed(process, tell))
        wrong.seek(0)
        problems = wrong.read().strip()
    if process.returncode:
        raise PoplarRuntimeError(f"the pages could not be made:\n{problems or ''.join(said).strip()}")
    return site / "html" / "index.html"


def _followed(process: subprocess.Popen[str], tell: Callable[[int, str], None]) -> Iterator[str]:
    """The lines that Sphinx prints until it ends, each told of."""
    with process:
        for line in process.stdout or ():
            step = SAID.search(line)
            if step is not None:
                begin, end = STEPS[step[1]]
                tell(begin + (end - begin) * int(step[2]) // 100, step[3].strip())
            yield line
