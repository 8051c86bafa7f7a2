"""Registers run out: what does not fit is on the stack, and is loaded again where it is read.

A worker has eight auxiliary registers and eleven main ones (the others of the sixteen are zero, stack, vertex and scratch). What a
run reads but does not make occupies a register throughout, what it makes from there to its last reader. If both do not fit, the
compiler gives up registers that are held throughout, those with the fewest readers first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pypoplar.codelet.cost.bundles import Bundle, bundled
from pypoplar.codelet.cost.instructions import Instruction, MachineRun, Pipe, Register

CAPACITY = {Pipe.MAIN: 11, Pipe.AUXILIARY: 8}


def scheduled(run: MachineRun, before: MachineRun | None, held: int, *, paired: bool) -> list[Bundle]:
    """The bundles of a run, with reloads of what does not fit in registers.

    `before` is the run in front of the loop around, where what is given up is stored; `held` are main registers that the
    loop itself occupies.
    """
    bundles = bundled(run.instructions, run.ending, paired=paired)
    for file in Pipe:
        while given_up := _given_up(run, file, _missing(run, bundles, file, held if file is Pipe.MAIN else 0)):
            _reload(run, given_up)
            if before is not None:
                before.instructions += [_stack("st32", run.instructions[0].where, [register]) for register in given_up]
            bundles = bundled(run.instructions, run.ending, paired=paired)
    return bundles


def _stack(name: str, where: int, reads: Sequence[Register] = (), result: Register | None = None) -> Instruction:
    return Instruction(f"{name} (stack)", Pipe.MAIN, where, result, reads, needed=True)


def _missing(run: MachineRun, bundles: Sequence[Bundle], file: Pipe, held: int) -> int:
    """By how many registers of a file the run exceeds what there are."""
    made = {instruction.result for instruction in run.instructions}
    read = {register for instruction in (*run.instructions, *run.ending) for register in instruction.reads} - made
    fixed = sum(register.words for register in read if register.file is file)
    return fixed + held + _most_alive(bundles, file) - CAPACITY[file]


def _most_alive(bundles: Sequence[Bundle], file: Pipe) -> int:
    """The most registers of a file that hold what the bundles make, at any time."""
    made: dict[Register, int] = {}
    last: dict[Register, int] = {}
    for time, bundle in enumerate(bundles):
        for instruction in bundle.instructions:
            last |= dict.fromkeys(instruction.reads, time)
            if instruction.result is not None and instruction.result.file is file:
                made[instruction.result] = time
    changes: Counter[int] = Counter()
    for register, time in made.items():
        changes[time] += register.words
        changes[max(last.get(register, time), time + 1)] -= register.words
    alive = most = 0
    for time in sorted(changes):
        alive += changes[time]
        most = max(most, alive)
    return most


def _given_up(run: MachineRun, file: Pipe, missing: int) -> list[Register]:
    """Registers that are held throughout a run, those with the fewest readers first."""
    if missing <= 0:
        return []
    made = {instruction.result for instruction in run.instructions}
    readers = Counter(register for instruction in run.instructions for register in dict.fromkeys(instruction.reads))
    held = [register for register in readers if register.file is file and register not in made and register.depth < run.depth]
    return sorted(held, key=lambda register: (readers[register], -register.number))[:missing]


def _reload(run: MachineRun, given_up: Sequence[Register]) -> None:
    """Load registers again in front of each of their readers."""
    instructions = []
    for instruction in run.instructions:
        for register in given_up:
            if register in instruction.reads:
                copy = Register(register.file, register.words, run.depth)
                instructions.append(_stack("ld32", instruction.where, (), copy))
                instruction.reads = [copy if read is register else read for read in instruction.reads]
        instructions.append(instruction)
    run.instructions = instructions
