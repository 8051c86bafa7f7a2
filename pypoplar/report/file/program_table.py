"""Numbers for the nodes of program trees."""

from __future__ import annotations

from typing import Any

from pypoplar.report.program_nodes import ComputeSet, Program


class ProgramTable:
    """Numbers programs, children before parents, equal ones with one number, however deep the trees are."""

    def __init__(self) -> None:
        self.programs: dict[tuple[Any, ...], int] = {}  # name, type, step, detail, number of the compute set, numbers of children
        self.compute_sets: dict[tuple[Any, ...], int] = {}  # name, names and counts of vertices
        self._seen: dict[int, int] = {}  # id of a program -> number
        self._alive: list[Program] = []  # so that no two programs have one id

    def add(self, root: Program) -> int:
        """The number of `root`."""
        pending = [root]
        while pending:
            one = pending[-1]
            waiting = [child for child in one.children if id(child) not in self._seen] if id(one) not in self._seen else []
            if waiting:
                pending.extend(waiting)
                continue
            pending.pop()
            if id(one) not in self._seen:
                children = tuple(self._seen[id(child)] for child in one.children)
                key = (one.name, one.type, one.step, one.detail, self._compute_set(one.computeset), children)
                self._alive.append(one)
                self._seen[id(one)] = self.programs.setdefault(key, len(self.programs))
        return self._seen[id(root)]

    def _compute_set(self, one: ComputeSet | None) -> int | None:
        if one is None:
            return None
        key = (one.name, tuple((each.name, each.count) for each in one.vertices))
        return self.compute_sets.setdefault(key, len(self.compute_sets))
