"""The report's program tree: what the control program consists of, with the static steps that its leaves are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.notebook import ShownInNotebooks


@frozen
class VertexInstances:
    """The vertices of one type in a compute set."""

    name: str  # of the vertex type
    count: int

    @property
    def type(self) -> VertexInstances:
        """Itself, so that the type is named as libpva writes it, ``vertex.type.name``."""
        return self


@frozen
class ComputeSet:
    """A compute set of the program, given by `Compilation.computeSets`.

    Attributes
    ----------
    name:
        Its debug name.
    vertices:
        Its vertex types, with how many vertices there are of each.
    made_at:
        The line of the user's code that made it, ``file:line``; empty where it is not known.
    ran:
        By static step that executes it: compute cycles by tile, of all runs.
    """

    name: str
    vertices: tuple[VertexInstances, ...] = ()
    made_at: str = ""
    ran: dict[int, Int64s] = field(init=False, factory=dict, eq=False, repr=False)  # by step: compute cycles by tile, of all runs

    @property
    def numVertices(self) -> int:
        """The number of vertices of all types that the compute set has."""
        return sum(vertices.count for vertices in self.vertices)

    def cyclesByTile(self) -> Int64s:
        """Compute cycles of each tile in all executions of the compute set, int64 [tiles]; empty while it has not run."""
        total: Int64s = np.sum(list(self.ran.values()), 0) if self.ran else np.zeros(0, np.int64)
        return total


def short_place(place: str) -> str:
    """``model.py:12`` of a line's ``file:line``, as tables and texts show it."""
    return place.replace("\\", "/").rpartition("/")[2]


SHOWN = 100  # programs that a repr writes out


def _shown_children(children: tuple[Program, ...]) -> str:
    """The repr of what a program consists of; of what is large, only how much it is."""
    whole = Program("", "", children)
    return repr(children) if sum(1 for _ in islice(whole.walk(), SHOWN + 2)) <= SHOWN + 1 else f"<{len(children):,} programs>"


@frozen(eq=False)
class Program(ShownInNotebooks):
    """A node of the program tree, given by `Compilation.programs`.

    Attributes
    ----------
    name:
        Its debug name.
    type:
        A program type of libpva where it has one: ``Sequence``, ``Repeat``, ``RepeatWhileTrue``, ``RepeatWhileFalse``, ``If``,
        ``Switch``, ``Call``, ``OnTileExecute``, ``DoExchange``, ``StreamCopy``, ``Sync``, ...; else its class's name.
    children:
        What it consists of, in order.
    step:
        The number of the static step that this leaf is; -1 for nodes that cost nothing themselves.
    detail:
        More of it in words: "100 times".
    computeset:
        The compute set that it executes.
    made_at:
        The line of the user's code that made the program, ``file:line``; empty where no line did, or it is not known.
    """

    name: str
    type: str
    children: tuple[Program, ...] = field(default=(), repr=_shown_children)
    step: int = -1
    detail: str = ""
    computeset: ComputeSet | None = field(default=None)
    made_at: str = ""

    def __eq__(self, other: object) -> bool:
        """Whether both trees are equal node by node, however deep they are and whatever stands in several places."""
        if not isinstance(other, Program):
            return NotImplemented
        pending, compared = [(self, other)], set[tuple[int, int]]()
        while pending:
            left, right = pending.pop()
            if left is right or (id(left), id(right)) in compared:
                continue
            compared.add((id(left), id(right)))
            if left._itself() != right._itself():
                return False
            pending.extend(zip(left.children, right.children, strict=True))
        return True

    def __hash__(self) -> int:
        return hash(self._itself())

    def _itself(self) -> tuple[object, ...]:
        """What the node is, without what it consists of."""
        return (self.name, self.type, self.step, self.detail, self.computeset, self.made_at, len(self.children))

    @property
    def vertices(self) -> Mapping[str, int]:
        """The number of vertices by type of the compute set that it executes; empty for other programs."""
        return {vertices.name: vertices.count for vertices in self.computeset.vertices} if self.computeset else {}

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Program]]:
        """This node and all below it in program order: a function once for every Call of it.

        Functions that call each other twice over make it endless; `nodes` has each once.

        Parameters
        ----------
        depth:
            That of this node.

        Yields
        ------
        Iterator[tuple[int, Program]]
            Each node after its depth.
        """
        pending: list[tuple[int, Program]] = [(depth, self)]
        while pending:
            level, node = pending.pop()
            yield level, node
            pending.extend((level + 1, child) for child in reversed(node.children))

    def nodes(self) -> list[Program]:
        """This node and all below it, each object once, children before their parents."""
        nodes: list[Program] = []
        seen: set[int] = set()
        pending = [(self, False)]
        while pending:
            node, entered = pending.pop()
            if entered:
                nodes.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                pending.append((node, True))
                pending.extend((child, False) for child in reversed(node.children) if id(child) not in seen)
        return nodes

    def accept(self, visitor: object) -> Any:
        """Call the visitor's method for this type, such as ``visitOnTileExecute(program)``, if it has one.

        Parameters
        ----------
        visitor:
            An object with such methods, see `ProgramVisitor`.

        Returns
        -------
        Any
            What the method returns; None without one.
        """
        method: Callable[[Program], Any] | None = getattr(visitor, f"visit{self.type}", None)
        return method(self) if method is not None else None


class ProgramVisitor:
    """A base for visitors of programs, as libpva has it: define ``visitOnTileExecute``, ``visitDoExchange``, ``visitStreamCopy``...

    >>> class Names(ProgramVisitor):
    ...     def visitOnTileExecute(self, program):
    ...         return program.name
    >>> Program("multiply", "OnTileExecute").accept(Names())
    'multiply'
    """
