"""Progress bars of long compilations and runs, and lines that say what a program waits for, on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Self

PATIENCE = 1.0  # seconds before a bar or a line appears
REDRAWN = 0.5  # seconds between two pictures of a bar
COUNTED = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit}, {elapsed}{postfix}"
ALONE = "{desc}, {elapsed}{postfix}"  # of work that does not say how far it is
COMPILER_PASSES = 5  # until the compiler says how many there are


_asked: ContextVar[str] = ContextVar("pypoplar progress", default="auto")


def asked() -> str:
    """The option of the work that is under way, for what is below all options."""
    return _asked.get()


@contextmanager
def asking(option: str) -> Iterator[None]:
    """Around work that has the option."""
    before = _asked.set(option)
    try:
        yield
    finally:
        _asked.reset(before)


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


class StageBar:
    """A bar of work that may call nobody for long. A thread of its own draws it where the work takes longer than `PATIENCE`.

    The bar says how far the work is, if that is known, and always how long it has taken. What `beside` says is asked whenever it is
    drawn, such as the memory that is in use.
    """

    def __init__(self, description: str, total: int | None = None, unit: str = "", beside: Callable[[], str] = lambda: "") -> None:
        self._arguments = {"desc": description, "total": total, "unit": unit}
        self._done, self._words, self._beside = 0, "", beside
        self._begin = time.time()
        self._over = threading.Event()
        self._drawing = threading.Lock()
        self._thread = threading.Thread(target=self._draw_on, name="pypoplar progress", daemon=True)
        self._bar: Any = None

    def __enter__(self) -> Self:
        if PATIENCE <= 0:
            self._draw()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._bar is not None:
            self._draw()
            self._bar.close()

    def __call__(self, done: int, total: int | None = None, words: str = "") -> None:
        """So much is done, of so much, and what is worked on; it is drawn with the next second."""
        self._done, self._words = done, words
        self._arguments["total"] = total or self._arguments["total"]

    def _draw_on(self) -> None:
        waits = max(PATIENCE, 0.0)
        while not self._over.wait(waits):
            waits = REDRAWN
            with suppress(OSError, ValueError):  # standard error has been closed meanwhile
                self._draw()

    def _draw(self) -> None:
        with self._drawing:
            total = self._arguments["total"]
            if self._bar is None:
                self._bar = _bar(**self._arguments, bar_format=COUNTED if total else ALONE)
                self._bar.start_t = self._begin
            if total and not self._bar.total:  # known since then
                self._bar.bar_format, self._bar.total = COUNTED, total
            self._bar.n = self._done
            self._bar.set_postfix_str(", ".join(filter(None, (self._words, self._beside()))), refresh=False)
            self._bar.refresh()


class CompileBar:
    """A progress callback of the compiler that draws a bar, and calls the user's callback."""

    def __init__(self, callback: Callable[[int, int], None] | None, beside: Callable[[], str]) -> None:
        self._callback = callback
        self._bar = StageBar("compiling", COMPILER_PASSES, "passes", beside).__enter__()

    def __call__(self, done: int, total: int) -> None:
        """So many passes of all are done."""
        self._bar(done, total)
        if self._callback is not None:
            self._callback(done, total)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.__exit__()


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
