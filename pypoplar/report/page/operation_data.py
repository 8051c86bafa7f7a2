"""What compute sets and vertex types cost, from the report's steps: the rows of tables, roofline and balance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from attrs import field, frozen

from pypoplar.report.execution import Execution, Step, VertexTypeCycles
from pypoplar.report.report import Report


@frozen
class ComputeSetCost:
    """A compute set with all its executions. `steps` is how many static steps execute it; `tile_cycles` is summed over tiles."""

    name: str
    steps: int
    executions: int
    cycles: int  # compute cycles of the slowest tile, summed over executions
    tile_cycles: int
    active_cycles: int
    tiles: int  # of the target; 0 where the report has no cycles by tile
    flops: int
    memory_bytes: int
    vertices: Mapping[str, int] = field(factory=dict)

    @property
    def balance(self) -> float:
        """Mean over maximum of the tiles' cycles, over all executions together."""
        return self.tile_cycles / (self.tiles * self.cycles) if self.cycles and self.tiles else 0.0

    @property
    def lost(self) -> float:
        """Cycles that would be saved if every execution were spread evenly over all tiles."""
        return self.cycles * (1 - self.balance)


def compute_set_name(step: Step) -> str:
    return step.program.computeset.name if step.program is not None and step.program.computeset is not None else step.name


def compute_sets(execution: Execution) -> list[ComputeSetCost]:
    """The compute sets that ran, from the one with the most cycles to the one with the fewest."""
    by_name: dict[str, list[Step]] = {}
    for step in execution.steps:
        match step.type:
            case "OnTileExecute":
                by_name.setdefault(compute_set_name(step), []).append(step)
            case "DoExchange" | "StreamCopy" | "Sync":
                continue  # no vertices
            case _:
                assert_never(step.type)
    costs = [
        ComputeSetCost(
            name=name,
            steps=len(steps),
            executions=sum(step.executions for step in steps),
            cycles=sum(step.slowest_tile_cycles for step in steps),
            tile_cycles=sum(int(step.cyclesByTile.sum()) for step in steps),
            active_cycles=sum(int(step.activeCyclesByTile.sum()) for step in steps),
            tiles=max(len(step.cyclesByTile) for step in steps),
            flops=sum(step.flops for step in steps),
            memory_bytes=sum(step.memory_bytes for step in steps),
            vertices=steps[0].program.vertices if steps[0].program is not None else {},
        )
        for name, steps in by_name.items()
    ]
    return sorted(costs, key=lambda cost: (-cost.cycles, cost.name))


def vertex_type_rows(report: Report) -> list[dict[str, Any]]:
    """Vertex types with their instances, cycles, floating-point operations and memory, the most cycles first."""
    ran: Mapping[str, VertexTypeCycles] = report.execution.cycles_by_vertex_type if report.execution else {}
    compiled = {vertex_type.name: vertex_type for vertex_type in report.compilation.vertex_types}
    rows = []
    for name in dict.fromkeys((*ran, *compiled)):
        cost, compiled_type = ran.get(name), compiled.get(name)
        rows.append(
            {
                "name": name,
                "instances": cost.instances if cost else compiled_type.instances if compiled_type else 0,
                "cycles": cost.cycles if cost else 0,
                "flops": cost.flops if cost else 0,
                "memory_bytes": cost.memory_bytes if cost else 0,
                "compiled_cycles": cost.compiled_cycles if cost else 0,
                "bound_cycles": cost.bound_cycles if cost else 0,
                "memory": compiled_type.memory if compiled_type else report.compilation.memory.vertex_data_by_type.get(name, 0),
                "priced_by": ", ".join(f"{by} {count:,}" for by, count in compiled_type.priced_by.items() if count)
                if compiled_type
                else "",
            }
        )
    return sorted(rows, key=lambda row: (-row["cycles"], -row["memory"], row["name"]))


def compute_set_data(report: Report) -> list[dict[str, Any]] | None:
    """The rows of a report's compute sets; None where it has not run."""
    return compute_set_rows(report.execution) if report.execution else None


def compute_set_rows(execution: Execution) -> list[dict[str, Any]]:
    """Compute sets as rows of the page's tables."""
    return [
        {
            "name": cost.name,
            "steps": cost.steps,
            "executions": cost.executions,
            "cycles": cost.cycles,
            "balance": round(cost.balance, 6),
            "lost": round(cost.lost),
            "flops": cost.flops,
            "memory_bytes": cost.memory_bytes,
            "vertices": sum(cost.vertices.values()),
            "types": ", ".join(cost.vertices),
        }
        for cost in compute_sets(execution)
    ]
