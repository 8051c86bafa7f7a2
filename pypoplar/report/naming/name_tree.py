"""Steps and variables by the paths of their names: ``layer1/conv/fwd`` stands in ``conv``, which stands in ``layer1``.

What a loop of the host's language has unrolled has names that differ in numbers only, ``step0/fwd``, ``step1/fwd``: they fold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import define, field

from pypoplar.report.execution import Step
from pypoplar.report.memory_report import LoweredVariables

DEEPEST = 24  # parts of a path; what is below stands in the last one
FEWEST = 3  # siblings that fold
NUMBER = re.compile(r"\d+")


def path_of(name: str) -> tuple[str, ...]:
    """The parts of a name. What has no name has the path of one empty part."""
    parts = [part for part in name.split("/") if part]
    return (*parts[: DEEPEST - 1], "/".join(parts[DEEPEST - 1 :])) if len(parts) >= DEEPEST else tuple(parts) or ("",)


@define(eq=False)
class NameTree:
    """Nodes in an order in which parents come first; the first is the root, which has no name.

    A node's steps and variables are those whose name it is, not those of the nodes below it.
    """

    parent: list[int] = field(factory=lambda: [-1])
    name: list[str] = field(factory=lambda: [""])
    steps: list[list[int]] = field(factory=lambda: [[]])  # their numbers
    variables: list[list[int]] = field(factory=lambda: [[]])  # their numbers
    _place: dict[tuple[int, str], int] = field(factory=dict)  # by parent and name

    def node(self, name: str) -> int:
        """The node of a name; it is made if there is none."""
        above = 0
        for part in path_of(name):
            key = (above, part)
            if key not in self._place:
                self._place[key] = len(self.name)
                self.parent.append(above)
                self.name.append(part)
                self.steps.append([])
                self.variables.append([])
            above = self._place[key]
        return above

    def folds(self) -> list[str]:
        """By node: what it and its siblings that differ in numbers only are called together, "step*"; "" where they are few."""
        patterns = [NUMBER.sub("*", name) for name in self.name]
        siblings: dict[tuple[int, str], int] = {}
        for key in zip(self.parent, patterns, strict=True):
            siblings[key] = siblings.get(key, 0) + 1
        return [
            pattern if pattern != name and siblings[above, pattern] >= FEWEST else ""
            for above, name, pattern in zip(self.parent, self.name, patterns, strict=True)
        ]


def name_tree(steps: Mapping[int, Step], variables: LoweredVariables) -> NameTree:
    """The tree of steps, which are given by number, and of variables."""
    tree = NameTree()
    for number, step in steps.items():
        tree.steps[tree.node(step.name)].append(number)
    for number, name in enumerate(variables.names):
        tree.variables[tree.node(name)].append(number)
    return tree


def sums_below(parent: Sequence[int], own: Sequence[int]) -> list[int]:
    """By node: its own number and those of all nodes below it."""
    sums = list(own)
    for node in range(len(sums) - 1, 0, -1):
        sums[parent[node]] += sums[node]
    return sums
