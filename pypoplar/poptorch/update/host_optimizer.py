"""What the host knows of an optimiser on the device: its groups, the numbers that it writes, the states that it reads and writes.

It is made with the optimiser's program, and kept beside the executable: who has it from there needs no program.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from typing import Any

import torch
from attrs import define, evolve, field, frozen

from pypoplar.errors import FileLoadError, InvalidOption
from pypoplar.executable.host_plans import HostTensor
from pypoplar.poptorch.optim import Optimizer
from pypoplar.poptorch.update.accumulation import GradientReduction
from pypoplar.poptorch.update.automatic_loss_scaling import FACTOR, LossScalingRule
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.group_settings import GroupSettings, read_groups
from pypoplar.poptorch.update.parameter_groups import check_parameters, groups_apart, groups_of
from pypoplar.poptorch.update.popart_names import are_several, groups_from_names, numbers_by_name
from pypoplar.poptorch.user_log import say_once
from pypoplar.types import FLOAT, HALF, ElementType

TYPES: dict[torch.dtype, ElementType] = {torch.float32: FLOAT, torch.float16: HALF}


def number_handle(group: int, name: str) -> str:
    """The handle by which the host writes a number of a group."""
    return f"optimizer/{group}/{name}"


@frozen(eq=False)
class DeviceState:
    """A state of some parameters on the device, flat, under the handle by which the host reads and writes it."""

    name: str  # PyTorch's
    handle: str
    type: ElementType
    initial: float
    parameters: tuple[tuple[str, tuple[int, ...]], ...]  # names and shapes


@frozen(eq=False)
class StepCount:
    """How many steps were made for some parameters, FLOAT [], under the handle by which the host reads and writes it."""

    handle: str
    parameters: tuple[str, ...]


@define(eq=False)
class HostOptimizer:
    """An optimiser as it was when its program was made, and what the host has to do for the device."""

    kind: str
    compiled: list[GroupSettings]  # what the program was made for
    groups: dict[str, int]  # the number of each parameter's group, by all of its names
    parameters: dict[str, torch.Tensor]  # those of the module, by all of their names
    reduction: GradientReduction  # of accumulated gradients
    given: list[GroupSettings]  # what the device has
    written: list[dict[str, DerivedNumber]]  # by group
    states: list[DeviceState] = field(factory=list)
    counts: list[StepCount] = field(factory=list)
    largest_scaling: float = math.inf  # of a loss
    automatic: LossScalingRule | None = None  # by which the loss scaling follows the gradients
    sources: list[int] = field(factory=list)  # which group of the optimiser each group is, or is a part of

    @classmethod
    def read(
        cls,
        optimizer: torch.optim.Optimizer,
        parameters: Mapping[str, torch.Tensor],
        reduction: GradientReduction,
        automatic: LossScalingRule | None = None,
    ) -> HostOptimizer:
        """An optimiser's, whose program is not made yet."""
        compiled = read_groups(optimizer)
        check_parameters(optimizer, parameters)
        if TYPES[compiled[0].fixed["accum_type"]] is not FLOAT and reduction is GradientReduction.MEAN:
            reduction = GradientReduction.RUNNING_MEAN  # as PopTorch has it: a sum of halves could be too large
        groups, sources = groups_of(optimizer, parameters), list(range(len(compiled)))
        if _asks_for_parts(optimizer, compiled, _trained(groups, parameters)):
            groups, sources = groups_apart(groups, parameters)
            compiled = _parts(compiled, sources)
        written = [dict[str, DerivedNumber]() for _ in compiled]
        host = cls(compiled[0].kind, compiled, groups, dict(parameters), reduction, compiled, written, automatic=automatic)
        host.sources = sources
        return host

    def are_parts(self, state: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether parameters of one group have numbers of their own in a state by PopART's names."""
        return are_several(state, self.compiled, _trained(self.groups, self.parameters))

    def tell_changes(self, optimizer: torch.optim.Optimizer) -> None:
        """Tell, once, that numbers changed that the device was not given."""
        groups = self._read(optimizer)
        pairs = list(zip(groups, self.given, strict=False))
        names = {name for now, then in pairs for name in now.numbers if now.numbers[name] != then.numbers.get(name)}
        names |= {name for now, then in pairs for name in now.fixed if now.fixed[name] != then.fixed.get(name)}
        if names or not self._has_these_groups(optimizer):
            told = ", ".join(sorted(names)) or "param_groups"
            say_once(
                f"{type(optimizer).__name__}: {told} changed on the host; the device keeps what it has until the model's "
                "setOptimizer is called"
            )

    def described(self) -> str:
        """All that the program depends on, in words."""
        groups = [(one, sorted(one.constant)) for one in self.compiled]
        told = [(one.fixed, {name: one.numbers[name] for name in constant}, constant) for one, constant in groups]
        return f"{self.kind}{told}{self.groups}{self.reduction}{self.automatic or ''}"

    def numbers(self, optimizer: torch.optim.Optimizer) -> dict[str, float]:
        """What the host writes, by handle, for the numbers that an optimiser has now. It may be another of the same kind."""
        groups = read_groups(optimizer)
        if groups[0].kind != self.kind:
            raise InvalidOption(
                f"setOptimizer: the model was compiled for {self.kind}, got {groups[0].kind}; make a new training model"
            )
        check_parameters(optimizer, self.parameters)
        if not self._has_these_groups(optimizer):
            raise InvalidOption(
                f"setOptimizer: the model was compiled for {len(set(self.sources))} groups of parameters, and the optimiser has "
                f"others ({len(groups)}); make a new training model"
            )
        return self._numbers_of(self._read(optimizer))

    def numbers_from_names(self, optimizer: torch.optim.Optimizer, named: Mapping[str, Any]) -> dict[str, float]:
        """What the host writes, by handle, for numbers that a `state_dict` has by PopART's names."""
        trained = _trained(self.groups, self.parameters)
        return self._numbers_of(groups_from_names(named, self.given, self._read(optimizer), trained))

    def named_numbers(self) -> dict[str, torch.Tensor]:
        """The numbers that the device has, by PopART's names."""
        return numbers_by_name(self.given, _trained(self.groups, self.parameters))

    def _read(self, optimizer: torch.optim.Optimizer) -> list[GroupSettings]:
        """The settings that an optimiser has now for each of these groups that it has."""
        groups = read_groups(optimizer)
        return _parts(groups, [source for source in self.sources if source < len(groups)])

    def _has_these_groups(self, optimizer: torch.optim.Optimizer) -> bool:
        groups = {name: self.sources[group] for name, group in self.groups.items()}
        whole = len(set(self.sources)) == len(self.sources)
        same = not whole or len(optimizer.param_groups) == len(self.sources)
        return same and groups_of(optimizer, self.parameters) == groups

    def _numbers_of(self, groups: list[GroupSettings]) -> dict[str, float]:
        scaling = groups[0].numbers["loss_scaling"]
        if scaling > self.largest_scaling:
            raise InvalidOption(
                f"{self.kind}: loss_scaling is {scaling}, and the loss has a type of numbers up to {self.largest_scaling}"
            )
        written = {}
        for compiled, group, numbers in zip(self.compiled, groups, self.written, strict=True):
            group.check_replaces(compiled)
            written.update({number_handle(group.group, name): number.of(group.numbers) for name, number in numbers.items()})
        self.given = groups
        return written

    def to_json(self) -> str:
        """What the program has asked for, as `add_program` takes it."""
        states = [[one.name, one.handle, one.type is HALF, one.initial, one.parameters] for one in self.states]
        told = {
            "written": [{name: [one.formula, *one.parameters] for name, one in group.items()} for group in self.written],
            "states": states,
            "counts": [[one.handle, one.parameters] for one in self.counts],
            "largest_scaling": self.largest_scaling,
        }
        return json.dumps(told)

    def add_program(self, text: str, handles: Mapping[str, HostTensor]) -> None:
        """Take what `to_json` told of an optimiser like this one, with its program, which has these handles for the host.

        `FileLoadError` for what is no such text, and where it tells of other handles than the program has.
        """
        try:
            told = json.loads(text)
            groups = zip(told["written"], self.compiled, strict=True)
            self.written = [{str(name): _number(one, group) for name, one in numbers.items()} for numbers, group in groups]
            self.states = [self._state(*one) for one in told["states"]]
            self.counts = [StepCount(str(handle), self._known(names)) for handle, names in told["counts"]]
            self.largest_scaling = float(told["largest_scaling"])
            self._check_handles(handles)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            raise FileLoadError(f"damaged: how the model trains is not there: {problem!r}") from problem

    def _state(self, name: str, handle: str, half: bool, initial: float, parameters: list[Any]) -> DeviceState:
        named = tuple((one, tuple(int(size) for size in shape)) for one, shape in parameters)
        self._known([one for one, _ in named])
        for one, shape in named:
            if shape != tuple(self.parameters[one].shape):
                raise ValueError(f"{one!r} has the shape {shape}")
        return DeviceState(str(name), str(handle), HALF if half else FLOAT, float(initial), named)

    def _check_handles(self, handles: Mapping[str, HostTensor]) -> None:
        """`ValueError` unless numbers, states and counts are what the host writes: one left out would stay as it is loaded."""
        groups = zip(self.compiled, self.written, strict=True)
        told = {number_handle(group.group, name): (FLOAT.__name__, 1) for group, numbers in groups for name in numbers}
        told |= {one.handle: (one.type.__name__, sum(math.prod(shape) for _, shape in one.parameters)) for one in self.states}
        told |= {one.handle: (FLOAT.__name__, 1) for one in self.counts}
        told |= {} if self.automatic is None else {FACTOR: (FLOAT.__name__, 1)}
        there = {handle: (tensor.type, math.prod(tensor.shape)) for handle, tensor in handles.items()}
        other = sorted(handle for handle in told.keys() | there.keys() if told.get(handle) != there.get(handle))
        if other:
            raise ValueError(f"the program has it otherwise: {', '.join(other[:4])}")

    def _known(self, names: list[str]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in self.groups]
        if unknown:
            raise ValueError(f"it trains no {unknown[0]!r}")
        return tuple(names)


def _trained(groups: Mapping[str, int], parameters: Mapping[str, torch.Tensor]) -> dict[str, int]:
    return {name: group for name, group in groups.items() if parameters[name].requires_grad}


def _asks_for_parts(optimizer: torch.optim.Optimizer, groups: list[GroupSettings], trained: Mapping[str, int]) -> bool:
    loaded = isinstance(optimizer, Optimizer) and optimizer.ipu_state_is_dirty and optimizer.has_state()
    return loaded and are_several(optimizer._state_dict, groups, trained)


def _parts(groups: list[GroupSettings], sources: list[int]) -> list[GroupSettings]:
    """The settings of groups that are parts of others."""
    return [evolve(groups[source], group=number) for number, source in enumerate(sources)]


def _number(told: list[Any], group: GroupSettings) -> DerivedNumber:
    formula, *parameters = told
    number = DerivedNumber(formula, tuple(parameters))
    with contextlib.suppress(ArithmeticError):  # of these numbers, where the formula is one that knows them
        number.of(group.numbers)
    return number
