"""Progress bars of long compilations and runs, and lines that say what a program waits for, on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypoplar.compiler.compile import Progress

PATIENCE = 1.0  # seconds before a bar or a line appears


def wanted(option: str) -> bool:
    """Whether the option `pypoplar.progress` asks for bars: with "auto", where standard error is a terminal."""
    if option != "auto":
        return option == "on"
    with suppress(AttributeError, ValueError):  # no standard error, or it is closed
        return sys.stderr.isatty()
    return False


def _bar(**arguments: Any) -> Any:
    from tqdm import tqdm  # takes longer to import than most programs to compile

    return tqdm(leave=False, file=sys.stderr, dynamic_ncols=True, **arguments)


class Announcement:
    """A line of text that is written once in a process, when the parts of some work have taken longer than `PATIENCE`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begin: float | None = None  # of the first part
        self._written = False

    @contextmanager
    def during(self, option: str) -> Iterator[None]:
        """Around a part of the work; `option` as for `wanted`."""
        if self._written or not wanted(option):
            yield
            return
        now = time.monotonic()
        self._begin = now if self._begin is None else self._begin
        timer = threading.Timer(max(self._begin + PATIENCE - now, 0), self._write)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _write(self) -> None:
        if not self._written:
            self._written = True
            with suppress(OSError, ValueError):  # standard error has been closed meanwhile
                print(self._text, file=sys.stderr, flush=True)


class CompileBar:
    """A progress callback of the compiler that draws a bar, and calls the user's callback."""

    def __init__(self, callback: Progress | None) -> None:
        self._callback = callback
        self._begin = time.monotonic()
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Show that so many passes of all are done; the bar comes where the compilation takes longer."""
        if self._bar is None and time.monotonic() - self._begin > PATIENCE:
            self._bar = _bar(desc="compiling", total=total, unit="pass")
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        if self._callback is not None:
            self._callback(done, total)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()


class RunBar:
    """Shows how many steps a run has executed, which nobody knows the number of beforehand, and the machine's cycles."""

    def __init__(self, name: str, steps: Callable[[], int], cycles: Callable[[], int]) -> None:
        self._name, self._steps, self._cycles = name, steps, cycles
        self._before = steps()
        self._begin = time.monotonic()
        self._bar: Any = None

    def __call__(self) -> None:
        """Show that the run goes on; the bar comes where it takes longer."""
        first = self._bar is None
        if first:
            taken = time.monotonic() - self._begin
            if taken < PATIENCE:
                return
            self._bar = _bar(desc=self._name, unit=" steps", unit_scale=True, delay=1e-9)  # not drawn while it is empty
            self._bar.start_t = time.time() - taken  # the rate is that of the whole run
        self._bar.set_postfix_str(f"{self._cycles():,} cycles", refresh=False)
        self._bar.update(self._steps() - self._before - self._bar.n)
        if first:
            self._bar.refresh()

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
