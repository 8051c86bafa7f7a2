"""A plugin of pytest: notes which test runs which lines, and how long it takes; or runs the tests in a given order."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

SECONDS, ORDER = "MUTATION_SECONDS", "MUTATION_ORDER"  # variables of the environment: files to write, and to read
_seconds: dict[str, float] = {}


def pytest_configure(config: pytest.Config) -> None:
    """Know the mark of pytest-cov, which measures by its own contexts and is not loaded."""
    config.addinivalue_line("markers", "no_cover: not measured by pytest-cov")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """Let what is measured from here on be this test's."""
    if SECONDS not in os.environ:
        return (yield)
    import coverage

    measuring = coverage.Coverage.current()
    assert measuring is not None
    measuring.switch_context(item.nodeid)
    begin = time.perf_counter()
    result = yield
    _seconds[item.nodeid] = time.perf_counter() - begin
    measuring.switch_context("")
    return result


def pytest_sessionfinish() -> None:
    """Write how long the tests took."""
    if SECONDS in os.environ:
        Path(os.environ[SECONDS]).write_text(json.dumps(_seconds))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that are named first, in their order; then the others of their files."""
    if ORDER in os.environ:
        ranks = {test: rank for rank, test in enumerate(json.loads(Path(os.environ[ORDER]).read_text()))}
        items.sort(key=lambda item: ranks.get(item.nodeid, len(ranks)))


def named_files(tests: Iterator[str] | list[str]) -> list[str]:
    """The files of tests, each once."""
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))
