"""Lowers the operations of an engine's programs to the flat control program: one row an operation, loops and branches as jumps.

How programs of a kind are lowered is said by the kind's rule; here is what is the same for all: the order of rows, the nodes of the
report's program tree, the first step of every position, and functions, which are lowered once and called.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from typing import assert_never

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.codelet.ir.terms import line_text
from pypoplar.compiler.control.operation_tree import (
    NO_POSITION,
    Block,
    Choice,
    Group,
    Invoke,
    Line,
    Loop,
    Moment,
    OperationTree,
    Perform,
)
from pypoplar.compiler.control.stackless import Calls, answer
from pypoplar.compiler.lowering import lower_compute, lower_control, lower_copies, lower_replicas, lower_services
from pypoplar.compiler.lowering.lowering_state import Lowering
from pypoplar.compiler.lowering.part_paths import PartRows
from pypoplar.compiler.lowering.rules import Around, Leaf, Rule, Rules
from pypoplar.errors import ControlProgramError
from pypoplar.graph.host_links import Function
from pypoplar.interface.opcodes import CallOperand, Opcode
from pypoplar.program.base import Program, kind_of
from pypoplar.program.sequence import Sequence

RULES: Rules = {
    **lower_compute.RULES,
    **lower_copies.RULES,
    **lower_control.RULES,
    **lower_services.RULES,
    **lower_replicas.RULES,
}


@frozen(eq=False)
class LoweredPrograms:
    """Where the programs of an engine are in the control program."""

    entries: tuple[int, ...]  # the first row of each
    streams: tuple[tuple[int, ...], ...]  # the user's streams that each uses
    marks: Int64s  # by position, the first step from there on


def check_kinds(tree: OperationTree) -> None:
    """`ControlProgramError` for a program of a kind that has no rule, or what is none."""
    for program in tree.kinds.values():
        rule = rule_of(program)
        if not isinstance(rule, Leaf | Around):
            raise ControlProgramError(f"{program!r} is lowered by {rule!r}: expected a rule, Leaf or Around")


def rule_of(program: Program) -> Rule:
    """The rule of a program's kind. What is made of a Sequence is lowered like one; what is made of other kinds may mean else."""
    rule = RULES.get(type(program))
    if rule is None and isinstance(program, Sequence):
        rule = RULES[Sequence]
    if rule is None:
        raise ControlProgramError(f"{program!r} is not a kind of program that an Engine can run")
    return rule


def lower_programs(lowering: Lowering, tree: OperationTree) -> LoweredPrograms:
    """Append the rows of the programs of an engine, each followed by the functions that are called first in it."""
    pass_over = _Pass(lowering, tree)
    programs = [pass_over.add_program(block) for block in tree.programs()]
    return LoweredPrograms(
        tuple(entry for entry, _ in programs), tuple(streams for _, streams in programs), np.array(pass_over.marks, np.int64)
    )


def _which(part: object, parts: SequenceOf[Line]) -> str:
    """What a rule has yielded, in a message."""
    return next((f"part {number}" for number, own in enumerate(parts) if own is part), kind_of(part))


@frozen(eq=False)
class _LoweredFunction:
    """A function of the graph, as its calls see it."""

    start: int  # its first row
    streams: frozenset[int]  # that it uses
    node: int  # of the program tree


@define(eq=False)
class _Pass:
    """The walk over the operations."""

    lowering: Lowering
    tree: OperationTree
    marks: list[int] = field(init=False)
    _functions: dict[int, _LoweredFunction] = field(factory=dict)  # by number

    def __attrs_post_init__(self) -> None:
        self.marks = [0] * self.tree.positions

    def add_program(self, block: Block) -> tuple[int, tuple[int, ...]]:
        """Lower one program of the engine; returns its first row and the streams that it uses."""
        lowering = self.lowering
        entry = lowering.next_row()
        lowering.used_streams = set()
        lowering.tree.open_root("Sequence")
        self._block(block, Opcode.END)
        answer(self._called_functions())
        return entry, tuple(sorted(lowering.used_streams))

    def _block(self, block: Block, last: Opcode) -> None:
        """The rows of a block, within the node of the program tree that was opened last."""
        answer(self._line(block.line))
        self.lowering.tree.close()
        self._mark(block.end)
        self.lowering.row(last, {})

    def _mark(self, position: int) -> None:
        if position != NO_POSITION:
            self.marks[position] = len(self.lowering.steps)

    def _line(self, line: Line) -> Calls[None]:
        for operation in line.operations:
            self._mark(operation.position)
            match operation:
                case Moment():
                    pass
                case Perform() | Invoke():
                    self._leaf(operation)
                case Group() | Loop() | Choice():
                    yield self._around(operation)
                case _:
                    assert_never(operation)

    def _leaf(self, operation: Perform | Invoke) -> None:
        program, lowering = operation.program, self.lowering
        rule = rule_of(program)
        if not isinstance(rule, Leaf):
            raise ControlProgramError(f"{program!r} has no parts: its kind is lowered around parts")
        if not rule.is_steps:
            self._open(type(program), program)
        occurrence = lowering.begin(program, operation.effects, operation.position)
        rule.lower(lowering, program)
        lowering.end(occurrence)
        if not rule.is_steps:
            lowering.tree.close()

    def _around(self, operation: Group | Loop | Choice) -> Calls[None]:
        program, lowering, parts = operation.program, self.lowering, operation.parts
        rule = rule_of(program)
        if not isinstance(rule, Around):
            raise ControlProgramError(f"{program!r} has parts: its kind is lowered without parts")
        self._open(Sequence if isinstance(program, Sequence) else type(program), program)
        occurrence = lowering.begin(program, operation.effects, operation.position)
        lowered = 0
        yielded = rule.lower(lowering, program, parts)
        if not isinstance(yielded, Iterable):
            raise occurrence.refusal(f"gives {kind_of(yielded)}: expected its {len(parts)} parts, yielded one after the other")
        for part in yielded:
            if lowered == len(parts) or part is not parts[lowered]:
                raise occurrence.refusal(f"yields {_which(part, parts)}: expected each of its {len(parts)} parts once, in order")
            lowered += 1
            begin = lowering.next_row()
            yield self._part(part, deeper=not isinstance(operation, Group))
            occurrence.parts.append(PartRows(begin, lowering.next_row()))
            lowering.occurrence = occurrence
        if lowered != len(parts):
            raise ControlProgramError(f"{program!r} has {len(parts)} parts: its kind is lowered with {lowered}")
        lowering.end(occurrence)
        lowering.tree.close()

    def _open(self, kind: type[Program], program: Program) -> None:
        """Begin the program's node of the program tree."""
        detail = program.detail()
        if not isinstance(detail, str):
            raise ControlProgramError(f"detail() of {program!r} gives {detail!r}: expected a text")
        self.lowering.tree.open(kind.__name__, program.name, detail, line_text(program.location))

    def _part(self, part: Line, *, deeper: bool) -> Calls[None]:
        self.lowering.depth += deeper
        if part.heading:
            self.lowering.tree.open("Sequence", part.heading)
        yield self._line(part)
        if part.heading:
            self.lowering.tree.close()
        self.lowering.depth -= deeper

    def _called_functions(self) -> Calls[None]:
        """Lower the functions that are called, each once, and fill in where they start."""
        lowering = self.lowering
        while lowering.pending_calls:
            call = lowering.pending_calls.pop()
            if call.function.number not in self._functions:
                yield self._function(call.function)
            lowered = self._functions[call.function.number]
            lowering.used_streams |= lowered.streams
            lowering.rows[call.row][CallOperand.ROW] = lowered.start
            lowering.tree.adopt(call.node, lowered.node)

    def _function(self, function: Function) -> Calls[None]:
        """A function, and those that it calls: their streams are its streams too."""
        lowering = self.lowering
        outer = lowering.used_streams, lowering.pending_calls
        lowering.used_streams, lowering.pending_calls = set(), []
        start = lowering.next_row()
        node = lowering.tree.open_apart("Sequence", f"function {function.number}", line_text(function.location))
        self._block(self.tree.function(function), Opcode.RETURN)
        yield self._called_functions()
        self._functions[function.number] = _LoweredFunction(start, frozenset(lowering.used_streams), node)
        lowering.used_streams, lowering.pending_calls = outer
