"""What compute sets cost, from a report's steps: all steps that execute one together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from attrs import field, frozen

from pypoplar.report.execution import Execution, Step


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
    made_at: str = ""  # the user's line, file:line

    @property
    def balance(self) -> float:
        """Mean over maximum of the tiles' cycles, over all executions together."""
        return self.tile_cycles / (self.tiles * self.cycles) if self.cycles and self.tiles else 0.0

    @property
    def lost(self) -> float:
        """Cycles that would be saved if every execution were spread evenly over all tiles."""
        return self.cycles * (1 - self.balance)


def compute_set_name(step: Step) -> str:
    """The name of a step's compute set; that of the step where it has none."""
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
            made_at=steps[0].program.computeset.made_at if steps[0].program and steps[0].program.computeset else "",
        )
        for name, steps in by_name.items()
    ]
    return sorted(costs, key=lambda cost: (-cost.cycles, cost.name))
