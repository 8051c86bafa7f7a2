"""Steps and variables by the paths of their names: ``layer1/conv/fwd`` stands in ``conv``, which stands in ``layer1``.

What a loop of the host's language has unrolled has names that differ in numbers only, ``step0/fwd``, ``step1/fwd``: they fold.
A name without its last number is one of them: ``fwd`` folds with ``fwd_1`` and ``fwd_2``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Mapping, Sequence

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
        """By node: what it and its siblings that differ in numbers only are called together, "step*"; "" where they are few.

        What stands below nodes that fold are siblings.
        """
        return [
            "" if folded[-1:] in ((), (name,)) else folded[-1] for name, folded in zip(self.name, self.folded_paths(), strict=True)
        ]

    def folded_paths(self) -> list[tuple[str, ...]]:
        """By node: the path of its name, in which the parts that fold are what they are called together."""
        paths: list[tuple[str, ...]] = [()] * len(self.name)
        level = [0]
        below: list[list[int]] = [[] for _ in self.name]
        for node, above in enumerate(self.parent[1:], 1):
            below[above].append(node)
        while level:
            level = [child for node in level for child in below[node]]
            siblings: dict[tuple[str, ...], set[str]] = {}  # names by the path of their parents
            for node in level:
                siblings.setdefault(paths[self.parent[node]], set()).add(self.name[node])
            folds = {path: _folds(names) for path, names in siblings.items()}
            for node in level:
                path = paths[self.parent[node]]
                paths[node] = (*path, folds[path][self.name[node]])
        return paths


def _folds(names: Collection[str]) -> dict[str, str]:
    """By name of siblings: what it folds to, itself where those that differ in numbers only are few."""
    patterns = {name: NUMBER.sub("*", name) for name in names}
    known = set(patterns.values())
    numbered = {pattern: _numbered(pattern, known) for pattern in known}
    many = Counter(numbered[pattern] for pattern in patterns.values())
    return {name: longer if many[longer := numbered[pattern]] >= FEWEST else name for name, pattern in patterns.items()}


def _numbered(pattern: str, known: Container[str]) -> str:
    """The pattern of names that have one more number at their end, where there are any."""
    return next((longer for longer in (f"{pattern}_*", f"{pattern}*") if pattern and longer in known), pattern)


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
