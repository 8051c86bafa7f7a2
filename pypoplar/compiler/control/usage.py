"""What the programs of an engine use: compute sets, variables, and how deep they call functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct, ragged
from pypoplar.codelet.ir.terms import line_text
from pypoplar.compiler.control.operation_tree import (
    NO_COMPUTE_SET,
    Choice,
    Group,
    Invoke,
    Line,
    Loop,
    Moment,
    OperationTree,
    Perform,
)
from pypoplar.compiler.control.program_walk import DEEPEST, too_deep
from pypoplar.compiler.control.stackless import Calls, answer
from pypoplar.compiler.control.view_runs import ViewRuns
from pypoplar.errors import ControlProgramError
from pypoplar.graph.frozen import FrozenEdges, FrozenGraph
from pypoplar.graph.host_links import Function
from pypoplar.graph.tensor import Tensor
from pypoplar.program.sequence import Sequence


@frozen(eq=False)
class Usage:
    """What some programs use, each compute set once."""

    compute_sets: tuple[int, ...]  # in the order of first use
    tensors: tuple[Tensor, ...]
    functions: tuple[int, ...]  # that are called, by number, each after those that it calls
    call_depth: int  # functions that call functions, at most


@frozen
class Depth:
    """How deep a block goes."""

    calls: int  # functions
    programs: int  # programs that stand in each other


def find_usage(tree: OperationTree, handles: Iterable[Tensor]) -> Usage:
    """What programs and the host handles of a graph use; `ControlProgramError` for functions that call themselves or too deep."""
    search = _ProgramSearch(tree)
    depths = [answer(search.line(block.line)) for block in tree.programs()]
    tensors = [tensor for access in tree.accesses for tensor in (*access.reads, *access.writes)]
    call_depth = max((depth.calls for depth in depths), default=0)
    return Usage(tuple(search.compute_sets), (*tensors, *handles), tuple(search.depths), call_depth)


@define(eq=False)
class _ProgramSearch:
    """A walk through programs and the functions that they call, each once, at its first call."""

    tree: OperationTree
    compute_sets: dict[int, None] = field(factory=dict)
    depths: dict[int, Depth] = field(factory=dict)  # of functions, by number, each after those that it calls
    _unfinished: set[int] = field(factory=set)  # functions

    def line(self, line: Line, around: int = 0) -> Calls[Depth]:
        """Note what a line executes; returns how deep it goes, with `around` programs around it."""
        calls, programs = 0, around
        for operation in line.operations:
            depth = Depth(0, around)
            match operation:
                case Moment():
                    pass
                case Perform():
                    if operation.compute_set != NO_COMPUTE_SET:
                        self.compute_sets[operation.compute_set] = None
                case Group() | Loop() | Choice():
                    deeper = around + (not isinstance(operation.program, Sequence))
                    for part in operation.parts:
                        inside = yield self.line(part, deeper)
                        depth = Depth(max(depth.calls, inside.calls), max(depth.programs, inside.programs))
                case Invoke():
                    called = yield self._function(operation.function)
                    depth = Depth(1 + called.calls, around + 1 + called.programs)
                    if depth.programs > DEEPEST:
                        raise too_deep(operation.program, depth.programs)
                case _:
                    assert_never(operation)
            calls, programs = max(calls, depth.calls), max(programs, depth.programs)
        return Depth(calls, programs)

    def _function(self, function: Function) -> Calls[Depth]:
        if function.number in self._unfinished:
            raise ControlProgramError(
                f"the function made at {line_text(function.location)} calls itself; functions may not be recursive"
            )
        if function.number not in self.depths:
            self._unfinished.add(function.number)
            self.depths[function.number] = yield self.line(self.tree.function(function).line)
            self._unfinished.remove(function.number)
        return self.depths[function.number]


def used_variables(graph: FrozenGraph, usage: Usage) -> Bools:
    """bool [variables]: touched by a used tensor, or by a vertex of a used compute set."""
    first = graph.variables.first
    used = np.zeros(len(graph.variables.names), bool)
    starts = [ViewRuns.of(usage.tensors).start]
    # a run stays within one variable, so its first element names it
    sets = np.zeros(len(graph.compute_sets) + 1, bool)
    sets[list(usage.compute_sets)] = True
    edges = graph.edges
    if len(edges.vertex):
        starts += _starts(edges, sets[graph.vertices.compute_set[edges.vertex]], first)
    for start in starts:
        if len(start):
            number = np.searchsorted(first, start, side="right") - 1
            used[distinct(np.clip(number, 0, max(len(used) - 1, 0)))] = True
    return used


def _starts(edges: FrozenEdges, touched: Bools, first: Int64s) -> list[Int64s]:
    """Elements of all variables that the `touched` edges are connected to: of those of one variable, as most are, its lowest."""
    chosen = np.flatnonzero(touched & (np.diff(edges.first_run) > 0))  # an edge's runs are not empty
    if len(chosen) == 0:
        return []
    bounds = np.stack((edges.first_run[chosen], edges.first_run[chosen + 1]), 1)
    last = bounds[-1, 1] == len(edges.run_start)
    low, high = (
        extreme.reduceat(edges.run_start, bounds.ravel()[:-1] if last else bounds.ravel())[::2]
        for extreme in (np.minimum, np.maximum)
    )
    several = np.flatnonzero(np.searchsorted(first, low, "right") != np.searchsorted(first, high, "right"))
    begin, end = bounds[several].T
    return [low, edges.run_start[ragged(begin, end - begin)]]
