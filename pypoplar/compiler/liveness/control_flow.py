"""The programs of an engine as positions, and how control goes through them: what the liveness pass walks.

Every program but a Sequence has a position, in the order in which `pypoplar.compiler.lowering.lower` lowers them; so has the
beginning of an engine's program or function, the branch of a while loop (after its condition) and the end of a CycleCount. The
positions of one program or function are a *block*. `Lowering.marks` has the same positions with the static steps that they became.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field, frozen

from pypoplar import program as kinds
from pypoplar.graph.host_links import Function
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Calling, InTurn, Nothing, OneOf, Rounds, Vertices

Items = list["Item"]
BlockName = tuple[str, int]
"""``("program", i)`` for the i-th program of the engine, ``("function", number)`` for a function of the graph."""


@frozen(eq=False)
class Run:
    """Positions one after another, without a branch."""

    begin: int
    end: int


@define(eq=False)
class Loop:
    """Run `head`, then as long as wanted `body` and `head` again: what is in `head` runs at least once."""

    head: Items
    body: Items
    begin: int
    end: int


@define(eq=False)
class Choice:
    """One of several."""

    branches: list[Items]


@frozen(eq=False)
class Invoke:
    """A call of a function of the graph."""

    function: int
    position: int


Item = Run | Loop | Choice | Invoke


@frozen(eq=False)
class Block:
    """One program of the engine, or one function."""

    name: BlockName
    items: Items
    begin: int
    end: int


@frozen(eq=False)
class Access:
    """What happens at a position: a compute set is executed, tensors are read, and tensors are written when that is done."""

    reads: tuple[Tensor, ...] = ()
    writes: tuple[Tensor, ...] = ()
    compute_set: int = -1


@define(eq=False)
class ControlFlow:
    """Blocks and accesses, filled program by program."""

    blocks: dict[BlockName, Block] = field(factory=dict)
    calls: dict[BlockName, list[int]] = field(factory=dict)  # the functions that each block calls
    accesses: list[Access] = field(factory=list)
    access_of: dict[int, int] = field(factory=dict)  # position -> index into accesses
    positions: int = 0
    _numbers: dict[int, tuple[kinds.Program, int]] = field(factory=dict)  # id of a program -> its access
    _functions: dict[int, Function] = field(factory=dict)  # called, but not yet walked

    def add(self, number: int, one: kinds.Program) -> None:
        """Add program `number` of the engine and the functions that it calls."""
        self._add_block(("program", number), one)
        while self._functions:
            called, function = self._functions.popitem()
            if ("function", called) not in self.blocks:
                self._add_block(("function", called), kinds.function_program(function))

    def callers_first(self) -> list[Block]:
        """All blocks; a function comes after everything that calls it."""
        order: list[BlockName] = []
        done: set[BlockName] = set()

        def visit(name: BlockName) -> None:
            if name not in done:
                done.add(name)
                for called in self.calls[name]:
                    visit(("function", called))
                order.append(name)

        for name in self.blocks:
            visit(name)
        return [self.blocks[name] for name in reversed(order)]

    def _add_block(self, name: BlockName, one: kinds.Program) -> None:
        begin = self._next()
        items: Items = [Run(begin, self.positions)]
        self.calls[name] = []
        self._walk(one, items, self.calls[name])
        self.blocks[name] = Block(name, items, begin, self.positions)

    def _next(self) -> int:
        self.positions += 1
        return self.positions - 1

    def _walk(self, one: kinds.Program, items: Items, calls: list[int]) -> None:
        """Append what a program does to `items`, and the functions it calls to `calls`."""
        if isinstance(one, kinds.Sequence):
            for part in one.flat():
                self._walk(part, items, calls)
            return
        begin = self._place(one, items)
        if isinstance(one, kinds.Repeat):
            body = self._items(one.body, calls)
            head, rest = (body, []) if one.count else ([], body)
            items.append(Loop(head, rest, begin, self.positions))
        elif isinstance(one, kinds.RepeatWhileTrue | kinds.RepeatWhileFalse):
            head = self._items(one.condition, calls)
            self._note(Access(reads=(one.predicate,)), head)
            items.append(Loop(head, self._items(one.body, calls), begin, self.positions))
        elif isinstance(one, kinds.If):
            items.append(Choice([self._items(part, calls) for part in (one.then, one.otherwise)]))
        elif isinstance(one, kinds.Switch):
            parts = [part for _, part in one.cases]
            branches = [self._items(part, calls) for part in parts]
            items.append(Choice([*branches, [] if one.default is None else self._items(one.default, calls)]))
        elif isinstance(one, kinds.CycleCount):
            self._walk(one.body, items, calls)
            self._note(Access(writes=(one.result,)), items)
        elif isinstance(one, kinds.Call) and isinstance(one.function, Function):
            items.append(Invoke(one.function.number, begin))
            calls.append(one.function.number)
            self._functions[one.function.number] = one.function

    def _items(self, one: kinds.Program, calls: list[int]) -> Items:
        items: Items = []
        self._walk(one, items, calls)
        return items

    def _place(self, one: kinds.Program, items: Items) -> int:
        """Give a program its position; a program that stands in several places has one access in all of them."""
        if id(one) not in self._numbers:
            access = access_of(one)
            if access is None:
                return self._note(None, items)
            self._numbers[id(one)] = one, len(self.accesses)
            self.accesses.append(access)
        position = self._note(None, items)
        self.access_of[position] = self._numbers[id(one)][1]
        return position

    def _note(self, access: Access | None, items: Items) -> int:
        """The next position, with an access of its own if it has one."""
        position = self._next()
        if access is not None:
            self.access_of[position] = len(self.accesses)
            self.accesses.append(access)
        last = items[-1] if items else None
        if isinstance(last, Run) and last.end == position:
            items[-1] = Run(last.begin, position + 1)
        else:
            items.append(Run(position, position + 1))
        return position


def control_flow(programs: Iterable[kinds.Program]) -> ControlFlow:
    """The control flow of an engine's programs."""
    flow = ControlFlow()
    for number, one in enumerate(programs):
        flow.add(number, one)
    return flow


def access_of(one: kinds.Program) -> Access | None:
    """What a program does at its own position; None if that is nothing. Its parts have positions of their own."""
    match one.contains():
        case Vertices(compute_set):
            return Access(one.reads(), one.writes(), compute_set.getId())
        case Rounds():
            return None  # it reads after its head
        case Nothing():
            reads, writes = one.reads(), one.writes()
        case InTurn() | OneOf() | Calling():
            reads, writes = one.reads(), ()
    return Access(reads, writes) if reads or writes else None
