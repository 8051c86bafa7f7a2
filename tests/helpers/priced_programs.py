"""Random programs that can be priced without running them, and profiles of engines to compare."""

import sqlite3
from pathlib import Path
from random import Random
from typing import Any

from engine_random import Count, Deal, Halve, Long, Merge, Mix, Noise, RandomProgram, Rows

from pypoplar import BOOL, INT, Device, Engine, Executable, Tensor, assume, assume_count
from pypoplar.engine.auto_report import save
from pypoplar.program import Call, Copy, If, Program, RepeatWhileFalse, RepeatWhileTrue, Sequence, Switch
from pypoplar.report.report import Report

PRICED = [Mix, Halve, Count, Long, Rows, Deal, Noise, Merge]  # whose cycles no data decide


class PricedProgram(RandomProgram):
    """A random program without prints and host functions, in which what decides is a constant, or assumed as it will be."""

    def __init__(self, random: Random, device: Device, steps: int, replicas: int = 1) -> None:
        self.assumptions: list[Any] = []
        self.constants: dict[str, int] = {}  # by name, what `_constant` has made
        super().__init__(random, device, PRICED, steps, replicas=replicas)
        self.programs.append(Sequence([Call(function) for function in self.functions]))  # so that assumptions in them are used

    def _print(self, depth: int) -> Program:
        return Sequence()

    def _host_call(self, depth: int) -> Program:
        return Sequence()

    def _known(self, type: Any, value: int) -> Any:
        """One element that holds a value whenever it is asked for: a constant, or a variable that nothing writes."""
        self.names += 1
        if self.random.random() < 0.5:
            return self._constant(type, value)
        tensor = self.graph.addVariable(type, [3], f"known{self.names}")
        self.graph.setTileMapping(tensor, self._tile())
        self.graph.setInitialValue(tensor, [1 - value, value, 1 - value] if type is BOOL else [value + 1, value, value + 2])
        if self.random.random() < 0.5:
            self.graph.createHostWrite(f"known{self.names}", tensor)  # by which the host might change it
            self.assumptions.append(assume(tensor[1], value))
        return tensor[1]

    def _if(self, depth: int) -> Program:
        type = self.random.choice([BOOL, INT])
        predicate = self._known(type, self.random.randrange(2))
        otherwise = self._sequence(2, depth - 1) if self.random.random() < 0.5 else None
        return If(predicate, self._sequence(2, depth - 1) if self.random.random() < 0.8 else Sequence(), otherwise)

    def _switch(self, depth: int) -> Program:
        values = self.random.sample(range(-5, 6), 2)
        cases = [(value, self._sequence(2, depth - 1)) for value in values]
        index = self._known(INT, self.random.choice([*values, 7]))
        return Switch(index, cases, self._sequence(2, depth - 1) if self.random.random() < 0.5 else None)

    def _while(self, depth: int) -> Program:
        """A loop that a counter ends: half of the time its rounds are assumed, else they are found."""
        sequence: Program = super()._while(depth)
        assert isinstance(sequence, Sequence)
        start, loop = sequence.programs
        assert isinstance(start, Copy)
        assert isinstance(start.source, Tensor)
        assert isinstance(loop, RepeatWhileTrue | RepeatWhileFalse)
        if self.random.random() < 0.5:
            self.assumptions.append(assume_count(loop, self.constants[start.source.getDebugStr()]))
        return sequence

    def _constant(self, type: Any, value: Any) -> Any:
        constant = super()._constant(type, value)
        self.constants[constant.getDebugStr()] = value
        return constant


def profile(report: Report, path: Path) -> list[str]:
    """All that a report's file has, but when it was made and for which mode."""
    save(report, path)
    with sqlite3.connect(path) as file:
        rows = list(file.iterdump())
    file.close()
    return [row for row in rows if "'created'" not in row and "'cost'" not in row]


def same_profiles(
    made: PricedProgram, executable: Executable, priced: Executable, folder: Path, options: Any, *, runs: Any = (0, 0)
) -> None:
    """Run one executable, price the other, and compare their profiles."""
    engine = Engine(executable, options)
    engine.load(made.device)
    made.connect(engine)
    cost = Engine(priced, options, mode="cost")
    cost.load(made.device)
    for number in runs:
        engine.run(number)
        cost.run(number)
    first, second = (profile(one.getReport(), folder / f"{number}.pop") for number, one in enumerate((engine, cost)))
    assert second == first
