"""From the typed form to machine instructions: what locals and spans hold, and what the compiler knows of integers.

What runs stays as it is; the instructions are made to be priced. A walk follows the typed form block by block
(`pypoplar.codelet.cost.control_code`) and makes a run of instructions for each straight run, in the order in which
`pypoplar.codelet.cost.pricing` goes through them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field, frozen

from pypoplar.codelet.cost.addresses import Addresses, SpanValue
from pypoplar.codelet.cost.affine_index import AffineIndex
from pypoplar.codelet.cost.constants import literal_in_register
from pypoplar.codelet.cost.instructions import Instruction, MachineRun, Pipe, Register
from pypoplar.codelet.cost.numbering import Numbering
from pypoplar.codelet.ir.typed import Literal, Operand, TypedCodelet
from pypoplar.codelet.operations.registers import FLOATS

Known = Register | Literal


def file_of(type: str) -> Pipe:
    """The register file of a register type."""
    return Pipe.AUXILIARY if type in FLOATS else Pipe.MAIN


def words_of(type: str) -> int:
    """Registers, and words of memory, that a register type takes."""
    return 2 if type in ("i64", "u64") else 1


@define(eq=False)
class Selection:
    """The state of the walk."""

    codelet: TypedCodelet
    architecture: str
    workers: int = 1  # of a tile that run the codelet: what `ipu.worker_count()` gives
    numbering: Numbering = field(factory=Numbering)
    locals: dict[str, Known] = field(factory=dict)
    spans: dict[str, SpanValue] = field(factory=dict)
    indices: dict[Register, AffineIndex] = field(factory=dict)  # of integers that are sums
    constants: dict[Register, int] = field(factory=dict)  # what integers are whose value is known, though a register holds them
    most: dict[Register, int] = field(factory=dict)  # that an integer can be which is not negative
    lanes: dict[Register, list[Register]] = field(factory=dict)  # the elements of what is computed on vectors of the hardware
    roots: dict[object, str] = field(factory=dict)  # the field that the base of a span is a piece of
    addresses: Addresses = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.addresses = Addresses(self.numbering)

    def known(self, operand: Operand) -> Known:
        if isinstance(operand, Literal):
            return operand
        if operand.name not in self.locals:  # unset on this way, or the worker's number
            self.locals[operand.name] = Register(file_of(operand.type), words_of(operand.type))
        return self.locals[operand.name]

    def in_register(self, known: Known, where: int, file: Pipe) -> Register | None:
        """The register of a value in a file; None for a zero, which has a register of its own."""
        if isinstance(known, Literal):
            return literal_in_register(self.numbering, known, where)
        return self.moved(known, where, file)

    def moved(self, register: Register, where: int, file: Pipe) -> Register:
        """The register, or a copy in the other file: a move from the auxiliary to the main one; the way back is through memory."""
        held = register.whole or register
        if register.file is file:
            return held
        if file is Pipe.MAIN:
            instruction = Instruction("mov", Pipe.MAIN, where, reads=(held,))
        else:
            instruction = Instruction("st32, ld32", Pipe.MAIN, where, reads=(held,), slots=2)
        return self.numbering.value(("moved", register), instruction, file)

    def index(self, operand: Operand) -> AffineIndex:
        """An integer operand as a sum."""
        known = self.known(operand)
        if isinstance(known, Literal):
            return AffineIndex(constant=int(known.value))
        return self.indices.get(known) or AffineIndex.of(known)

    def constant(self, known: Known) -> int | None:
        """The value of an integer that the compiler knows."""
        if isinstance(known, Register):
            return self.constants.get(known)
        return int(known.value) if known.type not in FLOATS else None

    def bound(self, known: Known) -> int | None:
        """The most that an integer which is not negative can be, as far as the compiler can see."""
        if isinstance(known, Register):
            return self.most.get(known)
        return int(known.value) if known.type not in FLOATS and known.value >= 0 else None

    def branch(self, condition: Operand, where: int, *, loops: bool = False) -> None:
        """A branch at the end of the run; one that `loops` is there even if it is always taken."""
        known = self.known(condition)
        if isinstance(known, Register):
            reads = (self.moved(known, where, Pipe.MAIN),)
            self.numbering.run.ending.append(Instruction("brz", Pipe.MAIN, where, reads=reads, control=True, needed=True))
        elif loops:
            self.numbering.run.ending.append(Instruction("bri", Pipe.MAIN, where, control=True, needed=True))


@frozen(eq=False)
class Way:
    """One of the ways on which a place is reached: what locals hold at its end, and the last run of its code."""

    locals: Mapping[str, Known]
    run: MachineRun


def merged(names: Iterable[str], ways: Sequence[Way], depth: int) -> dict[str, Known]:
    """What locals hold where several ways meet: a register of their own where the ways differ."""
    result: dict[str, Known] = {}
    for name in names:
        held = [way for way in ways if name in way.locals]
        if not held:
            continue
        values = [way.locals[name] for way in held]
        if all(_same(value, values[0]) for value in values):
            result[name] = values[0]
            continue
        sources = [at_the_end(way.run, value) for way, value in zip(held, values, strict=True)]
        result[name] = Register(sources[0].file, sources[0].words, depth, sources)
    return result


def at_the_end(run: MachineRun, known: Known) -> Register:
    """The register of a value at the end of a run, put there if it is a constant."""
    if isinstance(known, Register):
        return known
    register = Register(file_of(known.type), words_of(known.type), run.depth)
    where = run.instructions[-1].where if run.instructions else 0
    run.instructions.append(Instruction("or" if register.file is Pipe.AUXILIARY else "setzi", register.file, where, register))
    return register


def _same(value: Known, other: Known) -> bool:
    return value is other or (isinstance(value, Literal) and isinstance(other, Literal) and value == other)
