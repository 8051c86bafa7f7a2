"""Numbers for the nodes of program trees."""

from __future__ import annotations

from typing import Any

from pypoplar.report.program_nodes import ComputeSet, Program


class ProgramTable:
    """Numbers programs, children before parents, equal ones with one number, however deep the trees are."""

    def __init__(self) -> None:
        self.programs: dict[tuple[Any, ...], int] = {}  # name, type, step, detail, compute set, line, children
        self.compute_sets: dict[tuple[Any, ...], int] = {}  # name, line, names and counts of vertices
        self._seen: dict[int, int] = {}  # id of a program -> number
        self._alive: list[Program] = []  # so that no two programs have one id

    def add(self, root: Program) -> int:
        """The number of `root`."""
        pending = [root]
        while pending:
            program = pending[-1]
            waiting = [child for child in program.children if id(child) not in self._seen] if id(program) not in self._seen else []
            if waiting:
                pending.extend(waiting)
                continue
            pending.pop()
            if id(program) not in self._seen:
                children = tuple(self._seen[id(child)] for child in program.children)
                own = (program.name, program.type, program.step, program.detail, self._compute_set(program.computeset))
                key = (*own, program.made_at, children)
                self._alive.append(program)
                self._seen[id(program)] = self.programs.setdefault(key, len(self.programs))
        return self._seen[id(root)]

    def _compute_set(self, compute_set: ComputeSet | None) -> int | None:
        if compute_set is None:
            return None
        key = (compute_set.name, compute_set.made_at, tuple((vertices.name, vertices.count) for vertices in compute_set.vertices))
        return self.compute_sets.setdefault(key, len(self.compute_sets))
