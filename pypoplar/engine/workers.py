"""Threads that begin together or not at all, and whose end is known, whenever Ctrl-C comes."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Workers:
    """`count` threads; thread i does ``work(i)``.

    They are not joined: a join that Ctrl-C interrupts takes the thread for ended (CPython 3.11).
    """

    def __init__(self, work: Callable[[int], None], count: int) -> None:
        self._work = work
        self._count = count
        self._begin = threading.Event()
        self._cancelled = False
        self._ended: list[int] = []
        self._finished = threading.Event()

    def _run(self, number: int) -> None:
        self._begin.wait()
        try:
            if not self._cancelled:
                self._work(number)
        finally:
            self._ended.append(number)
            if len(self._ended) == self._count:
                self._finished.set()

    def start(self) -> None:
        """Begin once all threads are there: they wait for each other, and an exception may keep some of them from starting."""
        for one in range(self._count):
            threading.Thread(target=self._run, args=(one,), name=f"pypoplar-{one}").start()
        self._begin.set()

    def working(self, seconds: float) -> bool:
        """Wait for so long, or less; whether there is still work."""
        return not self._finished.wait(seconds)

    def end(self) -> None:
        """After an exception: return when no thread works any more; those that have not begun never will."""
        if not self._begin.is_set():
            self._cancelled = True
            self._begin.set()
            return
        self._begin.set()
        while not self._finished.is_set():
            try:
                self._finished.wait()
            except KeyboardInterrupt:  # the first one is on its way to the user
                continue
