"""The page's picture of running: steps with their tiles, runs, the trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.report.execution import CYCLES, Execution, Step, step_number
from pypoplar.report.page.blocks import Blocks, TileRows
from pypoplar.report.phases import PHASES, WAITING, labels
from pypoplar.report.program_nodes import short_place
from pypoplar.report.report import Report
from pypoplar.report.slowest_tile import SlowestTiles, critical_tile
from pypoplar.report.trace import Trace

NUMBERS = ("executions", "depth", *CYCLES, "cycles", "host_bytes", "flops", "memory_bytes", "activeTiles")
"""Of a step, as libpva and we name them."""
BY_TILE = {  # the page's name of a step's row of tiles -> its attribute
    "compute": "cyclesByTile",
    "active": "activeCyclesByTile",
    "exchange": "exchange_cycles_by_tile",
    "copies": "copy_cycles_by_tile",
    "sent": "bytesSentByTile",
    "received": "bytesReceivedByTile",
    "pieces": "pieces_by_tile",
}
IN_RUNS = ("compute", "exchange", "copies")  # what the trace draws


def phase_rows(execution: Execution | None) -> list[dict[str, str]]:
    """The phases with their labels, the columns of a step that have their cycles, and its rows of tiles; at last the waiting."""
    names = labels(copies_known=execution is None or execution.copies_known)
    rows = {attribute: name for name, attribute in BY_TILE.items()}
    listed = [
        {"name": phase.name, "label": names[phase.name], "cycles": phase.cycles, "row": rows.get(phase.by_tile, "")}
        for phase in PHASES
        if phase.name in names
    ]
    return [*listed, {"name": WAITING[0], "label": WAITING[1], "cycles": "", "row": ""}]


def idle_threads(step: Step) -> float:
    """Share of a step's compute cycles in which worker threads have nothing to do, on the tiles that compute."""
    busy = int(step.cyclesByTile.sum())
    return 1 - int(step.activeCyclesByTile.sum()) / busy if busy and len(step.activeCyclesByTile) else 0.0


def mean_cycles(by_tile: Int64s) -> float:
    """Of the mean tile, 0 where none takes part."""
    return float(by_tile.mean()) if len(by_tile) else 0.0


def steps_table(steps: Sequence[Step], rows: TileRows, by_tile: Iterable[str] = BY_TILE) -> dict[str, Any]:
    """The steps as columns. Their rows by tile are added from the longest step to the shortest, as far as there is room."""
    table: dict[str, Any] = {name: [getattr(step, name) for step in steps] for name in NUMBERS}
    if any(len(step.cycles_by_ipu) for step in steps):
        table["by_ipu"] = [step.cycles_by_ipu[:-1].T.tolist() for step in steps]
    table["name"] = [step.name for step in steps]
    table["type"] = [step.type for step in steps]
    table["number"] = [step_number(step, place) for place, step in enumerate(steps)]
    table["compute_set"] = [step.program.computeset.name if step.program and step.program.computeset else "" for step in steps]
    table["vertices"] = [dict(step.program.vertices) if step.program else {} for step in steps]
    table["made_at"] = [short_place(step.program.made_at) if step.program else "" for step in steps]
    table["set_made_at"] = [
        short_place(step.program.computeset.made_at) if step.program and step.program.computeset else "" for step in steps
    ]
    table["host_limit"] = [step.host_limit for step in steps]
    table["sent_bytes"] = [int(step.bytesSentByTile.sum()) for step in steps]
    table["most_pieces"] = [step.most_pieces for step in steps]
    table["mean_compute"] = [mean_cycles(step.cyclesByTile) for step in steps]
    table["mean_exchange"] = [mean_cycles(step.exchange_cycles_by_tile) for step in steps]
    table["mean_copies"] = [mean_cycles(step.copy_cycles_by_tile) for step in steps]
    table["slowest_compute"] = [step.slowest_tile_cycles for step in steps]
    table["balance"] = [round(step.tileBalance, 6) for step in steps]
    table["active_balance"] = [round(step.activeTileBalance, 6) for step in steps]
    table["idle"] = [round(idle_threads(step), 6) for step in steps]
    table["critical"] = [critical_tile(step) for step in steps]
    rows_by_name = {name: [-1] * len(steps) for name in by_tile}
    for place in sorted(range(len(steps)), key=lambda position: -steps[position].cycles):
        for name, column in rows_by_name.items():
            column[place] = rows.add(getattr(steps[place], BY_TILE[name]))
    table["rows"] = rows_by_name
    return table


def slowest_tiles(execution: Execution) -> list[str]:
    """Of each step what its slowest tile does, in words; empty where no tile is slower than others."""
    slowest = SlowestTiles.of(execution)
    return [tile.told() if (tile := slowest.of_step(step)) is not None else "" for step in execution.steps]


def execution_data(report: Report, blocks: Blocks) -> dict[str, Any] | None:
    """Steps, runs and trace, as references into `blocks`."""
    execution = report.execution
    if execution is None:
        return None
    rows = TileRows(blocks, report.compilation.target.numTiles)
    steps = steps_table(execution.steps, rows)
    steps["slowest"] = slowest_tiles(execution)
    runs = [
        {"name": run.name, "count": run.count, "cycles": run.cycles, "steps": blocks.value(steps_table(run.steps, rows, IN_RUNS))}
        for run in execution.runs
    ]
    return {"steps": blocks.value(steps), "runs": runs, "trace": _trace(execution, blocks, rows), "rows": rows.data()}


def _trace(execution: Execution, blocks: Blocks, rows: TileRows) -> dict[str, Any] | None:
    trace = execution.trace
    if not len(trace):
        return None
    return {
        "step": blocks.array(trace.step),
        "run": blocks.array(trace.run),
        "begin": blocks.array(trace.begin),
        "cycles": blocks.array(trace.cycles),
        **({"ipu": blocks.array(trace.ipu), "ipus": len(execution.ipus)} if execution.has_ipus else {}),
        "missed": int(trace.missed),
        "length": len(trace),
        "recorded": trace.recorded,
        "unrecorded": trace.unrecorded,
        "tiles": blocks.value(_recorded(trace, rows)),
    }


def _recorded(trace: Trace, rows: TileRows) -> dict[str, list[int]]:
    """The events of which it is known what each tile computed, and the rows that have it."""
    told: dict[str, list[int]] = {"event": [], "row": []}
    for ipu in distinct(trace.ipu).tolist():  # each of several has an event of its own
        own, events = np.flatnonzero(trace.ipu == ipu), trace.of_ipu(ipu).events_of_tiles()
        shown = np.flatnonzero(events >= 0)
        told["event"] += own[events[shown]].tolist()
        told["row"] += [rows.add(trace.tiles.by_tile(place, rows.tiles)) for place in shown.tolist()]
    return told
