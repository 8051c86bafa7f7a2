"""A run of operations as a function of the graph, with variables of its own for what the run reads."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from itertools import compress, takewhile
from typing import Any

from attrs import define, field, frozen
from torch import fx

from pypoplar.called_names import name_in_call
from pypoplar.graph.host_links import Function
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.lowering.entry_context import name_of
from pypoplar.poptorch.lowering.values import Constant, InputVariable, Pending, Unplaced
from pypoplar.poptorch.lowering.walks.function_walk import FunctionWalk, ReachesOutside, ValuesInside
from pypoplar.poptorch.lowering.walks.graph_walk import GraphWalk
from pypoplar.poptorch.outlining.call_copies import LayoutOfView, Twins, layouts
from pypoplar.poptorch.outlining.equal_runs import EqualRuns, draws
from pypoplar.poptorch.outlining.memory_order import are_in_turn, in_memory_order
from pypoplar.poptorch.outlining.tensors_within import consists_of_tensors, tensors_within, with_tensors
from pypoplar.program import Sequence


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
    ordered: tuple[Tensor, ...]  # parameters that it puts together: a call's arguments have to lie in memory in their order


def value_given(walk: GraphWalk, node: fx.Node, first: fx.Node) -> Any:
    """What a node stands for outside of the run that begins with `first`, on its IPU: tensors, a constant, or an input without one.

    Results of several tensors that are on another IPU are None.
    """
    value, asking = walk.value(node), walk.context(first)
    if isinstance(value, Pending):
        value = walk.context(node).tensor(node)
    if isinstance(value, Tensor):
        return asking.here(node, value)
    if not isinstance(value, Constant | Unplaced) and walk.ipus.get(node, asking.ipu) != asking.ipu:
        return None
    return value


def outlined_run(walk: GraphWalk, runs: EqualRuns, number: int, nodes: SequenceOf[fx.Node], wanted: set[int]) -> OutlinedRun | None:
    """A run as a function; None if there is none for it. `wanted` are places whose values are used behind it."""
    given = runs.given[number]
    values = [value_given(walk, node, nodes[0]) for node in given]
    if not all(isinstance(value, Unplaced) or (value is not None and consists_of_tensors(value)) for value in values):
        return None
    same = [all(other[place] is node for other in runs.given) for place, node in enumerate(given)]
    arguments = _OwnArguments.of(walk, given, values, same, name_of_run(nodes))
    body = _body(walk, nodes, arguments.inside, wanted)
    if body is None:
        return None
    ordered = _ordered(arguments, nodes, body) if any(map(draws, walk.model.joint.graph.nodes)) else ()
    if ordered is None:
        return None
    for place, node in enumerate(given):
        value = walk.values[node]
        if isinstance(value, Unplaced) and (own := arguments.inputs.get(value.variable)) is not None and own.tensor is not None:
            argument = placed_like(walk, node, nodes[0], value.variable, own)
            arguments.parameters[place] = FunctionParameter(arguments.inside[node], layouts(walk.model.graph, argument), own)
    constants = {place: value for place, value in body.results.items() if isinstance(value, Constant)}
    results = {place: value for place, value in body.results.items() if place not in constants}
    function = walk.model.graph.addFunction(body.program)
    return OutlinedRun(runs, number, function, arguments.parameters, results, body.views, constants, ordered)


def placed_like(walk: GraphWalk, node: fx.Node, first: fx.Node, variable: InputVariable, like: InputVariable) -> Any:
    """The tensor of a node that is a view of an input: placed as another, on the IPU of the run from `first` on."""
    if variable.tensor is None:
        assert like.tensor is not None
        variable.tensor, variable.ipu = walk.model.graph.clone(like.tensor, variable.name), walk.ipus.get(first, 0)
    return value_given(walk, node, first)


def name_of_run(nodes: SequenceOf[fx.Node]) -> str:
    """The module in which all operations of a run are, or of those next to each other in it the first; and their pass."""
    origins = [node.meta["origin"] for node in nodes if node.meta.get("origin") is not None]
    modules = [origin.module.split(".") for origin in origins if origin.module]
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, zip(*modules, strict=False))]
    first = modules[0][len(common) : len(common) + 1] if modules and all(len(names) > len(common) for names in modules) else []
    return "/".join([*common, *first, nodes[0].meta["pass"].value, "outlined"])


def names_in_call(first: SequenceOf[fx.Node], nodes: SequenceOf[fx.Node]) -> dict[str, str]:
    """What names of the run that a function was made of stand for in another: what differs, without what both end in."""
    names: dict[str, str] = {}
    pairs = [(name_of(there), name_of(here)) for there, here in zip(first, nodes, strict=True)]
    for there, here in pairs:
        parts, others = there.split("/"), here.split("/")
        while parts[1:] and others[1:] and parts[-1] == others[-1]:
            parts.pop()
            others.pop()
        names.setdefault("/".join(parts), "/".join(others))
    return names | {there: here for there, here in pairs if name_in_call(there, names) != here}


@define(eq=False)
class _OwnArguments:
    """What a function has for the values that its run reads."""

    inside: ValuesInside = field(factory=ValuesInside)
    parameters: dict[int, FunctionParameter] = field(factory=dict)
    inputs: dict[InputVariable, InputVariable] = field(factory=dict)  # those without tensors, with the function's own
    twins: SequenceOf[tuple[Tensor, Tensor]] = ()  # tensors given, with the function's own, in the order of memory

    @staticmethod
    def of(
        walk: GraphWalk, given: SequenceOf[fx.Node], values: SequenceOf[Any], same: SequenceOf[bool], name: str
    ) -> _OwnArguments:
        """Of values that are given; constants and those that are the `same` for all runs are read where they are."""
        own = _OwnArguments()
        copied = [not (one or isinstance(value, Constant | Unplaced)) for one, value in zip(same, values, strict=True)]
        twins = Twins.of_values(walk.model.graph, f"{name}/argument", compress(values, copied))
        own.twins = list(twins.twins.values())
        for place, (node, value) in enumerate(zip(given, values, strict=True)):
            seen = _views_to(walk, node) if isinstance(value, Unplaced) else {node: value}
            own.inside.update(seen)
            if isinstance(value, Constant) or same[place]:
                continue
            if isinstance(value, Unplaced):
                variable = value.variable
                twin = own.inputs.setdefault(variable, InputVariable(variable.name, variable.type, variable.shape))
                known: dict[Unplaced, Unplaced] = {}
                own.inside.update({one: view.of(twin, known) for one, view in seen.items()})
            else:
                own.inside[node] = with_tensors(value, twins.of)
                own.parameters[place] = FunctionParameter(own.inside[node], layouts(walk.model.graph, value))
        return own


def _views_to(walk: GraphWalk, node: fx.Node) -> dict[fx.Node, Unplaced]:
    """An input without a tensor and its views up to a node: once there is a tensor, each is made of the one before."""
    values, found = walk.values, [node]
    while found[-1].op != "placeholder":
        found.append(next(one for one in found[-1].all_input_nodes if isinstance(values[one], Unplaced)))
    return {one: values[one] for one in reversed(found)}


@frozen(eq=False)
class _Body:
    """What operations become with values of a function's own."""

    program: Sequence
    results: dict[int, Any]  # by place
    views: tuple[int, ...]


def _body(walk: GraphWalk, nodes: SequenceOf[fx.Node], inside: ValuesInside, wanted: set[int]) -> _Body | None:
    """Operations lowered with the values `inside`; None if they ask for others, or give what is not all tensors."""
    function = FunctionWalk.within(walk, inside, walk.ipus.get(nodes[0], 0), name_of_run(nodes))
    try:
        for node in nodes:
            function.lower(node)
        for node in inside:
            function.value(node)  # those of inputs that the run has placed
        views, results = _results(function, nodes, wanted)
    except ReachesOutside:
        return None
    return _Body(function.program, results, views) if all(map(consists_of_tensors, results.values())) else None


def _ordered(arguments: _OwnArguments, nodes: SequenceOf[fx.Node], body: _Body) -> tuple[Tensor, ...] | None:
    """Parameters of a function that its run puts together; None if what is put together may lie in another order of memory.

    On that order the numbers of a drawing depend. What a run makes lies in the order in which it is made, behind what it is given;
    of what it is given the order is known of parameters alone, not of inputs and constants, which lie where they are needed first.
    """
    results = {id(tensor): tensor for tensor in tensors_within(list(body.results.values()))}
    if not are_in_turn(in_memory_order(results.values())):
        return None
    within, inside = set(nodes), arguments.inside
    given = _variables(value for node, value in inside.items() if node not in within)
    own = {number: place for place, (_, twin) in enumerate(arguments.twins) for number in twin.variable_numbers()}
    joined: set[int] = set()
    for tensor in tensors_within([inside[node] for node in nodes if not isinstance(inside[node], Pending)]):
        numbers = set(tensor.variable_numbers())
        others = numbers & given
        if len(numbers) > 1 and not others <= own.keys():
            return None
        if len(others) > 1:
            joined |= {own[number] for number in others}
    pairs = [arguments.twins[place] for place in sorted(joined)]
    return tuple(twin for _, twin in pairs) if are_in_turn(source for source, _ in pairs) else None


def _variables(values: Iterable[Any]) -> set[int]:
    """The numbers of all variables that tensors within values view."""
    return {number for value in values for tensor in tensors_within(value) for number in tensor.variable_numbers()}


def _results(walk: GraphWalk, nodes: SequenceOf[fx.Node], wanted: set[int]) -> tuple[tuple[int, ...], dict[int, Any]]:
    """Of the wanted places those that are views, made again outside, and the values of the others, and of what they view."""
    position = {node: place for place, node in enumerate(nodes)}
    views, results, asked = [], {}, set(wanted)
    for place in reversed(range(len(nodes))):
        node = nodes[place]
        if place not in asked:
            continue
        if isinstance(walk.values[node], Constant):
            results[place] = walk.values[node]
        elif node in walk.model.views_of_values:
            views.append(place)
            asked |= {position[one] for one in node.all_input_nodes if one in position}
        else:
            value = walk.values[node]
            results[place] = walk.context(node).tensor(node) if isinstance(value, Pending) else value
    return tuple(reversed(views)), results
