"""Where the driver's threads meet."""

from __future__ import annotations

from pypoplar.engine.native.header_access import table, word_address
from pypoplar.engine.native.memory_operations import atomic_add, atomic_load, atomic_store, pause, yield_processor
from pypoplar.engine.native.unit import part
from pypoplar.interface.driver_records import Shared
from pypoplar.interface.header_slots import Slot

SPINS = 2000  # looks at the barrier before letting other threads of the system run


@part
def wait(header: int, threads: int) -> bool:
    """Meet the other threads. False if thread 0 gives the program up at this meeting.

    That it gives up at a later one may be known already: there those who have gone on from here will be missed.
    """
    shared = table(header, Slot.SHARED)
    number = word_address(shared, Shared.GENERATION)
    arrived = word_address(shared, Shared.ARRIVED)
    abandon = word_address(shared, Shared.ABANDON)
    generation = atomic_load(number)
    if atomic_add(arrived, 1) == threads - 1:
        atomic_store(arrived, 0)
        atomic_store(number, generation + 1)
        return bool(atomic_load(abandon) != generation + 1)
    looks = 0
    while atomic_load(number) == generation:
        looks += 1
        if looks < SPINS:
            pause()
        else:
            yield_processor()
    return bool(atomic_load(abandon) != generation + 1)
