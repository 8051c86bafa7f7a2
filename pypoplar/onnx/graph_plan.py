"""What of a graph runs on the device: a list of steps, once shapes are known and all that does not depend on data is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from onnx import FunctionProto, GraphProto, NodeProto, TypeProto, defs, helper

from pypoplar.errors import PoplarError
from pypoplar.onnx import families  # noqa: F401 (the table's entries)
from pypoplar.onnx.custom_nodes import custom_operator
from pypoplar.onnx.function_bodies import body_of, schema_of, with_attributes
from pypoplar.onnx.graph_gradients import gradient_results
from pypoplar.onnx.model_problems import MissingValue, ModelError, refuse
from pypoplar.onnx.model_source import PLACEMENT, ModelSource
from pypoplar.onnx.node_call import Expand, NeedsValue, NodeCall
from pypoplar.onnx.onnx_types import DEVICE_TYPES, TORCH_TYPES, type_problem
from pypoplar.onnx.operand_checks import check_operands
from pypoplar.onnx.operator_table import ALL, Operator, find_operator, plain_domain
from pypoplar.onnx.plan_steps import GraphPlan, GraphValue, NodePlace, PlannedBranch, PlannedNode, PlannedStep
from pypoplar.onnx.planned_choices import choice
from pypoplar.onnx.planned_loops import LOOPS, called
from pypoplar.onnx.sequences import SEQUENCE_OPERATORS, ValueSequence, sequence_results

CONTROL = {("", "If"): choice, **{("", name): planned for name, planned in LOOPS.items()}, ("ai.graphcore", "Call"): called}
TRAINING = "ai.onnx.preview.training"
INNER = "pypoplar"  # the domain of what plans consist of beside the model's own nodes
DEEPEST = 40  # calls of functions within each other
MOST_STEPS = 200_000  # after loops are unrolled
GIVEN_ELEMENTS = 64  # of an input that a model is compiled for, in one dimension or none

_CODES = {dtype: code for code, dtype in TORCH_TYPES.items()}


class ValuesOfWeights(Exception):
    """Initializers that were to be trained are read as numbers."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(names)
        self.names = names


class Poisoned(Exception):
    """A node has an operand that an error has left without a shape."""


class GraphScope:
    """Values by their names in a graph, with those of the graphs around it."""

    def __init__(
        self, opsets: Mapping[str, int], path: tuple[str, ...] = (), outer: GraphScope | None = None, inside: str = ""
    ) -> None:
        self.opsets, self.path, self.outer, self.inside = opsets, path, outer, inside
        self.values: dict[str, GraphValue | None] = {}

    def find(self, name: str) -> GraphValue | None:
        """The value of a name. `Poisoned` if an error has left it without one, KeyError if there is none of the name."""
        scope: GraphScope | None = self
        while scope is not None:
            if name in scope.values:
                value = scope.values[name]
                if value is None:
                    raise Poisoned
                return value
            scope = scope.outer
        raise KeyError(name)

    def names(self) -> list[str]:
        """All names that can be used here."""
        return [*self.values, *([] if self.outer is None else self.outer.names())]


class Planner:
    """Plans a model for shapes of its inputs, and for the values of some."""

    def __init__(
        self, source: ModelSource, given: Mapping[str, torch.Tensor], trained: Sequence[str] = (), probed: Sequence[str] = ()
    ) -> None:
        """`given` has a tensor for each input: of the device "meta", or with elements where the model is compiled for these.

        `probed` are tensors, beside those that are trained, whose gradients are asked for.
        """
        self.source, self.precision, self.folder = source, source.precision, source.folder
        self.given, self.trained, self.probed = given, set(trained), set(probed)
        self.probes: dict[str, GraphValue] = {}
        self.steps: list[PlannedStep] = []
        self.place = NodePlace()  # of the node that is planned
        self.problems: list[str] = []
        self.wanted: set[str] = set()
        self.weights: dict[str, GraphValue] = {}
        self.read_weights: set[str] = set()  # trained ones whose values have to be known

    def plan(self) -> GraphPlan:
        """The plan. `ModelError` with all that is wrong; `MissingValue` where values of inputs have to be known first."""
        graph = self.source.graph
        scope = GraphScope(self.source.opsets)
        inputs = []
        for name, tensor in self.given.items():
            value = GraphValue(tensor, name, frozenset([name]))
            scope.values[name] = self._probed(name, value)
            inputs.append(value)
        for name, tensor in self.source.initializers.items():
            scope.values.setdefault(name, self._weight(name, tensor))
        self.run(graph.node, scope)
        if self.read_weights:
            raise ValuesOfWeights(self.read_weights)
        refuse(self.problems, f"{self.source.name} cannot run on the IPU as it is:")
        if self.wanted:
            names = sorted(self.wanted)
            listed = ", ".join(names)
            raise MissingValue(
                f"{self.source.name}: shapes depend on the values of {listed}: give them to compile, or call the model", names
            )
        outputs = {}
        for one in graph.output:
            outputs[one.name] = self._output(one.name, scope)
        return GraphPlan(tuple(one for one in inputs if not one.known), tuple(self.steps), outputs, self.weights, self.probes)

    def _output(self, name: str, scope: GraphScope) -> GraphValue:
        try:
            value = scope.find(name)
        except KeyError:
            raise ModelError(f"{self.source.name}: the output {name} is computed by no node") from None
        assert value is not None
        return value

    def _weight(self, name: str, tensor: torch.Tensor) -> GraphValue:
        if name not in self.trained:
            return GraphValue(tensor, name)
        value = GraphValue(tensor.to("meta"), name, frozenset([name]), weight=name)
        self.weights[name] = value
        return value

    def _probed(self, name: str, value: Any) -> Any:
        """A value, and a zero added to it, whose gradient is the value's, if that is asked for."""
        if name not in self.probed:
            return value
        told = f"{self.source.name}: the gradient of {name}"
        if not isinstance(value, GraphValue) or not value.tensor.is_floating_point():
            raise ModelError(f"{told}: gradients are of tensors of floats")
        if value.known:
            raise ModelError(f"{told}: it depends on no input and no weight")
        probe = self.probes[name] = GraphValue(torch.empty_like(value.tensor, device="meta"), f"gradient of {name}")
        path = ("gradients", "".join(one if one.isalnum() else "_" for one in name))
        return self.emit("Sum", [value, probe], told, path)

    # nodes

    def run(self, nodes: Sequence[NodeProto], scope: GraphScope) -> None:
        """Plan nodes in their order, which are those of a graph or function."""
        for number, node in enumerate(nodes):
            self._node(node, scope, number)

    def _node(self, node: NodeProto, scope: GraphScope, number: int) -> None:
        label = self.label(node, scope, number)
        outside, self.place = self.place, _place(node, self.place)
        try:
            operands = self._operands(node, scope, label)
            results = self.results(node, operands, scope, label, number)
            if self.probed and scope.outer is None and not scope.inside:
                results = [self._probed(name, one) for name, one in zip(node.output, results, strict=False)]
        except Poisoned:
            results = None
        except NeedsValue as need:
            self._note_need(need, node, operands, label)
            results = None
        except ModelError as problem:
            self.problems.append(str(problem))
            results = None
        except (PoplarError, MemoryError):
            raise
        except Exception as problem:  # of PyTorch, where shapes or types do not fit
            told = str(problem).strip().partition("\n")[0] or type(problem).__name__
            told_operands = [(name, one) for name, one in zip(node.input, operands, strict=False) if isinstance(one, GraphValue)]
            shapes = ", ".join(self._told(name, one) for name, one in told_operands)
            self.problems.append(f"{label}: {told}{f' (inputs: {shapes})' if shapes else ''}")
            results = None
        finally:
            self.place = outside
        for position, name in enumerate(node.output):
            if name:
                found = None if results is None or position >= len(results) else results[position]
                scope.values[name] = found

    def _told(self, name: str, value: GraphValue) -> str:
        return f"{name} {list(value.tensor.shape)} of {str(value.tensor.dtype).removeprefix('torch.')}"

    def _operands(self, node: NodeProto, scope: GraphScope, label: str) -> list[Any]:
        """Values, sequences of them, and None for what is left out."""
        operands: list[Any] = []
        for name in node.input:
            try:
                operands.append(scope.find(name) if name else None)
            except KeyError:
                raise ModelError(f"{label}: its input {name} is no input, initializer or earlier node's output") from None
        return operands

    def label(self, node: NodeProto, scope: GraphScope, number: int) -> str:
        """How messages name a node."""
        if scope.inside:
            return f"{scope.inside}, within it {node.op_type}"
        return f"{self.source.name}: node {node.name or f'number {number}'} ({node.op_type})"

    def _note_need(self, need: NeedsValue, node: NodeProto, operands: list[GraphValue | None], label: str) -> None:
        operand = operands[need.operand]
        assert operand is not None
        if operand.sources & self.weights.keys():
            self.read_weights |= operand.sources & self.weights.keys()
            return
        if self.can_be_given(operand) and not need.data:
            self.wanted |= operand.sources
            return
        of = f", which depends on the inputs {', '.join(sorted(operand.sources))}" if operand.sources else ""
        self.problems.append(
            f"{label}: what comes out depends on the data of its input {node.input[need.operand]}{of}; shapes on the IPU are static"
        )

    def can_be_given(self, value: GraphValue) -> bool:
        """Whether a value depends on nothing but inputs for whose values a model is compiled, which are small."""
        given = [self.given.get(name) for name in value.sources]
        return bool(given) and all(one is not None and one.dim() <= 1 and one.numel() <= GIVEN_ELEMENTS for one in given)

    def results(self, node: NodeProto, operands: list[Any], scope: GraphScope, label: str, number: int) -> Sequence[Any]:
        """The values of a node."""
        domain = plain_domain(node.domain)
        function = self.source.functions.get((domain, node.op_type, node.overload))
        if function is not None:
            return self.call(function, node, operands, scope, label, number)
        if domain == "" and node.op_type in SEQUENCE_OPERATORS:
            return sequence_results(self, node, operands, scope, label, (*scope.path, *_path(node, number)))
        held = next((one for one in operands if isinstance(one, ValueSequence)), None)
        if held is not None:
            raise ModelError(f"{label}: its input {held.name} is a sequence, and it takes tensors")
        if (domain, node.op_type) in CONTROL:
            return CONTROL[domain, node.op_type](self, node, operands, scope, label, number)
        opset = scope.opsets.get(domain, 1)
        operator = find_operator(domain, node.op_type, opset) or custom_operator(domain, node.op_type, opset)
        path = (*scope.path, *_path(node, number))
        if domain == TRAINING and node.op_type == "Gradient":
            return gradient_results(self, node, operands, scope, label, path)
        if operator is not None:
            try:
                return self.apply(operator, node, operands, opset, label, path)
            except Expand:
                pass
        body = body_of(node, opset, [_type(one) for one in operands])
        if body is None:
            raise ModelError(f"{label}: the operator is missing in opset {opset}")
        return self.call(body, node, operands, scope, label, number)

    def call(
        self,
        function: FunctionProto,
        node: NodeProto,
        operands: list[GraphValue | None],
        scope: GraphScope,
        label: str,
        number: int,
    ) -> list[GraphValue | None]:
        """The values of a function's call."""
        if len(scope.path) > DEEPEST:
            outer = scope.inside.partition(", within it")[0]
            raise ModelError(f"{outer}: functions call each other more than {DEEPEST} deep")
        own = {plain_domain(one.domain): one.version for one in function.opset_import}
        opsets = {"": defs.onnx_opset_version(), **scope.opsets, **own}
        inner = GraphScope(opsets, (*scope.path, *_path(node, number)), None, label)
        for position, name in enumerate(function.input):
            value = operands[position] if position < len(operands) else None
            if value is not None:
                inner.values[name] = value
        nodes = [
            _without_absent(one, inner, set(function.input))
            for one in with_attributes(
                function, node, schema_of(node.domain, node.op_type, scope.opsets.get(plain_domain(node.domain), 1))
            )
        ]
        self.run(nodes, inner)
        results: list[GraphValue | None] = []
        for position, name in enumerate(function.output):
            wanted = position < len(node.output) and bool(node.output[position])
            results.append(inner.find(name) if wanted else None)
        return results

    def apply(
        self, operator: Operator, node: NodeProto, operands: list[GraphValue | None], opset: int, label: str, path: tuple[str, ...]
    ) -> list[GraphValue | None]:
        """The values of an operator with an entry; a step of the plan, if not all are known."""
        if operator.domain != INNER:
            check_operands(node, opset, [None if one is None else one.tensor for one in operands], self.precision, label)
        known = [one.tensor if one is not None and one.known else None for one in operands]
        call = NodeCall(node, opset, known, self.precision, label, self.folder)
        unknown = any(one is not None and not one.known for one in operands)
        call.tensors = [None if one is None else one.tensor.to("meta") if unknown and one.known else one.tensor for one in operands]
        count = len(operands) if operator.tensors == ALL else operator.tensors
        with torch.no_grad():
            made = operator.entry(call, *(call.tensor(one) for one in range(count)))
        tensors = list(made) if isinstance(made, tuple | list) else [made]
        sources = frozenset().union(*(one.sources for one in operands if one is not None))
        fixed = frozenset().union(*(one.sources for one in operands if one is not None and one.known))
        values: list[GraphValue | None] = []
        for position, name in enumerate(node.output):
            tensor = tensors[position] if position < len(tensors) else None
            if tensor is None and name:
                raise call.error(f"its output {position} ({name}) is not computed here")
            known_anyway = (
                tensor is not None and tensor.device.type != "meta"
            )  # then operands that are not known count by their shapes
            values.append(None if tensor is None else GraphValue(tensor, name, fixed if known_anyway else sources))
        computed = [one for one in values if one is not None and not one.known]
        for one in computed:
            if one.tensor.dtype not in DEVICE_TYPES:
                raise call.error(f"it gives {one.name} as {type_problem(one.tensor.dtype)}")
        if computed:
            if len(self.steps) >= MOST_STEPS:
                raise call.error(f"the graph has more than {MOST_STEPS} nodes once its loops are unrolled")
            self.steps.append(PlannedNode(call, operator.entry, count, tuple(operands), tuple(values), path, self.place))
        return values

    def emit(
        self, name: str, operands: Sequence[GraphValue | None], label: str, path: tuple[str, ...], **attributes: Any
    ) -> GraphValue:
        """The value of an operator that the model does not have itself, such as a slice of what a Scan goes over."""
        node = helper.make_node(name, [("" if one is None else one.name) for one in operands], [f"{name}_result"], **attributes)
        opset = self.source.opsets.get("", 1)
        operator = find_operator(INNER, name, opset)
        assert operator is not None
        value = self.apply(operator, node, list(operands), opset, label, path)[0]
        assert value is not None
        return value

    def subgraph(
        self, graph: GraphProto, scope: GraphScope, bound: Mapping[str, GraphValue], path: tuple[str, ...]
    ) -> list[GraphValue]:
        """The outputs of a graph within a node, for its inputs."""
        inner = GraphScope(scope.opsets, path, scope, scope.inside)
        inner.values.update(bound)
        for one in graph.initializer:
            inner.values.setdefault(one.name, GraphValue(self.source.tensor(one), one.name))
        self.run(graph.node, inner)
        results = []
        for output in graph.output:
            try:
                value = inner.find(output.name)
            except KeyError:
                raise ModelError(f"{self.source.name}: the output {output.name} of {graph.name} is computed by no node") from None
            assert value is not None
            results.append(value)
        return results

    def branch(self, graph: GraphProto, scope: GraphScope, path: tuple[str, ...]) -> PlannedBranch:
        """A graph within a node, whose steps and problems are its own."""
        outside = self.steps, self.problems
        self.steps, self.problems = [], []
        try:
            results = self.subgraph(graph, scope, {}, path)
            return PlannedBranch(tuple(self.steps), tuple(results), tuple(self.problems))
        except Poisoned:
            if not self.problems:
                raise  # by what is outside
            return PlannedBranch((), (), tuple(self.problems))
        finally:
            self.steps, self.problems = outside


def _path(node: NodeProto, number: int) -> tuple[str, ...]:
    """The parts of a node's name, which are the path of its module."""
    parts = [part.replace(".", "_") for part in node.name.replace("::", "/").split("/") if part]
    return tuple(parts) or (f"{node.op_type}_{number}",)


def _place(node: NodeProto, outside: NodePlace) -> NodePlace:
    """Where a node runs: where its attributes say, or else where what is around it does."""
    given = {one.name: int(one.i) for one in node.attribute if one.name in PLACEMENT}
    return NodePlace(*(given.get(name, around) for name, around in zip(PLACEMENT, (outside.ipu, outside.stage), strict=True)))


def _without_absent(node: NodeProto, scope: GraphScope, formal: set[str]) -> NodeProto:
    """A node of a function without operands that its call has left out."""
    for position, name in enumerate(node.input):
        if name in formal and name not in scope.values:
            node.input[position] = ""
    return node


def _type(value: GraphValue | None) -> TypeProto:
    if value is None:
        return TypeProto()
    return helper.make_tensor_type_proto(_CODES[value.tensor.dtype], list(value.tensor.shape))
