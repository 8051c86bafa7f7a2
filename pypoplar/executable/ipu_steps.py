"""What each IPU has of the steps of a program, and at which of its rows which IPUs wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.executable.ipu_rows import waiting_rows
from pypoplar.executable.steps import StaticStep
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import ComputeOperand, Opcode, ProgramRow

if TYPE_CHECKING:
    from pypoplar.executable.executable import Executable


@frozen(eq=False)
class IpuSteps:
    """The steps of a program by IPU. A *share* is what an IPU has of a step: those of step s go from ``first[s]`` on, by IPU.

    A step takes time on the IPUs that have a share of it, each by itself but for those that wait: these begin when the last of
    them has come.
    """

    ipus: int
    first: Int64s  # [steps + 1]
    ipu: Int64s  # [shares]
    waits: Int64s  # [shares]: 1 if it begins together with the others of its step that have 1
    sync_cycles: Int64s  # [shares], as the next four: cycles of one execution, known beforehand
    exchange_cycles: Int64s
    copy_cycles: Int64s
    global_exchange_cycles: Int64s
    host_exchange_cycles: Int64s
    row_first: Int64s  # [rows + 1]: the IPUs that wait for each other at a row; at that of a compute set, when it is done
    row_ipu: Int64s
    part_first: Int64s  # [computes + 1]: the parts of a compute set, each the active tiles of an IPU
    part_begin: Int64s  # [parts]: its first active tile
    part_end: Int64s  # [parts]
    part_ipu: Int64s  # [parts]

    @property
    def fixed_cycles(self) -> Int64s:
        """int64 [shares]: cycles of one execution but for its vertices."""
        return self.sync_cycles + self.exchange_cycles + self.copy_cycles + self.global_exchange_cycles + self.host_exchange_cycles

    @property
    def step(self) -> Int64s:
        """int64 [shares]: the step of each."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def shares_of(self, step: int) -> range:
        """The shares of a step, none for NOTHING."""
        return range(int(self.first[step]), int(self.first[step + 1])) if step != NOTHING else range(0)

    def waiting_at(self, row: int) -> list[int]:
        """The IPUs that wait for each other at a row."""
        ipus: list[int] = self.row_ipu[int(self.row_first[row]) : int(self.row_first[row + 1])].tolist()
        return ipus


def steps_of_ipus(executable: Executable) -> IpuSteps:
    """The steps of an executable by IPU, also where there is one: it has all of each step, and no other to wait for."""
    if executable.ipu_steps is not None:
        return executable.ipu_steps
    steps, computes = len(executable.steps), len(executable.computes.first_active) - 1
    fixed, nothing = np.array([step.fixed_cycles for step in executable.steps], np.int64), np.zeros(steps, np.int64)
    first, alone = executable.computes.first_active, np.zeros(computes, np.int64)
    row_first, row_ipu = waiting_rows(executable, np.ones((steps, 1), bool))
    every = np.arange(steps + 1)
    return IpuSteps(
        *(1, every, nothing, nothing, fixed, nothing, nothing, nothing, nothing, row_first, row_ipu),
        *(np.arange(computes + 1), first[:-1], first[1:], alone),
    )


def find_ipu_steps(executable: Executable) -> IpuSteps | None:
    """The steps of an executable by IPU; None for a target of one IPU, whose steps are what that does."""
    ipus = executable.target.getNumIPUs()
    if ipus == 1:
        return None
    first, begin, end, ipu = _parts(executable)
    shares = [_moving(executable, step) for step in executable.steps]
    for before, step, compute in _computing(executable):
        active = np.zeros(ipus, bool)
        active[ipu[first[compute] : first[compute + 1]]] = True
        shares[step] = _computed(executable, executable.steps[step], shares[before] if before != NOTHING else None, active)
    there = [np.flatnonzero(one.has) for one in shares]
    columns = np.concatenate([one.columns[:, own] for one, own in zip(shares, there, strict=True)], 1)
    row_first, row_ipu = waiting_rows(executable, np.array([one.has for one in shares]))
    starts = offsets([len(own) for own in there])
    waits, sync, exchange, copies, between, host = columns
    cycles = (sync, exchange, copies, between, host)
    return IpuSteps(ipus, starts, np.concatenate(there), waits, *cycles, *(row_first, row_ipu, first, begin, end, ipu))


@frozen(eq=False)
class _Shares:
    """A step by IPU. `columns` are whether it waits, and the cycles of its phases in the order of `IpuSteps`."""

    has: Bools  # [IPUs]
    columns: Int64s  # [6, IPUs]


def _parts(executable: Executable) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """The active tiles of compute sets by IPU: where those of each begin, first and last active tile, IPU."""
    computes = executable.computes
    ipu = computes.active_tile // executable.target.getTilesPerIPU()
    compute = np.repeat(np.arange(len(computes.first_active) - 1), np.diff(computes.first_active))
    opens = np.ones(len(ipu), bool)
    opens[1:] = (ipu[1:] != ipu[:-1]) | (compute[1:] != compute[:-1])
    begin = np.flatnonzero(opens)
    first = offsets(np.bincount(compute[begin], minlength=len(computes.first_active) - 1))
    return first, begin, np.append(begin[1:], len(ipu))[: len(begin)], ipu[begin]


def _computing(executable: Executable) -> Iterator[tuple[int, int, int]]:
    """Of the rows that execute a compute set, the step before it or NOTHING, its own, and the number of the compute set."""
    rows = executable.program[executable.program[:, ProgramRow.OPERATION] == Opcode.COMPUTE]
    for row in rows.tolist():
        yield row[ComputeOperand.BEFORE], row[ComputeOperand.STEP], row[ComputeOperand.COMPUTE]


def _moving(executable: Executable, step: StaticStep) -> _Shares:
    """A step that moves data, or a sync. IPUs between which messages go wait for each other, and leave together."""
    target = executable.target
    ipus = target.getNumIPUs()
    exchange, moving = (_slowest(cycles, ipus) for cycles in (step.exchange_cycles, step.moving_cycles))
    crossing = _crossing(executable, step)
    host = np.zeros(ipus, bool)
    host[list(step.host_ipus)] = True
    for cycles in (exchange, moving):
        cycles[crossing] = cycles[crossing].max(initial=0)
    has = crossing | host | (moving > 0) | step.joins_ipus | (step.kind == "sync")
    waits = crossing | host | step.joins_ipus
    sync = np.zeros(ipus, np.int64)
    if step.sync_cycles:
        sync[exchange > 0] = target.getMaxIPUSyncDelay()
        sync[crossing | (step.kind == "sync")] = step.sync_cycles
    between, of_host = np.where(crossing, step.global_exchange_cycles, 0), np.where(host, step.host_cycles, 0)
    return _Shares(has, np.array((waits, sync, exchange, moving - exchange, between, of_host), np.int64))


def _computed(executable: Executable, step: StaticStep, before: _Shares | None, active: Bools) -> _Shares:
    """The execution of a compute set, whose sync is also that of the exchange before it."""
    has, crossing = active, np.zeros_like(active)
    if before is not None:
        has, crossing = active | before.has, before.columns[0] > 0
    sync = np.where(crossing, step.sync_cycles, executable.target.getMaxIPUSyncDelay() if step.sync_cycles else 0)
    nothing = np.zeros(len(has), np.int64)
    return _Shares(has, np.array((nothing, sync, nothing, nothing, nothing, nothing)))


def _crossing(executable: Executable, step: StaticStep) -> Bools:
    """The IPUs from or to which something goes in a step; of an exchange between replicas all."""
    target = executable.target
    crossing = np.zeros(target.getNumIPUs(), bool)
    if step.exchange == NOTHING or step.global_exchange_cycles == 0:
        return crossing
    exchange = executable.exchanges[step.exchange]
    if exchange.phase == "replicas":
        return ~crossing
    source, destination = (
        exchange.account.messages[end].astype(np.int64) // target.getTilesPerIPU() for end in ("source", "destination")
    )
    between = source != destination
    crossing[source[between]] = crossing[destination[between]] = True
    return crossing


def _slowest(cycles: Int64s, ipus: int) -> Int64s:
    """int64 [IPUs]: the most cycles of a tile of each."""
    return cycles.reshape(ipus, -1).max(1) if len(cycles) else np.zeros(ipus, np.int64)
