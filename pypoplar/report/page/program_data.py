"""The page's program tree: nodes in the order of a walk, with what the static steps below each of them cost."""

from __future__ import annotations

from typing import Any

from pypoplar.report.execution import Execution
from pypoplar.report.page.step_data import step_number
from pypoplar.report.program_nodes import Program

MOST_PLACES = 2**53 - 1  # what a number of the page can count


def tree_data(programs: tuple[Program, ...], execution: Execution | None) -> dict[str, Any] | None:
    """Columns: `parent` (-1 at a root), `type`, `name`, `detail`, `step`, `executions`, `cycles`, `shared`, `again`, `vertices`.

    A static step that stands in several places, as a function called twice does, is known for all of them together: it counts
    once in each node above it, and `shared` says in how many places it stands. What is below a node that stands in several places
    is listed at the first; at the others `again` has the number of the node there, else it is -1.
    """
    if not programs:
        return None
    executed = {step_number(one, place): one for place, one in enumerate(execution.steps)} if execution else {}
    distinct = Program("", "Sequence", programs).nodes()[:-1]  # children before their parents
    places = _places(programs, distinct)
    cycles = _cycles(distinct, places, {step: one.cycles for step, one in executed.items()})
    parent, nodes, again = _walk(programs)
    return {
        "parent": parent,
        "type": [one.type for one in nodes],
        "name": [one.name for one in nodes],
        "detail": [one.detail for one in nodes],
        "step": [one.step for one in nodes],
        "executions": [executed[one.step].executions if one.step in executed else 0 for one in nodes],
        "cycles": [cycles[id(one)] for one in nodes],
        "shared": [min(places[id(one)], MOST_PLACES) if one.step >= 0 else 0 for one in nodes],
        "again": again,
        "vertices": [one.computeset.numVertices if one.computeset else 0 for one in nodes],
    }


def _walk(programs: tuple[Program, ...]) -> tuple[list[int], list[Program], list[int]]:
    """Parents and nodes, each node after its parent and before its later siblings; and where a node with children stood first."""
    parent: list[int] = []
    nodes: list[Program] = []
    again: list[int] = []
    first: dict[int, int] = {}
    pending = [(-1, one) for one in reversed(programs)]
    while pending:
        above, one = pending.pop()
        parent.append(above)
        nodes.append(one)
        again.append(first.get(id(one), -1))
        if one.children and again[-1] < 0:
            first[id(one)] = len(nodes) - 1
            pending.extend((len(nodes) - 1, child) for child in reversed(one.children))
    return parent, nodes, again


def _places(programs: tuple[Program, ...], distinct: list[Program]) -> dict[int, int]:
    """By id of a node: in how many places of the whole tree it stands, or its static step does."""
    places = {id(one): 0 for one in distinct}
    for one in programs:
        places[id(one)] += 1
    for one in reversed(distinct):
        for child in one.children:
            places[id(child)] += places[id(one)]
    of_step: dict[int, int] = {}
    for one in distinct:
        of_step[one.step] = of_step.get(one.step, 0) + places[id(one)]
    return {id(one): of_step[one.step] if one.step >= 0 else places[id(one)] for one in distinct}


def _cycles(distinct: list[Program], places: dict[int, int], of_step: dict[int, int]) -> dict[int, int]:
    """By id of a node: cycles of the steps below it, each once. Only steps in several places need sets; others simply add up."""
    once: dict[int, int] = {}
    several: dict[int, frozenset[int]] = {}
    for one in distinct:
        once[id(one)] = sum(once[id(child)] for child in one.children)
        parts = {several[id(child)] for child in one.children} - {frozenset()}
        several[id(one)] = next(iter(parts)) if len(parts) == 1 else frozenset().union(*parts)
        if one.step in of_step and places[id(one)] == 1:
            once[id(one)] += of_step[one.step]
        elif one.step in of_step:
            several[id(one)] |= {one.step}
    return {node: count + sum(of_step[step] for step in several[node]) for node, count in once.items()}
