"""Instructions of a worker, as far as they decide what code costs: their pipe, the registers they read and write, their memory.

A worker issues a bundle of one instruction for each of its two pipes: the main one has integers, memory and control, the auxiliary
one floating point. Each has a register file of its own. Values are numbered before registers are given out, so a register of
this form is written once, but for those of loops.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Sequence

from attrs import define, field, frozen


class Pipe(enum.IntEnum):
    """A pipe, and the register file of that name."""

    MAIN = 0
    AUXILIARY = 1


@define(eq=False)
class Register:
    """A value in a register file. One with `sources` is made of these outside of its run, or is any of them, by the way taken.

    One that is an element of a vector of the hardware has the `whole` of it, and its number there.
    """

    file: Pipe
    words: int = 1  # registers that hold it
    depth: int = 0  # loops around its definition
    sources: list[Register] = field(factory=list)
    whole: Register | None = None
    lane: int = 0
    number: int = field(factory=itertools.count().__next__, init=False)  # the order in which registers were made


@frozen
class MemoryPlace:
    """Where an access goes: `offset` bytes from a base and a variable distance."""

    base: object
    distance: object
    offset: int

    @property
    def line(self) -> tuple[object, object]:
        """Equal for places that differ by a constant that is known."""
        return self.base, self.distance


CHAR = "char"  # the alias class that meets all others
POINTER = "pointer"
ALIASES = {
    "i8": CHAR, "u8": CHAR, "i16": "short", "u16": "short", "i32": "int", "u32": "int", "i64": "long long", "u64": "long long",
    "f32": "float", "f16": "half", "bool": "bool",
}  # fmt: skip
"""Alias classes by element type: signed and unsigned are one, and a store of characters may change anything."""


def may_alias(alias: str, other: str) -> bool:
    """Whether accesses of two alias classes may meet."""
    return alias == other or CHAR in (alias, other)


@frozen
class MemoryAccess:
    """What an instruction does in memory. `alias` is the class of its element type."""

    alias: str
    place: MemoryPlace


@define(eq=False)
class Instruction:
    """One instruction, or several of one pipe that nothing comes between: `slots` is their number.

    A `call` runs a software function of so many slots. It ends the straight code before it, and no hardware loop can hold it.
    """

    name: str
    pipe: Pipe
    where: int
    result: Register | None = None
    reads: Sequence[Register] = ()
    slots: int = 1
    access: MemoryAccess | None = None
    stores: bool = False
    call: bool = False
    control: bool = False  # a branch, which comes last
    needed: bool = False  # for what it does, whoever reads its result
    on_vectors: bool = False  # of the hardware, as the user has written it


@define(eq=False)
class MachineRun:
    """What a straight run of the typed form became, with what was hoisted to its end.

    `apart` is code at the same price that stands elsewhere: the end of a loop with branches, which each round passes.
    """

    depth: int
    instructions: list[Instruction] = field(factory=list)
    ending: list[Instruction] = field(factory=list)  # branches
    apart: list[Instruction] = field(factory=list)

    def bound(self) -> int:
        """Slots of the busier pipe, and of the calls: no bundles of these instructions take fewer."""
        pipes = [0, 0]
        for instruction in self.instructions:
            if not instruction.call:
                pipes[instruction.pipe] += instruction.slots
        return max(pipes) + sum(instruction.slots for instruction in self.instructions if instruction.call)


class LoopKind(enum.Enum):
    """How a counted loop goes round: by a hardware repeat, by counting down as it branches, or by add, compare and branch."""

    REPEAT = "rpt"
    COUNTED = "brnzdec"
    COMPARED = "brnz"


@define(eq=False)
class MachineLoop:
    """A loop of the typed form, from its run `first` up to `end`, the first behind it. `reason` says why it is no repeat."""

    where: int
    depth: int  # of the loop's body
    first: int  # number of the first run of its body, in the order of the text; of a `while` that of its condition
    end: int = 0
    kind: LoopKind = LoopKind.COMPARED
    reason: str = ""
