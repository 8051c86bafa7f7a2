"""Timing, and the form in which a row's figures are handed on."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import asdict, field, frozen

ROOT = Path(__file__).parent.parent


@frozen
class Figure:
    """A measured figure. `target` is the most that it may be, None for a figure that only stands beside another."""

    what: str
    value: float
    unit: str
    target: float | None = None
    note: str = ""
    details: dict[str, Any] = field(factory=dict)

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.value <= self.target

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


@frozen
class Row:
    """A row of the table: its name on the command line, and the function that measures it.

    `measure(smoke)` returns its figures; with `smoke` everything is small and the figures mean nothing.
    """

    name: str
    measure: Callable[[bool], list[Figure]]


def seconds(
    work: Callable[[], Any],
    repeats: int = 7,
    warm: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    before: Callable[[], object] = lambda: None,
) -> float:
    """Median wall time of `work`, or what another `clock` says, see `alternate`."""
    return alternate([work], repeats, warm, clock, before=before)[0]


def alternate(
    works: list[Callable[[], Any]],
    repeats: int = 7,
    warm: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    pause: float = 0.0,
    before: Callable[[], object] = lambda: None,
) -> list[float]:
    """Median times of several pieces of work that take turns, so that a slow moment hits them all. They are wall times.

    With `clock` ``time.process_time`` they are processor times, which other processes disturb less. Each begins after a `pause` in
    seconds: the threads of NumPy's products look for further work for a while, on processors that the next piece of work needs.
    What `before` does is not counted: processes that wait for each other, so that they begin together.
    """
    for _ in range(warm):
        for work in works:
            before()
            work()
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, taken in zip(works, times, strict=True):
            time.sleep(pause)
            before()
            begin = clock()
            work()
            taken.append(clock() - begin)
    return [statistics.median(taken) for taken in times]


def in_new_process(code: str, **environment: str) -> dict[str, Any]:
    """Run code in a Python of its own and return the JSON object that it prints last, with its wall time as ``wall``."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    wall = time.perf_counter() - begin
    lines = done.stdout.splitlines()
    return {**(json.loads(lines[-1]) if lines else {}), "wall": wall}


def peak_bytes() -> int:
    """The most memory that this process has held at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
