"""Makes the report's program trees from the executable's table of nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pypoplar.executable.executable import Executable
from pypoplar.executable.steps import StaticStep
from pypoplar.report.execution import StepType
from pypoplar.report.program_nodes import ComputeSet, Program, VertexInstances

TYPES: Mapping[str, StepType] = {
    "exchange": "DoExchange",
    "copy": "DoExchange",
    "compute": "OnTileExecute",
    "stream": "StreamCopy",
    "sync": "Sync",
    "handle": "StreamCopy",
}
"""The program types of libpva that static steps are, by their kind."""


def step_type(step: StaticStep) -> StepType:
    """The program type of a static step. `ValueError` for a kind that has none: what it costs would be in no sum."""
    if step.kind not in TYPES:
        raise ValueError(f"step {step.name!r} is of the kind {step.kind!r}, and reports know {', '.join(TYPES)}")
    return TYPES[step.kind]


def make_step_programs(executable: Executable) -> tuple[Program, ...]:
    """The static steps as programs, by number."""
    tree, sets = executable.tree, _vertices_by_compute(executable)
    detail = dict(zip(tree.step.tolist(), tree.detail, strict=True))

    known: dict[tuple[str, tuple[VertexInstances, ...]], ComputeSet] = {}
    lines = dict(zip(executable.compute_names, executable.made_at.compute_sets, strict=True))

    def compute_set(name: str, compute: int) -> ComputeSet | None:
        """One for all steps that execute it."""
        if compute < 0:
            return None
        return known.setdefault((name, sets[compute]), ComputeSet(name, sets[compute], lines.get(name, "")))

    return tuple(
        Program(
            step.name,
            step_type(step),
            step=number,
            detail=detail.get(number, ""),
            computeset=compute_set(step.name, step.compute),
            made_at=step.made_at,
        )
        for number, step in enumerate(executable.steps)
    )


def make_programs(executable: Executable, steps: tuple[Program, ...]) -> tuple[Program, ...]:
    """The tree of each program of the engine; its leaves are those of `steps`. A function is the same object in every Call."""
    tree = executable.tree
    programs: list[Program] = []
    for node, (type, step) in enumerate(zip(tree.type, tree.step.tolist(), strict=True)):
        if step >= 0:
            programs.append(steps[step])
        else:
            children = tuple(programs[child] for child in tree.children(node).tolist())
            programs.append(Program(tree.name[node], type, children, detail=tree.detail[node], made_at=tree.made_at[node]))
    return tuple(programs[node] for node in tree.root.tolist())


def _vertices_by_compute(executable: Executable) -> list[tuple[VertexInstances, ...]]:
    """Vertex types with how many vertices there are of each, by compute."""
    computes, codelets = executable.computes, executable.codelets
    count = len(computes.first_active) - 1
    active = np.repeat(np.arange(count), np.diff(computes.first_active))
    compute = np.repeat(active, np.diff(computes.first_group))
    kinds = max(len(codelets), 1)
    keys, place = np.unique(compute * kinds + computes.group_codelet, return_inverse=True)
    vertices = np.bincount(place, weights=computes.group_count, minlength=len(keys)).astype(np.int64)
    vertex_types: list[list[VertexInstances]] = [[] for _ in range(count)]
    for key, number in zip(keys.tolist(), vertices.tolist(), strict=True):
        vertex_types[key // kinds].append(VertexInstances(codelets[key % kinds].name, number))
    return [tuple(entries) for entries in vertex_types]
