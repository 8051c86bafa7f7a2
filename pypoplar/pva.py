"""Reads profiles as Graphcore's PopVision Analysis Library does, writes them, draws them as pages: ``from pypoplar import pva``.

>>> from pypoplar import pva
>>> report = pva.openReport("profile.pop")
>>> cycles = sum(step.ipus[0].cycles for step in report.execution.steps)
>>> pva.write_page(report, "profile.html")

Names are libpva's; what a report has besides is in snake_case, and `pypoplar.report.report` lists it. Only profiles of pypoplar
can be read: those of the Poplar SDK are of another form. An Engine's report, `Engine.getReport`, is of the same classes:
`save_report` writes it to a file that `openReport` reads, `write_page` makes a page of it, and `write_comparison` one of two.
"""

from __future__ import annotations

import os

from pypoplar.report.execution import Execution, Run, Step
from pypoplar.report.file.sqlite_file import load_report, save_report
from pypoplar.report.memory_report import LivenessProgramStep, LoweredVariables, Tile, Variable
from pypoplar.report.page import write_comparison, write_page
from pypoplar.report.program_nodes import ComputeSet, Program, ProgramVisitor
from pypoplar.report.report import Compilation, InstrumentationSettings, Report, ReportGraph, ReportTarget, Version
from pypoplar.report.tile_vertices import VertexMemory
from pypoplar.tracebacks import public

__all__ = [
    "openReport",
    "save_report",
    "write_page",
    "write_comparison",
    "Report",
    "ProgramVisitor",
    "Version",
    "InstrumentationSettings",
    "Compilation",
    "ReportTarget",
    "ReportGraph",
    "Tile",
    "Variable",
    "LoweredVariables",
    "LivenessProgramStep",
    "Execution",
    "Run",
    "Step",
    "Program",
    "ComputeSet",
    "VertexMemory",
]


@public
def openReport(profile: str | os.PathLike[str], debug: str | os.PathLike[str] | None = None) -> Report:
    """The report in a profile.

    Parameters
    ----------
    profile:
        A file that an Engine with the option ``autoReport.all`` or `save_report` wrote, or the directory of its ``profile.pop``.
    debug:
        libpva's place for ``debug.cbor``. It is not read: a profile of pypoplar has all names in itself.

    Returns
    -------
    Report
        What the file holds; it is closed then.

    Raises
    ------
    FileLoadError
        If there is no such file, or if it is damaged or not a profile of pypoplar.
    """
    return load_report(profile)
