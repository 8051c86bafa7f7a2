"""A program while its rule flattens it: rules are open to kinds from outside, so each is held to what its program says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import stepped
from pypoplar.compiler.flattening.part_paths import GOES_TO, PartRows, allowed, forbidden_path
from pypoplar.errors import ControlProgramError
from pypoplar.graph.host_links import Function
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import Opcode, ProgramRow
from pypoplar.program.base import Calling, Effects, InTurn, Program, Vertices

APPENDED_FOR_IT = frozenset(map(int, (Opcode.END, Opcode.RETURN, Opcode.CALL)))
"""Operations that no rule appends itself."""


def refusal(program: Program, text: str) -> ControlProgramError:
    """The error for the rule of a program that does what `text` says."""
    return ControlProgramError(f"the rule of {program!r} {text}")


@define(eq=False)
class Occurrence:
    """A program at one of the places where it stands: what its rule has touched and appended there."""

    program: Program
    effects: Effects
    position: int  # of the operation tree
    begin: int  # its first row
    rows: list[int] = field(factory=list)  # that its rule has appended
    parts: list[PartRows] = field(factory=list)
    calls: frozenset[int] = frozenset()  # rows that call the function that it contains
    executes: bool = False  # the compute set that it contains
    _written: list[Tensor] = field(factory=list)

    def refusal(self, text: str) -> ControlProgramError:
        """The error for its rule, which does what `text` says."""
        return refusal(self.program, text)

    # What the rule touches

    def read(self, tensor: Tensor) -> None:
        """Claim that the program says that it reads a tensor."""
        if not _within(tensor, self.effects.reads):
            raise self._unnamed("reads", tensor, self.effects.reads)

    def write(self, tensor: Tensor) -> None:
        """Claim that the program says that it writes a tensor."""
        if not _within(tensor, self.effects.writes):
            raise self._unnamed("writes", tensor, self.effects.writes)
        self._written.append(tensor)

    def _unnamed(self, does: str, tensor: Tensor, named: Sequence[Tensor]) -> ControlProgramError:
        names = ", ".join(other._described() for other in named) or "nothing"
        return self.refusal(f"{does} {tensor._described()}, but its {does}() names {names}")

    def execute(self, compute_set: ComputeSet) -> None:
        """Claim that the program says that it executes a compute set."""
        contents = self.effects.contents
        if not isinstance(contents, Vertices) or contents.compute_set != compute_set:
            raise self.refusal(f"executes {compute_set!r}, but its contains() is {contents!r}: expected Vertices(compute set)")
        self.executes = True

    def call(self, function: Function, row: int) -> None:
        """Claim that the program says that it calls a function, which `row` does."""
        contents = self.effects.contents
        if not isinstance(contents, Calling) or contents.function is not function:
            raise self.refusal(f"calls a function, but its contains() is {contents!r}: expected Calling(function)")
        self.calls |= {row}

    # What the rule leaves

    def finish(self, rows: list[list[int]]) -> None:
        """Claim that the rule has done what the program says; `rows` are those of the whole program up to here."""
        for tensor in self.effects.writes:
            if not _within(tensor, self._written):
                raise self.refusal(f"does not write {tensor._described()}, which its writes() names")
        contents = self.effects.contents
        if isinstance(contents, Vertices) and not self.executes:
            raise self.refusal(f"does not execute {contents.compute_set!r}, which its contains() names")
        if isinstance(contents, Calling) and not self.calls:
            raise self.refusal("does not call the function that its contains() names")
        own: set[int] | None = None
        for number in self.rows:
            operation = int(rows[number][ProgramRow.OPERATION])
            if operation in APPENDED_FOR_IT and number not in self.calls:
                raise self.refusal(f"appends {Opcode(operation).name}: programs and functions are ended and called for it")
            if operation in GOES_TO:
                own = own or {*self.rows, *(part.begin for part in self.parts), len(rows)}
                self._check_target(Opcode(operation).name, rows[number][GOES_TO[operation]], own, len(rows))
        if self.parts:
            self._check_paths(rows)

    def _check_paths(self, rows: list[list[int]]) -> None:
        """Claim that control goes through the parts as the program says."""
        contents = self.effects.contents
        path = None if not self.rows and isinstance(contents, InTurn) else forbidden_path(contents, self.parts, self.begin, rows)
        if path is not None:
            shown = "parts " + ", ".join(map(str, path)) + " one after the other" if path else "none of its parts"
            raise self.refusal(f"can run {shown}: its contains() says {allowed(contents)} of its {len(self.parts)} parts")

    def _check_target(self, operation: str, target: int, own: set[int], end: int) -> None:
        """Claim that a row goes on within the program, or behind it: at `end`."""
        if target == NOTHING:
            raise self.refusal(f"leaves {operation} open: fill in the row to which it goes")
        if not self.begin <= target <= end:
            raise self.refusal(f"appends {operation} to row {target}: expected {self.begin} to {end}, its own rows or the next")
        if target not in own:
            raise self.refusal(f"appends {operation} to row {target}, which is within a part: expected the first row of a part")


def _within(tensor: Tensor, tensors: Sequence[Tensor]) -> bool:
    """Whether all elements of a tensor are of some of the tensors."""
    for other in tensors:
        if other is tensor:
            return True
    known = [_elements(other) for other in tensors if other.graph is tensor.graph]
    return bool(np.isin(_elements(tensor), np.concatenate([np.zeros(0, np.int64), *known])).all())


def _elements(tensor: Tensor) -> Int64s:
    runs = tensor.runs()
    return stepped(runs.start, runs.count, runs.step)
