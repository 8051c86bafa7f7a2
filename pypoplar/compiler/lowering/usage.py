"""What the programs of an engine use: compute sets, variables, and whether they need special codelets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from attrs import define, field

from pypoplar import program as kinds
from pypoplar.arrays.dtypes import Bools
from pypoplar.errors import ControlProgramError
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.host_links import Function
from pypoplar.graph.location import line_text
from pypoplar.graph.tensor import Tensor


@define(eq=False)
class Usage:
    """Filled by walking the programs; every program and function is visited once."""

    compute_sets: dict[int, None] = field(factory=dict)  # in the order of first use
    tensors: list[Tensor] = field(factory=list)
    floating_point: bool = False
    call_depth: int = 0
    _depths: dict[int, int] = field(factory=dict)  # id of a program -> how deep it calls
    _function_depths: dict[int, int] = field(factory=dict)
    _open: list[Function] = field(factory=list)
    _kept: list[Any] = field(factory=list)  # programs seen: their ids stay theirs while this lives

    def add(self, one: kinds.Program) -> None:
        """Note what a program of the engine uses."""
        self.call_depth = max(self.call_depth, self._visit(one))

    def _visit(self, one: kinds.Program) -> int:
        """Visit a program and its parts; returns how deep it calls functions."""
        if id(one) in self._depths:
            return self._depths[id(one)]
        self._kept.append(one)
        if isinstance(one, kinds.Execute):
            self.compute_sets[one.compute_set.getId()] = None
        elif isinstance(one, kinds.SetFloatingPointBehaviour):
            self.floating_point = True
        self.tensors.extend((*one.reads(), *one.writes()))
        parts = one.flat() if isinstance(one, kinds.Sequence) else [part.program for part in one.parts()]
        depth = max((self._visit(part) for part in parts), default=0)
        if isinstance(one, kinds.Call) and isinstance(one.function, Function):
            depth = max(depth, 1 + self._visit_function(one.function))
        self._depths[id(one)] = depth
        return depth

    def _visit_function(self, function: Function) -> int:
        if function in self._open:
            raise ControlProgramError(
                f"the function made at {line_text(function.location)} calls itself; functions may not be recursive"
            )
        if function.number not in self._function_depths:
            self._open.append(function)
            self._function_depths[function.number] = self._visit(kinds.function_program(function))
            self._open.pop()
        return self._function_depths[function.number]


def find_usage(programs: Iterable[kinds.Program], handles: Iterable[Tensor]) -> Usage:
    """What the programs and the host handles of a graph use."""
    usage = Usage()
    for one in programs:
        usage.add(one)
    usage.tensors.extend(handles)
    return usage


def used_variables(graph: FrozenGraph, usage: Usage) -> Bools:
    """bool [variables]: touched by a used tensor, or by a vertex of a used compute set."""
    first = graph.variables.first
    used = np.zeros(len(graph.variables.names), bool)
    starts = [one.runs().start for one in usage.tensors]
    # a run stays within one variable, so its first element names it
    sets = np.zeros(len(graph.compute_sets) + 1, bool)
    sets[list(usage.compute_sets)] = True
    edges = graph.edges
    if len(edges.vertex):
        touched = sets[graph.vertices.compute_set[edges.vertex]]
        runs = np.repeat(touched, np.diff(edges.first_run)) & (edges.run_count > 0)
        starts.append(edges.run_start[runs])
    for one in starts:
        if len(one):
            number = np.searchsorted(first, one, side="right") - 1
            used[np.unique(np.clip(number, 0, max(len(used) - 1, 0)))] = True
    return used
