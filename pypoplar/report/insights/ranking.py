"""All findings of a report, those that could save the most first. Each rule looks at a report and finds one thing, or nothing.

What one finding claims of the total no other claims too: `ComputeSavings` divides what compute could save among its findings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import asdict, evolve

from pypoplar.report.insights.balance_insights import idle_worker_threads, lone_vertices, unused_tiles, worst_balance
from pypoplar.report.insights.compute_insights import dearest_vertex_type, far_from_peak
from pypoplar.report.insights.insight import TOLD, Insight
from pypoplar.report.insights.memory_insights import largest_tile, peak_liveness
from pypoplar.report.insights.waiting_insights import biggest_exchange, host_bound, sync_bound
from pypoplar.report.report import Report

RULES: tuple[Callable[[Report], Insight | None], ...] = (
    largest_tile,
    worst_balance,
    lone_vertices,
    biggest_exchange,
    host_bound,
    sync_bound,
    idle_worker_threads,
    unused_tiles,
    dearest_vertex_type,
    peak_liveness,
    far_from_peak,
)


def insights(report: Report) -> list[Insight]:
    """All findings that could save enough to be told, those that could save the most first.

    What does not fit comes before all else; memory that has room comes last, as it costs no time. In a damaged profile a part may
    take more than the whole, and counts as the whole.
    """
    found = [finding for rule in RULES if (finding := rule(report)) is not None and finding.share >= TOLD]
    findings = [finding if finding.of_memory or finding.share <= 1 else evolve(finding, share=1.0) for finding in found]
    return sorted(findings, key=lambda finding: (_place(finding), -finding.share))


def _place(finding: Insight) -> int:
    if not finding.of_memory:
        return 1
    return {"grave": 0, "notable": 1, "good to know": 2}[finding.weight]


def insight_data(report: Report) -> list[dict[str, Any]]:
    """The findings as the page's data."""
    return [asdict(finding) for finding in insights(report)]
