"""Plans of products in words."""

from __future__ import annotations

from pypoplar.poplin.matmul.block_plan import BlockPlan
from pypoplar.target import Target


def report_of(target: Target, plan: BlockPlan) -> str:
    """The lines of a report."""
    params = plan.params
    types = f"{params.type.__name__} to {params.result.__name__}, partial products in {params.partials.__name__}"
    cuts = plan.cuts
    dimensions = (
        ("groups", params.groups, cuts.group_parts),
        ("rows", params.rows, cuts.row_parts * cuts.row_steps),
        ("depth", params.depth, cuts.depth_parts),
        ("columns", params.columns, cuts.column_parts * cuts.column_steps),
    )
    lines = [f"Product of [{params.groups}, {params.rows}, {params.depth}] and [{params.groups}, {params.depth}, {params.columns}]"]
    lines += [f"  types: {types}"]
    lines += [f"  {name}: {size} in {parts} part{'s' * (parts > 1)}" for name, size, parts in dimensions]
    lines += [f"  tiles: {cuts.blocks} of {target.getNumTiles()}, in {len(cuts.steps)} step{'s' * (len(cuts.steps) > 1)}"]
    lines += [f"  tiles that keep a block: {cuts.left_stretches} of the left operand, {cuts.right_stretches} of the right"]
    lines += [f"  estimated cycles: {plan.cycles}"]
    limit = int(params.memory * target.getBytesPerTile())
    lines += [f"  bytes of a tile: {plan.bytes}, and {limit} are allowed"]
    if plan.bytes > limit:
        lines += [f"  availableMemoryProportion {params.memory:g} cannot be kept: no plan takes less"]
    return "\n".join(lines) + "\n"
