"""The page's cycles by source line: the text of codelets with what each line cost, in all and by compute set; slowest vertices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypoplar.report.line_profile import LineCost, LineProfile
from pypoplar.report.report import Report

MOST_SETS = 60  # compute sets of a vertex type whose lines are told apart


def line_data(report: Report) -> dict[str, Any] | None:
    """Vertex types by their slots, the most first, and slowest vertices; None where lines are not known."""
    profile = report.execution.lines if report.execution is not None else None
    if profile is None:
        return None
    return {
        "compiled": profile.compiled,
        "types": [_type_data(profile, name) for name in profile.vertex_types],
        "slowest": [
            {
                "set": vertex.compute_set,
                "type": vertex.vertex_type,
                "tile": vertex.tile,
                "cycles": vertex.cycles,
                "sizes": ", ".join(map(str, vertex.sizes)),
            }
            for vertex in profile.slowest
        ],
    }


def _type_data(profile: LineProfile, name: str) -> dict[str, Any]:
    """A vertex type: its lines as columns, with their costs in all, and in each of its compute sets."""
    groups, costs = profile.groups_of(name), profile.lines(name)
    return {
        "name": name,
        "instances": sum(group.vertices for group in groups),
        "function": [cost.source.function for cost in costs],
        "file": [cost.source.file for cost in costs],
        "line": [cost.source.line for cost in costs],
        "text": [cost.source.text for cost in costs],
        "costs": _columns(costs),
        "sets": len(groups),
        "by_set": [
            {"name": group.compute_set, "vertices": group.vertices, "costs": _columns(profile.lines(name, group.compute_set))}
            for group in groups[:MOST_SETS]
        ]
        if len(groups) > 1
        else [{"name": group.compute_set, "vertices": group.vertices, "costs": None} for group in groups],
    }


def _columns(costs: Sequence[LineCost]) -> dict[str, list[Any]]:
    return {
        "slots": [cost.slots for cost in costs],
        "compiled": [cost.compiled for cost in costs],
        "bound": [cost.bound for cost in costs],
        "executions": [cost.executions for cost in costs],
    }
