"""Runs that did not come to their end: why, and which steps had been executed by then. What they cost is in no other figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from attrs import asdict, frozen

from pypoplar.arrays.number_ranges import counted

MOST_STEPS = 10  # that are told of one run


@frozen
class FailedStep:
    """What one static step took before a run failed, given by `FailedRun.steps`.

    Attributes
    ----------
    number:
        That of the static step.
    name:
        Its debug name.
    type:
        A program type of libpva.
    executions:
        How often it was complete.
    cycles:
        Of all these executions.
    """

    number: int
    name: str
    type: str
    executions: int
    cycles: int

    def told(self) -> str:
        """The step in one line of text: ``OnTileExecute: work (2 executions), 360 cycles``."""
        name = " ".join(self.name.split()) or "<anonymous>"
        return f"{self.type}: {name} ({counted(self.executions, 'execution')}), {counted(self.cycles, 'cycle')}"


@frozen
class FailedRun:
    """A run that an error ended, given by `Report.failed_runs`.

    Attributes
    ----------
    name:
        What `Engine.run` called it.
    error:
        The error's class and the first line of its message.
    steps:
        Those that were executed before, in program order.
    """

    name: str
    error: str
    steps: tuple[FailedStep, ...] = ()

    @property
    def cycles(self) -> int:
        """The cycles of all executions that were complete before the error."""
        return sum(step.cycles for step in self.steps)

    def told(self) -> list[str]:
        """As lines: the error, and the steps that were executed before it."""
        executions = sum(step.executions for step in self.steps)
        lines = [f"{' '.join(self.name.split())}: {self.error}"]
        if not self.steps:
            return [*lines, "  no step was complete before it"]
        lines.append(
            f"  before it, {counted(executions, 'step')} took {counted(self.cycles, 'cycle')}, which are in no other figure:"
        )
        if len(self.steps) > MOST_STEPS:
            lines.append(f"    ({len(self.steps) - MOST_STEPS:,} earlier ones)")
        return [*lines, *(f"    {step.told()}" for step in self.steps[-MOST_STEPS:])]


def failed_text(runs: Sequence[FailedRun]) -> str:
    """Failed runs as a profile file holds them: JSON."""
    return json.dumps([asdict(run) for run in runs])


def read_failed(text: str) -> tuple[FailedRun, ...]:
    """The runs that `failed_text` wrote. `ValueError` for anything else."""
    try:
        return tuple(_failed_run(**run) for run in json.loads(text))
    except (TypeError, KeyError, RecursionError) as problem:
        raise ValueError(f"no failed runs: {problem}") from problem


def _failed_run(name: str, error: str, steps: list[dict[str, Any]]) -> FailedRun:
    run = FailedRun(name, error, tuple(FailedStep(**step) for step in steps))
    texts = [name, error, *(text for step in run.steps for text in (step.name, step.type))]
    numbers = [number for step in run.steps for number in (step.number, step.executions, step.cycles)]
    if not all(type(text) is str for text in texts) or not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("no failed runs: a name is no text, or a count no number of 0 or more")
    return run
