"""The page's tree of names: nodes with what is theirs alone; the page adds up what is below them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypoplar.report.execution import Step, numbered_steps
from pypoplar.report.naming.called_steps import steps_by_call
from pypoplar.report.naming.name_tree import name_tree
from pypoplar.report.phases import PHASES
from pypoplar.report.report import Report

NUMBERS: dict[str, Callable[[Step], int]] = {
    **{phase.name: lambda step, name=phase.cycles: getattr(step, name) for phase in PHASES},  # type: ignore[misc]
    "executions": lambda step: step.executions,
    "sent": lambda step: int(step.bytesSentByTile.sum()),
    "host_bytes": lambda step: step.host_bytes,
    "vertices": lambda step: sum(step.program.vertices.values()) if step.program is not None else 0,
}
"""What a node has of its steps: all executions together, but for vertices."""


def name_data(report: Report) -> dict[str, Any] | None:
    """Columns by node, parents first: `parent`, `name`, `fold`, `steps` by number, `memory` and `NUMBERS`.

    None where nothing has a name: the program has not run, and its variables are not known. `memory` are the bytes of variables on
    all tiles, None where the report does not say.
    """
    variables, steps = report.compilation.loweredVariables, numbered_steps(report.execution)
    if not len(variables) and not steps:
        return None
    parts = steps_by_call(report.compilation.programs, steps)
    tree = name_tree(dict(enumerate(part for _, part in parts)), variables)
    totals = variables.total_bytes().tolist() if len(variables) else []
    return {
        "parent": tree.parent,
        "name": tree.name,
        "fold": tree.folds(),
        "steps": [[parts[place][0] for place in places] for places in tree.steps],
        "variables": [len(numbers) for numbers in tree.variables],
        "memory": [sum(totals[number] for number in numbers) for numbers in tree.variables] if totals else None,
        **{
            name: [sum(number_of(parts[place][1]) for place in places) for places in tree.steps]
            for name, number_of in NUMBERS.items()
        },
    }
