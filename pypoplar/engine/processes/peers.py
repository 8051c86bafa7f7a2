"""This process and the others of a communicator: it waits for them, and hears which of them wait, have failed or have ended."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import define, field

from pypoplar.engine.division import available_processors
from pypoplar.engine.processes.shares import Shares
from pypoplar.engine.replicas.meeting import agreed
from pypoplar.errors import ApplicationRuntimeError

KEEP = 0.0002  # seconds for which a processor is kept where each process may have one: others come soon, mostly
SPIN = 0.002  # seconds for which it is only lent to who wants it
LOOK = 0.05  # seconds between looks at what others say of themselves
NAP = 100e-6  # seconds
WAITS, ENDED, FAILED = range(3)  # what a process says of itself
SAID = 1000  # its tag
PIECE = 1 << 28  # bytes of a message that is sent in pieces


class BrokenMeetingError(ApplicationRuntimeError):
    """Processes do not meet any more: one has ended, does not come, or was interrupted while it waited."""


@define(eq=False)
class Peers:
    """The processes of a communicator. All of them make the same calls in the same order, but for `say`."""

    comm: Any
    shares: Shares
    timeout: float  # seconds after which waiting is an error
    _voice: Any = field(init=False)  # a communicator of its own for what processes say of themselves
    _work: Any = field(init=False)  # and one for what they do together
    number: int = 0  # of what they do together
    broken: bool = False
    _cancelled: bool = False
    _keeps: float = field(init=False)  # seconds
    _reduction: Any = None
    _words: Any = field(init=False)
    _most: Any = field(init=False)
    _said: list[Any] = field(factory=list)  # messages that may not have gone yet
    _parts: dict[tuple[int, ...], Peers] = field(factory=dict)
    waiting: dict[int, tuple[int, str]] = field(factory=dict)  # by process: at which of their common doings, in words
    ended: dict[int, int] = field(factory=dict)  # by process: how many it had taken part in
    failed: dict[int, float] = field(factory=dict)  # by process: when

    def __attrs_post_init__(self) -> None:
        self._work, self._voice = self.comm.Dup(), self.comm.Dup()
        self._keeps = KEEP if self.size <= available_processors() else 0.0
        self._words, self._most = np.zeros(6, np.int64), np.zeros(6, np.int64)

    @property
    def rank(self) -> int:
        """The number of this process."""
        return int(self._work.Get_rank())

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self._work.Get_size())

    def name(self, process: int | None = None) -> str:
        """What messages call a process; without a number this one."""
        return self.shares.name(self.rank if process is None else process)

    # What they do together

    def greatest(self, words: Sequence[int], doing: Callable[[], str], patience: float | None = None) -> list[int]:
        """The greatest that any process gives of each of up to six numbers."""
        self._begin()
        if self._reduction is None:
            self._reduction = self._make_reduction()
        self._words[:] = 0
        self._words[: len(words)] = words
        self._reduction.Start()
        self.wait(self._reduction.Test, doing, patience)
        most: list[int] = self._most.tolist()
        return most

    def _make_reduction(self) -> Any:
        from mpi4py import MPI

        if hasattr(self._work, "Allreduce_init") and MPI.Get_version() >= (4, 0):
            return self._work.Allreduce_init(self._words, self._most, MPI.MAX)
        return _Restarted(lambda: self._work.Iallreduce(self._words, self._most, MPI.MAX))

    def gather(self, told: Any, doing: Callable[[], str]) -> list[Any]:
        """What each process tells, in their order."""
        own = np.frombuffer(pickle.dumps(told), np.uint8)
        self._begin()
        sizes = np.zeros(self.size, np.int64)
        self._done(self._work.Iallgather(np.array([len(own)], np.int64), sizes), doing)
        first = np.concatenate(([0], np.cumsum(sizes)))
        whole = np.empty(int(first[-1]), np.uint8)
        self._done(self._work.Iallgatherv(own, [whole, (sizes, first[:-1])]), doing)
        return [pickle.loads(whole[begin:end].tobytes()) for begin, end in pairwise(first.tolist())]

    def from_root(self, content: Any, doing: Callable[[], str], root: int = 0) -> Any:
        """The bytes that process `root` gives, whatever their number, in an array."""
        self._begin()
        size = np.array([0 if content is None else len(content)], np.int64)
        self._done(self._work.Ibcast(size, root), doing)
        whole = np.empty(int(size[0]), np.uint8) if self.rank != root else np.frombuffer(content, np.uint8)
        for begin in range(0, len(whole), PIECE):
            self._done(self._work.Ibcast(whole[begin : begin + PIECE], root), doing)
        return whole

    def part(self, members: Sequence[int]) -> Peers:
        """Some of the processes, this one among them, as processes by themselves; each of them asks for it."""
        if len(members) == self.size:
            return self
        key = tuple(members)
        if key not in self._parts:
            group = self._work.Get_group().Incl(list(key))
            self._parts[key] = Peers(self._work.Create_group(group, 1), self.shares, self.timeout)
        return self._parts[key]

    def sending(self, array: Any, process: int) -> Any:
        """A request that can be started again and again, which sends an array."""
        return self._work.Send_init(array, process)

    def receiving(self, array: Any, process: int) -> Any:
        """The one that receives it."""
        return self._work.Recv_init(array, process)

    def _begin(self) -> None:
        if self.broken:
            raise BrokenMeetingError("the processes do not meet any more, as an error has said before: end them, and start again")
        self.number += 1
        self._cancelled = False

    def _done(self, request: Any, doing: Callable[[], str]) -> None:
        self.wait(request.Test, doing)

    def wait(self, test: Callable[[], bool], doing: Callable[[], str], patience: float | None = None) -> None:
        """Wait until `test` holds; `BrokenMeetingError` where another has ended, or after `patience` or the timeout."""
        begin = now = time.perf_counter()
        look = begin + LOOK
        while not test():
            now = time.perf_counter()
            if now - begin < SPIN:
                if now - begin > self._keeps:
                    os.sched_yield()
                continue
            time.sleep(NAP if now - begin < 1 else 10 * NAP)
            if self._cancelled:
                self.broken = True
                raise BrokenMeetingError(f"{self.name()} was interrupted as it waited at {doing()}")
            if now >= look:
                if look == begin + LOOK:
                    self.say(WAITS, (self.number, doing()))
                look = now + LOOK
                self.listen()
                self._check_others(doing)
            if patience is not None and now - begin > patience:
                self.broken = True
                raise BrokenMeetingError(f"the other processes do not come to {doing()}")
            if now - begin > self.timeout:
                self.broken = True
                raise BrokenMeetingError(self._missing(doing))

    def cancel(self) -> None:
        """Let `wait` come back with an error, from another thread."""
        self._cancelled = True

    def _check_others(self, doing: Callable[[], str]) -> None:
        gone = [process for process, number in sorted(self.ended.items()) if number < self.number]
        if gone:
            self.broken = True
            raise BrokenMeetingError(f"{self.name(gone[0])} has ended; {self._standing(doing)}")

    def _missing(self, doing: Callable[[], str]) -> str:
        self.listen()
        there = {process for process, (number, _) in self.waiting.items() if number >= self.number} | {self.rank}
        missing = [self.name(process) for process in range(self.size) if process not in there]
        who = " and ".join(missing) + (" have" if len(missing) > 1 else " has") if missing else "a message has"
        return f"{who} not come within {self.timeout:g} s (option pypoplar.mpi_timeout); {self._standing(doing)}"

    def _standing(self, doing: Callable[[], str]) -> str:
        """Where those wait that do."""
        places = {process: where for process, (number, where) in self.waiting.items() if number == self.number}
        places[self.rank] = doing()
        return "; ".join(f"{self.name(process)} waits at {where}" for process, where in sorted(places.items()))

    # What they say of themselves

    def say(self, kind: int, what: Any) -> None:
        """Tell all others something of this process; nobody waits for it."""
        message = np.frombuffer(pickle.dumps((kind, what)), np.uint8)
        for process in range(self.size):
            if process != self.rank:
                self._said.append((self._voice.Isend(message, process, SAID), message))
        self._said = [sent for sent in self._said if not sent[0].Test()]

    def all_ended(self) -> bool:
        """Whether all others have said that they end, and have heard it of this one."""
        self.listen()
        self._said = [sent for sent in self._said if not sent[0].Test()]
        return not self._said and len(self.ended) == self.size - 1

    def listen(self) -> None:
        """Take what others have said."""
        from mpi4py import MPI

        status = MPI.Status()
        while self._voice.Iprobe(MPI.ANY_SOURCE, SAID, status):
            message = np.empty(status.Get_count(MPI.BYTE), np.uint8)
            process = status.Get_source()
            self._voice.Recv(message, process, SAID)
            kind, what = pickle.loads(message.tobytes())
            tables: dict[int, dict[int, Any]] = {WAITS: self.waiting, ENDED: self.ended, FAILED: self.failed}
            heard = tables[kind]
            heard[process] = what


@define(eq=False)
class _Restarted:
    """Where MPI has no persistent reductions: a new one for each start."""

    make: Callable[[], Any]
    _request: Any = None

    def Start(self) -> None:
        self._request = self.make()

    def Test(self) -> bool:
        return bool(self._request.Test())


def together(error: BaseException, process: int) -> BaseException:
    """An error that every process raises, of one of them."""
    marked: BaseException = agreed(error, process)
    return marked
