"""The page's program tree: nodes in the order of a walk, with what the static steps below each of them cost."""

from __future__ import annotations

from typing import Any

from pypoplar.profile.execution import Execution
from pypoplar.profile.page.step_data import step_number
from pypoplar.profile.programs import Program


def tree_data(programs: tuple[Program, ...], execution: Execution | None) -> dict[str, Any] | None:
    """Columns: `parent` (-1 at a root), `type`, `name`, `detail`, `step`, `executions`, `cycles`, `shared`.

    A static step that stands in several places, as a function called twice does, is known for all of them together: it counts
    once in each node above it, and `shared` says in how many places it stands.
    """
    if not programs:
        return None
    parent, nodes = _walk(programs)
    executed = {step_number(one, place): one for place, one in enumerate(execution.steps)} if execution else {}
    places: dict[int, int] = {}
    for one in nodes:
        if one.step >= 0:
            places[one.step] = places.get(one.step, 0) + 1
    cycles = [executed[one.step].cycles if one.step in executed else 0 for one in nodes]
    _add_up(parent, nodes, cycles, {number for number, count in places.items() if count > 1})
    return {
        "parent": parent,
        "type": [one.type for one in nodes],
        "name": [one.name for one in nodes],
        "detail": [one.detail for one in nodes],
        "step": [one.step for one in nodes],
        "executions": [executed[one.step].executions if one.step in executed else 0 for one in nodes],
        "cycles": cycles,
        "shared": [places.get(one.step, 0) for one in nodes],
        "vertices": [one.computeset.numVertices if one.computeset else 0 for one in nodes],
    }


def _walk(programs: tuple[Program, ...]) -> tuple[list[int], list[Program]]:
    """Parents and nodes, each node after its parent and before its later siblings."""
    parent: list[int] = []
    nodes: list[Program] = []
    pending = [(-1, one) for one in reversed(programs)]
    while pending:
        above, one = pending.pop()
        parent.append(above)
        nodes.append(one)
        pending.extend((len(nodes) - 1, child) for child in reversed(one.children))
    return parent, nodes


def _add_up(parent: list[int], nodes: list[Program], cycles: list[int], shared: set[int]) -> None:
    """Give every node the cycles of the steps below it. Only shared steps need sets; all others simply add up."""
    own = [0 if one.step in shared else count for one, count in zip(nodes, cycles, strict=True)]
    below: dict[int, dict[int, int]] = {place: {one.step: cycles[place]} for place, one in enumerate(nodes) if one.step in shared}
    for place in range(len(nodes) - 1, -1, -1):
        cycles[place] = own[place] + sum(below.get(place, {}).values())
        above = parent[place]
        if above >= 0:
            own[above] += own[place]
            if place in below:
                below.setdefault(above, {}).update(below[place])
