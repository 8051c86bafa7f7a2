"""What a piece of a program costs: cycles, executions of its steps, and the first of them one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from attrs import define, evolve, field, frozen

from pypoplar.arrays.dtypes import AnyArray, Int64s


@frozen(eq=False)
class Executions:
    """Executions of steps in their order, as many of the first as are wanted."""

    step: Int64s
    begin: Int64s  # cycles from the beginning of the piece
    cycles: Int64s
    ipu: Int64s

    @staticmethod
    def none() -> Executions:
        """No executions."""
        nothing = np.zeros(0, np.int64)
        return Executions(nothing, nothing, nothing, nothing)

    @staticmethod
    def joined(parts: list[Executions], most: int) -> Executions:
        """Several behind each other, at most so many."""
        if not parts:
            return Executions.none()
        return Executions(*(np.concatenate([getattr(part, name) for part in parts])[:most] for name in COLUMNS))

    def later(self, cycles: int) -> Executions:
        """The same, so many cycles later."""
        return evolve(self, begin=self.begin + cycles)

    def repeated(self, times: int, apart: int, most: int) -> Executions:
        """The same so many times, so many cycles apart; at most so many executions."""
        if len(self.step) == 0:
            return self
        rounds = min(times, -(-most // len(self.step)))
        begin = (self.begin + apart * np.arange(rounds)[:, None]).ravel()
        step, cycles, ipu = (np.tile(values, rounds)[:most] for values in (self.step, self.cycles, self.ipu))
        return Executions(step, begin[:most], cycles, ipu)


COLUMNS = ("step", "begin", "cycles", "ipu")


@frozen(eq=False)
class IpuSpent:
    """What several IPUs spend in a piece beside what steps take beforehand. `place` is a share of a step, or behind all an IPU.

    A place may be there several times.
    """

    place: Int64s
    computed: AnyArray  # cycles of the share's vertices
    waited: AnyArray  # cycles that the IPU waits for others: before the share, or where no step is

    @staticmethod
    def none() -> IpuSpent:
        """Of one IPU, or of none."""
        return IpuSpent(*(np.zeros(0, np.int64) for _ in range(3)))

    @staticmethod
    def joined(parts: list[IpuSpent]) -> IpuSpent:
        """All of them."""
        return IpuSpent(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("place", "computed", "waited")))

    def times(self, factor: float) -> IpuSpent:
        """So many times as much."""
        return IpuSpent(self.place, self.computed * factor, self.waited * factor)


@frozen(eq=False)
class Spent:
    """What a piece costs. A step may be there several times; where a share was assumed, times are no whole numbers."""

    cycles: float
    step: Int64s
    times: AnyArray  # executions of the step
    computed: AnyArray  # cycles by which vertices came later, in all of them
    events: Executions
    decided: Mapping[int, float] = field(factory=dict)  # cycles of what an assumption decides, by its number
    ipus: IpuSpent = field(factory=IpuSpent.none)

    def repeated(self, times: int, most: int) -> Spent:
        """The same so many times; at most so many events."""
        if times == 1:
            return self
        return Spent(
            self.cycles * times,
            self.step,
            self.times * times,
            self.computed * times,
            self.events.repeated(times, round(self.cycles), most),
            {number: cycles * times for number, cycles in self.decided.items()},
            self.ipus.times(times),
        )

    def mixed(self, other: Spent, share: float) -> Spent:
        """This piece a share of the times, and the other one the rest of them; the events are those of the one with more."""
        own, rest = self._part(share), other._part(1 - share)
        return Spent(
            own.cycles + rest.cycles,
            np.concatenate((own.step, rest.step)),
            np.concatenate((own.times, rest.times)),
            np.concatenate((own.computed, rest.computed)),
            self.events if share >= 0.5 else other.events,
            _added([own.decided, rest.decided]),
            IpuSpent.joined([own.ipus, rest.ipus]),
        )

    def _part(self, share: float) -> Spent:
        decided = {number: cycles * share for number, cycles in self.decided.items()}
        times, computed, ipus = self.times * share, self.computed * share, self.ipus.times(share)
        return Spent(self.cycles * share, self.step, times, computed, self.events, decided, ipus)

    def decided_by(self, assumption: int) -> Self:
        """The same, with the cycles of all of it as those of what an assumption decides."""
        return evolve(self, decided={**self.decided, assumption: self.cycles})


def _added(parts: list[Mapping[int, float]]) -> dict[int, float]:
    total: dict[int, float] = {}
    for part in parts:
        for number, cycles in part.items():
            total[number] = total.get(number, 0) + cycles
    return total


@define(eq=False)
class SpentParts:
    """Collects the parts of a piece in their order."""

    events: int  # executions that are kept, at most
    _cycles: float = 0
    _whole: list[Spent] = field(factory=list)
    _logged: list[Executions] = field(factory=list)
    _kept: int = 0
    _step: list[int] = field(factory=list)  # single steps that are not yet in `_whole`
    _took: list[int] = field(factory=list)
    _computed: list[int] = field(factory=list)

    def step(self, step: int, cycles: int, computed: int) -> None:
        """One execution of a step: cycles of all of it, and of its vertices."""
        self._step.append(step)
        self._took.append(cycles)
        self._computed.append(computed)

    def add(self, spent: Spent) -> None:
        """A part."""
        self._settle()
        self._append(spent)

    def _append(self, spent: Spent) -> None:
        if self._kept < self.events and len(spent.events.step):
            self._logged.append(spent.events.later(round(self._cycles)))
            self._kept += len(spent.events.step)
        self._whole.append(spent)
        self._cycles += spent.cycles

    def _settle(self) -> None:
        if not self._step:
            return
        step, took, computed = (np.array(values, np.int64) for values in (self._step, self._took, self._computed))
        begin = np.cumsum(took) - took
        events = Executions(step, begin, took, np.zeros_like(step)) if self._kept < self.events else Executions.none()
        self._append(Spent(int(took.sum()), step, np.ones(len(step), np.int64), computed, events))
        self._step, self._took, self._computed = [], [], []

    def finish(self) -> Spent:
        """All of it."""
        self._settle()
        if len(self._whole) == 1:
            return self._whole[0]
        return Spent(
            self._cycles,
            self._joined("step"),
            self._joined("times"),
            self._joined("computed"),
            Executions.joined(self._logged, self.events),
            _added([part.decided for part in self._whole]),
            IpuSpent.joined([IpuSpent.none(), *(part.ipus for part in self._whole)]),
        )

    def _joined(self, name: str) -> AnyArray:
        parts = [getattr(part, name) for part in self._whole]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)
