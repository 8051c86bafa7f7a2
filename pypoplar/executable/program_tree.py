"""The program tree: what the control program was made of, for the report.

It is kept as a table of nodes, children before parents, so that it can be saved and walked whatever its depth. A function is one
node under every Call of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field, frozen

from pypoplar import program as kinds

Array = np.ndarray[Any, np.dtype[Any]]

NO_STEP = -1


@frozen(eq=False)
class ProgramTree:
    """Nodes by number. A node that is a static step takes its name and type from the step; it has none here."""

    type: tuple[str, ...]  # "Sequence", "Repeat", ...: libpva's program types, or the program's class
    name: tuple[str, ...]
    detail: tuple[str, ...]  # in words: "100 times"
    step: Array  # int64: the static step that the node is, or -1
    first_child: Array  # int64 [nodes + 1]: where the node's children begin in the next
    child: Array  # int64: numbers of nodes, each less than its parent's
    root: Array  # int64: the node of each program of the engine

    def __len__(self) -> int:
        return len(self.type)

    def children(self, node: int) -> Array:
        """The numbers of a node's children, in program order."""
        found: Array = self.child[self.first_child[node] : self.first_child[node + 1]]
        return found


@define(eq=False)
class _Node:
    type: str
    name: str = ""
    detail: str = ""
    step: int = NO_STEP
    children: list[int] = field(factory=list)


@define(eq=False)
class TreeBuilder:
    """Collects nodes in the order in which programs are lowered: what is added goes under the node that was opened last."""

    _nodes: list[_Node] = field(factory=list)
    _open: list[int] = field(factory=list)
    _roots: list[int] = field(factory=list)

    def _new(self, node: _Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    @property
    def current(self) -> int:
        """The number of the node that was opened last."""
        return self._open[-1]

    def open(self, type: str, name: str = "", detail: str = "") -> None:
        """Begin a node, which has to be closed."""
        self._open.append(self._add(_Node(type, name, detail)))

    def close(self) -> None:
        self._open.pop()

    def open_root(self, type: str, name: str = "") -> None:
        """Begin the tree of another program of the engine."""
        self._roots.append(self.open_apart(type, name))

    def open_apart(self, type: str, name: str = "") -> int:
        """Begin a node that is nobody's child yet, see `adopt`; returns its number."""
        self._open.append(self._new(_Node(type, name)))
        return self._open[-1]

    def adopt(self, parent: int, child: int) -> None:
        """Put a node under another one, besides those under which it is already."""
        self._nodes[parent].children.append(child)

    def step(self, step: int, detail: str = "") -> None:
        """A static step."""
        self._add(_Node("", "", detail, step))

    def _add(self, node: _Node) -> int:
        number = self._new(node)
        self._nodes[self._open[-1]].children.append(number)
        return number

    def finish(self) -> ProgramTree:
        """The tree, its nodes numbered so that children come before parents."""
        order = self._children_first()
        number = {node: place for place, node in enumerate(order)}
        nodes = [self._nodes[one] for one in order]
        counts = np.array([len(one.children) for one in nodes], np.int64)
        return ProgramTree(
            type=tuple(one.type for one in nodes),
            name=tuple(one.name for one in nodes),
            detail=tuple(one.detail for one in nodes),
            step=np.array([one.step for one in nodes], np.int64),
            first_child=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            child=np.array([number[child] for one in nodes for child in one.children], np.int64),
            root=np.array([number[one] for one in self._roots], np.int64),
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


def described(one: kinds.Program) -> tuple[str, str, str] | None:
    """Type, name and detail of a program's node; None for one that is not a node but stands for its steps or parts."""
    if isinstance(one, kinds.Sequence | kinds.Execute | kinds.Copy | kinds.Sync):
        return None
    return type(one).__name__, one.name, one.detail()
