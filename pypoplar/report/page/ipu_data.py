"""The page's picture of IPUs: what each does and holds, what goes between them, and how far that uses their links."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Float64s, Int64s
from pypoplar.report.execution import Step, numbered_steps
from pypoplar.report.report import ExchangeReport, Report

MOST_STEPS = 1000  # that are listed


@frozen(eq=False)
class Crossing:
    """What an exchange moves from IPU to IPU each time it runs: int64 [source IPUs, destination IPUs], the diagonal within IPUs."""

    step: int
    name: str
    executions: int
    cycles: int  # of all executions, between IPUs
    bytes: Int64s

    def use(self, link: float) -> Float64s:
        """Shares of what links carry in the exchange's cycles between IPUs, both ways together; 0 where they are not known."""
        both = (self.bytes + self.bytes.T).astype(np.float64)
        np.fill_diagonal(both, 0)
        capacity = link * self.cycles / max(self.executions, 1)
        shares: Float64s = np.minimum(both / capacity, 1.0) if capacity else np.zeros_like(both)
        return shares


def ipu_data(report: Report) -> dict[str, Any] | None:
    """None where the target has one IPU.

    `rows` has each IPU, `bytes` what goes from one (row) to another (column) in all executions, `use` the share of each link's
    capacity in all cycles of exchange between IPUs, `steps` the exchanges that cross, and `more` how many of them are left out.
    Where nothing has run, the bytes are those of one execution of each exchange, and `ran` is False.
    """
    target = report.compilation.target
    if target.numIPUs < 2:
        return None
    crossings = _crossings(report)
    whole = np.zeros((target.numIPUs, target.numIPUs), np.int64)
    for crossing in crossings:
        whole += crossing.bytes * (crossing.executions if report.execution is not None else 1)
    cycles = sum(crossing.cycles for crossing in crossings)
    between = Crossing(-1, "", 1, cycles, whole)
    link = target.link_bytes_per_cycle
    crossing_steps = sorted(
        (crossing for crossing in crossings if crossing.bytes.sum() > np.trace(crossing.bytes)),
        key=lambda crossing: (-crossing.cycles, crossing.step),
    )
    return {
        "ran": report.execution is not None,
        "link_bytes_per_cycle": link,
        "cycles": cycles,
        "rows": _rows(report, whole),
        "bytes": whole.tolist(),
        "use": between.use(link).round(6).tolist() if link and cycles else None,
        "steps": [_step_row(crossing, link) for crossing in crossing_steps[:MOST_STEPS]],
        "more": max(0, len(crossing_steps) - MOST_STEPS),
    }


def _crossings(report: Report) -> list[Crossing]:
    """By step: copies that go together are one exchange."""
    steps, target = numbered_steps(report.execution), report.compilation.target
    names: dict[int, str] = {}
    sums: dict[int, Int64s] = {}
    for exchange in report.compilation.exchanges:
        bytes = bytes_between(exchange, steps.get(exchange.step), target.tilesPerIpu, target.numIPUs)
        sums[exchange.step] = sums[exchange.step] + bytes if exchange.step in sums else bytes
        names.setdefault(exchange.step, exchange.name)
    ran = {number: (step.executions, step.global_exchange_cycles) for number, step in steps.items()}
    return [Crossing(number, names[number], *ran.get(number, (0, 0)), sums[number]) for number in sums]


def bytes_between(exchange: ExchangeReport, step: Step | None, per_ipu: int, ipus: int) -> Int64s:
    """What goes from IPU to IPU in an execution.

    What several tiles of an IPU receive alike crosses once. Messages are known by pairs of tiles, so no more is counted for a tile
    that sends than it sends in all, which the step says if it has run.
    """
    tiles = per_ipu * ipus
    arrives = np.bincount(
        exchange.source.astype(np.int64) * ipus + exchange.destination // per_ipu, weights=exchange.bytes, minlength=tiles * ipus
    ).reshape(tiles, ipus)
    if step is not None and step.executions and len(step.bytesSentByTile):
        sent = step.bytesSentByTile // step.executions
        own = np.arange(tiles)[:, None] // per_ipu == np.arange(ipus)[None]
        arrives = np.where(own, arrives, np.minimum(arrives, sent[:, None]))
    between: Int64s = arrives.reshape(ipus, per_ipu, ipus).sum(1).astype(np.int64)
    return between


def _step_row(crossing: Crossing, link: float) -> dict[str, Any]:
    use = crossing.use(link)
    one, other = sorted(divmod(int((crossing.bytes + crossing.bytes.T - 2 * np.diag(np.diag(crossing.bytes))).argmax()), len(use)))
    return {
        "step": crossing.step,
        "name": crossing.name,
        "executions": crossing.executions,
        "bytes": int(crossing.bytes.sum() - np.trace(crossing.bytes)),
        "cycles": crossing.cycles,
        "use": round(float(use[one, other]), 6) if link and crossing.cycles else None,
        "pair": f"{one} and {other}",
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
            "within": int(between[ipu, ipu]),
            "sent": int(between[ipu].sum() - between[ipu, ipu]),
            "received": int(between[:, ipu].sum() - between[ipu, ipu]),
        }
        for ipu in range(len(memory))
    ]
