"""What of a vertex's slots stays in each part of it, however finely it is divided: the blocks that run once for a vertex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from pypoplar.report.execution import Execution, Step
from pypoplar.report.line_profile import CodeletText, VertexGroup
from pypoplar.report.tile_vertices import SizedVertices


@frozen(eq=False)
class FixedCosts:
    """The shares of vertices' slots that are fixed, by name of the compute set and vertex type; empty where no lines are known."""

    shares: Mapping[tuple[str, str], float] = field(factory=dict)

    @staticmethod
    def of(execution: Execution, steps: Sequence[Step]) -> FixedCosts:
        """Those of the compute `steps` of an execution."""
        if execution.lines is None:
            return FixedCosts()
        times: dict[str, int] = {}
        for step in steps:
            times[step.name] = times.get(step.name, 0) + step.executions
        texts = {text.vertex_type: text for text in execution.lines.texts}
        groups = execution.lines.groups
        return FixedCosts(
            {
                (group.compute_set, group.vertex_type): _share(texts[group.vertex_type], group, times.get(group.compute_set, 0))
                for group in groups
            }
        )

    def of_tile(self, step: Step, vertices: Sequence[SizedVertices]) -> float:
        """Of the vertices of a tile: that of the type that has the least."""
        return min((self.shares.get((step.name, one.name), 0.0) for one in vertices), default=0.0)


def _share(text: CodeletText, group: VertexGroup, times: int) -> float:
    """Of a vertex's code, what runs at most once in each execution."""
    calls = group.vertices * times
    costs = [count * sum(part.slots for part in parts) for count, parts in zip(group.executions, text.blocks, strict=True)]
    fixed = sum(cost for count, cost in zip(group.executions, costs, strict=True) if count <= calls)
    return fixed / sum(costs) if sum(costs) else 0.0
