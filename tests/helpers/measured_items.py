"""Which items coverage is measured of: the first examples of laws, and of a test's sets of parameters those that reach more.

What is measured takes up to twice as long, and most sets go over lines that others have been to. So after one that reached nothing
new one passes by unmeasured, after each further one three; a set that reaches something new lets none pass.
A first set alone would not do: where it ends in an error at the door, its sisters are the ones that come into the house. The items
of a file of `TOGETHER` take turns together, as if they were sets of one test: most are a model that goes through all rooms.
Not measured are slow items, which do at length what quick ones do, items with `no_cover`, and processes that these or laws start.

So coverage is never above what is true, and a little below. Lines that modules run when they are imported are not lost where an
item that is not measured imports them first: `test_import` imports all of them in a process of its own, which is measured.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Any

import pytest

MOST_PASSING = 3
EXAMPLES = 5  # of a law
TOGETHER = ("tests/poptorch/", "tests/keras/")  # what lies there
PROCESSES = "COVERAGE_PROCESS_CONFIG"  # by which coverage measures the processes that tests start


class Turns:
    """Whose turn it is to be measured, among the sets of parameters of a test, or the slow items of a file."""

    def __init__(self) -> None:
        self._passing = self._left = 0

    def comes(self) -> bool:
        """Whether the next set is measured."""
        self._left -= 1
        return self._left < 0

    def reached(self, something_new: bool) -> None:
        """What the set that was measured has given."""
        self._passing = 0 if something_new else min(2 * self._passing + 1, MOST_PASSING)
        self._left = self._passing


class MeasuredItems:
    """Gives `no_cover`, which pytest-cov reads, to the items that are not measured, and pauses it in laws."""

    def __init__(self, controller: Any) -> None:
        self._controller = controller
        self._turns: defaultdict[str, Turns] = defaultdict(Turns)

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest-cov's own
    def pytest_runtest_call(self, item: pytest.Function) -> Generator[None, object, object]:
        """Decide before the item runs, and see what it has reached."""
        turns = self._turns[item.nodeid.partition("::" if item.nodeid.startswith(TOGETHER) else "[")[0]]
        law = item.get_closest_marker("hypothesis")
        if item.get_closest_marker("slow"):
            item.add_marker("no_cover")
        with pytest.MonkeyPatch.context() as environment:
            if law or item.get_closest_marker("no_cover"):
                environment.delenv(PROCESSES, raising=False)
            elif not turns.comes():
                item.add_marker("no_cover")  # but not to its processes: what these reach is not known here
            if item.get_closest_marker("no_cover"):
                return (yield)
            before = self._reached()
            with self._first_examples(item.obj) if law else nullcontext():
                try:
                    return (yield)
                finally:
                    turns.reached(self._reached() > before)

    def _reached(self) -> int:
        return sum(map(len, list(self._controller.cov._collector.data.values())))

    @contextmanager
    def _first_examples(self, law: Any) -> Iterator[None]:
        """Measure so many examples of a law."""
        inner, tried = law.hypothesis.inner_test, count(1)

        @functools.wraps(inner)
        def test(*given: Any, **drawn: Any) -> Any:
            if next(tried) == EXAMPLES + 1:
                self._controller.pause()
            return inner(*given, **drawn)

        law.hypothesis.inner_test = test
        try:
            yield
        finally:
            law.hypothesis.inner_test = inner
            if next(tried) > EXAMPLES + 1:
                self._controller.resume()


@pytest.hookimpl(trylast=True)  # pytest-cov begins to measure here
def pytest_sessionstart(session: pytest.Session) -> None:
    """Choose, where pytest-cov measures."""
    controller = getattr(session.config.pluginmanager.getplugin("_cov"), "cov_controller", None)
    if controller is not None:
        session.config.pluginmanager.register(MeasuredItems(controller))
