"""Which vertex types tiles wait for: the cycles of compute steps, by the vertices of the tile that takes longest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from pypoplar.report.execution import VertexTypeCycles
from pypoplar.report.insights.compute_savings import ComputeSavings
from pypoplar.report.report import Report
from pypoplar.report.tile_vertices import SizedVertices


@frozen
class WaitedType:
    """Cycles in which tiles wait for vertices of a type, and what of them no finding about tiles and threads claims."""

    cycles: float = 0.0
    left: float = 0.0


def waited_types(report: Report) -> Mapping[str, WaitedType]:
    """By vertex type. The parts of `left` add up to what is left of all steps.

    Types that one tile has in a step share it by the slots that their vertices take in the mean; where a step's vertices are not
    known, all types do by all their slots.
    """
    costs = report.execution.cycles_by_vertex_type if report.execution is not None else {}
    found = dict.fromkeys(costs, WaitedType())
    slowest = report.execution.slowest_vertices if report.execution is not None else {}
    for savings in ComputeSavings.of(report).steps:
        for name, part in _parts(slowest.get(savings.step.number, ()), costs).items():
            before = found[name]
            found[name] = WaitedType(before.cycles + part * savings.step.compute_cycles, before.left + part * savings.left)
    return found


def _parts(vertices: Sequence[SizedVertices], costs: Mapping[str, VertexTypeCycles]) -> Mapping[str, float]:
    """The part of each vertex type in a step; they add up to 1, or there are none."""
    mean = {name: cost.cycles / max(1, cost.instances) for name, cost in costs.items()}
    weights = {one.name: one.count * mean[one.name] for one in vertices if one.name in mean}
    if not any(weights.values()):
        weights = {name: float(cost.cycles) for name, cost in costs.items()}
    whole = sum(weights.values())
    return {name: weight / whole for name, weight in weights.items()} if whole else {}
