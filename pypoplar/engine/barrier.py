"""Where the driver's threads meet."""

from __future__ import annotations

from pypoplar.codelet.intrinsics import atomic_add, atomic_load, atomic_store, pause, yield_processor
from pypoplar.engine import layout as at
from pypoplar.engine.header import table
from pypoplar.engine.unit import part

SPINS = 2000  # looks at the barrier before letting other threads of the system run


@part
def wait(header: int, threads: int) -> None:  # pragma: no cover
    """Meet the other threads."""
    shared = table(header, at.SHARED)
    generation = atomic_load(shared + 8 * at.GENERATION)
    if atomic_add(shared + 8 * at.ARRIVED, 1) == threads - 1:
        atomic_store(shared + 8 * at.ARRIVED, 0)
        atomic_store(shared + 8 * at.GENERATION, generation + 1)
        return
    looks = 0
    while atomic_load(shared + 8 * at.GENERATION) == generation:
        looks += 1
        if looks < SPINS:
            pause()
        else:
            yield_processor()
