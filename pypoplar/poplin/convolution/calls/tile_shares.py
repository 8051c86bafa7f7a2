"""Convolutions side by side: how the tiles are shared out among them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import pairwise

from attrs import evolve, frozen

from pypoplar.graph.graph import Graph
from pypoplar.poplin.convolution.calls.chosen_form import Canonical, ChosenForm, choose_form
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poplin.planning_cache import PlanningCache, plan_of
from pypoplar.target import Target

ROUNDS = 3  # in which tiles are shared out anew
REMEMBERED = 64  # shares that calls without a cache find again


@frozen
class ConvolutionJob:
    """A convolution to be computed beside others: `count` equal ones are groups of one."""

    key: Canonical
    options: ConvolutionOptions
    count: int

    @property
    def params(self) -> ConvParams:
        """The parameters of all together."""
        joined = deepcopy(self.key.params)
        joined.numConvGroups *= self.count
        return joined


@frozen
class TileShares:
    """Where convolutions are computed: each on tiles [begin, end) of its own; or, without `bounds`, on all, one after the other."""

    bounds: tuple[tuple[int, int], ...]

    @property
    def beside(self) -> bool:
        return bool(self.bounds)

    def graph(self, graph: Graph, number: int) -> Graph:
        """The tiles of a convolution."""
        return graph.createVirtualGraph(*self.bounds[number]) if self.bounds else graph


def share_tiles(target: Target, jobs: Sequence[ConvolutionJob], reserved: int, cache: PlanningCache | None) -> TileShares:
    """Tiles in proportion to the work, at least `reserved` each, where that fits and takes fewer cycles than one by one."""
    key = ("multiconv", target, tuple(jobs), reserved)
    return plan_of(cache, key, lambda: _shares(target, tuple(jobs), reserved))


@lru_cache(REMEMBERED)
def _shares(target: Target, jobs: tuple[ConvolutionJob, ...], reserved: int) -> TileShares:
    tiles = target.getNumTiles()
    serial = TileShares(())
    if len(jobs) < 2 or tiles < 2 * len(jobs) or target.getNumIPUs() > 1:
        return serial
    alone = [_chosen(target, job, tiles) for job in jobs]
    work = [float(one.cycles) for one in alone]
    if 0.0 in work:
        return serial
    best, least = serial, sum(one.cycles for one in alone)
    for _ in range(ROUNDS):
        bounds = _bounds(work, tiles, min(reserved, tiles // len(jobs)))
        beside = [_chosen(target, job, end - begin) for job, (begin, end) in zip(jobs, bounds, strict=True)]
        longest = max(one.cycles for one in beside)
        limits = [max(job.options.memory * target.getBytesPerTile(), one.bytes) for job, one in zip(jobs, alone, strict=True)]
        fits = all(one.bytes <= limit for one, limit in zip(beside, limits, strict=True))
        if longest < least and fits:
            best, least = TileShares(bounds), longest
        work = [one.cycles * (end - begin) for one, (begin, end) in zip(beside, bounds, strict=True)]
    return best


def _bounds(work: Sequence[float], tiles: int, least: int) -> tuple[tuple[int, int], ...]:
    """Ranges of tiles in proportion to the work; they begin at even tiles, two of which share what they receive."""
    spare, done, cuts = tiles - least * len(work), 0.0, [0]
    for number, own in enumerate(work, 1):
        done += own
        cuts.append((least * number + round(spare * done / sum(work))) // 2 * 2)
    cuts[-1] = tiles
    return tuple(pairwise(cuts))


def _chosen(target: Target, job: ConvolutionJob, tiles: int) -> ChosenForm:
    """How a convolution is computed on so many tiles."""
    own = evolve(target, num_ipus=1, tiles_per_ipu=tiles) if tiles < target.getNumTiles() else target
    return choose_form(own, job.params, job.options, None)
