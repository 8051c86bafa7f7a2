"""The programs of an engine as a tree of operations: what they do, in which order, and how control goes through it.

Nameless sequences are dissolved: a part of a program is a line of operations, one after another. A function of the graph is a block
of its own, which its calls name. Every moment at which something happens has a *position*: an operation as it begins, what a
program reads or writes between or after its parts, and the beginning and the end of a block. Positions are numbered block by
block, in the order in which the operations of a block are flattened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import frozen

from pypoplar.graph.host_links import Function
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Effects, Program

BlockName: TypeAlias = tuple[str, int]
"""``("program", i)`` for the i-th program of the engine, ``("function", number)`` for a function of the graph."""

NO_POSITION = -1
NO_COMPUTE_SET = -1


@frozen(eq=False)
class Access:
    """What happens at a position: a compute set is executed, tensors are read, and tensors are written when that is done."""

    reads: tuple[Tensor, ...] = ()
    writes: tuple[Tensor, ...] = ()
    compute_set: int = NO_COMPUTE_SET


@frozen(eq=False)
class Line:
    """Operations one after another."""

    operations: tuple[Operation, ...]
    heading: str = ""  # over them in a report's program tree, if they are a part of a program that has one


@frozen(eq=False)
class Perform:
    """A program without parts, and its compute set if it executes one."""

    program: Program
    effects: Effects
    position: int
    compute_set: int = NO_COMPUTE_SET


@frozen(eq=False)
class Moment:
    """The beginning of a block, or what the program around or before it reads or writes then."""

    position: int


@frozen(eq=False)
class Group:
    """A program with parts that run one after another. A Sequence does nothing itself: it has no position."""

    program: Program
    effects: Effects
    position: int
    parts: tuple[Line, ...]


@frozen(eq=False)
class Loop:
    """Run `head`, then as long as wanted `body` and `head` again: what is in `head` runs at least once."""

    program: Program
    effects: Effects
    position: int
    end: int  # the position after the last one within it
    head: Line
    body: Line
    parts: tuple[Line, ...]  # those of the two that the program has


@frozen(eq=False)
class Choice:
    """Run one of the parts, or none of them unless `always`."""

    program: Program
    effects: Effects
    position: int
    parts: tuple[Line, ...]
    always: bool


@frozen(eq=False)
class Invoke:
    """Call a function of the graph."""

    program: Program
    effects: Effects
    position: int
    function: Function


Operation: TypeAlias = Perform | Moment | Group | Loop | Choice | Invoke


@frozen(eq=False)
class Block:
    """One program of the engine, or one function; `begin` is the position of its beginning, `end` that of its end."""

    name: BlockName
    line: Line
    begin: int
    end: int


@frozen(eq=False)
class OperationTree:
    """The blocks of an engine by name, its programs before the functions that they call."""

    blocks: Mapping[BlockName, Block]
    positions: int
    accesses: tuple[Access, ...]
    access_at: Mapping[int, int]  # position -> index into `accesses`; nothing happens at other positions
    kinds: Mapping[type[Program], Program]  # of all programs but sequences, with the first of each

    def programs(self) -> list[Block]:
        """The blocks of the engine's programs, in order."""
        return [block for (kind, _), block in self.blocks.items() if kind == "program"]

    def function(self, function: Function) -> Block:
        """The block of a function."""
        return self.blocks["function", function.number]
