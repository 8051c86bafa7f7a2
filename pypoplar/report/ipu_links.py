"""What exchanges move from IPU to IPU, and what they wait for there: a link, or the port of a tile."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Float64s, Int64s
from pypoplar.executable.pod_links import ladder_links
from pypoplar.report.execution import Step, numbered_steps
from pypoplar.report.report import ExchangeReport, Report

FULL = 0.99  # of a link: what is used more decides


@frozen(eq=False)
class Crossing:
    """What an exchange moves from IPU to IPU each time it runs: int64 [source IPUs, destination IPUs], the diagonal within IPUs."""

    step: int
    name: str
    executions: int
    cycles: int  # of all executions, between IPUs
    bytes: Int64s

    @cached_property
    def carried(self) -> Int64s:
        """By its two ends the bytes that each link carries in an execution; what is on its way to farther IPUs counts on each."""
        between = self.bytes.copy()
        np.fill_diagonal(between, 0)
        return ladder_links(len(between)).carried(between)

    def use(self, link: float) -> Float64s:
        """Shares of what links carry in the exchange's cycles between IPUs, each direction by itself; 0 where not known or no link.

        `link` is what one carries in a cycle, both ways together.
        """
        capacity = link / 2 * self.cycles / max(self.executions, 1)
        carried = self.carried.astype(np.float64)
        shares: Float64s = np.minimum(carried / capacity, 1.0) if capacity else np.zeros_like(carried)
        return shares

    def busiest(self) -> tuple[int, int]:
        """The IPU that sends and the one that receives over the link that carries the most."""
        one, other = divmod(int(self.carried.argmax()), len(self.carried))
        return one, other


@frozen
class BetweenIpus:
    """The busiest link and the busiest port of an exchange between IPUs; bytes are those of one execution.

    `use` is the share of what the link carries in the exchange's cycles, None where that is not known. `equals` counts further
    tiles whose port is as busy.
    """

    link: tuple[int, int]
    use: float | None
    tile: int
    sent: int
    received: int
    equals: int = 0

    def told(self) -> str:
        """``limited by the link from IPU 0 to IPU 1; busiest port: tile 3, 8 B sent, 0 B received``."""
        ipus = "IPU {} to IPU {}".format(*self.link)
        used = "" if self.use is None else f", {self.use:.1%} used"
        link = f"limited by the link from {ipus}" if (self.use or 0) >= FULL else f"busiest link: from {ipus}{used}"
        alike = f" ({self.equals:,} {'other moves' if self.equals == 1 else 'others move'} as much)" if self.equals else ""
        return f"{link}; busiest port: tile {self.tile:,}{alike}, {self.sent:,} B sent, {self.received:,} B received"


def between_ipus(report: Report) -> dict[int, BetweenIpus]:
    """By step that exchanges between IPUs: what its link and ports have to do."""
    target, steps = report.compilation.target, numbered_steps(report.execution)
    if target.numIPUs < 2 or not any(step.global_exchange_cycles for step in steps.values()):
        return {}
    ports = _ports(report)
    found = {}
    for crossing in crossings(report):
        if not crossing.cycles or crossing.bytes.sum() == np.trace(crossing.bytes):
            continue
        sent, received = ports[crossing.step]
        step = steps[crossing.step]
        if len(step.bytesSentByTile):  # a multicast is sent once
            sent = np.minimum(sent, step.bytesSentByTile // max(step.executions, 1))
        port = np.maximum(sent, received)
        tile, link = int(port.argmax()), crossing.busiest()
        use = float(crossing.use(target.link_bytes_per_cycle)[link]) if target.link_bytes_per_cycle else None
        equals = int(np.count_nonzero(port == port[tile])) - 1
        found[crossing.step] = BetweenIpus(link, use, tile, int(sent[tile]), int(received[tile]), equals)
    return found


def _ports(report: Report) -> dict[int, tuple[Int64s, Int64s]]:
    """By step what each tile sends to other IPUs and receives from them in an execution."""
    target = report.compilation.target
    ports: dict[int, tuple[Int64s, Int64s]] = {}
    for exchange in _within_replicas(report):
        across: Bools = exchange.source // target.tilesPerIpu != exchange.destination // target.tilesPerIpu
        sent, received = (
            np.bincount(ends[across], weights=exchange.bytes[across], minlength=target.numTiles).astype(np.int64)
            for ends in (exchange.source, exchange.destination)
        )
        before = ports.get(exchange.step, (0, 0))
        ports[exchange.step] = (sent + before[0], received + before[1])
    return ports


def _within_replicas(report: Report) -> list[ExchangeReport]:
    """The exchanges whose tiles are those of one replica."""
    return [exchange for exchange in report.compilation.exchanges if exchange.phase != "replicas"]


def crossings(report: Report) -> list[Crossing]:
    """By step: copies that go together are one exchange."""
    steps, target = numbered_steps(report.execution), report.compilation.target
    names: dict[int, str] = {}
    sums: dict[int, Int64s] = {}
    for exchange in _within_replicas(report):
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
