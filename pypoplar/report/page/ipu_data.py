"""The page's picture of IPUs: what each does and holds, what goes between them, and how far that uses their links."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import Float64s, Int64s
from pypoplar.executable.pod_links import LinkKind
from pypoplar.report.execution import Execution
from pypoplar.report.ipu_links import Crossing, bandwidths, crossings, links_of
from pypoplar.report.report import Report, ReportTarget

MOST_STEPS = 1000  # that are listed


def ipu_data(report: Report) -> dict[str, Any] | None:
    """None where the target has one IPU.

    `rows` has each IPU, where there are `clocks` with how long it is busy and waits for others, `bytes` what goes from one (row) to
    another (column) in all executions, `use` the share that the link from the one to the other carries of what it could in all
    cycles of exchange between IPUs, 0 where there is none, `steps` the exchanges that cross, and `more` how many of them are left
    out.
    Where nothing has run, the bytes are those of one execution of each exchange, and `ran` is False.
    """
    target = report.compilation.target
    if target.numIPUs < 2:
        return None
    crossed = crossings(report)
    whole = np.zeros((target.numIPUs, target.numIPUs), np.int64)
    for crossing in crossed:
        whole += crossing.bytes * (crossing.executions if report.execution is not None else 1)
    cycles = sum(crossing.cycles for crossing in crossed)
    links = links_of(target)
    between = Crossing(-1, "", 1, cycles, whole, links)
    link = target.link_bytes_per_cycle
    crossing_steps = sorted(
        (crossing for crossing in crossed if crossing.bytes.sum() > np.trace(crossing.bytes)),
        key=lambda crossing: (-crossing.cycles, crossing.step),
    )
    return {
        "ran": report.execution is not None,
        "link_bytes_per_cycle": link,
        "cycles": cycles,
        "rows": _rows(report, whole),
        "clocks": report.execution is not None and report.execution.has_ipus,
        "bytes": whole.tolist(),
        "wiring": _wiring(target),
        "use": of_pairs(between, target).round(6).tolist() if link and cycles else None,
        "steps": [_step_row(crossing, target) for crossing in crossing_steps[:MOST_STEPS]],
        "more": max(0, len(crossing_steps) - MOST_STEPS),
    }


def of_pairs(crossing: Crossing, target: ReportTarget) -> Float64s:
    """[IPUs, IPUs]: the share that the IPU-Link from the one to the other carries of what it could."""
    links = crossing.links
    own = links.kind == LinkKind.IPU_LINK
    shares = np.zeros((target.numIPUs, target.numIPUs))
    shares[links.source[own], links.destination[own]] = crossing.use(target)[own]
    return shares


def _wiring(target: ReportTarget) -> str:
    ladder = "a ladder whose ends are joined" if target.link_topology == "torus" else "a ladder"
    if target.numIPUs <= target.link_domain_size:
        return f"IPUs are wired as {ladder}"
    return f"Each {target.link_domain_size} IPUs are wired as {ladder}, and gateways lead to the next"


def _step_row(crossing: Crossing, target: ReportTarget) -> dict[str, Any]:
    link = crossing.busiest(target)
    known = bandwidths(target)[crossing.links.kind[link]] and crossing.cycles
    return {
        "step": crossing.step,
        "name": crossing.name,
        "executions": crossing.executions,
        "bytes": int(crossing.bytes.sum() - np.trace(crossing.bytes)),
        "cycles": crossing.cycles,
        "use": round(float(crossing.use(target)[link]), 6) if known else None,
        "pair": " to ".join(crossing.ends(link)),
    }


def _rows(report: Report, between: Int64s) -> list[dict[str, Any]]:
    compilation, execution = report.compilation, report.execution
    memory = compilation.by_ipu(compilation.memory.including_gaps())
    compute = np.zeros(compilation.target.numTiles, np.int64)
    for step in execution.steps if execution is not None else ():
        if len(step.cyclesByTile):
            compute += step.cyclesByTile
    by_ipu, first = compilation.by_ipu(compute), np.arange(len(memory)) * compilation.target.tilesPerIpu
    return [
        {
            "ipu": ipu,
            "memory": int(memory[ipu].sum()),
            "fullest": int(memory[ipu].max()),
            "fullest_tile": int(first[ipu] + memory[ipu].argmax()),
            "compute": int(by_ipu[ipu].max()),
            "slowest_tile": int(first[ipu] + by_ipu[ipu].argmax()),
            "mean_compute": float(by_ipu[ipu].mean()),
            "active_tiles": int(np.count_nonzero(by_ipu[ipu])),
            **_times(execution, ipu),
            "within": int(between[ipu, ipu]),
            "sent": int(between[ipu].sum() - between[ipu, ipu]),
            "received": int(between[:, ipu].sum() - between[ipu, ipu]),
        }
        for ipu in range(len(memory))
    ]


def _times(execution: Execution | None, ipu: int) -> dict[str, int]:
    """For how long an IPU is busy and waits for others, where each has a clock."""
    if execution is None or not execution.has_ipus:
        return {}
    whole = execution.ipus[ipu]
    return {"busy": whole.cycles - whole.waiting_cycles, "waiting": whole.waiting_cycles}
