"""Git in folders of a test's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


def need_git() -> None:
    """Skip the test where git is missing."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")


def own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's settings, or of a hook that runs the tests."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *words: str) -> str:
    """What a command of git prints in a folder."""
    done = subprocess.run(["git", *IDENTITY, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()
