"""Which values that decide how a program goes on follow from constants and counters alone, and by which operations.

They can be computed without the rest of the program: a counter that a vertex adds a constant to, a comparison of it with a limit.
What comes from the host, random numbers, clocks, or is large is data, and so is all that is computed of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import assert_never

import numpy as np
from attrs import define, field, frozen

from pypoplar.codelet.ir.typed import Special
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.operations.tile_readings import WORKER_COUNT
from pypoplar.compiler.check.connected_regions import Regions
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
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Program
from pypoplar.program.copying import Copy

MOST_ELEMENTS = 1 << 16  # of a variable that is computed
MOST_VERTICES = 1 << 10  # of a compute set that computes it


@frozen(eq=False)
class _Operation:
    """A program that writes: what it is, and the variables that this depends on; None if it writes data."""

    program: Program
    inputs: frozenset[int] | None


@define(eq=False)
class ComputedControl:
    """What variables depend on."""

    graph: FrozenGraph
    operations: list[_Operation] = field(factory=list)
    occurrences: Counter[int] = field(factory=Counter)  # of programs, by their id
    _writers: defaultdict[int, list[int]] = field(factory=lambda: defaultdict(list))  # by variable
    _data: set[int] = field(factory=set)  # variables that the host may write, or a program that is no operation here

    @staticmethod
    def of(
        graph: FrozenGraph, tree: OperationTree, regions: Regions, by_host: Iterable[Tensor], differing: Iterable[int] = ()
    ) -> ComputedControl:
        """Of the programs of an engine; `by_host` are tensors that the host writes by handles.

        `differing` are constants that are not the same on all replicas.
        """
        found = ComputedControl(graph)
        found._data |= {*found._variables(by_host), *differing}
        vertices = _VertexVariables.of(graph, regions)
        for block in tree.blocks.values():
            found._read(block.line, vertices)
        return found

    def programs_for(self, tensor: Tensor) -> frozenset[Program] | None:
        """The programs that compute a tensor, each from what others of them compute, or what never changes; None if it is data."""
        seen, waiting, programs = set(self._variables([tensor])), list(self._variables([tensor])), set()
        while waiting:
            variable = waiting.pop()
            first, end = self.graph.variables.first[variable : variable + 2].tolist()
            if variable in self._data or end - first > MOST_ELEMENTS:
                return None
            for number in self._writers[variable]:
                operation = self.operations[number]
                if operation.inputs is None:
                    return None
                programs.add(operation.program)
                waiting += operation.inputs - seen
                seen |= operation.inputs
        return frozenset(programs)

    def _variables(self, tensors: Iterable[Tensor]) -> frozenset[int]:
        return frozenset(
            int(variable)
            for tensor in tensors
            for variable in np.unique(np.searchsorted(self.graph.variables.first, tensor.runs().start, side="right") - 1)
        )

    def _read(self, line: Line, vertices: _VertexVariables) -> None:
        """Note all operations of a line and of those within them."""
        waiting = [line]
        while waiting:
            for operation in waiting.pop().operations:
                match operation:
                    case Moment():
                        continue
                    case Perform():
                        self._note(operation, vertices)
                        continue
                    case Group() | Loop() | Choice():
                        waiting += operation.parts
                    case Invoke():
                        pass  # the function is a block of its own
                    case _:
                        assert_never(operation)
                self._data |= self._variables(operation.effects.writes)

    def _note(self, operation: Perform, vertices: _VertexVariables) -> None:
        program, written = operation.program, self._variables(operation.effects.writes)
        self.occurrences[id(program)] += 1
        if operation.compute_set != NO_COMPUTE_SET:
            inputs = vertices.touched[operation.compute_set] if vertices.computes(operation.compute_set) else None
            written |= vertices.written[operation.compute_set]
        elif isinstance(program, Copy) and isinstance(program.source, Tensor) and isinstance(program.destination, Tensor):
            inputs = self._variables([program.source])
        else:
            self._data |= written
            return
        for variable in written:
            self._writers[variable].append(len(self.operations))
        self.operations.append(_Operation(program, inputs))


@frozen(eq=False)
class _VertexVariables:
    """What the vertices of compute sets touch and write: variables, by compute set."""

    graph: FrozenGraph
    touched: defaultdict[int, frozenset[int]]
    written: defaultdict[int, frozenset[int]]
    codelets: dict[int, list[int]]  # of its vertices, of compute sets that have few

    @staticmethod
    def of(graph: FrozenGraph, regions: Regions) -> _VertexVariables:
        variable = np.searchsorted(graph.variables.first, regions.key % regions.span, side="right") - 1
        variables = len(graph.variables.names) + 1
        pairs = (regions.key // regions.span) * variables + variable
        every, written = (_by_compute_set(np.unique(own), variables) for own in (pairs, pairs[regions.written]))
        return _VertexVariables(graph, every, written, _codelets_of_few(graph))

    def computes(self, compute_set: int) -> bool:
        """Whether its vertices are few, and do the same whenever they run on the same data."""
        codelets = self.codelets.get(compute_set)
        return codelets is not None and not any(
            isinstance(statement, Special) and statement.name != WORKER_COUNT
            for number in set(codelets)
            for statement in walk(self.graph.codelets[number].typed.body)
        )


def _codelets_of_few(graph: FrozenGraph) -> dict[int, list[int]]:
    """The codelets of the vertices of each compute set that has few of them."""
    found: dict[int, list[int]] = {number: [] for number in range(len(graph.compute_sets))}
    vertices = np.bincount(graph.vertices.compute_set, minlength=len(found))
    few = np.flatnonzero(vertices[graph.vertices.compute_set] <= MOST_VERTICES)
    for compute_set, codelet in zip(graph.vertices.compute_set[few].tolist(), graph.vertices.codelet[few].tolist(), strict=True):
        found[compute_set].append(codelet)
    return {number: codelets for number, codelets in found.items() if len(codelets) == vertices[number]}


def _by_compute_set(pairs: np.ndarray[tuple[int], np.dtype[np.int64]], variables: int) -> defaultdict[int, frozenset[int]]:
    found: defaultdict[int, frozenset[int]] = defaultdict(frozenset)
    for compute_set, variable in zip(*(column.tolist() for column in np.divmod(pairs, variables)), strict=True):
        found[compute_set] |= {variable}
    return found
