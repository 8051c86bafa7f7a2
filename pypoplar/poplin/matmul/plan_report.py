"""Plans of products in words."""

from __future__ import annotations

from pypoplar.poplin.matmul.block_plan import BlockPlan
from pypoplar.target import Target


def report_of(target: Target, plan: BlockPlan) -> str:
    """The lines of a report."""
    params = plan.params
    types = f"{params.type.__name__} to {params.result.__name__}, partial products in {params.partials.__name__}"
    dimensions = (
        ("groups", params.groups, plan.group_parts),
        ("rows", params.rows, plan.row_parts),
        ("depth", params.depth, plan.depth_parts),
        ("columns", params.columns, plan.column_parts),
    )
    lines = [f"Product of [{params.groups}, {params.rows}, {params.depth}] and [{params.groups}, {params.depth}, {params.columns}]"]
    lines += [f"  types: {types}"]
    lines += [f"  {name}: {size} in {parts} part{'s' * (parts > 1)}" for name, size, parts in dimensions]
    lines += [f"  tiles: {plan.blocks} of {target.getNumTiles()}", f"  estimated cycles: {plan.cycles}"]
    limit = int(params.memory * target.getBytesPerTile())
    lines += [f"  bytes of a tile: {plan.bytes}, and {limit} are allowed"]
    if plan.bytes > limit:
        lines += [f"  availableMemoryProportion {params.memory:g} cannot be kept: no plan takes less"]
    return "\n".join(lines) + "\n"
