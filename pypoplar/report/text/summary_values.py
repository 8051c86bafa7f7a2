"""The summary as values for programs: what ``pypoplar summary --json`` writes."""

from __future__ import annotations

from typing import Any

from attrs import asdict

from pypoplar.arrays.dtypes import Int64s
from pypoplar.report.insights.ranking import insight_data
from pypoplar.report.ipu_links import between_ipus
from pypoplar.report.memory_report import MemoryByTile, live_bytes
from pypoplar.report.report import Compilation, Report
from pypoplar.report.text.execution_values import execution_values
from pypoplar.report.text.summary_memory import always_live_bytes, equal_tiles, tiles_beyond

TOP = 20  # steps, where nothing else is asked for


def summary_values(report: Report, *, top: int = TOP, all_steps: bool = False, variables: bool = False) -> dict[str, Any]:
    """The summary of a report as numbers, texts, lists and dicts, which JSON holds.

    `execution` is None for a program that has not run. Its steps are the `top` longest ones, or all of them in program order. What
    the profile does not have is None.
    """
    compilation, execution = report.compilation, report.execution
    return {
        "name": report.name,
        "created": report.created,
        "version": report.poplarVersion.string,
        "options": dict(compilation.options),
        "target": asdict(compilation.target),
        "graph": asdict(compilation.graph),
        "memory": _memory(compilation),
        **({"variables": _variables(compilation), "liveness": _liveness(compilation)} if variables else {}),
        "execution": None
        if execution is None
        else execution_values(execution, compilation, between_ipus(report), None if all_steps else top),
        "failed_runs": [{**asdict(run), "cycles": run.cycles} for run in report.failed_runs],
        "insights": insight_data(report),
    }


def _memory(compilation: Compilation) -> dict[str, Any]:
    memory, limit = compilation.memory, compilation.target.bytesPerTile
    used, whole = memory.excluding_gaps(), memory.including_gaps()
    beyond = tiles_beyond(whole, limit)
    return {
        "tiles_out_of_memory": len(beyond),
        "out_of_memory": [_tiles(memory, tiles, int(whole[tiles[0]]), limit) for tiles in equal_tiles(memory, beyond)],
        "excluding_gaps": int(used.sum()),
        "including_gaps": int(whole.sum()),
        "categories": {name: int(sizes.sum()) for name, sizes in memory.categories.items()},
        "vertex_data": dict(memory.vertex_data),
        "vertex_data_by_type": dict(memory.vertex_data_by_type),
        "fullest_tile": {**_fullest(whole), "limit": limit},
        "fullest_tile_excluding_gaps": {**_fullest(used), "limit": limit},
    }


def _tiles(memory: MemoryByTile, tiles: list[int], held: int, limit: int) -> dict[str, Any]:
    """Tiles that hold as much of each category, and more than they have."""
    categories = {name: int(sizes[tiles[0]]) for name, sizes in memory.categories.items()}
    return {"tiles": tiles, "bytes": held, "over_by": held - limit, "categories": categories}


def _fullest(sizes: Int64s) -> dict[str, int]:
    tile = int(sizes.argmax()) if len(sizes) else -1
    return {"tile": tile, "bytes": int(sizes[tile]) if len(sizes) else 0}


def _variables(compilation: Compilation) -> list[dict[str, Any]]:
    """From the largest to the smallest."""
    return [asdict(variable) for variable in sorted(compilation.loweredVariables, key=lambda variable: -variable.size)]


def _liveness(compilation: Compilation) -> dict[str, Any] | None:
    """Bytes on all tiles that are always live, and those that live at each step; None where variables are not known."""
    if not len(compilation.loweredVariables):
        return None
    live: Int64s = live_bytes(compilation.loweredVariables, len(compilation.step_programs))
    peak = int(live.argmax()) if live.any() else None
    return {
        "always_live_bytes": always_live_bytes(compilation),
        "most_live_step": peak,
        "most_live_bytes": int(live[peak]) if peak is not None else 0,
        "steps": [{"step": step, "not_always_live_bytes": int(live[step])} for step in compilation.program_steps],
    }
