"""Which vertex types tiles wait for: the cycles of compute steps, by the vertices of the tile that takes longest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from pypoplar.report.execution import VertexTypeCycles
from pypoplar.report.insights.compute_savings import ComputeSavings
from pypoplar.report.program_nodes import VertexInstances
from pypoplar.report.report import Report
from pypoplar.report.tile_vertices import SizedVertices


@frozen
class WaitedType:
    """Cycles in which tiles wait for vertices of a type, and what of them no finding about tiles and threads claims."""

    cycles: float = 0.0
    left: float = 0.0


def waited_types(report: Report) -> Mapping[str, WaitedType]:
    """By vertex type. The parts of `left` add up to what is left of all steps.

    By how much the slowest tile takes longer than the mean one is its vertices', and the rest that of all vertices of the compute
    set, as is what is left. Types share it by the slots that their vertices take in the mean; where a step's vertices are not
    known, all types do by all their slots.
    """
    costs = report.execution.cycles_by_vertex_type if report.execution is not None else {}
    found = dict.fromkeys(costs, WaitedType())
    slowest = report.execution.slowest_vertices if report.execution is not None else {}
    for savings in ComputeSavings.of(report).steps:
        step = savings.step
        of_slowest = _parts(slowest.get(step.number, ()), costs)
        compute_set = step.program.computeset if step.program is not None else None
        of_all = _parts(compute_set.vertices, costs) if compute_set is not None else of_slowest
        even = step.compute_cycles * step.activeTileBalance
        for name in of_slowest.keys() | of_all.keys():
            before, all, longest = found[name], of_all.get(name, 0.0), of_slowest.get(name, 0.0)
            cycles = all * even + longest * (step.compute_cycles - even)
            found[name] = WaitedType(before.cycles + cycles, before.left + all * savings.left)
    return found


def _parts(vertices: Sequence[SizedVertices | VertexInstances], costs: Mapping[str, VertexTypeCycles]) -> Mapping[str, float]:
    """The part of each vertex type in some vertices; they add up to 1, or there are none."""
    mean = {name: cost.cycles / max(1, cost.instances) for name, cost in costs.items()}
    weights: dict[str, float] = {}
    for one in vertices:
        if one.name in mean:
            weights[one.name] = weights.get(one.name, 0.0) + one.count * mean[one.name]
    if not any(weights.values()):
        weights = {name: float(cost.cycles) for name, cost in costs.items()}
    whole = sum(weights.values())
    return {name: weight / whole for name, weight in weights.items()} if whole else {}
