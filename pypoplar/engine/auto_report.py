"""Writes an engine's profile to a file by itself, as the ``autoReport`` options ask."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pypoplar.errors import InvalidOption
from pypoplar.files import check_possible, is_possible
from pypoplar.options import EngineOptions

if TYPE_CHECKING:
    from pypoplar.report.report import Report

Make = Callable[[], "Report"]


def report_path(options: EngineOptions, name: str) -> Path:
    """Where the profile of the engine called `name` goes: ``profile.pop`` in the directory of the options, or in its ``name``."""
    if os.path.basename(name) != name or name in (".", "..") or not is_possible(name):
        raise InvalidOption(f"the engine's name is that of a directory for its reports: {name!r} cannot be one")
    return Path(options.report_directory, name, "profile.pop")


def save(report: Report, path: Path) -> None:
    """Write a profile, and the directories above it. Raises `OSError`."""
    from pypoplar.report.file.sqlite_file import save_report  # sqlite3 is only loaded where it is used

    check_possible(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_report(report, path)


class AutoReport:
    """The profile file of one engine: `graph` makes a report of the executable, `whole` one with the runs so far.

    It is written when the engine is made, after runs that have accounts of their own, and when the engine is gone or the program
    ends, so that later runs are in it too. `runs` counts them, and those that failed, of which the report tells how far they came.
    """

    def __init__(self, options: EngineOptions, name: str, runs: Callable[[], int], graph: Make, whole: Make) -> None:
        self._path = report_path(options, name).absolute()
        self._kept = options.profiled_runs
        self._execution = options.output_execution_profile
        self._runs = runs
        self._whole = whole
        self._process = os.getpid()
        self._written = 0  # as many runs are in the file
        if options.output_graph_profile:
            self._write_first(graph(), options.report_directory)

    def _write_first(self, report: Report, directory: str) -> None:
        try:
            save(report, self._path)
        except OSError as problem:
            raise InvalidOption(
                f"autoReport.directory is {directory!r}: the profile cannot be written there: {problem}; choose another directory, "
                "or turn autoReport.outputGraphProfile off"
            ) from None  # whose text says it all

    def attach(self, engine: object) -> None:
        """Write the file once more when `engine` is gone, or at the end of the program if that is earlier."""
        if self._execution:
            weakref.finalize(engine, self.finish)

    def after_run(self) -> None:
        """A run has come to its end. Of many kept runs only some are worth a file, each time for twice as many runs."""
        runs = self._runs()
        if self._execution and (runs == self._kept or (runs < self._kept and runs & (runs - 1) == 0)):
            self._write(runs)

    def finish(self) -> None:
        """Write what has run since the file was written, unless this is a process that was forked off."""
        runs = self._runs()
        if runs not in (0, self._written) and os.getpid() == self._process:
            self._write(runs)

    def _write(self, runs: int) -> None:
        try:
            save(self._whole(), self._path)
        except OSError as problem:  # what has run counts for more than its profile
            warnings.warn(f"the profile could not be written: {problem}", RuntimeWarning, stacklevel=2)
        self._written = runs
