"""The log of executed steps that the driver writes while a run is kept for the report."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from pypoplar.executable.executable import Array
from pypoplar.interface import header_slots as at
from pypoplar.report.execution import Trace

LIMIT = 65_536  # events of all kept runs together; further ones are counted only


@define(eq=False)
class EventLog:
    """Executions of steps in the order in which they happened, in runs that were kept."""

    limit: int = LIMIT
    words: Array = field(init=False)  # int64; see layout.EVENTS
    _first: list[int] = field(factory=list)  # the kept runs' first events

    def __attrs_post_init__(self) -> None:
        self.words = np.empty(at.EVENT_HEAD + at.EVENT_WORDS * self.limit, np.int64)
        self.clear()

    @property
    def count(self) -> int:
        """Executions so far, logged or not."""
        return int(self.words[at.EVENT_COUNT])

    def begin_run(self) -> None:
        """The events that follow are those of another run."""
        self._first.append(self.count)

    def drop_run(self) -> None:
        """Forget the run that began last."""
        self.words[at.EVENT_COUNT] = self._first.pop()

    def clear(self) -> None:
        """Forget everything."""
        self.words[at.EVENT_COUNT], self.words[at.EVENT_LIMIT] = 0, self.limit
        self._first.clear()

    def trace(self, runs: int, executions: int, handles: Array) -> Trace:
        """The events of the first `runs` runs, those of the steps `handles` left out.

        `executions` is how many there were in all runs, logged or not.
        """
        end = self._first[runs] if runs < len(self._first) else self.count
        kept = min(end, self.limit)
        rows = self.words[at.EVENT_HEAD : at.EVENT_HEAD + at.EVENT_WORDS * kept].reshape(kept, at.EVENT_WORDS)
        run = np.searchsorted(np.array(self._first[:runs], np.int64), np.arange(kept), side="right") - 1
        shown = ~np.isin(rows[:, at.EVENT_STEP], handles)
        step, begin, cycles = rows[shown].T
        return Trace(step.astype(np.int32), run[shown].astype(np.int32), begin, cycles, executions - int(shown.sum()))


def log_event(words: Array, step: int, begin: int, cycles: int) -> None:
    """Note the execution of a step, as the driver does."""
    number = int(words[at.EVENT_COUNT])
    words[at.EVENT_COUNT] = number + 1
    if number < words[at.EVENT_LIMIT]:
        place = at.EVENT_HEAD + at.EVENT_WORDS * number
        words[place : place + at.EVENT_WORDS] = step, begin, cycles
