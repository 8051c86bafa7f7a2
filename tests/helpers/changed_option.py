"""``pytest --changed`` runs the tests that a change needs: of the rooms that it touches, and of those that import them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from changed_files import NothingToCompare, changed_files
from changed_tests import ChangedTests, Selection

CHOSEN = pytest.StashKey[frozenset[str]]()
NAMED = 6  # of things in a line
WORKERS_INPUT = "changed_tests"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("pypoplar").addoption(
        "--changed",
        nargs="?",
        const="HEAD",
        metavar="REVISION",
        help="the tests that need to run after what was changed since REVISION (default: HEAD), what is not committed included",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Choose once, for the workers of xdist too, and say what and why; a run of no tests is a success."""
    revision = config.option.changed
    if revision is None or hasattr(config, "workerinput"):
        return None
    try:
        changed = changed_files(config.rootpath, revision)
    except NothingToCompare as problem:
        raise pytest.UsageError(f"--changed: {problem}") from None
    if not changed:
        print(f"nothing has changed since {revision}: no test needs to run")
        return 0
    selection = ChangedTests(config.rootpath).selection(changed)
    print(*told(revision, changed, selection), sep="\n")
    if not selection.files:
        return 0
    config.stash[CHOSEN] = selection.files
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """What the first process has chosen holds for its workers, whatever changes meanwhile."""
    if CHOSEN in node.config.stash:
        node.workerinput[WORKERS_INPUT] = sorted(node.config.stash[CHOSEN])


def pytest_configure(config: pytest.Config) -> None:
    chosen = getattr(config, "workerinput", {}).get(WORKERS_INPUT)
    if chosen is not None:
        config.stash[CHOSEN] = frozenset(chosen)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what was not chosen, before it is imported."""
    chosen = config.stash.get(CHOSEN, None)
    if chosen is None or not collection_path.is_relative_to(config.rootpath):
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    if collection_path.is_dir():
        return None if path == "." or any(one.startswith(f"{path}/") for one in chosen) else True
    return None if path in chosen else True


def told(revision: str, changed: Collection[str], selection: Selection) -> list[str]:
    """What was changed, and what is run therefore: a line each."""
    many = f"{len(changed)} file{'s' if len(changed) > 1 else ''} changed since {revision}"
    if selection.all_because:
        return [f"{many}: all tests run, since {selection.all_because}"]
    touched = [name or "pypoplar itself" for name in selection.rooms]
    parts = [f"room{'s' if len(touched) > 1 else ''} {named(touched)}"] if touched else []
    if selection.importing:
        parts.append(f"imported by {named(sorted(selection.importing))}")
    if selection.others:
        parts.append(f"files outside of rooms: {named(selection.others)}" if touched else named(selection.others))
    if not selection.files:
        return [f"{many}: {'; '.join(parts)}; no test looks at that"]
    folders = Counter(PurePosixPath(path).parent.as_posix() for path in selection.files)
    counts = [f"{folder} ({count})" for folder, count in sorted(folders.items())]
    return [f"{many}: {'; '.join(parts)}", f"test files that need to run: {len(selection.files)}, in {named(counts, most=20)}"]


def named(names: Collection[str], most: int = NAMED) -> str:
    """Names in a row; of many the first, and how many there are besides."""
    first = list(names)[:most]
    return ", ".join(first) + (f" and {len(names) - most} more" if len(names) > most else "")
