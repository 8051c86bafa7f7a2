"""A report as a page: one HTML file that opens in any browser, offline, with the views that people know from PopVision."""

from __future__ import annotations

import os
from pathlib import Path

from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.comparison import comparison_data
from pypoplar.report.page.document import write_document
from pypoplar.report.page.report_data import report_data
from pypoplar.report.report import Report

__all__ = ["write_comparison", "write_page"]


def write_page(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page of a report to `path`, one file of some 5 MB and what the report holds.

    It needs the extra "report" (plotly); without it, `MissingFeature` is raised.
    """
    blocks = Blocks()
    data = report_data(report, blocks)
    target = report.compilation.target
    created = report.created.replace("T", " ").replace("+00:00", " UTC")
    words = [created, f"pypoplar {report.poplarVersion.string}", f"{target.numTiles:,} tiles of {target.architecture}"]
    write_document(Path(path), report.name or "Profile", " \u00b7 ".join(word for word in words if word), data, blocks.texts)


def write_comparison(first: Report, second: Report, path: str | os.PathLike[str]) -> None:
    """Write a page that compares two reports: memory, liveness, cycles by compute set, vertex type and step.

    It needs the extra "report" (plotly); without it, `MissingFeature` is raised.
    """
    blocks = Blocks()
    data = comparison_data(first, second, blocks)
    versions = dict.fromkeys(report.poplarVersion.string for report in (first, second))
    words = ["a comparison of two profiles", f"pypoplar {' and '.join(versions)}"]
    write_document(Path(path), " \u00b7 ".join(data["names"]), " \u00b7 ".join(words), data, blocks.texts)
