"""Makes of what engines record of single executions the tiles of the report's trace."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from pypoplar.arrays.groups import offsets
from pypoplar.executable.executable import Executable
from pypoplar.report.run_account import RecordedStep, RunHistory
from pypoplar.report.trace import RecordedTiles, Trace

MOST_TILES = 1 << 22  # of all recorded executions together; tiles that have something to do count four times


def with_recorded_tiles(executable: Executable, history: RunHistory) -> Trace:
    """The trace of all runs with what tiles did in the executions that were recorded.

    Where that is too much, the steps that took the most cycles have theirs.
    """
    found = [(run, recorded) for run, account in enumerate(history.runs) for recorded in account.recorded]
    found.sort(key=lambda one: -int(history.runs[one[0]].compute_cycles[one[1].step]))
    tiles = executable.target.getNumTiles()
    sizes = [len(recorded.execution) * max(tiles, 4 * recorded.cycles.shape[1]) for _, recorded in found]
    kept = int(np.searchsorted(np.cumsum(sizes), MOST_TILES, side="right"))
    left_out = sum(len(recorded.execution) for _, recorded in found[kept:])
    told = _tiles(executable, sorted(found[:kept], key=lambda one: (one[0], one[1].step)))
    return evolve(history.trace, recorded=history.recorded, tiles=told, unrecorded=left_out)


def _tiles(executable: Executable, found: list[tuple[int, RecordedStep]]) -> RecordedTiles:
    if not found:
        return RecordedTiles()
    computes, active = executable.computes, []
    for _, recorded in found:
        compute = executable.steps[recorded.step].compute
        active.append(computes.active_tile[computes.first_active[compute] : computes.first_active[compute + 1]])
    many = [len(recorded.execution) for _, recorded in found]
    own = zip(active, many, strict=True)
    cycles = np.concatenate([recorded.cycles.ravel() for _, recorded in found]).astype(np.int64)
    tile = np.concatenate([np.tile(tiles, times) for tiles, times in own]).astype(np.int32)
    worked = cycles > 0  # a file has no rows for the others
    first = offsets(np.repeat([recorded.cycles.shape[1] for _, recorded in found], many))
    before = offsets(worked)
    return RecordedTiles(
        step=np.repeat([recorded.step for _, recorded in found], many).astype(np.int32),
        run=np.repeat([run for run, _ in found], many).astype(np.int32),
        execution=np.concatenate([recorded.execution for _, recorded in found]),
        first=before[first],
        tile=tile[worked],
        cycles=cycles[worked],
    )
