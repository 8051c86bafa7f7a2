"""Flattens the operations of an engine's programs to the flat control program: one row an operation, loops and branches as jumps.

How programs of a kind are flattened is said by the kind's rule; here is what is the same for all: the order of rows, the nodes of
the report's program tree, the first step of every position, and functions, which are flattened once and called.
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
from pypoplar.compiler.flattening import flatten_compute, flatten_control, flatten_copies, flatten_replicas, flatten_services
from pypoplar.compiler.flattening.flattening_state import Flattening
from pypoplar.compiler.flattening.part_paths import PartRows
from pypoplar.compiler.flattening.rules import Around, Leaf, Rule, Rules
from pypoplar.errors import ControlProgramError
from pypoplar.graph.host_links import Function
from pypoplar.interface.opcodes import CallOperand, Opcode
from pypoplar.program.base import Program, kind_of
from pypoplar.program.sequence import Sequence

RULES: Rules = {
    **flatten_compute.RULES,
    **flatten_copies.RULES,
    **flatten_control.RULES,
    **flatten_services.RULES,
    **flatten_replicas.RULES,
}


@frozen(eq=False)
class FlattenedPrograms:
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
    """The rule of a program's kind. What is made of a Sequence is flattened like one; what is made of other kinds may mean else."""
    rule = RULES.get(type(program))
    if rule is None and isinstance(program, Sequence):
        rule = RULES[Sequence]
    if rule is None:
        raise ControlProgramError(f"{program!r} is not a kind of program that an Engine can run")
    return rule


def flatten_programs(flattening: Flattening, tree: OperationTree) -> FlattenedPrograms:
    """Append the rows of the programs of an engine, each followed by the functions that are called first in it."""
    pass_over = _Pass(flattening, tree)
    programs = [pass_over.add_program(block) for block in tree.programs()]
    return FlattenedPrograms(
        tuple(entry for entry, _ in programs), tuple(streams for _, streams in programs), np.array(pass_over.marks, np.int64)
    )


def _which(part: object, parts: SequenceOf[Line]) -> str:
    """What a rule has yielded, in a message."""
    return next((f"part {number}" for number, own in enumerate(parts) if own is part), kind_of(part))


@frozen(eq=False)
class _FlattenedFunction:
    """A function of the graph, as its calls see it."""

    start: int  # its first row
    streams: frozenset[int]  # that it uses
    node: int  # of the program tree


@define(eq=False)
class _Pass:
    """The walk over the operations."""

    flattening: Flattening
    tree: OperationTree
    marks: list[int] = field(init=False)
    _functions: dict[int, _FlattenedFunction] = field(factory=dict)  # by number

    def __attrs_post_init__(self) -> None:
        self.marks = [0] * self.tree.positions

    def add_program(self, block: Block) -> tuple[int, tuple[int, ...]]:
        """Flatten one program of the engine; returns its first row and the streams that it uses."""
        flattening = self.flattening
        entry = flattening.next_row()
        flattening.used_streams = set()
        flattening.tree.open_root("Sequence")
        self._block(block, Opcode.END)
        answer(self._called_functions())
        return entry, tuple(sorted(flattening.used_streams))

    def _block(self, block: Block, last: Opcode) -> None:
        """The rows of a block, within the node of the program tree that was opened last."""
        answer(self._line(block.line))
        self.flattening.tree.close()
        self._mark(block.end)
        self.flattening.row(last, {})

    def _mark(self, position: int) -> None:
        if position != NO_POSITION:
            self.marks[position] = len(self.flattening.steps)

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
        program, flattening = operation.program, self.flattening
        rule = rule_of(program)
        if not isinstance(rule, Leaf):
            raise ControlProgramError(f"{program!r} has no parts: its kind is lowered around parts")
        if not rule.is_steps:
            self._open(type(program), program)
        occurrence = flattening.begin(program, operation.effects, operation.position)
        rule.flatten(flattening, program)
        flattening.end(occurrence)
        if not rule.is_steps:
            flattening.tree.close()

    def _around(self, operation: Group | Loop | Choice) -> Calls[None]:
        program, flattening, parts = operation.program, self.flattening, operation.parts
        rule = rule_of(program)
        if not isinstance(rule, Around):
            raise ControlProgramError(f"{program!r} has parts: its kind is lowered without parts")
        self._open(Sequence if isinstance(program, Sequence) else type(program), program)
        occurrence = flattening.begin(program, operation.effects, operation.position)
        flattened = 0
        yielded = rule.flatten(flattening, program, parts)
        if not isinstance(yielded, Iterable):
            raise occurrence.refusal(f"gives {kind_of(yielded)}: expected its {len(parts)} parts, yielded one after the other")
        for part in yielded:
            if flattened == len(parts) or part is not parts[flattened]:
                raise occurrence.refusal(f"yields {_which(part, parts)}: expected each of its {len(parts)} parts once, in order")
            flattened += 1
            begin = flattening.next_row()
            yield self._part(part, deeper=not isinstance(operation, Group))
            occurrence.parts.append(PartRows(begin, flattening.next_row()))
            flattening.occurrence = occurrence
        if flattened != len(parts):
            raise ControlProgramError(f"{program!r} has {len(parts)} parts: its kind is lowered with {flattened}")
        flattening.end(occurrence)
        flattening.tree.close()

    def _open(self, kind: type[Program], program: Program) -> None:
        """Begin the program's node of the program tree."""
        detail = program.detail()
        if not isinstance(detail, str):
            raise ControlProgramError(f"detail() of {program!r} gives {detail!r}: expected a text")
        self.flattening.tree.open(kind.__name__, program.name, detail, line_text(program.location))

    def _part(self, part: Line, *, deeper: bool) -> Calls[None]:
        self.flattening.depth += deeper
        if part.heading:
            self.flattening.tree.open("Sequence", part.heading)
        yield self._line(part)
        if part.heading:
            self.flattening.tree.close()
        self.flattening.depth -= deeper

    def _called_functions(self) -> Calls[None]:
        """Flatten the functions that are called, each once, and fill in where they start."""
        flattening = self.flattening
        while flattening.pending_calls:
            call = flattening.pending_calls.pop()
            if call.function.number not in self._functions:
                yield self._function(call.function)
            flattened = self._functions[call.function.number]
            flattening.used_streams |= flattened.streams
            flattening.rows[call.row][CallOperand.ROW] = flattened.start
            flattening.tree.adopt(call.node, flattened.node)

    def _function(self, function: Function) -> Calls[None]:
        """A function, and those that it calls: their streams are its streams too."""
        flattening = self.flattening
        outer = flattening.used_streams, flattening.pending_calls
        flattening.used_streams, flattening.pending_calls = set(), []
        start = flattening.next_row()
        node = flattening.tree.open_apart("Sequence", f"function {function.number}", line_text(function.location))
        self._block(self.tree.function(function), Opcode.RETURN)
        yield self._called_functions()
        self._functions[function.number] = _FlattenedFunction(start, frozenset(flattening.used_streams), node)
        flattening.used_streams, flattening.pending_calls = outer
