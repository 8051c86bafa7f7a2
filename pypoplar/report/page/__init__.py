"""A report as a page: one HTML file that opens in any browser, offline, with the views that people know from PopVision."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pypoplar.report.naming.differences import comparable
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.comparison import Sides
from pypoplar.report.page.document import write_document
from pypoplar.report.page.page_views import COMPARISON, REPORT, PageKind, Subject
from pypoplar.report.report import Report
from pypoplar.tracebacks import public

__all__ = ["write_comparison", "write_page"]


@public
def write_page(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page of a report: one HTML file of some 2 MB and what the report holds, which opens without a network.

    Parameters
    ----------
    report:
        What `Engine.getReport` or `openReport` gave.
    path:
        The file.

    Raises
    ------
    MissingFeature
        Without the extra "report" (plotly).
    OSError
        If the file cannot be written.
    """
    target = report.compilation.target
    created = report.created.replace("T", " ").replace("+00:00", " UTC")
    machine = f"{target.numTiles:,} tiles of {target.system or target.architecture}"
    words = (created, f"pypoplar {report.poplarVersion.string}", machine)
    _write(Path(path), REPORT, report, report.name or "Profile", words)


@public
def write_comparison(first: Report, second: Report, path: str | os.PathLike[str]) -> None:
    """Write a page that compares two reports: memory, liveness, cycles by compute set, vertex type and step.

    Parameters
    ----------
    first:
        What is compared with.
    second:
        What is compared: changes are from the first to it.
    path:
        The HTML file.

    Raises
    ------
    MissingFeature
        Without the extra "report" (plotly).
    OSError
        If the file cannot be written.
    """
    sides = Sides(*comparable(first, second))
    versions = dict.fromkeys(report.poplarVersion.string for report in (first, second))
    words = ("a comparison of two profiles", f"pypoplar {' and '.join(versions)}")
    _write(Path(path), COMPARISON, sides, " \u00b7 ".join(sides.names), words)


def _write(path: Path, kind: PageKind[Subject], subject: Subject, title: str, words: Sequence[str]) -> None:
    blocks = Blocks()
    data = kind.data(subject, blocks)
    write_document(path, title, " \u00b7 ".join(filter(None, words)), map(kind.script, kind.views), data, blocks.texts)
