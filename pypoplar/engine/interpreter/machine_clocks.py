"""When the IPUs of a machine, and their tiles, are done with what they have come to, in cycles since it was switched on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field

from pypoplar.engine.engine_state import EngineState
from pypoplar.engine.events import log_event
from pypoplar.executable.ipu_steps import IpuSteps
from pypoplar.interface.header_slots import Slot


@define(eq=False)
class MachineClocks:
    """The clocks of a run. That of an IPU is the one of its tile that has come farthest."""

    state: EngineState
    steps: IpuSteps
    now: list[int] = field(init=False)  # by IPU
    _together: list[int] = field(init=False)  # the clock of each when its tiles were last together
    _start: list[int] = field(init=False)  # when its vertices of a compute set begin
    _tile: dict[int, int] = field(factory=dict)  # when each tile was done with its last compute set
    _cycles: Sequence[int] = field(init=False)  # of shares

    def __attrs_post_init__(self) -> None:
        self._cycles = self.steps.fixed_cycles.tolist()
        self._start = [0] * self.steps.ipus
        self.begin(0)

    @property
    def latest(self) -> int:
        """The clock of the machine: that of the IPU that has come farthest."""
        return max(self.now)

    def begin(self, cycles: int) -> None:
        """All goes on together from a time on."""
        self.now, self._together = [cycles] * self.steps.ipus, [cycles] * self.steps.ipus

    # Waiting

    def meet_at_row(self, row: int) -> None:
        """The IPUs that wait for each other at a row go on when the last of them has come, and so do their tiles."""
        ipus = self.steps.waiting_at(row)
        latest = max((self.now[ipu] for ipu in ipus), default=0)
        for ipu in ipus:
            self._count(Slot.IPU_WAITED, ipu, latest - self.now[ipu])
            self.now[ipu] = self._together[ipu] = latest

    def meet_in_step(self, step: int) -> None:
        """The same of the IPUs that wait for each other before a step."""
        waiting = [share for share in self.steps.shares_of(step) if self.steps.waits[share]]
        latest = max((self.now[self._ipu(share)] for share in waiting), default=0)
        for share in waiting:
            self._count(Slot.SHARE_WAITED, share, latest - self.now[self._ipu(share)])
            self.now[self._ipu(share)] = latest

    def gather(self, step: int) -> None:
        """All tiles of the IPUs of a step wait for the one of their IPU that has come farthest."""
        for share in self.steps.shares_of(step):
            self._together[self._ipu(share)] = self.now[self._ipu(share)]

    # Steps

    def begin_superstep(self, before: int, step: int, *, waits: bool) -> None:
        """Find when the vertices of a compute set begin on each IPU: after the exchange `before` it, and its sync."""
        self.meet_in_step(before)
        for share in self.steps.shares_of(step):
            self._start[self._ipu(share)] = self.now[self._ipu(share)] + self._cycles[share]
        for share in self.steps.shares_of(before):
            self._start[self._ipu(share)] += self._cycles[share]
        if waits:
            for share in self.steps.shares_of(step):
                self._together[self._ipu(share)] = self._start[self._ipu(share)]

    def begin_tile(self, tile: int) -> int:
        """When the tile begins with its vertices."""
        return max(self._tile.get(tile, 0), self._together[self._ipu_of(tile)])

    def end_tile(self, tile: int, cycles: int) -> tuple[int, int]:
        """The tile is done; its IPU, and how long after the beginning there that is."""
        self._tile[tile] = cycles
        ipu = self._ipu_of(tile)
        return ipu, cycles - self._start[ipu]

    def pass_step(self, step: int, computed: Mapping[int, int] | None = None) -> None:
        """A step has been executed, in which the vertices of IPUs took so many cycles: the clocks of its IPUs go on."""
        tables = self.state.tables
        tables[Slot.EXECUTIONS][step] += 1
        for share in self.steps.shares_of(step):
            ipu = self._ipu(share)
            later = (computed or {}).get(ipu, 0)
            self._count(Slot.SHARE_COMPUTED, share, later)
            if self.state.header[Slot.EVENTS]:
                log_event(tables[Slot.EVENTS], step, self.now[ipu], self._cycles[share] + later, ipu)
            self.now[ipu] += self._cycles[share] + later

    def _ipu(self, share: int) -> int:
        return int(self.steps.ipu[share])

    def _ipu_of(self, tile: int) -> int:
        return tile // self.state.executable.target.getTilesPerIPU()

    def _count(self, which: int, place: int, cycles: int) -> None:
        """Add to a table, which is there where there are several IPUs."""
        if which in self.state.tables:
            self.state.tables[which][place] += cycles
