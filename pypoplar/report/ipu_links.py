"""What exchanges move from IPU to IPU, and what they wait for there: a link, or the port of a tile."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Float64s, Int64s
from pypoplar.executable.pod_links import PodLinks, Wiring
from pypoplar.report.execution import Step, numbered_steps
from pypoplar.report.report import ExchangeReport, Report, ReportTarget

FULL = 0.99  # of a link: what is used more decides


@frozen(eq=False)
class Crossing:
    """What an exchange moves from IPU to IPU each time it runs: int64 [source IPUs, destination IPUs], the diagonal within IPUs."""

    step: int
    name: str
    executions: int
    cycles: int  # of all executions, between IPUs
    bytes: Int64s
    links: PodLinks

    @cached_property
    def loads(self) -> Int64s:
        """The bytes that each link carries in an execution; what is on its way to farther IPUs counts on each."""
        between = self.bytes.copy()
        np.fill_diagonal(between, 0)
        return self.links.loads(between)

    def use(self, target: ReportTarget) -> Float64s:
        """[links]: shares of what links carry in the exchange's cycles between IPUs, each direction by itself; 0 if not known."""
        capacity = bandwidths(target)[self.links.kind] * self.cycles / max(self.executions, 1)
        loads = self.loads.astype(np.float64)
        shares: Float64s = np.minimum(np.divide(loads, capacity, out=np.zeros_like(loads), where=capacity > 0), 1.0)
        return shares

    def busiest(self, target: ReportTarget) -> int:
        """The link that takes the longest for what it carries, or carries the most where that is not known."""
        rates = bandwidths(target)[self.links.kind]
        return int((self.loads / rates if rates.all() else self.loads).argmax())

    def places(self, link: int) -> tuple[int, int]:
        """The two ends of a link: IPUs, and behind them gateways."""
        return int(self.links.source[link]), int(self.links.destination[link])

    def ends(self, link: int) -> tuple[str, str]:
        """What they are called: ``("IPU 0", "IPU 1")``."""
        one, other = self.places(link)
        return self.links.place_name(one), self.links.place_name(other)


def bandwidths(target: ReportTarget) -> Float64s:
    """float64 [`LinkKind`]: what links carry in a cycle, one way; 0 where not known."""
    both = (target.link_bytes_per_cycle, target.gateway_bytes_per_cycle, target.gateway_link_bytes_per_cycle)
    ways: Float64s = np.array(both) / 2
    return ways


def links_of(target: ReportTarget) -> PodLinks:
    """The links between a target's IPUs."""
    return Wiring(target.numIPUs, target.link_domain_size, target.link_topology == "torus").links()


@frozen
class BetweenIpus:
    """The busiest link and the busiest port of an exchange between IPUs; bytes are those of one execution.

    `link` has the link's places, `ends` what they are called; `use` is the share of what it carries in the exchange's cycles, None
    where that is not known. `equals` counts further
    tiles whose port is as busy.
    """

    link: tuple[int, int]
    ends: tuple[str, str]
    use: float | None
    tile: int
    sent: int
    received: int
    equals: int = 0

    def told(self) -> str:
        """``limited by the link from IPU 0 to IPU 1; busiest port: tile 3, 8 B sent, 0 B received``."""
        ipus = "{} to {}".format(*self.ends)
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
        tile, link = int(port.argmax()), crossing.busiest(target)
        use = float(crossing.use(target)[link]) if bandwidths(target)[crossing.links.kind[link]] else None
        equals = int(np.count_nonzero(port == port[tile])) - 1
        found[crossing.step] = BetweenIpus(
            crossing.places(link), crossing.ends(link), use, tile, int(sent[tile]), int(received[tile]), equals
        )
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
    links = links_of(target) if target.numIPUs > 1 else None
    return (
        [] if links is None else [Crossing(number, names[number], *ran.get(number, (0, 0)), sums[number], links) for number in sums]
    )


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
