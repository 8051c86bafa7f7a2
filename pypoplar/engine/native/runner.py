"""Runs a program on the native driver, in threads of its own so that Ctrl-C is heard and callbacks can be served."""

from __future__ import annotations

import threading
from collections.abc import Callable

from attrs import define, field

from pypoplar.engine.debug_prints import clear_prints, native_prints, prints_lost
from pypoplar.engine.engine_state import EngineState
from pypoplar.engine.faults import Fault
from pypoplar.engine.native.driver_code import driver_function
from pypoplar.engine.native.machine_code import MachineCode, install_codelets, machine_code
from pypoplar.engine.native.workers import Workers
from pypoplar.engine.services import Services
from pypoplar.interface import header_slots as at
from pypoplar.interface import opcodes

PRINTS_LOST = "[pypoplar] more was printed by one step than is kept; the rest is lost\n"
LOOK = 0.05  # seconds between looks at the progress


@define(eq=False)
class NativeRunner:
    """Runs programs with compiled codelets, on host threads."""

    state: EngineState
    services: Services
    codelets: MachineCode = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.codelets = machine_code(self.state.executable)
        install_codelets(self.state, self.codelets)
        driver_function()

    def run(self, entry: int, progress: Callable[[], None] | None = None) -> Fault | None:
        """Run the program from row `entry` on; the fault that ended it, if one did. What vertices print is written as it goes."""
        install_codelets(self.state, self.codelets)
        try:
            return run_native(self.state, entry, self._serve, progress)
        finally:
            self._write_prints()

    def _serve(self, number: int) -> None:
        if self.services.writes_prints(number):
            self._write_prints()
        else:
            self.services.serve(number)

    def _write_prints(self) -> None:
        prints, lost = native_prints(self.state), prints_lost(self.state)
        clear_prints(self.state)
        self.services.write_prints(prints)
        if lost:
            self.services.print_stream().write(PRINTS_LOST)


def run_native(
    state: EngineState, entry: int, serve: Callable[[int], None], progress: Callable[[], None] | None = None
) -> Fault | None:
    """Run from row `entry` to the end. `serve` is called with the number of each service that comes up.

    Returns the fault that ended the program, if one did. `progress` is called now and then.
    """
    _start(state, entry)
    while True:
        code = _drive(state, progress)
        if code == at.FINISHED:
            return None
        if code == at.FAULT:
            return first_fault(state)
        row = state.executable.program[int(state.tables[at.STATE][at.PC]) - 1]
        serve(int(row[1] if row[0] == opcodes.SERVICE else row[2]))
        if progress is not None:
            progress()


def _start(state: EngineState, entry: int) -> None:
    shared = state.tables[at.SHARED]
    clock = int(shared[at.CLOCK])  # goes on from run to run
    shared[:] = 0
    shared[at.CLOCK] = clock
    state.tables[at.FAULTS][:] = 0
    threads = state.rows(at.STATE, at.STATE_WORDS)
    threads[:] = 0
    threads[:, at.PC] = entry
    threads[:, at.LOCAL_CLOCK] = clock


def _drive(state: EngineState, progress: Callable[[], None] | None) -> int:
    """Let all threads run until they come back together; thread 0 says why."""
    drive = driver_function()
    threads = state.division.threads
    shared = state.tables[at.SHARED]
    codes = [0] * threads

    def work(thread: int) -> None:
        codes[thread] = drive(state.address, thread, threads)

    if threads == 1 and threading.current_thread() is not threading.main_thread():
        work(0)
    else:
        workers = Workers(work, threads)
        try:
            workers.start()
            while workers.working(LOOK):
                if progress is not None:
                    progress()
        except BaseException:
            shared[at.STOP] = 1
            workers.end()
            raise
    if codes[0] != at.SERVICE:
        shared[at.CLOCK] = state.tables[at.STATE][at.LOCAL_CLOCK]
    return codes[0]


def first_fault(state: EngineState) -> Fault:
    """The fault of the lowest vertex, of all threads."""
    rows = state.rows(at.FAULTS, at.FAULT_WORDS)
    found = min((row for row in rows if row[at.FAULT_SET]), key=lambda row: int(row[at.FAULT_VERTEX]))
    return Fault(*(int(found[word]) for word in range(at.FAULT_VERTEX, at.FAULT_WORDS)))
