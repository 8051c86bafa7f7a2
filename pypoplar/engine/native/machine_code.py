"""The native code of an executable's codelets."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.codelet.backend.contract import NativeCodelet
from pypoplar.codelet.backend.native_codelet import compile_unpriced
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.random_rounding import may_round_at_random
from pypoplar.engine.debug_prints import clear_prints
from pypoplar.engine.engine_state import EngineState
from pypoplar.engine.loaded_codelets import pricing_of
from pypoplar.engine.native.driver_code import GENERAL, MOVING, SUPERSTEP, load_unit
from pypoplar.executable.executable import Executable
from pypoplar.interface.context_words import CONTEXT_WORDS, WORK_WORDS, Context
from pypoplar.interface.debug_records import MARK_WORDS
from pypoplar.interface.header_slots import Slot
from pypoplar.interface.layout import WORD_BYTES


@frozen(eq=False)
class MachineCode:
    """Addresses by codelet number; the code lives as long as this object."""

    addresses: Int64s
    codelets: tuple[NativeCodelet, ...]


def machine_code(executable: Executable) -> MachineCode:
    """Compile the codelets, or find them in the cache."""
    options = executable.options
    checks = Checks(
        touches=options.races == "elements",
        uninitialised=options.uninitialised == "error",
        floating_point=executable.floating_point_checks,
        flops=options.flop_estimates,
        blocks=options.counts_blocks,
    )
    may_round = executable.may_round_at_random
    compiled = tuple(
        compile_unpriced(codelet, pricing, evolve(checks, stochastic=may_round and may_round_at_random(codelet)))
        for codelet, pricing in pricing_of(executable)
    )
    return MachineCode(np.array([code.address for code in compiled], np.int64), compiled)


def install_codelets(state: EngineState, code: MachineCode) -> None:
    """Tell the driver where the codelets are, and what every call of one is told."""
    progress = state.executable.options.progress
    state.header[Slot.MOVE_UNIT] = load_unit(MOVING, progress).address
    state.header[Slot.SUPERSTEP_UNIT] = load_unit(SUPERSTEP, progress).address
    if not state.tables[Slot.ACTIVE_SIMPLE].all() or state.header[Slot.TILE_CLOCK]:
        state.header[Slot.GENERAL_UNIT] = load_unit(GENERAL, progress).address
    state.tables[Slot.CODELETS][: len(code.addresses)] = code.addresses
    contexts = state.rows(Slot.CONTEXTS, CONTEXT_WORDS)
    contexts[:, Context.CYCLE_LIMIT] = state.executable.slot_limit("vertex")
    contexts[:, Context.SUPERVISOR_LIMIT] = state.executable.slot_limit("supervisor")
    for thread, buffer in enumerate(state.debug_buffers):
        contexts[thread, Context.DEBUG] = buffer.ctypes.data if len(buffer) else 0
    contexts[:, Context.DEBUG_WORDS] = max(state.debug_buffers.shape[1] - MARK_WORDS, 0)
    clear_prints(state)
    contexts[:, Context.FIRST_WORKER] = 0
    contexts[:, Context.WORKERS] = state.executable.target.getNumWorkerContexts()
    state.floating_point_mask = state.floating_point_mask  # of thread 0: a run that was given up may have left others behind
    if state.header[Slot.FLOPS]:
        size = WORD_BYTES * WORK_WORDS * int(state.header[Slot.SLOTS_WORDS])
        contexts[:, Context.WORK] = state.header[Slot.FLOPS] + size * np.arange(len(contexts))
