"""Which instructions stay: those that do something, and what these read, directly or by way of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pypoplar.codelet.cost.instructions import Instruction, MachineRun, Register


class NeededCode:
    """The registers that needed instructions read, and some that are needed besides."""

    def __init__(self, runs: Sequence[MachineRun], besides: Iterable[Register]) -> None:
        instructions = [one for run in runs for one in (*run.instructions, *run.ending)]
        self._makers = {one.result: one for one in instructions if one.result is not None}
        self.registers: set[Register] = set()
        self._read(besides)
        for instruction in instructions:
            if instruction.needed:
                self._read(instruction.reads)

    def __contains__(self, instruction: Instruction) -> bool:
        return instruction.needed or instruction.result in self.registers

    def _read(self, registers: Iterable[Register]) -> None:
        waiting = list(registers)
        while waiting:
            register = waiting.pop()
            if register not in self.registers:
                self.registers.add(register)
                waiting += register.sources
                if register in self._makers:
                    waiting += self._makers[register].reads

    def keep(self, runs: Sequence[MachineRun]) -> None:
        """Take what nobody needs out of the runs."""
        for run in runs:
            run.instructions = [instruction for instruction in run.instructions if instruction in self]
