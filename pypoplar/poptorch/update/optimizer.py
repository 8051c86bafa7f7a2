"""An optimiser of PyTorch on the device: the rule of its class, and the numbers of its groups of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from pypoplar.errors import InvalidOption, MissingFeature
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.update.gradient_descent import GradientDescent
from pypoplar.poptorch.update.settings import Settings
from pypoplar.program import Sequence

Rule = Callable[[Graph, Settings, Tensor, Tensor, Sequence, str], None]
RULES: dict[type[torch.optim.Optimizer], type[GradientDescent]] = {torch.optim.SGD: GradientDescent}


class DeviceOptimizer:
    """Adds the update of each parameter to a program, and gives the numbers that the host writes."""

    def __init__(self, graph: Graph, optimizer: torch.optim.Optimizer, parameters: Mapping[str, torch.Tensor]) -> None:
        """`parameters` are those of the module, by name."""
        rule = next((RULES[base] for base in type(optimizer).__mro__ if base in RULES), None)
        if rule is None:
            known = ", ".join(sorted(base.__name__ for base in RULES))
            raise MissingFeature(f"the optimiser {type(optimizer).__name__} is missing; there are {known}")
        self.graph, self.kind = graph, type(optimizer)
        self.rules = [
            rule(Settings(graph, number, rule.numbers(group)), group) for number, group in enumerate(optimizer.param_groups)
        ]
        self.group = _groups(optimizer, parameters)

    def add(self, parameter: str, weight: Tensor, gradient: Tensor, prog: Sequence) -> None:
        """Extend `prog` by the update of one parameter; of one that the optimiser does not have, by nothing."""
        if parameter in self.group:
            self.rules[self.group[parameter]].add(weight, gradient, prog, f"{parameter.replace('.', '/')}/update")

    def numbers(self, optimizer: torch.optim.Optimizer) -> dict[str, float]:
        """What the host writes, by handle, for the numbers that an optimiser has now. It may be another of the same class."""
        if type(optimizer) is not self.kind or len(optimizer.param_groups) != len(self.rules):
            raise InvalidOption(
                f"setOptimizer: the model was compiled for {self.kind.__name__} with {len(self.rules)} groups of parameters, got "
                f"{type(optimizer).__name__} with {len(optimizer.param_groups)}; make a new training model"
            )
        written = {}
        for rule, group in zip(self.rules, optimizer.param_groups, strict=True):
            rule.check_constants(group)
            numbers = rule.numbers(group)
            written.update({rule.settings.handle(name): numbers[name] for name in rule.settings.tensors})
        return written


def _groups(optimizer: torch.optim.Optimizer, parameters: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """The group of each parameter, by name."""
    number = {id(tensor): group for group, one in enumerate(optimizer.param_groups) for tensor in one["params"]}
    return {name: number[id(tensor)] for name, tensor in parameters.items() if id(tensor) in number}


def unknown_parameters(optimizer: torch.optim.Optimizer, parameters: Mapping[str, Any]) -> int:
    """How many of an optimiser's parameters are not of the module."""
    known = {id(tensor) for tensor in parameters.values()}
    return sum(id(tensor) not in known for group in optimizer.param_groups for tensor in group["params"])
