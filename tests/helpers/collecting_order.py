"""Every second worker of xdist collects from the end, so that what one has read and rewritten, the other finds in the cache.

Each worker imports all test modules. Where none is compiled yet, most of that is rewriting their assertions, and workers that go
the same way at the same pace do it once each.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


def from_the_end(config: pytest.Config) -> bool:
    """Whether this is a worker of an odd number."""
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return int(worker.removeprefix("gw")) % 2 == 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn round what a folder has."""
    report = yield
    if isinstance(collector, pytest.Dir) and report.passed and from_the_end(collector.config):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)  # before fixtures decide about the order
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All workers name their tests in the same order, that of the files."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path.parts)
