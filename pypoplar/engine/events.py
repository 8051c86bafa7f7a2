"""The log of executed steps that the driver writes while a run is kept for the report."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import Int64s
from pypoplar.interface.driver_records import EVENT_HEAD_WORDS, EVENT_WORDS, Event, EventLogHead
from pypoplar.report.trace import Trace

LIMIT = 65_536  # events of all kept runs together; further ones are counted only


@define(eq=False)
class EventLog:
    """Executions of steps in the order in which they happened, in runs that were kept."""

    limit: int = LIMIT
    words: Int64s = field(init=False)  # see `Slot.EVENTS`
    _first: list[int] = field(factory=list)  # the kept runs' first events

    def __attrs_post_init__(self) -> None:
        self.words = np.empty(EVENT_HEAD_WORDS + EVENT_WORDS * self.limit, np.int64)
        self.clear()

    @property
    def count(self) -> int:
        """Executions so far, logged or not."""
        return int(self.words[EventLogHead.COUNT])

    def begin_run(self) -> None:
        """The events that follow are those of another run."""
        self._first.append(self.count)

    @property
    def runs(self) -> int:
        """How many runs have begun."""
        return len(self._first)

    def drop_runs(self, kept: int) -> None:
        """Forget the runs that have begun after so many; an interrupt may have come before one was noted."""
        if self.runs > kept:
            self.words[EventLogHead.COUNT] = self._first[kept]
            del self._first[kept:]

    def clear(self) -> None:
        """Forget everything."""
        self.words[EventLogHead.COUNT], self.words[EventLogHead.LIMIT] = 0, self.limit
        self._first.clear()

    def trace(self, runs: int, executions: int, handles: Int64s) -> Trace:
        """The events of the first `runs` runs, those of the steps `handles` left out.

        `executions` is how many there were in all runs, logged or not.
        """
        end = self._first[runs] if runs < len(self._first) else self.count
        kept = min(end, self.limit)
        rows = self.words[EVENT_HEAD_WORDS : EVENT_HEAD_WORDS + EVENT_WORDS * kept].reshape(kept, EVENT_WORDS)
        run = np.searchsorted(np.array(self._first[:runs], np.int64), np.arange(kept), side="right") - 1
        shown = ~np.isin(rows[:, Event.STEP], handles)
        step, begin, cycles, ipu = (rows[shown, column] for column in (Event.STEP, Event.BEGIN, Event.CYCLES, Event.IPU))
        missed = executions - int(shown.sum())
        return Trace(step.astype(np.int32), run[shown].astype(np.int32), begin, cycles, missed, ipu=ipu.astype(np.int32))


def log_event(words: Int64s, step: int, begin: int, cycles: int, ipu: int = 0) -> None:
    """Note the execution of a step, as the driver does."""
    number = int(words[EventLogHead.COUNT])
    words[EventLogHead.COUNT] = number + 1
    if number < words[EventLogHead.LIMIT]:
        place = EVENT_HEAD_WORDS + EVENT_WORDS * number
        words[place + Event.STEP] = step
        words[place + Event.BEGIN] = begin
        words[place + Event.CYCLES] = cycles
        words[place + Event.IPU] = ipu
