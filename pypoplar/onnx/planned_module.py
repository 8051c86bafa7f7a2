"""A plan as a module of PyTorch: a module for each step, below its node's name, and the weights below theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import torch
from attrs import evolve, frozen
from torch import Tensor

from pypoplar.onnx.model_source import PLANNING
from pypoplar.onnx.plan_steps import GraphPlan, GraphValue, PlannedChoice, PlannedNode, PlannedStep
from pypoplar.poptorch.capture.model_blocks import Block
from pypoplar.poptorch.operators import cond
from pypoplar.poptorch.operators.hints import planned_by

Source: TypeAlias = int | Tensor | tuple[torch.nn.Module, str]  # the number of a computed value, a constant, or what a module holds
UNQUOTED = re.compile(r"[\x00-\x1f\x7f.'\"\\]")  # what names of modules do not have, which PyTorch writes into code
SEPARATORS = str.maketrans({"/": ".", ":": "."})


class NodeModule(torch.nn.Module):
    """A step: its entry, called with the operands that the device has."""

    def __init__(self, step: PlannedNode) -> None:
        super().__init__()
        self.call, self.entry, self.tensors = step.call, step.entry, step.tensors
        self.plan = {
            option: str(step.call.attribute(name)).lower() for name, option in PLANNING.items() if step.call.attribute(name)
        }
        self.passed = [
            number
            for number, value in enumerate(step.operands)
            if value is not None and (not value.known or number in step.call.used)
        ]
        self.wanted = [number for number, value in enumerate(step.results) if value is not None and not value.known]
        for key, tensors in step.call.prepared_tensors.items():
            for number, tensor in enumerate(tensors):
                self.register_buffer(f"prepared_{key}_{number}", tensor, persistent=False)

    def forward(self, *operands: Tensor) -> tuple[Tensor, ...]:
        """What the step computes that is not known."""
        call = self.call
        given: list[Tensor | None] = list(call.known)
        for number, operand in zip(self.passed, operands, strict=True):
            given[number] = operand
        call.tensors, call.find_prepared, call.training = given, self._prepared, self.training
        try:
            with planned_by(self.plan):
                made = self.entry(call, *(call.tensor(one) for one in range(self.tensors)))
        finally:
            call.tensors, call.find_prepared = [], None
        results = list(made) if isinstance(made, tuple | list) else [made]
        return tuple(results[number] for number in self.wanted)

    def _prepared(self, key: str, number: int) -> Tensor:
        found: Tensor = getattr(self, f"prepared_{key}_{number}")
        return found


@frozen(eq=False)
class ModuleCall:
    """A call of a step's module: where its operands are, and the numbers of its results."""

    module: torch.nn.Module
    operands: list[Source]
    results: list[int]
    block: str | None = None  # that begins with it


@frozen(eq=False)
class BranchCalls:
    """The calls of a branch, and where what comes out is."""

    calls: list[ModuleCall]
    results: list[Source]

    def outside(self) -> set[int]:
        """The numbers of values that the branch uses and does not compute."""
        used = {one for call in self.calls for one in call.operands if isinstance(one, int)}
        used |= {one for one in self.results if isinstance(one, int)}
        return used - {one for call in self.calls for one in call.results}

    def run(self, found: dict[int, Tensor]) -> list[Tensor]:
        """What comes out, from computed values by their numbers."""
        inner = dict(found)
        for call in self.calls:
            if call.block is not None:
                Block.start(call.block)
            made = call.module(*(_value(one, inner) for one in call.operands))
            inner.update(zip(call.results, made, strict=True))
        return [_value(one, inner) for one in self.results]


class ChoiceModule(torch.nn.Module):
    """An If whose condition data decide; its branches use values from outside."""

    branches: tuple[BranchCalls, BranchCalls]
    outside: list[int]

    def set_branches(self, then: BranchCalls, otherwise: BranchCalls) -> None:
        """Its branches, whose modules lie below it."""
        self.branches = then, otherwise
        self.outside = sorted(then.outside() | otherwise.outside())

    def forward(self, condition: Tensor, *outside: Tensor) -> tuple[Tensor, ...]:
        """What the branch gives that the condition chooses."""
        found = dict(zip(self.outside, outside, strict=True))
        then, otherwise = self.branches
        return tuple(cond(condition, lambda: then.run(found), [], lambda: otherwise.run(found), []))


class PlannedModule(torch.nn.Module):
    """All steps of a plan. A call takes the values of inputs that are not known, and gives those of outputs that are not."""

    def __init__(self, plan: GraphPlan, initializers: dict[str, Tensor], blocks: Mapping[int, str] | None = None) -> None:
        """`blocks` are names of blocks of poptorch's by the numbers of the steps that begin them."""
        super().__init__()
        self._numbers: dict[int, int] = {id(value): number for number, value in enumerate(plan.inputs)}
        self._holders: dict[int, tuple[torch.nn.Module, str]] = {}
        self.paths: dict[str, str] = {}  # what messages call the node of each module
        for value in plan.weights.values():
            self._hold(value, torch.nn.Parameter(initializers[value.weight].clone()))
        for value in plan.probes.values():
            self._hold(value, torch.nn.Parameter(torch.zeros_like(value.tensor, device="cpu")))
        self._plan = plan  # which keeps the values whose identities are used
        graph = self._branch(plan.steps, [value for value in plan.outputs.values() if not value.known])
        begun = {} if blocks is None else blocks
        calls = [evolve(call, block=begun.get(number)) for number, call in enumerate(graph.calls)]
        self._graph = BranchCalls(calls, graph.results)

    def _branch(self, steps: Sequence[PlannedStep], results: Sequence[GraphValue]) -> BranchCalls:
        return BranchCalls([self._call(step) for step in steps], [self._source(one) for one in results])

    def _call(self, step: PlannedStep) -> ModuleCall:
        if isinstance(step, PlannedChoice):
            return self._choice(step)
        module = NodeModule(step)
        self.paths[self._place(list(step.path), module)] = step.call.label
        operands = [self._source(value) for number in module.passed if (value := step.operands[number]) is not None]
        return ModuleCall(module, operands, [self._number(step.results[one]) for one in module.wanted])

    def _choice(self, step: PlannedChoice) -> ModuleCall:
        module = ChoiceModule()
        self.paths[self._place(list(step.path), module)] = step.label
        module.set_branches(*(self._branch(one.steps, one.results) for one in (step.then, step.otherwise)))
        operands = [self._source(step.condition), *module.outside]
        return ModuleCall(module, operands, [self._number(one) for one in step.results])

    def _number(self, value: GraphValue | None) -> int:
        """The number of a value that is computed."""
        assert value is not None
        return self._numbers.setdefault(id(value), len(self._numbers))

    def _source(self, value: GraphValue) -> Source:
        """Where calls find a value; one that is known and is no single number is a buffer of its name."""
        if id(value) in self._numbers:
            return self._numbers[id(value)]
        if id(value) not in self._holders:
            if not (value.tensor.is_floating_point() and value.tensor.numel() > 1):
                return value.tensor
            self._hold(value, value.tensor)
        return self._holders[id(value)]

    def _place(self, path: Sequence[str], module: torch.nn.Module) -> str:
        """Put a module below modules of a path's names, and say where it is."""
        holder: torch.nn.Module = self
        names: list[str] = []
        for part in path[:-1]:
            name = _free(holder, part, modules=True)
            if name not in holder._modules:
                holder.add_module(name, torch.nn.Module())
            inner = holder._modules[name]
            assert inner is not None
            holder = inner
            names.append(name)
        last = _free(holder, path[-1], modules=False)
        holder.add_module(last, module)
        return ".".join([*names, last])

    def _hold(self, value: GraphValue, tensor: Tensor) -> None:
        """Make a tensor a parameter or buffer of its name."""
        parts = [part for part in value.name.translate(SEPARATORS).split(".") if part] or ["tensor"]
        holder: torch.nn.Module = self
        for part in parts[:-1]:
            name = _free(holder, part, modules=True)
            if name not in holder._modules:
                holder.add_module(name, torch.nn.Module())
            inner = holder._modules[name]
            assert inner is not None
            holder = inner
        name = _free(holder, parts[-1], modules=False)
        if isinstance(tensor, torch.nn.Parameter):
            holder.register_parameter(name, tensor)
        else:
            holder.register_buffer(name, tensor)
        self._holders[id(value)] = (holder, name)

    def weight_names(self) -> dict[str, str]:
        """The name of each trained initializer's parameter."""
        return self._places(self._plan.weights)

    def probe_names(self) -> dict[str, str]:
        """The name of the parameter that has the gradient of each tensor of which it is asked for."""
        return self._places(self._plan.probes)

    def _places(self, values: Mapping[str, GraphValue]) -> dict[str, str]:
        prefixes = {id(module): prefix for prefix, module in self.named_modules()}
        names = {}
        for name, value in values.items():
            holder, own = self._holders[id(value)]
            names[name] = ".".join(part for part in (prefixes[id(holder)], own) if part)
        return names

    def weight_tensors(self) -> dict[str, Tensor]:
        """The trained initializers, as they are now."""
        return {name: self.get_parameter(place) for name, place in self.weight_names().items()}

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs that are not known."""
        return tuple(self._graph.run(dict(enumerate(inputs))))


def _value(source: Source, found: dict[int, Tensor]) -> Tensor:
    if isinstance(source, int):
        return found[source]
    if isinstance(source, Tensor):
        return source
    holder, name = source
    tensor: Tensor = getattr(holder, name)
    return tensor


def _is_used(holder: torch.nn.Module, name: str) -> bool:
    """Whether a module has something of a name, or the graph that PyTorch makes of it would."""
    return hasattr(holder, name) or hasattr(torch.fx.GraphModule, name)


def _free(holder: torch.nn.Module, name: str, modules: bool) -> str:
    """A name that a module does not use otherwise; that of a module below it, where `modules` says so."""
    name = UNQUOTED.sub("_", name) or "_"
    while _is_used(holder, name) and not (modules and name in holder._modules):
        name += "_"
    return name
