"""All that the page of one report draws: small things as they are, heavy ones as references into blocks."""

from __future__ import annotations

from typing import Any

from attrs import asdict

from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.exchange_data import exchanges_data
from pypoplar.report.page.insights import insights
from pypoplar.report.page.memory_data import liveness_data, memory_data, step_names, variables_data
from pypoplar.report.page.operation_data import compute_set_rows, vertex_type_rows
from pypoplar.report.page.program_data import tree_data
from pypoplar.report.page.step_data import execution_data, step_number
from pypoplar.report.page.summary_data import summary_data
from pypoplar.report.report import Report


def report_data(report: Report, blocks: Blocks) -> dict[str, Any]:
    """The page's data; what is not known is None, and the view says so."""
    compilation, execution = report.compilation, report.execution
    target = compilation.target
    executions = {step_number(step, place): step.executions for place, step in enumerate(execution.steps)} if execution else {}
    tree = tree_data(compilation.programs, execution)
    return {
        "kind": "report",
        "summary": summary_data(report),
        "insights": [asdict(insight) for insight in insights(report)],
        "target": {
            "tiles": target.numTiles,
            "tiles_per_ipu": target.tilesPerIpu,
            "ipus": target.numIPUs,
            "clock": float(target.clockFrequency),
            "peaks": {name: float(peak) for name, peak in target.peak_flops_per_cycle.items()},
            "memory_bytes_per_cycle": target.memory_bytes_per_cycle,
        },
        "total_cycles": execution.totalCycles.total if execution else 0,
        "memory": memory_data(compilation, blocks),
        "variables": variables_data(compilation.loweredVariables, blocks),
        "liveness": liveness_data(compilation, blocks),
        "step_names": step_names(compilation, blocks),
        "tree": blocks.value(tree) if tree else None,
        "execution": execution_data(execution, blocks, target.numTiles) if execution else None,
        "vertex_types": blocks.value(vertex_type_rows(report)),
        "compute_sets": blocks.value(compute_set_rows(execution)) if execution else None,
        "exchanges": exchanges_data(compilation.exchanges, executions, blocks),
    }
