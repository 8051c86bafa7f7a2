"""The files of the project that were changed since a revision, as git knows them."""

from __future__ import annotations

import subprocess
from pathlib import Path


class NothingToCompare(Exception):
    """Git cannot say what was changed; the text says why."""


def changed_files(root: Path, revision: str) -> list[str]:
    """What differs from a revision, with what is not committed and what is new: paths from the root, removed files too."""
    _git(root, "rev-parse", "--show-toplevel", otherwise=f"{root} is not in a repository of git")
    _git(
        root,
        *("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"),
        otherwise=f"git knows no revision {revision!r}; write --changed=REVISION, and a path before --changed",
    )
    # A file that was renamed is one that is gone, and one that is new.
    differing = _git(root, "diff", "--name-only", "--no-renames", "--relative", "-z", revision, "--")
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({path for path in (differing + new).split("\0") if path})


def _git(root: Path, *words: str, otherwise: str = "") -> str:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise NothingToCompare("git is not installed, which knows what was changed") from None
    except subprocess.CalledProcessError as failure:
        told = " ".join(failure.stderr.split())
        raise NothingToCompare("; git says: ".join(part for part in (otherwise, told) if part)) from None
    return done.stdout
