"""The page's picture of running: steps with their tiles, runs, the trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pypoplar.report.execution import Execution, Step, step_number
from pypoplar.report.page.blocks import Blocks, Reference, TileRows
from pypoplar.report.report import Report

NUMBERS = (  # of a step, as libpva and we name them
    *("executions", "depth", "sync_cycles", "exchange_cycles", "global_exchange_cycles", "compute_cycles"),
    *("host_exchange_cycles", "cycles", "host_bytes", "flops", "memory_bytes", "activeTiles"),
)
BY_TILE = {  # the page's name of a step's row of tiles -> its attribute
    "compute": "cyclesByTile",
    "active": "activeCyclesByTile",
    "exchange": "exchange_cycles_by_tile",
    "sent": "bytesSentByTile",
    "received": "bytesReceivedByTile",
}
IN_RUNS = ("compute", "exchange")  # what the trace draws


def idle_threads(step: Step) -> float:
    """Share of a step's compute cycles in which worker threads have nothing to do, on the tiles that compute."""
    busy = int(step.cyclesByTile.sum())
    return 1 - int(step.activeCyclesByTile.sum()) / busy if busy and len(step.activeCyclesByTile) else 0.0


def steps_table(steps: Sequence[Step], rows: TileRows, by_tile: Iterable[str] = BY_TILE) -> dict[str, Any]:
    """The steps as columns. Their rows by tile are added from the longest step to the shortest, as far as there is room."""
    table: dict[str, Any] = {name: [getattr(step, name) for step in steps] for name in NUMBERS}
    table["name"] = [step.name for step in steps]
    table["type"] = [step.type for step in steps]
    table["number"] = [step_number(step, place) for place, step in enumerate(steps)]
    table["compute_set"] = [step.program.computeset.name if step.program and step.program.computeset else "" for step in steps]
    table["vertices"] = [dict(step.program.vertices) if step.program else {} for step in steps]
    table["sent_bytes"] = [int(step.bytesSentByTile.sum()) for step in steps]
    table["mean_compute"] = [float(step.cyclesByTile.mean()) if len(step.cyclesByTile) else 0.0 for step in steps]
    table["mean_exchange"] = [
        float(step.exchange_cycles_by_tile.mean()) if len(step.exchange_cycles_by_tile) else 0.0 for step in steps
    ]
    table["slowest_compute"] = [step.slowest_tile_cycles for step in steps]
    table["balance"] = [round(step.tileBalance, 6) for step in steps]
    table["active_balance"] = [round(step.activeTileBalance, 6) for step in steps]
    table["idle"] = [round(idle_threads(step), 6) for step in steps]
    rows_by_name = {name: [-1] * len(steps) for name in by_tile}
    for place in sorted(range(len(steps)), key=lambda position: -steps[position].cycles):
        for name, column in rows_by_name.items():
            column[place] = rows.add(getattr(steps[place], BY_TILE[name]))
    table["rows"] = rows_by_name
    return table


def execution_data(report: Report, blocks: Blocks) -> dict[str, Any] | None:
    """Steps, runs and trace, as references into `blocks`."""
    execution = report.execution
    if execution is None:
        return None
    rows = TileRows(blocks, report.compilation.target.numTiles)
    steps = steps_table(execution.steps, rows)
    runs = [
        {"name": run.name, "count": run.count, "cycles": run.cycles, "steps": blocks.value(steps_table(run.steps, rows, IN_RUNS))}
        for run in execution.runs
    ]
    return {"steps": blocks.value(steps), "runs": runs, "trace": _trace(execution, blocks), "rows": rows.data()}


def _trace(execution: Execution, blocks: Blocks) -> dict[str, Reference | int] | None:
    trace = execution.trace
    if not len(trace):
        return None
    return {
        "step": blocks.array(trace.step),
        "run": blocks.array(trace.run),
        "begin": blocks.array(trace.begin),
        "cycles": blocks.array(trace.cycles),
        "missed": int(trace.missed),
        "length": len(trace),
    }
