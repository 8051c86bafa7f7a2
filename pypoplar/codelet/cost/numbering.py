"""Which values the code has already: one instruction for equal values, placed outside the loops in which they do not change.

The compiler numbers values as it goes along the text. A load is known until a store may change it, by the rules of aliasing by
type; what a branch computes is known inside it only. An instruction stands in front of the outermost loop in which its operands,
and the memory that it reads, stay as they are. A load moves only to where it is executed in any case: its address might be wrong.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence, Set
from contextlib import contextmanager

from attrs import define, field

from pypoplar.codelet.cost.instructions import Instruction, MachineRun, MemoryAccess, Pipe, Register, may_alias


def lanes_of(whole: Register, words: Sequence[int]) -> list[Register]:
    """The elements of a vector in a register, each with what it takes beyond those before it."""
    return [Register(whole.file, count, whole.depth, [whole], whole, lane) for lane, count in enumerate(words)]


@define(eq=False)
class OpenLoop:
    """A loop whose body is being gone through. `stored` are the alias classes that it stores to."""

    before: MachineRun  # the run in front of it
    stored: frozenset[str]
    known: int  # how many tables of known values there were in front of it
    conditional: bool = False  # whether the code here may be passed over in a round


@define(eq=False)
class KnownValues:
    """What is in registers already: values by what they are made of, and loads, by alias class, base and distance, and offset."""

    values: dict[Hashable, Register] = field(factory=dict)
    loads: dict[str, dict[tuple[object, object], dict[int, Register]]] = field(factory=dict)

    def copy(self) -> KnownValues:
        loads = {alias: {line: dict(known) for line, known in lines.items()} for alias, lines in self.loads.items()}
        return KnownValues(dict(self.values), loads)

    def loaded(self, access: MemoryAccess) -> Register | None:
        return self.loads.get(access.alias, {}).get(access.place.line, {}).get(access.place.offset)

    def keep(self, access: MemoryAccess, register: Register) -> None:
        self.loads.setdefault(access.alias, {}).setdefault(access.place.line, {})[access.place.offset] = register

    def change(self, access: MemoryAccess) -> None:
        """A store has changed what may have been there: all of its alias class but what lies at another constant offset."""
        line = access.place.line
        for alias in [alias for alias in self.loads if may_alias(alias, access.alias)]:
            same = self.loads[alias].get(line, {})
            same.pop(access.place.offset, None)
            self.loads[alias] = {line: same} if same else {}

    def forget(self, stored: Set[str]) -> None:
        """Stores to some alias classes may have changed anything of them."""
        if stored:
            self.loads = {
                alias: lines for alias, lines in self.loads.items() if not any(may_alias(alias, other) for other in stored)
            }


@define(eq=False)
class Numbering:
    """The state of a walk through a codelet: where it is, and what it knows."""

    runs: list[MachineRun] = field(factory=lambda: [MachineRun(0)])
    loops: list[OpenLoop] = field(factory=list)
    known: list[KnownValues] = field(factory=lambda: [KnownValues()])

    @property
    def run(self) -> MachineRun:
        return self.runs[-1]

    def next_run(self) -> MachineRun:
        self.runs.append(MachineRun(len(self.loops)))
        return self.run

    # Instructions

    def value(self, key: Hashable, instruction: Instruction, file: Pipe, *, words: int = 1, stays: bool = False) -> Register:
        """The register of a value that is made of others alone: `instruction` makes it, if none has. `key` is what it is.

        One that `stays` is made again in every run that needs it.
        """
        if stays:
            key = (key, len(self.runs))
        register = self.known[-1].values.get(key)
        if register is None:
            depth = len(self.loops) if stays else max((read.depth for read in instruction.reads), default=0)
            if instruction.call:  # a call is not made for nothing
                depth = max(depth, self._conditional_depth())
            register = self._place(instruction, Register(file, words, depth))
            for table in self._tables(depth):
                table.values[key] = register
        return register

    def load(self, instruction: Instruction, file: Pipe, *, safe: bool, words: int = 1) -> Register:
        """The register of what an access of memory gives; a `safe` one may be executed for nothing."""
        access = instruction.access
        assert access is not None
        register = self.known[-1].loaded(access)
        if register is None:
            register = self._loaded(instruction, access, Register(file, words), safe)
            self._keep(access, register, register.depth)
        return register

    def load_together(
        self, instruction: Instruction, accesses: Sequence[MemoryAccess], file: Pipe, *, safe: bool, words: Sequence[int]
    ) -> list[Register]:
        """The registers of neighbouring elements, which one instruction loads; those that are known already stay as they are."""
        known = [self.known[-1].loaded(access) for access in accesses]
        found = [register for register in known if register is not None]
        if len(found) == len(known):
            return found
        whole = self._loaded(instruction, accesses[0], Register(file, sum(words)), safe)
        lanes = lanes_of(whole, words)
        for access, lane in zip(accesses, lanes, strict=True):
            self._keep(access, lane, whole.depth)
        return lanes

    def _loaded(self, instruction: Instruction, access: MemoryAccess, register: Register, safe: bool) -> Register:
        """Put a load where the memory that it reads stays as it is."""
        depth = max((read.depth for read in instruction.reads), default=0)
        for number, loop in enumerate(self.loops, 1):
            if any(may_alias(access.alias, alias) for alias in loop.stored) or (loop.conditional and not safe):
                depth = max(depth, number)
        register.depth = depth
        return self._place(instruction, register)

    def _keep(self, access: MemoryAccess, register: Register, depth: int) -> None:
        for table in self._tables(depth):
            table.keep(access, register)

    def store(self, instruction: Instruction, value: Register | None) -> None:
        """Memory is written, with `value` if it is in a register: what may have been there is known no longer."""
        access = instruction.access
        assert access is not None
        self.store_together(instruction, [(access, value)])

    def store_together(self, instruction: Instruction, stored: Sequence[tuple[MemoryAccess, Register | None]]) -> None:
        """One instruction writes several places."""
        self.run.instructions.append(instruction)
        for access, value in stored:
            self.known[-1].change(access)
            if value is not None:
                self.known[-1].keep(access, value)

    # Blocks

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Code that may be passed over: what becomes known inside is forgotten."""
        conditional = [loop.conditional for loop in self.loops]
        self.known.append(self.known[-1].copy())
        self.may_end()
        yield
        self.known.pop()
        for loop, before in zip(self.loops, conditional, strict=True):
            loop.conditional = before

    @contextmanager
    def loop(self, before: MachineRun, stored: frozenset[str]) -> Iterator[None]:
        """The body of a loop, whose stores may have come before anything in it."""
        self.forget(stored)
        self.loops.append(OpenLoop(before, stored, len(self.known)))
        self.run.depth = len(self.loops)
        self.known.append(self.known[-1].copy())
        yield
        self.known.pop()
        self.loops.pop()

    def forget(self, stored: frozenset[str]) -> None:
        """Stores to some alias classes may have happened."""
        self.known[-1].forget(stored)

    def may_end(self) -> None:
        """From here on, the code may be passed over in a round of any loop around it."""
        for loop in self.loops:
            loop.conditional = True

    def _conditional_depth(self) -> int:
        return max((number for number, loop in enumerate(self.loops, 1) if loop.conditional), default=0)

    def _place(self, instruction: Instruction, result: Register) -> Register:
        """Put an instruction to the end of the run where its result belongs."""
        instruction.result = result
        run = self.run if result.depth >= len(self.loops) else self.loops[result.depth].before
        run.instructions.append(instruction)
        return result

    def _tables(self, depth: int) -> Sequence[KnownValues]:
        """Where a value that is made at a depth is known."""
        return self.known[-1:] if depth >= len(self.loops) else self.known[self.loops[depth].known - 1 :]
