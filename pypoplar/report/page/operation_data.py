"""What compute sets and vertex types cost, from the report's steps: the rows of tables, roofline and balance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pypoplar.report.compute_set_costs import compute_sets
from pypoplar.report.execution import Execution, VertexTypeCycles
from pypoplar.report.program_nodes import short_place
from pypoplar.report.report import Report


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
            "made_at": short_place(cost.made_at),
        }
        for cost in compute_sets(execution)
    ]
