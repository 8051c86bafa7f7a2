"""A replica is a state: memory, counters, clocks, generators, streams and counts of its own, of an executable that all share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bytes, Int64s
from pypoplar.arrays.groups import distinct, offsets
from pypoplar.engine.division import available_processors, divide
from pypoplar.engine.engine_state import UNINITIALISED, EngineState, make_state
from pypoplar.engine.runs import Runs
from pypoplar.engine.services import Services
from pypoplar.engine.streams import HostStreams
from pypoplar.executable.executable import Executable

AT_ONCE = 1 << 15  # bytes of small pieces of the image that are written together, within a processor's cache


@frozen(eq=False)
class Replica:
    """What one replica has for itself."""

    number: int
    state: EngineState
    streams: HostStreams
    services: Services
    runs: Runs

    def initialise(self, like: Replica | None) -> None:
        """Memory and streams as `Engine.load` leaves them; memory as another replica has it that has just come from here."""
        executable, memory, image = self.state.executable, self.state.memory, self.state.executable.image
        if like is None:
            memory.whole[:] = UNINITIALISED
            _write_image(memory.whole, memory.tile_base[image.tile] + image.offset, image.bytes, image.data)
        else:
            memory.whole[:] = like.state.memory.whole
        if executable.replication is not None:
            for tile, offset in executable.replication.index.tolist():
                memory.from_tile(tile)[offset : offset + 4].view(np.uint32)[0] = self.number
        self.streams.rewind()


def initialise_all(replicas: Sequence[Replica]) -> None:
    """Memory and streams of all replicas as `Engine.load` leaves them."""
    for replica in replicas:
        replica.initialise(None if replica is replicas[0] else replicas[0])


def restart_all(replicas: Sequence[Replica]) -> None:
    """Forget what runs have done and cost, as `Engine.load` does."""
    initialise_all(replicas)
    for replica in replicas:
        replica.state.restart()
        replica.runs.reset()


def make_replicas(executable: Executable, threads: int, ours: range | None = None) -> tuple[Replica, ...]:
    """The replicas of an executable, or `ours` of them, on so many threads of the host; see `threads_of_each`."""
    numbers = range(executable.replicas) if ours is None else ours
    division = divide(executable, threads_of_each(executable, threads, len(numbers)))
    handles = frozenset(transfer.stream for transfer in (*executable.writes.values(), *executable.reads.values()))
    found: list[Replica] = []
    for number in numbers:
        state = make_state(executable, division, found[0].state if found else None)
        streams = HostStreams(executable.streams, state, handles, executable.options.prefetches)
        services = Services(executable, state, streams, replica=number)
        found.append(Replica(number, state, streams, services, Runs(state, executable.options.profiled_runs)))
    return tuple(found)


def count_all(accounts: Sequence[Runs], name: str, work: Callable[[], None]) -> None:
    """Do a run, which counts in the account of each replica."""
    for runs in accounts:
        work = partial(runs.count, name, work)
    work()


def threads_of_each(executable: Executable, threads: int, replicas: int) -> int:
    """Threads take replicas first, then tiles: how many each has of so many here; 0, one a processor, where there is only one."""
    if executable.replicas == 1:
        return threads
    return max(1, (threads or available_processors()) // replicas)


def _write_image(memory: Bytes, address: Int64s, size: Int64s, data: Bytes) -> None:
    """Write the pieces of the image: those of one size together, so that a million small ones take no Python loop."""
    begin = offsets(size)[:-1]
    for length in distinct(size):
        pieces = size == length
        if int(length) > 4096:
            for to, start in zip(address[pieces], begin[pieces], strict=True):
                memory[to : to + length] = data[start : start + length]
            continue
        inside, places, starts = np.arange(int(length)), address[pieces], begin[pieces]
        most = max(1, AT_ONCE // int(length))
        for first in range(0, len(places), most):
            part = slice(first, first + most)
            memory[places[part, None] + inside] = data[starts[part, None] + inside]
