"""Walks the programs of an engine, once, into a tree of operations."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import assert_never

from attrs import define, field

from pypoplar.codelet.ir.terms import line_text
from pypoplar.compiler.control.operation_tree import (
    NO_COMPUTE_SET,
    NO_POSITION,
    Access,
    Block,
    BlockName,
    Choice,
    Group,
    Invoke,
    Line,
    Loop,
    Moment,
    Operation,
    OperationTree,
    Perform,
)
from pypoplar.compiler.control.stackless import Calls, answer
from pypoplar.errors import ControlProgramError
from pypoplar.graph.graph import Graph
from pypoplar.graph.host_links import Function
from pypoplar.program.base import Calling, Effects, InTurn, Nothing, OneOf, Part, Program, Rounds, Vertices, function_program
from pypoplar.program.sequence import Sequence

DEEPEST = 5_000
"""How many programs with parts, other than sequences, may stand in each other; a function counts where it is called."""

Operations = list[Operation]


class When(Enum):
    """When a program reads or writes: as it begins, when a loop decides whether to go on, when all its parts are done."""

    BEGINS, DECIDES, ENDS = range(3)


def operation_tree(programs: Iterable[Program], graph: Graph) -> OperationTree:
    """The operations of an engine's programs and of the functions that they call; `graph` is all of it, not a virtual part.

    `ControlProgramError` for programs that nest too deep or hold themselves, for those that say of themselves what cannot be,
    and for what is of another graph.
    """
    walk = _Walk(graph)
    for number, program in enumerate(programs):
        walk.add(number, program)
    return OperationTree(walk.blocks, walk.positions, tuple(walk.accesses), walk.access_at, walk.kinds)


def too_deep(program: Program, depth: int) -> ControlProgramError:
    """The refusal of a program with `depth` programs around and within it, itself counted."""
    return ControlProgramError(f"programs nest {depth:,} deep at {program!r}: at most {DEEPEST:,} may stand in each other")


@define(eq=False)
class _Walk:
    """What has been walked so far."""

    graph: Graph
    blocks: dict[BlockName, Block] = field(factory=dict)
    accesses: list[Access] = field(factory=list)
    access_at: dict[int, int] = field(factory=dict)
    kinds: dict[type[Program], Program] = field(factory=dict)
    positions: int = 0
    _access_of: dict[tuple[int, When], int] = field(factory=dict)  # id of a program -> its access
    _effects: dict[int, Effects] = field(factory=dict)  # by id of a program
    _programs: list[Program] = field(factory=list)  # those in `_effects`: their ids stay theirs
    _called: dict[int, Function] = field(factory=dict)  # functions that are not walked yet, by number
    _around: dict[int, Program] = field(factory=dict)  # the programs around the one that is walked, by id
    _depth: int = 0  # of these, how many are no sequences

    def add(self, number: int, program: Program) -> None:
        """Walk program `number` of the engine and the functions that it calls."""
        self._add_block(("program", number), program)
        while self._called:
            called, function = self._called.popitem()
            if ("function", called) not in self.blocks:
                self._add_block(("function", called), function_program(function))

    def _add_block(self, name: BlockName, program: Program) -> None:
        begin = self._next()
        operations: Operations = [Moment(begin)]
        answer(self._walk(program, operations))
        self.blocks[name] = Block(name, Line(tuple(operations)), begin, self._next())

    def _walk(self, program: Program, operations: Operations) -> Calls[None]:
        """Append what a program does to `operations`."""
        effects = self._effects_of(program)
        if self._performs(program, effects, operations):
            return
        if isinstance(program, Sequence):
            yield self._sequence(program, effects, operations)
            return
        self.kinds.setdefault(type(program), program)
        position = self._next()
        reads, writes = effects.reads, effects.writes
        match contents := effects.contents:
            case Nothing() | Vertices():
                raise AssertionError("what has no parts is performed")
            case Calling(function):
                self._happens(position, program, When.BEGINS, Access(reads))
                self._called[function.number] = function
                operations.append(Invoke(program, effects, position, function))
            case InTurn(parts):
                self._happens(position, program, When.BEGINS, Access(reads))
                operations.append(Group(program, effects, position, (yield self._parts(program, parts))))
            case OneOf(parts, always):
                self._happens(position, program, When.BEGINS, Access(reads))
                operations.append(Choice(program, effects, position, (yield self._parts(program, parts)), always))
            case Rounds(head, body):
                operations.append((yield self._loop(program, effects, position, head, body)))
            case _:
                assert_never(contents)
        if writes:
            operations.append(self._moment(program, When.ENDS, Access(writes=writes)))

    def _performs(self, program: Program, effects: Effects, operations: Operations) -> bool:
        """Append a program without parts; False for one with parts."""
        contents = effects.contents
        if isinstance(program, Sequence) or not isinstance(contents, Nothing | Vertices):
            return False
        compute_set = contents.compute_set.getId() if isinstance(contents, Vertices) else NO_COMPUTE_SET
        self.kinds.setdefault(type(program), program)
        position = self._next()
        self._happens(position, program, When.BEGINS, Access(effects.reads, effects.writes, compute_set))
        operations.append(Perform(program, effects, position, compute_set))
        return True

    def _effects_of(self, program: Program) -> Effects:
        """What a program says of itself; it is asked once, wherever it stands."""
        effects = self._effects.get(id(program))
        if effects is None:
            effects = self._effects[id(program)] = program.effects()
            self._programs.append(program)
            self._check_graph(program, effects)
        return effects

    def _check_graph(self, program: Program, effects: Effects) -> None:
        """`ControlProgramError` unless all that a program names is of this graph, and what it writes can be written."""
        for tensors in (effects.reads, effects.writes):
            for tensor in tensors:
                if tensor.graph is not self.graph:
                    raise self._of_another_graph(program, tensor._described())
        for tensor in effects.writes:
            if tensor.containsConstant():
                raise ControlProgramError(f"{program!r} writes to {tensor._described()}: it holds a constant")
        match effects.contents:
            case Vertices(compute_set) if compute_set.graph is not self.graph:
                raise self._of_another_graph(program, repr(compute_set))
            case Calling(function) if not self.graph.host().has(function):
                raise self._of_another_graph(program, f"the function made at {line_text(function.location)}")

    @staticmethod
    def _of_another_graph(program: Program, what: str) -> ControlProgramError:
        return ControlProgramError(f"{program!r} uses {what} of another graph: an Engine's programs are of its own graph")

    def _sequence(self, sequence: Sequence, effects: Effects, operations: Operations) -> Calls[None]:
        """A sequence's programs: among the operations around it, or in a group of their own if it has a name."""
        contents = effects.contents
        if effects.reads or effects.writes or not isinstance(contents, InTurn):
            named = [tensor._described() for tensor in (*effects.reads, *effects.writes)]
            raise ControlProgramError(
                f"{sequence!r} is a Sequence, which runs its parts in turn and does nothing itself, but it says that it contains "
                f"{type(contents).__name__} and reads or writes {', '.join(named) or 'nothing'}; make a kind of Program"
            )
        inside: Operations = [] if sequence.name else operations
        self._enter(sequence)
        for part in contents.parts:
            program = part.program
            if not self._performs(program, self._effects_of(program), inside):  # most of thousands, and a call is dear
                yield self._walk(program, inside)
        self._leave(sequence)
        if sequence.name:
            operations.append(Group(sequence, effects, NO_POSITION, (Line(tuple(inside)),)))

    def _loop(self, program: Program, effects: Effects, position: int, head: Part | None, body: Part | None) -> Calls[Loop]:
        self._enter(program)
        before: Operations = []
        if head is not None:
            yield self._walk(head.program, before)
        if effects.reads:
            before.append(self._moment(program, When.DECIDES, Access(effects.reads)))
        after: Operations = []
        if body is not None:
            yield self._walk(body.program, after)
        self._leave(program)
        first = Line(tuple(before), "" if head is None else head.heading)
        again = Line(tuple(after), "" if body is None else body.heading)
        parts = (() if head is None else (first,)) + (() if body is None else (again,))
        return Loop(program, effects, position, self.positions, first, again, parts)

    def _parts(self, program: Program, parts: Iterable[Part]) -> Calls[tuple[Line, ...]]:
        self._enter(program)
        lines = []
        for part in parts:
            operations: Operations = []
            yield self._walk(part.program, operations)
            lines.append(Line(tuple(operations), part.heading))
        self._leave(program)
        return tuple(lines)

    def _enter(self, program: Program) -> None:
        """The programs that come now stand in this one."""
        if id(program) in self._around:
            raise ControlProgramError(f"{program!r} holds itself")
        self._around[id(program)] = program
        if not isinstance(program, Sequence):
            self._depth += 1
            if self._depth > DEEPEST:
                raise too_deep(program, self._depth)

    def _leave(self, program: Program) -> None:
        del self._around[id(program)]
        if not isinstance(program, Sequence):
            self._depth -= 1

    def _next(self) -> int:
        self.positions += 1
        return self.positions - 1

    def _moment(self, program: Program, when: When, access: Access) -> Moment:
        """What a program with parts reads or writes when some of them are done."""
        position = self._next()
        self._happens(position, program, when, access)
        return Moment(position)

    def _happens(self, position: int, program: Program, when: When, access: Access) -> None:
        """Note what a program does at a position; one that stands in several places has one access in all of them."""
        if not access.reads and not access.writes and access.compute_set == NO_COMPUTE_SET:
            return
        key = id(program), when
        number = self._access_of.get(key)
        if number is None:
            number = self._access_of[key] = len(self.accesses)
            self.accesses.append(access)
        self.access_at[position] = number
