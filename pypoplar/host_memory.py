"""The memory of the machine that a graph is built on: what there is, what is taken, and who has most of it when it runs short."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from pypoplar.errors import PoplarMemoryError
from pypoplar.tracebacks import is_ours

WARN_AT = 0.8  # of what is available
_SHOWN = 4  # tables and modules that a message names
_UNITS = 64  # of work between two looks at the process
_STATUS = Path("/proc/self/statm")
_MACHINE = Path("/proc/meminfo")
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@frozen
class TableSize:
    """The rows and bytes of a table of a graph or of its compiler."""

    name: str
    rows: int
    bytes: int


@frozen
class Holdings:
    """What a build holds: its tables, and by module how many vertices there are."""

    tables: tuple[TableSize, ...]
    modules: tuple[tuple[str, int], ...] = ()

    def text(self) -> str:
        """The largest tables and modules, as a message names them."""
        tables = sorted((table for table in self.tables if table.rows), key=lambda table: -table.bytes)[:_SHOWN]
        shown = [f"{table.name} ({table.rows:,} rows, {_megabytes(table.bytes)})" for table in tables]
        text = f"the largest tables are {', '.join(shown)}" if shown else "its tables are empty"
        modules = sorted(self.modules, key=lambda module: -module[1])[:_SHOWN]
        if modules:
            text += f"; most vertices are of {', '.join(f'{name!r} ({count:,})' for name, count in modules)}"
        return text


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def resident() -> int | None:
    """The bytes of memory that this process takes; None where the system does not say, which Linux does."""
    try:
        return int(_STATUS.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def resident_text() -> str:
    """The memory that this process takes, for a bar: ``1.9 GB``; empty where the system does not say."""
    own = resident()
    return "" if own is None else memory_text(own)


def memory_text(size: int) -> str:
    """Bytes as a bar and the log show them."""
    return f"{size / 1e9:.1f} GB" if abs(size) >= 1e9 else f"{size / 1e6:.0f} MB"


def available() -> int | None:
    """The bytes that this process may take in all: what it has and what the machine has left, or its container's limit if lower."""
    own = resident()
    if own is None:
        return None
    sizes = [size for size in map(_limit, _CONTAINER) if size is not None]
    try:
        lines = dict(line.split(":", 1) for line in _MACHINE.read_text(encoding="ascii").splitlines())
        sizes.append(own + int(lines["MemAvailable"].split()[0]) * 1024)
    except (OSError, ValueError, KeyError):
        pass
    return min(sizes, default=None)


def _limit(path: str) -> int | None:
    """A container's limit; None where there is none."""
    try:
        return int(Path(path).read_text(encoding="ascii"))  # "max" is none
    except (OSError, ValueError):
        return None


class MemoryWatch:
    """Warns once when the process takes more than 80 % of the memory that was available when it first looked."""

    __slots__ = ("_limit", "_units", "_warned")

    def __init__(self) -> None:
        self._limit: float | None = None  # bytes; infinite where the system does not say
        self._warned = False
        self._units = 0

    def work(self, holdings: Callable[[], Holdings], units: int = 1) -> None:
        """Note that something was built; after enough of it the process is looked at."""
        self._units += units
        if self._units >= _UNITS:
            self.look(holdings)

    def look(self, holdings: Callable[[], Holdings]) -> None:
        """Look at the process, and warn with what it holds."""
        self._units = 0
        if self._warned:
            return
        if self._limit is None:
            whole = available()
            self._limit = float("inf") if whole is None else whole * WARN_AT
        taken = resident()
        if taken is not None and taken > self._limit:
            self._warned = True
            text = (
                f"building a graph takes {_megabytes(taken)} of this machine's memory, more than {WARN_AT:.0%} of what there was "
                f"when it began: {holdings().text()}"
            )
            warnings.warn(text, RuntimeWarning, stacklevel=_users_level())


def _users_level() -> int:
    """How many frames up from `look` the nearest line outside pypoplar stands."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    return level


def shortage(error: MemoryError, holdings: Callable[[], Holdings]) -> PoplarMemoryError:
    """The error to raise for one of Python's or NumPy's, with what the build holds."""
    reason = f" ({error})" if str(error) else ""
    try:
        held = holdings().text()
    except MemoryError:  # so little is left
        held = "it does not even suffice to say what takes it"
    return PoplarMemoryError(f"the memory of this machine does not suffice to build the graph{reason}: {held}")
