"""Lowers equal runs of operations: one of them as a function of the graph, the others as calls with copies of their arguments."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from itertools import takewhile
from typing import Any

import numpy as np
from attrs import define, field, frozen
from torch import fx

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.graph.graph import Graph
from pypoplar.graph.host_links import Function
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch.lowering.integers.integer_ranges import range_of
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.values import Constant, InputVariable, Pending, Unplaced
from pypoplar.poptorch.outlining.equal_runs import EqualRuns, equal_runs, worth_of
from pypoplar.poptorch.outlining.outlining_costs import MOST_SHARE, cycles_of_copies, cycles_of_run
from pypoplar.poptorch.outlining.tensors_within import beside_tensors, consists_of_tensors, tensors_within, with_tensors
from pypoplar.program import Call, Copy, Sequence
from pypoplar.types import FLOAT, HALF, ElementType

MOST_FUNCTIONS = 2  # of equal runs: the arguments of the first often lie otherwise than those of all others
LayoutOfView = tuple[AnyArray, ...]


@frozen(eq=False)
class FunctionParameter:
    """What a function has in the place of a value that its run reads."""

    value: Any  # with tensors of the function's own, to which arguments are copied
    layouts: tuple[LayoutOfView, ...]  # of the tensors of the first call's argument
    variable: InputVariable | None = None  # where the run itself says where an input lies


@frozen(eq=False)
class OutlinedRun:
    """A run that is a function of the graph."""

    runs: EqualRuns
    number: int  # of the run that it was made of
    function: Function
    parameters: dict[int, FunctionParameter]  # by the place of what is given; what is not here is the same in all runs
    results: dict[int, Any]  # values of tensors, by place in the run
    views: tuple[int, ...]  # places of results that are views of others or of what is given
    constants: dict[int, Constant]  # by place


class _ReachesOutside(Exception):
    """An operation asks for a value that is neither its operand nor made in its run."""


class _Inside(dict[fx.Node, Any]):
    """What nodes stand for in a function."""

    def __missing__(self, node: fx.Node) -> Any:
        raise _ReachesOutside(node)


@define(eq=False)
class Outlining:
    """The runs of a model that repeat, while it is lowered."""

    lowering: GraphLowering
    operations: SequenceOf[fx.Node]
    needed: frozenset[fx.Node]  # what is asked for when all is lowered
    _runs: dict[int, tuple[EqualRuns, int]] = field(factory=dict)  # by the position at which one begins, with its number
    _functions: dict[EqualRuns, list[OutlinedRun]] = field(factory=dict)  # for arguments that lie in one way each
    _refused: set[EqualRuns] = field(factory=set)  # runs that cannot be functions

    @staticmethod
    def of(
        lowering: GraphLowering, operations: SequenceOf[fx.Node], needed: frozenset[fx.Node], threshold: float, *, prunes: bool
    ) -> Outlining:
        """The equal runs that are worth a threshold; if it `prunes`, without those whose copies take too much."""
        outlining = Outlining(lowering, operations, needed)
        for runs in equal_runs(lowering, operations, threshold, outlining._is_cheap if prunes else lambda runs: True):
            outlining._runs.update({start: (runs, number) for number, start in enumerate(runs.starts)})
        return outlining

    def lower(self, position: int) -> int:
        """Lower the run that begins at a position as a call of a function; how many operations that are, 0 if there is none."""
        runs, number = self._runs.get(position, (None, 0))
        if runs is None or runs in self._refused:
            return 0
        functions = self._functions.setdefault(runs, [])
        for outlined in reversed(functions):
            if (arguments := self._arguments(outlined, number)) is not None:
                return self._call(outlined, number, arguments)
        if len(functions) == MOST_FUNCTIONS or number == len(runs.starts) - 1:
            return 0
        made = self._outlined(runs, number)
        if made is None:
            self._refused.add(runs)
            return 0
        functions.append(made)
        arguments = self._arguments(made, number)
        assert arguments is not None, "a function takes the arguments of the run that it was made of"
        return self._call(made, number, arguments)

    # the function

    def _outlined(self, runs: EqualRuns, number: int) -> OutlinedRun | None:
        """A run as a function; None if there is none for it."""
        lowering = self.lowering
        if not all(isinstance(value, Unplaced) or consists_of_tensors(value) for value in map(self._value, runs.given[number])):
            return None
        parameters: dict[int, FunctionParameter] = {}
        inputs: dict[InputVariable, InputVariable] = {}
        inside = _Inside()
        nodes = self._nodes(runs, number)
        own_tensors = _Twins(lowering, f"{_name_of(nodes)}/argument")
        for place, node in enumerate(runs.given[number]):
            value = self._value(node)
            seen = self._views_to(node) if isinstance(value, Unplaced) else {node: value}
            inside.update(seen)
            if isinstance(value, Constant) or all(given[place] is node for given in runs.given):
                continue
            if isinstance(value, Unplaced):
                variable = value.variable
                own = inputs.setdefault(variable, InputVariable(variable.name, variable.type, variable.shape))
                inside.update({one: Unplaced(own, view.back) for one, view in seen.items()})
            else:
                inside[node] = with_tensors(value, own_tensors.of)
                parameters[place] = FunctionParameter(inside[node], _layouts(lowering.graph, value))
        outside, program = lowering.values, lowering.program
        lowering.values, lowering.program = inside, Sequence(name=_name_of(nodes))
        try:
            for node in nodes:
                lowering.lower(node)
            views, results = self._results(nodes, self._wanted(runs))
            body = lowering.program
        except _ReachesOutside:
            return None
        finally:
            lowering.values, lowering.program = outside, program
        if not all(map(consists_of_tensors, results.values())):
            return None
        for place, node in enumerate(runs.given[number]):
            value = outside[node]
            if isinstance(value, Unplaced) and value.variable in inputs and (own := inputs[value.variable]).tensor is not None:
                argument = self._placed(node, value.variable, own)
                parameters[place] = FunctionParameter(inside[node], _layouts(lowering.graph, argument), own)
        constants = {place: value for place, value in results.items() if isinstance(value, Constant)}
        results = {place: value for place, value in results.items() if place not in constants}
        return OutlinedRun(runs, number, lowering.graph.addFunction(body), parameters, results, views, constants)

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
        target, nodes = self.lowering.graph.getTarget(), self._nodes(runs, 0)
        given = [node for place, node in enumerate(runs.given[0]) if any(other[place] is not node for other in runs.given)]
        results = [nodes[place] for place in self._wanted(runs) if worth_of(nodes[place]) > 0]
        halves = any(self.lowering.type_of(node) is HALF for node in nodes)
        copies = cycles_of_copies(target, given) + cycles_of_copies(target, results)
        return copies <= MOST_SHARE * cycles_of_run(target, nodes, HALF if halves else FLOAT)

    def _value(self, node: fx.Node) -> Any:
        """What a node stands for outside of a run: tensors, a constant, or an input that has no tensor yet."""
        lowering, value = self.lowering, self.lowering.values[node]
        if isinstance(value, Pending) or (isinstance(value, Unplaced) and value.variable.tensor is not None):
            now, lowering.node = lowering.node, node
            value = lowering.tensor(node)
            lowering.node = now
        return value

    def _views_to(self, node: fx.Node) -> dict[fx.Node, Unplaced]:
        """An input without a tensor and its views up to a node: once there is a tensor, each is made of the one before."""
        values = self.lowering.values
        found = [node]
        while found[-1].op != "placeholder":
            found.append(next(one for one in found[-1].all_input_nodes if isinstance(values[one], Unplaced)))
        return {one: values[one] for one in reversed(found)}

    def _results(self, nodes: SequenceOf[fx.Node], wanted: set[int]) -> tuple[tuple[int, ...], dict[int, Any]]:
        """Of the wanted places those that are views, made again outside, and the values of the others, and of what they view."""
        lowering, position = self.lowering, {node: place for place, node in enumerate(nodes)}
        views, results, asked = [], {}, set(wanted)
        for place in reversed(range(len(nodes))):
            node = nodes[place]
            if place not in asked:
                continue
            if isinstance(lowering.values[node], Constant):
                results[place] = lowering.values[node]
            elif node in lowering.views_of_values:
                views.append(place)
                asked |= {position[one] for one in node.all_input_nodes if one in position}
            else:
                lowering.node = node
                value = lowering.values[node]
                results[place] = lowering.tensor(node) if isinstance(value, Pending) else value
        return tuple(reversed(views)), results

    # its calls

    def _arguments(self, outlined: OutlinedRun, number: int) -> dict[int, Any] | None:
        """What a run gives the function; None if it is not like what the function was made for, or lies otherwise."""
        given, first = outlined.runs.given[number], outlined.runs.given[outlined.number]
        for place, (node, other) in enumerate(zip(given, first, strict=True)):
            if range_of(self.lowering, node) != range_of(self.lowering, other):
                return None
            if place not in outlined.parameters and node is not other and not _is_same(self._value(node), self._value(other)):
                return None
        arguments = {}
        for place, parameter in outlined.parameters.items():
            value = self._value(given[place])
            if isinstance(value, Unplaced):
                if parameter.variable is None:
                    return None
                value = self._placed(given[place], value.variable, parameter.variable)
            if beside_tensors(value) != beside_tensors(parameter.value) or isinstance(value, Constant):
                return None
            if not _are_equal(_layouts(self.lowering.graph, value), parameter.layouts):
                return None
            arguments[place] = value
        return arguments if _are_apart(outlined, arguments) else None

    def _placed(self, node: fx.Node, variable: InputVariable, like: InputVariable) -> Any:
        """The tensor of a node that is a view of an input, which is placed as another."""
        lowering = self.lowering
        if variable.tensor is None:
            assert like.tensor is not None
            variable.tensor, variable.ipu = lowering.graph.clone(like.tensor, variable.name), lowering.ipu
        return self._value(node)

    def _call(self, outlined: OutlinedRun, number: int, arguments: dict[int, Any]) -> int:
        """Copies of arguments, the call, and copies of results; how many operations that are."""
        lowering, nodes = self.lowering, self._nodes(outlined.runs, number)
        name = _name_of(nodes)
        _add_copies(lowering, [(source, target) for target, source in _copies(outlined, arguments).values()], f"{name}/arguments")
        lowering.program.add(Call(outlined.function, name=name))
        kept = _Twins(lowering, "")
        for place, result in outlined.results.items():
            lowering.node, kept.name = nodes[place], f"{name}/result"
            lowering.values[nodes[place]] = with_tensors(result, kept.of)
        _add_copies(lowering, list(kept.twins.values()), f"{name}/results")
        lowering.values.update({nodes[place]: constant for place, constant in outlined.constants.items()})
        for place in outlined.views:
            lowering.lower(nodes[place])
        return len(nodes)


@define(eq=False)
class _Twins:
    """Clones of tensors, of each one."""

    lowering: GraphLowering
    name: str
    twins: dict[int, tuple[Tensor, Tensor]] = field(factory=dict)  # by identity of the tensor, which is kept beside its clone

    def of(self, tensor: Tensor) -> Tensor:
        """The clone of a tensor."""
        if id(tensor) not in self.twins:
            self.twins[id(tensor)] = tensor, self.lowering.graph.clone(tensor, self.name)
        return self.twins[id(tensor)][1]


def _copies(outlined: OutlinedRun, arguments: dict[int, Any]) -> dict[int, tuple[Tensor, Tensor]]:
    """Parameters of a function, each once, with what is copied to them."""
    copies: dict[int, tuple[Tensor, Tensor]] = {}
    for place, argument in arguments.items():
        for target, source in zip(tensors_within(outlined.parameters[place].value), tensors_within(argument), strict=True):
            copies.setdefault(id(target), (target, source))
    return copies


def _add_copies(lowering: GraphLowering, pairs: SequenceOf[tuple[Tensor, Tensor]], name: str) -> None:
    """Copy tensors to their like, all of a type in one step: apart they would find their targets where others have been."""
    by_type: dict[ElementType, list[tuple[Tensor, Tensor]]] = {}
    for source, target in pairs:
        if target.numElements():
            in_memory, (other,) = lowering.graph.reorderToSimplify(target, [source])
            by_type.setdefault(target.elementType(), []).append((other, in_memory))
    for together in by_type.values():
        sources, targets = (concat(list(side)) for side in zip(*together, strict=True))
        lowering.program.add(Copy(sources, targets, name=name))


def _are_apart(outlined: OutlinedRun, arguments: dict[int, Any]) -> bool:
    """Whether what the function takes for one tensor is one."""
    copies = _copies(outlined, arguments)
    return all(
        copies[id(target)][1] is source or copies[id(target)][1] == source
        for place, argument in arguments.items()
        for target, source in zip(tensors_within(outlined.parameters[place].value), tensors_within(argument), strict=True)
    )


def _layouts(graph: Graph, value: Any) -> tuple[LayoutOfView, ...]:
    """Of the tensors within a value."""
    return tuple(layout_of_view(graph, tensor) for tensor in tensors_within(value))


def layout_of_view(graph: Graph, tensor: Tensor) -> LayoutOfView:
    """Where a tensor lies: the order of its elements in memory, from the first of them on, and the tile of each."""
    runs = tensor.runs()
    begin = runs.start.min(initial=np.iinfo(np.int64).max)
    return runs.start - begin, runs.count, runs.step, *graph.mapped_pieces(tensor)


def _are_equal(layouts: tuple[LayoutOfView, ...], others: tuple[LayoutOfView, ...]) -> bool:
    return all(
        np.array_equal(column, with_it)
        for layout, other in zip(layouts, others, strict=True)
        for column, with_it in zip(layout, other, strict=True)
    )


def _is_same(value: Any, other: Any) -> bool:
    """Whether values that are no parameters are the same: constants of the same elements, or inputs of which only shapes matter."""
    if isinstance(value, Constant) and isinstance(other, Constant):
        return _are_equal_arrays(value.array, other.array) and _are_equal_arrays(value.other, other.other)
    return isinstance(value, Unplaced) and isinstance(other, Unplaced)


def _are_equal_arrays(one: AnyArray | None, other: AnyArray | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _name_of(nodes: SequenceOf[fx.Node]) -> str:
    """The module in which all operations of a run are, and their pass."""
    origins = [node.meta["origin"] for node in nodes if node.meta.get("origin") is not None]
    modules = [origin.module.split(".") for origin in origins if origin.module]
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, zip(*modules, strict=False))]
    return "/".join([*common, nodes[0].meta["pass"].value, "outlined"])
