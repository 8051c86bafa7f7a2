"""The page's program tree: nodes in the order of a walk, with what the static steps below each of them cost."""

from __future__ import annotations

from typing import Any

from pypoplar.report.execution import Execution, numbered_steps
from pypoplar.report.program_nodes import Program, short_place

MOST_PLACES = 2**53 - 1  # what a number of the page can count


def tree_data(programs: tuple[Program, ...], execution: Execution | None) -> dict[str, Any] | None:
    """Columns, a value for each node, `parent` with -1 at a root, `step` with -1 for none, `vertices` with 0 for none.

    A static step that stands in several places, as a function called twice does, is known for all of them together: it counts
    once in each node above it, and `shared` says in how many places it stands. What is below a node that stands in several places
    is listed at the first; at the others `again` has the number of the node there, else it is -1.
    """
    if not programs:
        return None
    executed = numbered_steps(execution)
    distinct = Program("", "Sequence", programs).nodes()[:-1]  # children before their parents
    places = _places(programs, distinct)
    cycles = _cycles(distinct, places, {number: step.cycles for number, step in executed.items()})
    parent, nodes, again = _walk(programs)
    return {
        "parent": parent,
        "type": [node.type for node in nodes],
        "name": [node.name for node in nodes],
        "detail": [node.detail for node in nodes],
        "made_at": [short_place(node.made_at) for node in nodes],
        "step": [node.step for node in nodes],
        "executions": [executed[node.step].executions if node.step in executed else 0 for node in nodes],
        "cycles": [cycles[id(node)] for node in nodes],
        "shared": [min(places[id(node)], MOST_PLACES) if node.step >= 0 else 0 for node in nodes],
        "again": again,
        "vertices": [node.computeset.numVertices if node.computeset else 0 for node in nodes],
    }


def _walk(programs: tuple[Program, ...]) -> tuple[list[int], list[Program], list[int]]:
    """Parents and nodes, each node after its parent and before its later siblings; and where a node with children stood first."""
    parent: list[int] = []
    nodes: list[Program] = []
    again: list[int] = []
    first: dict[int, int] = {}
    pending = [(-1, root) for root in reversed(programs)]
    while pending:
        above, node = pending.pop()
        parent.append(above)
        nodes.append(node)
        again.append(first.get(id(node), -1))
        if node.children and again[-1] < 0:
            first[id(node)] = len(nodes) - 1
            pending.extend((len(nodes) - 1, child) for child in reversed(node.children))
    return parent, nodes, again


def _places(programs: tuple[Program, ...], distinct: list[Program]) -> dict[int, int]:
    """By id of a node: in how many places of the whole tree it stands, or its static step does."""
    places = {id(node): 0 for node in distinct}
    for root in programs:
        places[id(root)] += 1
    for node in reversed(distinct):
        for child in node.children:
            places[id(child)] += places[id(node)]
    of_step: dict[int, int] = {}
    for node in distinct:
        of_step[node.step] = of_step.get(node.step, 0) + places[id(node)]
    return {id(node): of_step[node.step] if node.step >= 0 else places[id(node)] for node in distinct}


def _cycles(distinct: list[Program], places: dict[int, int], of_step: dict[int, int]) -> dict[int, int]:
    """By id of a node: cycles of the steps below it, each once. Only steps in several places need sets; others simply add up."""
    once: dict[int, int] = {}
    several: dict[int, frozenset[int]] = {}
    for node in distinct:
        once[id(node)] = sum(once[id(child)] for child in node.children)
        parts = {several[id(child)] for child in node.children} - {frozenset()}
        several[id(node)] = next(iter(parts)) if len(parts) == 1 else frozenset().union(*parts)
        if node.step in of_step and places[id(node)] == 1:
            once[id(node)] += of_step[node.step]
        elif node.step in of_step:
            several[id(node)] |= {node.step}
    return {key: count + sum(of_step[step] for step in several[key]) for key, count in once.items()}
