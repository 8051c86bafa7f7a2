"""Runs a program on the native driver, in threads of its own so that Ctrl-C is heard and callbacks can be served."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import assert_never

from attrs import Factory, define, field

from pypoplar.arrays.dtypes import Int64s
from pypoplar.engine.debug_prints import clear_prints, native_prints, prints_lost
from pypoplar.engine.engine_state import EngineState
from pypoplar.engine.faults import Fault, Stop, unknown_operation
from pypoplar.engine.native.driver_code import driver_function
from pypoplar.engine.native.machine_code import MachineCode, install_codelets, machine_code
from pypoplar.engine.native.workers import Workers
from pypoplar.engine.services import Services
from pypoplar.errors import PoplarRuntimeError
from pypoplar.interface.context_words import CONTEXT_WORDS, STOPPED, Context
from pypoplar.interface.driver_records import FAULT_WORDS, STATE_WORDS, Ending, FaultRecord, Shared, State
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.opcodes import CallbackOperand, Opcode, ProgramRow, ServiceOperand

PRINTS_LOST = "[pypoplar] more was printed by one step than is kept; the rest is lost\n"
LOOK = 0.05  # seconds between looks at the progress


@define(eq=False)
class NativeRunner:
    """Runs programs with compiled codelets, on host threads: a whole run at once, or one of several replicas piece by piece."""

    state: EngineState
    services: Services
    codelets: MachineCode = field(default=Factory(lambda self: machine_code(self.state.executable), takes_self=True))

    def __attrs_post_init__(self) -> None:
        install_codelets(self.state, self.codelets)
        driver_function(self.state.executable.options.progress)

    def run(self, entry: int, progress: Callable[[], None] | None = None) -> Fault | None:
        """Run the program from row `entry` on; the fault that ended it, if one did. What vertices print is written as it goes."""
        install_codelets(self.state, self.codelets)
        try:
            return run_native(self.state, entry, self.serve, progress)
        finally:
            self.finish()

    def begin(self, entry: int, progress: Callable[[], None] | None) -> None:
        """Let `go_on` begin at row `entry`; whoever calls that tells of the progress."""
        install_codelets(self.state, self.codelets)
        start(self.state, entry)

    def go_on(self) -> Stop:
        """Run up to the next service or to the end, in the thread that calls unless it is the main one."""
        return go_on(self.state)

    def request_stop(self) -> None:
        """Let the run come back as soon as it can, from another thread."""
        request_stop(self.state)

    @property
    def clock(self) -> int:
        """The cycles of the run, where it has come back."""
        return int(self.state.tables[Slot.STATE][State.LOCAL_CLOCK])

    def wait_until(self, cycles: int) -> None:
        """Let time pass, where the run has come back."""
        self.state.set_clocks(cycles)

    def serve(self, number: int) -> None:
        """Do service `number` of the executable."""
        if self.services.writes_prints(number):
            self.finish()
        else:
            self.services.serve(number)

    def finish(self) -> None:
        """Write what vertices have printed so far."""
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
    start(state, entry)
    while True:
        stop = go_on(state, progress)
        if stop.ends:
            return stop.fault
        serve(stop.service)
        if progress is not None:
            progress()


def go_on(state: EngineState, progress: Callable[[], None] | None = None) -> Stop:
    """Run on from where the program is, up to the next service or to its end."""
    ending = drive(state, progress)
    row = int(state.tables[Slot.STATE][State.PC])
    match ending:
        case Ending.FINISHED:
            return Stop()
        case Ending.FAULT:
            return Stop(fault=first_fault(state))
        case Ending.SERVICE:
            return Stop(_service(state.executable.program[row - 1]))
        case Ending.UNKNOWN:
            raise unknown_operation(state.executable.program, row)
        case Ending.STOPPED:
            raise PoplarRuntimeError(f"the driver stopped before row {row} of the program, and nobody asked for it")
        case _:
            assert_never(ending)


def _service(row: Int64s) -> int:
    """The number of the service at which the driver has returned."""
    # Not a NumPy number beside the member: NumPy would ask the enumeration for attributes, in Python code whose errors it ignores,
    # and an interrupt that arrives just there would be lost.
    operation = int(row[ProgramRow.OPERATION])
    return int(row[ServiceOperand.SERVICE if operation == Opcode.SERVICE else CallbackOperand.SERVICE])


def start(state: EngineState, entry: int) -> None:
    """Let all threads begin at row `entry` when they are driven."""
    shared = state.tables[Slot.SHARED]
    clock = int(shared[Shared.CLOCK])  # goes on from run to run
    shared[:] = 0
    shared[Shared.CLOCK] = clock
    state.tables[Slot.FAULTS][:] = 0
    threads = state.rows(Slot.STATE, STATE_WORDS)
    threads[:] = 0
    threads[:, State.PC] = entry
    state.set_clocks(clock)
    if Slot.TILE_CLOCK in state.tables:
        state.tables[Slot.TILE_CLOCK][:] = 0


def drive(state: EngineState, progress: Callable[[], None] | None = None) -> Ending:
    """Let all threads run until they come back together; thread 0 says why."""
    call = driver_function()
    threads = state.division.threads
    shared = state.tables[Slot.SHARED]
    codes = [0] * threads

    def work(thread: int) -> None:
        codes[thread] = call(state.address, thread, threads)

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
            request_stop(state)
            workers.end()
            raise
    ending = Ending(codes[0])
    if ending != Ending.SERVICE:
        shared[Shared.CLOCK] = state.tables[Slot.STATE][State.LOCAL_CLOCK]
    return ending


def request_stop(state: EngineState) -> None:
    """Let all threads come back as soon as they can, in whatever they are."""
    state.tables[Slot.SHARED][Shared.STOP] = 1
    state.rows(Slot.CONTEXTS, CONTEXT_WORDS)[:, [Context.CYCLE_LIMIT, Context.SUPERVISOR_LIMIT]] = STOPPED


def first_fault(state: EngineState) -> Fault:
    """The fault of the lowest vertex, of all threads."""
    rows = [row for row in state.rows(Slot.FAULTS, FAULT_WORDS) if row[FaultRecord.SET]]
    lowest = min(rows, key=lambda row: int(row[FaultRecord.VERTEX]))
    return Fault(
        vertex=int(lowest[FaultRecord.VERTEX]),
        code=int(lowest[FaultRecord.CODE]),
        where=int(lowest[FaultRecord.LOCATION]),
        value=int(lowest[FaultRecord.VALUE]),
        bound=int(lowest[FaultRecord.BOUND]),
        codelet=int(lowest[FaultRecord.CODELET]),
        step=int(lowest[FaultRecord.STEP]),
    )
