"""What each node of a model costs, from the report of its run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pypoplar.report.report import Report

ELSEWHERE = "streams, copies and what belongs to no node"


def node_cycles(report: Report, labels: Mapping[str, str]) -> list[tuple[str, int]]:
    """Nodes with the cycles of their steps, the dearest first; `labels` are those of paths, ``layer1.conv``."""
    execution = report.execution
    assert execution is not None
    known = {path.replace(".", "/"): label for path, label in labels.items()}
    sums: Counter[str] = Counter()
    for step in execution.steps:
        sums[_label(step.name, known)] += step.cycles
    return [(label, int(cycles)) for label, cycles in sums.most_common() if cycles]


def _label(name: str, known: Mapping[str, str]) -> str:
    """The node whose path a step's name begins with, the longest."""
    parts = name.split("/")
    found = (known.get("/".join(parts[:end])) for end in range(len(parts), 0, -1))
    return next((one for one in found if one is not None), ELSEWHERE)
