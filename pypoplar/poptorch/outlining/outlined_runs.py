"""Lowers equal runs of operations: one of them as a function of the graph, all as calls with copies of their arguments."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import Any

from attrs import define, field
from torch import fx

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.integers.integer_ranges import range_of
from pypoplar.poptorch.lowering.values import Constant, Unplaced
from pypoplar.poptorch.lowering.walks.graph_walk import GraphWalk
from pypoplar.poptorch.outlining.call_copies import Twins, add_copies, are_equal, bytes_of, layouts
from pypoplar.poptorch.outlining.equal_runs import EqualRuns, draws, equal_runs, worth_of
from pypoplar.poptorch.outlining.memory_order import are_in_turn
from pypoplar.poptorch.outlining.outlined_functions import (
    OutlinedRun,
    name_of_run,
    names_in_call,
    outlined_run,
    placed_like,
    value_given,
)
from pypoplar.poptorch.outlining.outlining_costs import MOST_SHARE, cycles_of_copies, cycles_of_run
from pypoplar.poptorch.outlining.tensors_within import beside_tensors, tensors_within, with_tensors
from pypoplar.program import Call
from pypoplar.types import FLOAT, HALF

MOST_FUNCTIONS = 2  # of equal runs: the arguments of the first often lie otherwise than those of all others


@define(eq=False)
class Outlining:
    """The runs of a model that repeat, while it is lowered."""

    walk: GraphWalk
    operations: SequenceOf[fx.Node]
    needed: frozenset[fx.Node]  # what is asked for when all is lowered
    _draws: bool = False  # whether the model draws random numbers
    _runs: dict[int, tuple[EqualRuns, int]] = field(factory=dict)  # by the position at which one begins, with its number
    _functions: dict[EqualRuns, list[OutlinedRun]] = field(factory=dict)  # for arguments that lie in one way each
    _refused: set[EqualRuns] = field(factory=set)  # runs that cannot be functions

    @staticmethod
    def of(
        walk: GraphWalk,
        operations: SequenceOf[fx.Node],
        needed: frozenset[fx.Node],
        threshold: float,
        apart: frozenset[fx.Node] = frozenset(),
        *,
        prunes: bool,
    ) -> Outlining:
        """The equal runs that are worth a threshold, without operations that stay `apart`.

        If it `prunes`, without those whose copies take too much.
        """
        outlining = Outlining(walk, operations, needed, any(map(draws, operations)))
        for runs in equal_runs(walk, operations, threshold, outlining._is_cheap if prunes else lambda runs: True, apart):
            outlining._runs.update({start: (runs, number) for number, start in enumerate(runs.starts)})
        return outlining

    def lower(self, walk: GraphWalk, position: int) -> int:
        """Lower the run that begins at a position as a call of a function; how many operations that are, 0 if there is none."""
        runs, number = self._runs.get(position, (None, 0))
        if runs is None or runs in self._refused or (self._draws and self._brings(runs, number)):
            return 0
        functions = self._functions.setdefault(runs, [])
        for outlined in reversed(functions):
            if (arguments := self._arguments(walk, outlined, number)) is not None:
                return self._call(walk, outlined, number, arguments)
        if len(functions) == MOST_FUNCTIONS or number == len(runs.starts) - 1:
            return 0
        made = outlined_run(walk, runs, number, self._nodes(runs, number), self._wanted(runs))
        if made is None:
            self._refused.add(runs)
            return 0
        arguments = self._arguments(walk, made, number)
        if arguments is None:  # some of what the run is given lies in others, and copies would be made out of order
            self._refused.add(runs)
            return 0
        functions.append(made)
        return self._call(walk, made, number, arguments)

    # what is known of runs before

    def _nodes(self, runs: EqualRuns, number: int) -> SequenceOf[fx.Node]:
        """The operations of a run."""
        return self.operations[runs.starts[number] : runs.starts[number] + runs.length]

    def _wanted(self, runs: EqualRuns) -> set[int]:
        """Places whose values are used behind a run, in any of them."""
        wanted = set()
        for number in range(len(runs.starts)):
            nodes = self._nodes(runs, number)
            within = set(nodes)
            wanted |= {
                place for place, node in enumerate(nodes) if node in self.needed or any(user not in within for user in node.users)
            }
        return wanted

    def _is_cheap(self, runs: EqualRuns) -> bool:
        """Whether the copies of a call would take little of what a run takes."""
        nodes = self._nodes(runs, 0)
        target = self.walk.model.parts[self.walk.ipus.get(nodes[0], 0)].getTarget()
        given = [node for place, node in enumerate(runs.given[0]) if any(other[place] is not node for other in runs.given)]
        results = [nodes[place] for place in self._wanted(runs) if worth_of(nodes[place]) > 0]
        halves = any(self.walk.context(node).type is HALF for node in nodes)
        copies = sum(cycles_of_copies(target, values) for values in (given, results))
        return copies <= MOST_SHARE * cycles_of_run(target, nodes, HALF if halves else FLOAT)

    def _brings(self, runs: EqualRuns, number: int) -> bool:
        """Whether something that a run reads comes from another IPU for it first.

        For a function it would come before all that the run makes, else where it is read, and so lie elsewhere in memory: on the
        order there, numbers that are drawn for what is put together of both depend.
        """
        walk, first = self.walk, self._nodes(runs, number)[0]
        ipu = walk.ipus.get(first, 0)
        given = [(node, walk.value(node)) for node in runs.given[number]]
        far = [(node, value) for node, value in given if walk.ipus.get(node, ipu) != ipu]
        return any((node, ipu) not in walk.copies and not isinstance(value, Constant) for node, value in far)

    # calls

    def _arguments(self, walk: GraphWalk, outlined: OutlinedRun, number: int) -> dict[int, Any] | None:
        """What a run gives the function; None if it is not like what the function was made for, or lies otherwise."""
        runs = outlined.runs
        first = self._nodes(runs, number)[0]
        given, others = runs.given[number], runs.given[outlined.number]
        for place, (node, other) in enumerate(zip(given, others, strict=True)):
            if range_of(walk, node) != range_of(walk, other):
                return None
            if place in outlined.parameters or node is other:
                continue
            if not _is_same(value_given(walk, node, first), value_given(walk, other, first)):
                return None
        arguments = {}
        for place, parameter in outlined.parameters.items():
            value = value_given(walk, given[place], first)
            if isinstance(value, Unplaced):
                if parameter.variable is None:
                    return None
                value = placed_like(walk, given[place], first, value.variable, parameter.variable)
            if beside_tensors(value) != beside_tensors(parameter.value) or isinstance(value, Constant):
                return None
            if not are_equal(layouts(walk.model.graph, value), parameter.layouts):
                return None
            arguments[place] = value
        return arguments if _are_apart(outlined, arguments) and _are_in_order(outlined, arguments) else None

    def _call(self, walk: GraphWalk, outlined: OutlinedRun, number: int, arguments: dict[int, Any]) -> int:
        """Copies of arguments, the call, and copies of results; how many operations that are."""
        nodes = self._nodes(outlined.runs, number)
        walk.model.last, name = nodes[0], name_of_run(nodes)
        copies = [(source, target) for target, source in _copies(outlined, arguments).values()]
        add_copies(walk.model.graph, walk.program, copies, f"{name}/arguments")
        kept = Twins.of_values(walk.model.graph, f"{name}/result", outlined.results.values())
        for place, result in outlined.results.items():
            walk.values[nodes[place]] = with_tensors(result, kept.of)
        results = list(kept.twins.values())
        note = f"copies {bytes_of(copies):,} B of arguments and {bytes_of(results):,} B of results"
        names = names_in_call(self._nodes(outlined.runs, outlined.number), nodes)
        walk.program.add(Call(outlined.function, name=name, names=names, note=note))
        add_copies(walk.model.graph, walk.program, results, f"{name}/results")
        walk.values.update({nodes[place]: constant for place, constant in outlined.constants.items()})
        for place in outlined.views:
            walk.lower(nodes[place])
        return len(nodes)


def _copies(outlined: OutlinedRun, arguments: dict[int, Any]) -> dict[int, tuple[Tensor, Tensor]]:
    """Parameters of a function, each once, with what is copied to them."""
    copies: dict[int, tuple[Tensor, Tensor]] = {}
    for place, argument in arguments.items():
        for target, source in zip(tensors_within(outlined.parameters[place].value), tensors_within(argument), strict=True):
            copies.setdefault(id(target), (target, source))
    return copies


def _are_apart(outlined: OutlinedRun, arguments: dict[int, Any]) -> bool:
    """Whether what the function takes for one tensor is one."""
    copies = _copies(outlined, arguments)
    return all(
        copies[id(target)][1] is source or copies[id(target)][1] == source
        for place, argument in arguments.items()
        for target, source in zip(tensors_within(outlined.parameters[place].value), tensors_within(argument), strict=True)
    )


def _are_in_order(outlined: OutlinedRun, arguments: dict[int, Any]) -> bool:
    """Whether what the function puts together lies in memory in the order in which it does there."""
    copies = _copies(outlined, arguments)
    return are_in_turn(copies[id(target)][1] for target in outlined.ordered)


def _is_same(value: Any, other: Any) -> bool:
    """Whether values that are no parameters are the same: constants of the same elements, or inputs of which only shapes matter."""
    if isinstance(value, Constant) and isinstance(other, Constant):
        return _are_equal_arrays(value.array, other.array) and _are_equal_arrays(value.other, other.other)
    return isinstance(value, Unplaced) and isinstance(other, Unplaced)


def _are_equal_arrays(one: AnyArray | None, other: AnyArray | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
