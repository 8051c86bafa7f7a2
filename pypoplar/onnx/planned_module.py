"""A plan as a module of PyTorch: a module for each step, below its node's name, and the weights below theirs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pypoplar.onnx.plan_steps import GraphPlan, GraphValue, PlannedNode

SEPARATORS = str.maketrans({"/": ".", ":": "."})


class NodeModule(torch.nn.Module):
    """A step: its entry, called with the operands that the device has."""

    def __init__(self, step: PlannedNode) -> None:
        super().__init__()
        self.call, self.entry, self.tensors = step.call, step.entry, step.tensors
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
        call.tensors, call.find_prepared = given, self._prepared
        try:
            made = self.entry(call, *(call.tensor(one) for one in range(self.tensors)))
        finally:
            call.tensors, call.find_prepared = [], None
        results = list(made) if isinstance(made, tuple | list) else [made]
        return tuple(results[number] for number in self.wanted)

    def _prepared(self, key: str, number: int) -> Tensor:
        found: Tensor = getattr(self, f"prepared_{key}_{number}")
        return found


class PlannedModule(torch.nn.Module):
    """All steps of a plan. A call takes the values of inputs that are not known, and gives those of outputs that are not."""

    def __init__(self, plan: GraphPlan, initializers: dict[str, Tensor]) -> None:
        super().__init__()
        self._slots: dict[int, int] = {}
        for value in plan.inputs:
            self._slots[id(value)] = len(self._slots)
        self._holders: dict[int, tuple[torch.nn.Module, str]] = {}
        self._constants: dict[int, Tensor] = {}
        self.paths: dict[str, str] = {}  # what messages call the node of each module
        self._calls: list[tuple[NodeModule, list[GraphValue], list[int]]] = []
        for value in plan.weights.values():
            self._hold(value, torch.nn.Parameter(initializers[value.weight].clone()))
        for step in plan.steps:
            self._add(step)
        self._plan = plan  # which keeps the values whose identities are used
        self._returned = [value for value in plan.outputs.values() if not value.known]

    def _add(self, step: PlannedNode) -> None:
        module = NodeModule(step)
        path = self._place(list(step.path), module)
        self.paths[path] = step.call.label
        operands = [value for number in module.passed if (value := step.operands[number]) is not None]
        for value in operands:
            if value.known and id(value) not in self._holders and id(value) not in self._constants:
                if value.tensor.is_floating_point() and value.tensor.numel() > 1:
                    self._hold(value, value.tensor)
                else:
                    self._constants[id(value)] = value.tensor
        results = []
        for number in module.wanted:
            value = step.results[number]
            assert value is not None
            self._slots[id(value)] = len(self._slots)
            results.append(self._slots[id(value)])
        self._calls.append((module, operands, results))

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
        prefixes = {id(module): prefix for prefix, module in self.named_modules()}
        names = {}
        for name, value in self._plan.weights.items():
            holder, own = self._holders[id(value)]
            names[name] = ".".join(part for part in (prefixes[id(holder)], own) if part)
        return names

    def weight_tensors(self) -> dict[str, Tensor]:
        """The trained initializers, as they are now."""
        return {name: self.get_parameter(place) for name, place in self.weight_names().items()}

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs that are not known."""
        found: dict[int, Tensor] = dict(enumerate(inputs))
        for module, operands, results in self._calls:
            made = module(*(self._value(one, found) for one in operands))
            found.update(zip(results, made, strict=True))
        return tuple(self._value(one, found) for one in self._returned)

    def _value(self, value: GraphValue, found: dict[int, Tensor]) -> Tensor:
        key = id(value)
        if key in self._slots:
            return found[self._slots[key]]
        if key in self._holders:
            holder, name = self._holders[key]
            tensor: Tensor = getattr(holder, name)
            return tensor
        return self._constants[key]


def _is_used(holder: torch.nn.Module, name: str) -> bool:
    """Whether a module has something of a name, or the graph that PyTorch makes of it would."""
    return hasattr(holder, name) or hasattr(torch.fx.GraphModule, name)


def _free(holder: torch.nn.Module, name: str, modules: bool) -> str:
    """A name that a module does not use otherwise; that of a module below it, where `modules` says so."""
    name = name.replace(".", "_") or "_"
    while _is_used(holder, name) and not (modules and name in holder._modules):
        name += "_"
    return name
