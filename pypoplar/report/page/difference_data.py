"""The page's differences between two reports: in words, by name path, and the two traces."""

from __future__ import annotations

from typing import Any

from pypoplar.report.naming.called_steps import steps_of
from pypoplar.report.naming.differences import differences, nothing_differs, obstacles, option_changes, unchanged_total
from pypoplar.report.naming.name_tree import NameTree
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.step_data import execution_data, phase_rows
from pypoplar.report.phases import PHASES
from pypoplar.report.report import Report

MOST_WORDS = 200


def words_data(first: Report, second: Report) -> dict[str, Any]:
    """What `pypoplar compare` prints: `notes`, and `rows` of differences, with `more` of them left out, or that there is `none`."""
    found = differences(first, second)
    rows = [
        {"words": one.words, "part": one.part, "path": one.path, "unit": one.unit, "difference": one.change}
        for one in found[:MOST_WORDS]
    ]
    return {
        "notes": [*obstacles(first, second), *option_changes(first, second), *unchanged_total(first, second)],
        "rows": rows,
        "none": nothing_differs(first, second),
        "more": len(found) - len(rows),
    }


def changed_names(first: Report, second: Report) -> dict[str, Any] | None:
    """The tree of the names of both: columns by node, "a_" and "b_" with each phase and "memory"; None unless both have run."""
    if first.execution is None or second.execution is None:
        return None
    tree = NameTree()
    sums = {letter: _sums_by_node(tree, report) for letter, report in (("a", first), ("b", second))}
    nodes = range(len(tree.name))
    columns = {
        f"{letter}_{name}": [by_node.get(node, 0) for node in nodes]
        for letter, side in sums.items()
        for name, by_node in side.items()
    }
    return {"parent": tree.parent, "name": tree.name, "fold": tree.folds(), **columns}


def _sums_by_node(tree: NameTree, report: Report) -> dict[str, dict[int, int]]:
    """By phase, and for memory: by node of the tree, what has its name. Names that the tree does not have are added."""
    sums: dict[str, dict[int, int]] = {name: {} for name in (*(phase.name for phase in PHASES), "memory")}
    for step in steps_of(report):
        node = tree.node(step.name)
        for phase in PHASES:
            sums[phase.name][node] = sums[phase.name].get(node, 0) + int(getattr(step, phase.cycles))
    variables = report.compilation.loweredVariables
    for name, size in zip(variables.names, variables.total_bytes().tolist() if len(variables) else [], strict=True):
        node = tree.node(name)
        sums["memory"][node] = sums["memory"].get(node, 0) + size
    return sums


def traces_data(first: Report, second: Report, blocks: Blocks) -> list[dict[str, Any]] | None:
    """Execution and target of both, as the trace draws them; None unless both have a trace."""
    if any(report.execution is None or not len(report.execution.trace) for report in (first, second)):
        return None
    return [
        {
            "execution": execution_data(report, blocks),
            "clock": float(report.compilation.target.clockFrequency),
            "tiles_per_ipu": report.compilation.target.tilesPerIpu,
        }
        for report in (first, second)
    ]


def phases_of_both(first: Report, second: Report) -> list[dict[str, str]]:
    """The phases that both tell apart."""
    return phase_rows(first.execution or second.execution)
