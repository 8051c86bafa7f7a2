"""Which parameters of a module an optimiser updates."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from pypoplar.errors import InvalidOption


def groups_of(optimizer: torch.optim.Optimizer, parameters: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """The number of the group of each parameter that the optimiser has, by its names in the module."""
    number = {id(tensor): group for group, one in enumerate(optimizer.param_groups) for tensor in one["params"]}
    return {name: number[id(tensor)] for name, tensor in parameters.items() if id(tensor) in number}


def groups_apart(groups: Mapping[str, int], parameters: Mapping[str, torch.Tensor]) -> tuple[dict[str, int], list[int]]:
    """A group for each tensor, by all of its names, and which group of before each of them is a part of."""
    numbers: dict[int, int] = {}
    sources: list[int] = []
    for name, group in groups.items():
        if numbers.setdefault(id(parameters[name]), len(numbers)) == len(sources):
            sources.append(group)
    return {name: numbers[id(parameters[name])] for name in groups}, sources


def check_parameters(optimizer: torch.optim.Optimizer, parameters: Mapping[str, torch.Tensor]) -> None:
    """`InvalidOption` for an optimiser of tensors that are no parameters of the module, or of one twice."""
    kind = type(optimizer).__name__
    known = {id(tensor) for tensor in parameters.values()}
    given = [(group, tensor) for group, one in enumerate(optimizer.param_groups) for tensor in one["params"]]
    other = [(group, tensor) for group, tensor in given if id(tensor) not in known]
    if other:
        group, tensor = other[0]
        raise InvalidOption(
            f"{kind} updates {len(other)} of {len(given)} tensors that are no parameters of the model, such as one of shape "
            f"{tuple(tensor.shape)} in parameter group {group}: make the optimiser of model.parameters()"
        )
    seen: set[int] = set()
    for group, tensor in given:
        if id(tensor) in seen:
            name = next(name for name, one in parameters.items() if one is tensor)
            raise InvalidOption(f"{kind}: the parameter {name} is in parameter group {group} twice")
        seen.add(id(tensor))
