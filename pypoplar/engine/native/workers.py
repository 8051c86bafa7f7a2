"""Threads that begin together or not at all, and whose end is known, whenever Ctrl-C comes.

They are made of the interpreter's own threads and locks: an interrupt in the middle of `threading.Thread.start`, `Thread.join` or
`Event.wait` can leave those in a state in which a thread counts as ended that is not, or waits for ever.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from contextlib import suppress


class Workers:
    """`count` threads; thread i does ``work(i)``."""

    def __init__(self, work: Callable[[int], None], count: int) -> None:
        self._work = work
        self._gates = [_closed() for _ in range(count)]  # each thread waits at its own before it begins
        self._complete = False  # all threads are there
        self._cancelled = False
        self._ended: list[int] = []
        self._end = _closed()  # opened by the last thread; whether it has is known by `_ended`

    def _run(self, number: int) -> None:
        self._gates[number].acquire()
        try:
            if not self._cancelled:
                self._work(number)
        finally:
            self._ended.append(number)
            if len(self._ended) == len(self._gates):
                _open(self._end)

    def start(self) -> None:
        """Begin once all threads are there: they wait for each other, and an exception may keep some of them from starting."""
        for number in range(len(self._gates)):
            _thread.start_new_thread(self._run, (number,))
        self._complete = True
        self._open_gates()

    def _open_gates(self) -> None:
        for gate in self._gates:
            _open(gate)

    def working(self, seconds: float) -> bool:
        """Wait for so long, or less; whether there is still work."""
        if len(self._ended) < len(self._gates):
            self._end.acquire(timeout=seconds)
        return len(self._ended) < len(self._gates)

    def end(self) -> None:
        """After an exception: return when no thread works any more; those that have not begun never will."""
        self._cancelled = not self._complete
        self._open_gates()
        while self._complete and len(self._ended) < len(self._gates):
            try:
                self._end.acquire(timeout=0.05)
            except KeyboardInterrupt:  # the first one is on its way to the user
                continue


def _closed() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def _open(lock: _thread.LockType) -> None:
    with suppress(RuntimeError):  # it is open
        lock.release()
