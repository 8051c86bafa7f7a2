"""Worker cycles of transposes: getTransposeCycleEstimate of PopLibs."""

from __future__ import annotations

from pypoplar.poputil.cycles import ceiling, supervisor_slots
from pypoplar.target import Target

SUPERVISOR = supervisor_slots(7)
GRAIN = {2: 4, 4: 2}  # rows and columns of a block that is transposed at once, by the bytes of an element
GRAIN_CYCLES = {2: 4, 4: 3}
SLOW_LONG = 5  # 64 bits, where blocks do not fit
SLOW_START = 18


def transpose_cycles(target: Target, matrices: int, rows: int, columns: int, size: int) -> int:
    """Of the busiest worker, of so many matrices on a tile whose elements have `size` bytes; few matrices are divided by rows."""
    workers = target.getNumWorkerContexts()
    each = ceiling(matrices, workers)
    parts = max(workers // max(matrices, 1), 1)
    grain = GRAIN[size]
    if rows % grain or columns % grain:
        return SUPERVISOR + each * (SLOW_START + SLOW_LONG * ceiling(ceiling(rows * columns, parts) * size, 8))
    down, across, cycles = ceiling(rows // grain, parts), columns // grain, GRAIN_CYCLES[size]
    if down == across == 1:
        return SUPERVISOR + 17 + (12 if each == 1 else 20 + (each - 2) * cycles)
    if across == 1:
        return SUPERVISOR + 27 + each * (15 + 20 + cycles * max(down - 2, 0))
    return SUPERVISOR + 29 + each * (18 + down * (12 + cycles * (across - 2)))
