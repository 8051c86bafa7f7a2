"""Collects the report's program tree while programs are flattened."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from pypoplar.arrays.groups import offsets
from pypoplar.executable.program_tree import ProgramTree
from pypoplar.interface.layout import NOTHING


@define(eq=False)
class _Node:
    type: str
    name: str = ""
    detail: str = ""
    made_at: str = ""
    step: int = NOTHING
    children: list[int] = field(factory=list)


@define(eq=False)
class TreeBuilder:
    """Collects nodes in the order in which programs are flattened: what is added goes under the node that was opened last."""

    _nodes: list[_Node] = field(factory=list)
    _open: list[int] = field(factory=list)
    _roots: list[int] = field(factory=list)
    _steps: dict[int, int] = field(factory=dict)  # the nodes of static steps
    _holders: set[tuple[int, int]] = field(factory=set)  # nodes, each with a step that is below it

    def _new(self, node: _Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    @property
    def current(self) -> int:
        """The number of the node that was opened last."""
        return self._open[-1]

    def open(self, type: str, name: str = "", detail: str = "", made_at: str = "") -> None:
        """Begin a node, which has to be closed."""
        self._open.append(self._add(_Node(type, name, detail, made_at)))

    def close(self) -> None:
        self._open.pop()

    def open_root(self, type: str, name: str = "") -> None:
        """Begin the tree of another program of the engine."""
        self._roots.append(self.open_apart(type, name))

    def open_apart(self, type: str, name: str = "", made_at: str = "") -> int:
        """Begin a node that is nobody's child yet, see `adopt`; returns its number."""
        self._open.append(self._new(_Node(type, name, "", made_at)))
        return self._open[-1]

    def adopt(self, parent: int, child: int) -> None:
        """Put a node under another one, besides those under which it is already."""
        self._nodes[parent].children.append(child)

    def step(self, step: int, detail: str = "") -> None:
        """A static step."""
        self._steps[step] = self._add(_Node("", "", detail, step=step))
        self._holders.add((self.current, step))

    def join(self, step: int) -> None:
        """What is added joins a static step that is already in the tree: it stands here, too."""
        if (self.current, step) not in self._holders:
            self._holders.add((self.current, step))
            self.adopt(self.current, self._steps[step])

    def _add(self, node: _Node) -> int:
        number = self._new(node)
        self._nodes[self._open[-1]].children.append(number)
        return number

    def finish(self) -> ProgramTree:
        """The tree, its nodes numbered so that children come before parents."""
        order = self._children_first()
        place_of = {number: place for place, number in enumerate(order)}
        nodes = [self._nodes[number] for number in order]
        counts = np.array([len(node.children) for node in nodes], np.int64)
        return ProgramTree(
            type=tuple(node.type for node in nodes),
            name=tuple(node.name for node in nodes),
            detail=tuple(node.detail for node in nodes),
            made_at=tuple(node.made_at for node in nodes),
            step=np.array([node.step for node in nodes], np.int64),
            first_child=offsets(counts),
            child=np.array([place_of[child] for node in nodes for child in node.children], np.int64),
            root=np.array([place_of[root] for root in self._roots], np.int64),
        )

    def _children_first(self) -> list[int]:
        done: dict[int, None] = {}
        pending = list(reversed(self._roots))
        while pending:
            node = pending[-1]
            missing = [child for child in self._nodes[node].children if child not in done]
            if missing:
                pending.extend(reversed(missing))
            else:
                done[pending.pop()] = None
        return list(done)
