"""All findings of a report, those that could save the most first. Each rule looks at a report and finds one thing, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import asdict

from pypoplar.report.insights.compute_insights import (
    dearest_vertex_type,
    far_from_peak,
    idle_worker_threads,
    unused_tiles,
    worst_balance,
)
from pypoplar.report.insights.insight import TOLD, WEIGHTS, Insight
from pypoplar.report.insights.memory_insights import largest_tile, peak_liveness
from pypoplar.report.insights.waiting_insights import biggest_exchange, host_bound, sync_bound
from pypoplar.report.report import Report

RULES: tuple[Callable[[Report], Insight | None], ...] = (
    largest_tile,
    worst_balance,
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
    """All findings that could save enough to be told: the gravest first, of one weight the one that could save the most."""
    findings = [finding for rule in RULES if (finding := rule(report)) is not None and finding.share >= TOLD]
    return sorted(findings, key=lambda finding: (WEIGHTS.index(finding.weight), -finding.share))


def insight_data(report: Report) -> list[dict[str, Any]]:
    """The findings as the page's data."""
    return [asdict(finding) for finding in insights(report)]
