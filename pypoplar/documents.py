"""The site of the documents, made for the version that is installed and kept beside the cache of codelets."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from pypoplar import resources
from pypoplar.codelet.backend import cache
from pypoplar.errors import MissingFeature, PoplarRuntimeError

NEEDED = ("sphinx", "myst-parser", "furo", "sphinx-copybutton")
"""The packages that make the site: those of the extra `docs`. Their modules are called like them."""


def place() -> Path:
    """The directory of the site of this version, whether or not it is made."""
    installed = f"{version('pypoplar')} {resources.directory('docs').resolve()}"
    return cache.location() / "documents" / hashlib.sha256(installed.encode()).hexdigest()[:16]


def start_page() -> Path:
    """The first page of the site, which is made, or made anew where a page or a docstring has changed.

    Raises
    ------
    MissingFeature
        Without the packages of the extra `docs`.
    PoplarRuntimeError
        If the pages cannot be made; with what Sphinx says.
    """
    missing = [package for package in NEEDED if importlib.util.find_spec(package.replace("-", "_")) is None]
    if missing:
        raise MissingFeature(f"the pages are made with {', '.join(missing)}, not installed here: pip install 'pypoplar[docs]'")
    site = place()
    options = ["-q", "-j", "auto", "-d", str(site / "trees")]
    command = [sys.executable, "-m", "sphinx", *options, str(resources.directory("docs")), str(site / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PoplarRuntimeError(f"the pages could not be made:\n{done.stderr.strip() or done.stdout.strip()}")
    return site / "html" / "index.html"
