"""Runs the replicas of a program, each by itself until it comes to a service; what is a meeting waits until all have come.

Replicas run in rounds: in each, all that can go on do so, up to their next service or their end; then the services are done,
replica after replica. So the order of prints and callbacks does not depend on threads. Those that have come to a meeting wait
there, and when no replica can go on without one, they meet.
"""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn, Protocol

import numpy as np
from attrs import define, evolve, field

from pypoplar.arrays.dtypes import Int64s
from pypoplar.engine.branch_log import forget_branches
from pypoplar.engine.engine_state import EngineState
from pypoplar.engine.faults import Fault, Stop
from pypoplar.engine.native.workers import Workers
from pypoplar.engine.replicas.meeting import AGREED, BROKEN_OFF, FAULT, RAISED, Failure, Meeting, OneProcess, agreed
from pypoplar.engine.replicas.parting import parted, unequal
from pypoplar.engine.replicas.replica import Replica
from pypoplar.errors import PoplarError
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.service_kinds import MEETINGS, ServiceKind

LOOK = 0.05  # seconds between looks at the progress
SHORT = 200e-6  # seconds: rounds that are sooner done by one thread than others are woken


class ReplicaRunner(Protocol):
    """Runs the program of one replica piece by piece."""

    def begin(self, entry: int, progress: Callable[[], None] | None) -> None:
        """Let `go_on` begin at row `entry`."""

    def go_on(self) -> Stop:
        """Run up to the next service or to the end."""

    def request_stop(self) -> None:
        """Let `go_on` come back as soon as it can, from another thread."""

    @property
    def clock(self) -> int:
        """The cycles of the replica, where it has come back."""

    def wait_until(self, cycles: int) -> None:
        """Let time pass, where it has come back."""

    def serve(self, number: int) -> None:
        """Do a service of the executable that is no meeting."""

    def finish(self) -> None:
        """The run has ended: write what is left to write."""


@define(eq=False)
class Crew:
    """Runs all replicas of this process on so many threads; with none, in the thread that calls."""

    replicas: Sequence[Replica]
    runners: Sequence[ReplicaRunner]
    meeting: Meeting
    threads: int
    going: list[int] = field(factory=list)  # replicas that can go on
    _waiting: dict[int, int] = field(factory=dict)  # services at which replicas wait for others
    stops: dict[int, Stop] = field(factory=dict)  # of those that have gone on in this round
    round: int = 0  # since replicas have last met
    _cancelled: bool = False

    def run(self, entry: int, progress: Callable[[], None] | None = None) -> Fault | None:
        """Run the program from row `entry` on; the fault that ended it, if one did."""
        self._waiting.clear()
        self.stops.clear()
        self._cancelled, self.round = False, 0
        self.going = [*range(len(self.runners))]
        try:
            for number, runner in enumerate(self.runners):
                forget_branches(self._state(number).tables[Slot.BRANCHES])
                runner.begin(entry, None if number else progress)
            return self._rounds(progress)
        except BaseException as error:
            if self.meeting.ends_together and AGREED not in vars(error):  # it is raised again, once the others know of it
                self.meeting.failed([Failure(self.round, BROKEN_OFF, 0, self._number(0), error=error)])
            raise
        finally:
            for runner in self.runners:
                runner.finish()

    def _state(self, number: int) -> EngineState:
        return self.replicas[number].state

    def _number(self, number: int) -> int:
        """Among the replicas of all processes."""
        return self.replicas[number].number

    def _rounds(self, progress: Callable[[], None] | None) -> Fault | None:
        while self.going:
            self._run_rounds(progress)
            if progress is not None and self.threads:
                progress()
            stops, self.stops = self.stops, {}
            failures = [self._failure(number, stop.fault) for number, stop in stops.items() if stop.fault is not None]
            if failures:
                return self.meeting.failed(failures)
            self.going = [number for number, stop in sorted(stops.items()) if self._serve(number, stop)]
            if not self.going:
                self._meet()
        return None

    def _failure(self, number: int, fault: Fault) -> Failure:
        replica = self._number(number)
        return Failure(self.round, FAULT, self.runners[number].clock, replica, evolve(fault, replica=replica))

    def _serve(self, number: int, stop: Stop) -> bool:
        """Do what a replica has come to; whether it can go on then."""
        if stop.ends:
            return False
        if self._is_meeting(stop.service):
            self._waiting[number] = stop.service
            return False
        try:
            self.runners[number].serve(stop.service)
        except Exception as error:
            _name_replica(error, self._number(number))
            self.meeting.failed([Failure(self.round, RAISED, 0, self._number(number), error=error)])
        return True

    def _is_meeting(self, service: int) -> bool:
        return self.replicas[0].state.executable.services[service]["kind"] in MEETINGS

    # Meetings

    def _meet(self) -> None:
        """Let those go on that wait for others, if any do; all of them have come."""
        if not self._waiting and not self.meeting.ends_together:
            return
        executable = self.replicas[0].state.executable
        came = np.array([self._waiting.get(number, NOTHING) for number in range(len(self.runners))], np.int64)
        clocks = [runner.clock for runner in self.runners]
        latest = self.meeting.come(came, max(clocks))
        if latest is None:
            self._tell_parting(came)
        if not self._waiting:
            return
        number = int(came[0])
        service = executable.services[number]
        if service["kind"] == ServiceKind.AGREE:
            self._agree(service)
        else:
            self._exchange(number, service, clocks, latest)
        for replica in self.replicas:
            forget_branches(replica.state.tables[Slot.BRANCHES])
        self.going = sorted(self._waiting)
        self._waiting.clear()
        self.round = 0

    def _tell_parting(self, came: Int64s) -> NoReturn:
        logs = [replica.state.tables[Slot.BRANCHES].copy() for replica in self.replicas]
        told = self.meeting.gather([*zip(came.tolist(), logs, strict=True)])
        raise agreed(parted(self.replicas[0].state.executable, *zip(*told, strict=True)))

    def _agree(self, service: Mapping[str, Any]) -> None:
        stream = service["stream"]
        found = self.meeting.gather([int(replica.streams.array(stream)[0]) for replica in self.replicas])
        if len({*found}) > 1:
            raise agreed(unequal(service, found))

    def _exchange(self, number: int, service: Mapping[str, Any], clocks: Sequence[int], latest: int) -> None:
        """Move what is sent, and let all replicas wait for the one that came last."""
        step = service["step"]
        for replica, runner, clock in zip(self.replicas, self.runners, clocks, strict=True):
            replica.state.tables[Slot.COMPUTE_CYCLES][step] += latest - clock
            runner.wait_until(latest)
        self.meeting.exchange(number, service, [replica.streams for replica in self.replicas])

    # Threads

    def _run_rounds(self, progress: Callable[[], None] | None) -> None:
        """Run rounds up to one after which the thread that calls has to do something: more than a meeting."""
        self.round += 1
        shift = _Shift(self, max(1, min(self.threads, len(self.going))))
        if self.threads == 0 or (shift.threads == 1 and threading.current_thread() is not threading.main_thread()):
            shift.work(0)
        else:
            workers = Workers(shift.work, shift.threads)
            try:
                workers.start()
                while workers.working(LOOK):
                    if progress is not None:
                        progress()
            except BaseException:
                self._cancelled = True
                for runner in self.runners:
                    runner.request_stop()
                self.meeting.cancel()
                workers.end()
                raise
        if shift.error is not None:
            raise shift.error

    def goes_on_by_itself(self) -> bool:
        """After a round: whether all have come to a meeting, which is held then."""
        stops = self.stops
        if self._cancelled or any(stop.ends or not self._is_meeting(stop.service) for stop in stops.values()):
            return False
        self._waiting |= {number: stop.service for number, stop in stops.items()}
        self.going = []
        stops.clear()
        self._meet()
        self.round = 1
        return True


def replicas_together(
    replicas: Sequence[Replica], runners: Sequence[ReplicaRunner], threads: int, meeting: Meeting | None = None
) -> Crew:
    """What runs all replicas of this process, each with its runner; without a `meeting` they are all that there are."""
    return Crew(replicas, runners, meeting or OneProcess(len(replicas)), threads)


class _Shift:
    """Threads that take the replicas of a round one by one, and begin the next round together."""

    def __init__(self, crew: Crew, threads: int) -> None:
        self.threads = threads
        self.error: BaseException | None = None
        self._crew = crew
        self._todo = crew.going[::-1]
        self._gates = [_closed() for _ in range(threads)]
        self._lock = _thread.allocate_lock()
        self._wanted = threads  # in this round
        self._arrived = 0
        self._goes_on = True
        self._began = time.perf_counter()

    def work(self, number: int) -> None:
        """What a thread does."""
        while self._goes_on:
            self._run_replicas()
            with self._lock:
                self._arrived += 1
                is_last = self._arrived == self._wanted
            if is_last:
                self._turn(number)
            else:
                self._gates[number].acquire()

    def _run_replicas(self) -> None:
        crew = self._crew
        with suppress(IndexError):  # all are taken
            while self.error is None:
                replica = self._todo.pop()
                try:
                    crew.stops[replica] = crew.runners[replica].go_on()
                except BaseException as error:
                    self.error = error

    def _turn(self, number: int) -> None:
        """End a round in which all threads are done, and wake the others if the next one needs them, or if all go home."""
        crew = self._crew
        try:
            self._goes_on = self.error is None and crew.goes_on_by_itself()
        except BaseException as error:
            self.error, self._goes_on = error, False
        now = time.perf_counter()
        alone, self._began = self._goes_on and now - self._began < SHORT, now
        self._arrived, self._wanted, self._todo = 0, 1 if alone else self.threads, crew.going[::-1]
        if not alone:
            for other, gate in enumerate(self._gates):
                if other != number:
                    gate.release()


def _closed() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def _name_replica(error: Exception, number: int) -> None:
    """Let an error say which replica it is of."""
    if isinstance(error, PoplarError) and error.args and isinstance(error.args[0], str):
        error.args = (f"replica {number}: {error.args[0]}", *error.args[1:])
    else:
        error.add_note(f"in replica {number}")
