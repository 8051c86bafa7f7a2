"""The page's picture of running: steps with their tiles, runs, the trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pypoplar.report.execution import Execution, Step
from pypoplar.report.page.blocks import Blocks, Reference, TileRows

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


def step_number(step: Step, place: int) -> int:
    """The static step's number; its place among the steps where the report does not number them."""
    return step.number if step.number >= 0 else place


def idle_threads(step: Step) -> float:
    """Share of a step's compute cycles in which worker threads have nothing to do, on the tiles that compute."""
    busy = int(step.cyclesByTile.sum())
    return 1 - int(step.activeCyclesByTile.sum()) / busy if busy and len(step.activeCyclesByTile) else 0.0


def steps_table(steps: Sequence[Step], rows: TileRows, by_tile: Iterable[str] = BY_TILE) -> dict[str, Any]:
    """The steps as columns. Their rows by tile are added from the longest step to the shortest, as far as there is room."""
    table: dict[str, Any] = {name: [getattr(one, name) for one in steps] for name in NUMBERS}
    table["name"] = [one.name for one in steps]
    table["type"] = [one.type for one in steps]
    table["number"] = [step_number(one, place) for place, one in enumerate(steps)]
    table["compute_set"] = [one.program.computeset.name if one.program and one.program.computeset else "" for one in steps]
    table["vertices"] = [dict(one.program.vertices) if one.program else {} for one in steps]
    table["sent_bytes"] = [int(one.bytesSentByTile.sum()) for one in steps]
    table["mean_compute"] = [float(one.cyclesByTile.mean()) if len(one.cyclesByTile) else 0.0 for one in steps]
    table["mean_exchange"] = [
        float(one.exchange_cycles_by_tile.mean()) if len(one.exchange_cycles_by_tile) else 0.0 for one in steps
    ]
    table["balance"] = [round(one.tileBalance, 6) for one in steps]
    table["active_balance"] = [round(one.activeTileBalance, 6) for one in steps]
    table["idle"] = [round(idle_threads(one), 6) for one in steps]
    chosen = {name: [-1] * len(steps) for name in by_tile}
    for place in sorted(range(len(steps)), key=lambda one: -steps[one].cycles):
        for name, column in chosen.items():
            column[place] = rows.add(getattr(steps[place], BY_TILE[name]))
    table["rows"] = chosen
    return table


def execution_data(execution: Execution, blocks: Blocks, tiles: int) -> dict[str, Any]:
    """Steps, runs and trace, as references into `blocks`."""
    rows = TileRows(blocks, tiles)
    steps = steps_table(execution.steps, rows)
    runs = [
        {"name": one.name, "count": one.count, "cycles": one.cycles, "steps": blocks.value(steps_table(one.steps, rows, IN_RUNS))}
        for one in execution.runs
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
