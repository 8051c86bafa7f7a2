"""An optimiser of PyTorch on the device: its updates, and the numbers of its groups of parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from typing import Any

import torch
from attrs import frozen

from pypoplar import popops, poputil
from pypoplar.errors import MissingFeature
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popops.expr import Max, Sqrt
from pypoplar.poptorch.optim.optimizer_kinds import KINDS
from pypoplar.poptorch.update.accumulated_squares import (
    change_alike,
    change_states,
    divide_by_largest,
    divide_by_sum,
    largest_states,
    sum_states,
)
from pypoplar.poptorch.update.accumulation import Accumulation, GradientReduction, PartOf
from pypoplar.poptorch.update.adaptive_moments import adapt, moment_states
from pypoplar.poptorch.update.automatic_loss_scaling import FACTOR, FINAL, AutomaticLossScaling
from pypoplar.poptorch.update.derived_numbers import DerivedNumber
from pypoplar.poptorch.update.element_update import ElementUpdate
from pypoplar.poptorch.update.gradient_descent import (
    VELOCITY,
    combined_scale,
    descend,
    descend_combined,
    descent_states,
    is_combined,
)
from pypoplar.poptorch.update.group_settings import FLAGS, NUMBERS, SETTINGS, GroupSettings
from pypoplar.poptorch.update.host_optimizer import TYPES, DeviceState, HostOptimizer, StepCount
from pypoplar.poptorch.update.layerwise_moments import adapt_layerwise
from pypoplar.poptorch.update.parameter_step import ParameterStep, StateKind, TrainedParameter, WeightHomes
from pypoplar.poptorch.update.replica_sums import add_across_replicas, share_velocity
from pypoplar.poptorch.update.root_mean_square import mean_states, normalise
from pypoplar.poptorch.update.settings import Settings
from pypoplar.poptorch.update.step_scalars import StepScalars
from pypoplar.program import Sequence
from pypoplar.types import FLOAT, ElementType

SQUARES = popops.ReduceParams(popops.Operation.SQUARE_ADD)
STEPS: dict[str, Callable[[ParameterStep, Sequence], None]] = {
    "SGD": descend,
    "Adam": adapt,
    "AdamW": adapt,
    "RMSprop": normalise,
    "Adagrad": divide_by_sum,
    "Adadelta": change_alike,
    "Adamax": divide_by_largest,
    "LAMB": adapt_layerwise,
}
STATES: dict[str, Callable[[GroupSettings], list[StateKind]]] = {
    "Adam": moment_states,
    "AdamW": moment_states,
    "RMSprop": mean_states,
    "Adagrad": sum_states,
    "Adadelta": change_states,
    "Adamax": largest_states,
    "LAMB": moment_states,
}


@frozen
class UpdateRule:
    """A kind of optimiser beside those of PyTorch: its class, what it has in groups of parameters, and what a step does."""

    kind: str
    optimizer: type[torch.optim.Optimizer]
    numbers: tuple[str, ...]
    flags: tuple[str, ...]
    states: Callable[[GroupSettings], list[StateKind]]
    step: Callable[[ParameterStep, Sequence], None]
    settings: tuple[str, ...] = ()  # of groups, which decide the program as flags do, and are no truth values


def add_rule(rule: UpdateRule) -> None:
    """Let the device do the steps of another kind of optimiser."""
    KINDS[rule.kind] = rule.optimizer
    NUMBERS[rule.kind], FLAGS[rule.kind] = rule.numbers, (*rule.flags, "maximize")
    SETTINGS[rule.kind] = rule.settings
    STATES[rule.kind], STEPS[rule.kind] = rule.states, rule.step


class DeviceOptimizer:
    """Builds the updates of parameters. What the host has to know of them goes to its part."""

    def __init__(self, graph: Graph, host: HostOptimizer) -> None:
        """For an optimiser that the host has read."""
        self.graph, self.host, self.kind, self.reduction = graph, host, host.kind, host.reduction
        self.ahead = Sequence()  # what comes before the batches of a step, once it is built
        self.automatic = None if host.automatic is None else AutomaticLossScaling(graph, host.automatic, self.ahead)
        pairs = zip(host.compiled, host.written, strict=True)
        self.settings = [Settings(graph, group, written, self.automatic) for group, written in pairs]
        self.scalars = [StepScalars(graph, group.group) for group in host.compiled]
        self.first = host.compiled[0].fixed
        self.accumulator = TYPES[self.first["accum_type"]]

    def loss_scaling(self, dtype: torch.dtype) -> float | Tensor:
        """What the gradient of a loss of some type is, a number or FLOAT []."""
        self.host.largest_scaling = torch.finfo(dtype).max
        replicas = self.graph.getReplicationFactor()
        if self.reduction is GradientReduction.MEAN_AND_LOSS and replicas > 1:
            return self.settings[0].derived("loss_gradient", DerivedNumber("loss_gradient", (replicas,)), "loss_scaling")
        return self.settings[0].number("loss_scaling")

    def build(
        self,
        trained: SequenceOf[TrainedParameter],
        batch: Sequence,
        accumulated: int,
        part_of: PartOf | None = None,
        homes: WeightHomes | None = None,
    ) -> Sequence:
        """Extend what each batch does by sums of gradients; the result comes behind so many batches.

        `part_of` says of parameters by name which part of the batch is extended, where it has several; `homes` where weights are
        that are not on tiles between updates.
        """
        combined = [settings.compiled.kind == "SGD" and is_combined(settings.compiled, accumulated) for settings in self.settings]
        reduction = GradientReduction.MEAN if any(combined) and self.reduction is GradientReduction.RUNNING_MEAN else self.reduction
        sums = Accumulation(self.graph, accumulated, reduction, batch, part_of)
        steps = [
            self._combined_step(group, parameters, sums) if combined[group] else self._step(group, parameters, sums)
            for group, parameters in self._alike(trained, homes)
        ]
        before, behind = Sequence(), Sequence()
        apart = [step for step in steps if not combined[step.settings.compiled.group]]
        velocities = [step.states[VELOCITY] for step in steps if combined[step.settings.compiled.group]]
        add_across_replicas(self.graph, apart, velocities, sums, before)
        self._clip(apart, before)
        for step in steps:
            home = "" if homes is None else homes.home(step.parameters[0].name)
            if homes is not None and home:
                behind.add(homes.brought(home))
            (descend_combined if combined[step.settings.compiled.group] else STEPS[self.kind])(step, behind)
            if homes is not None and home:
                behind.add(homes.taken(home))
        for scalars in self.scalars:
            scalars.add_to(before)
            self._share_count(scalars, steps)
        return Sequence([before, behind, self._follow(trained, sums), sums.zero])

    def _follow(self, trained: SequenceOf[TrainedParameter], sums: Accumulation) -> Sequence:
        """What changes an automatic loss scaling behind an update."""
        if self.automatic is None:
            return Sequence()
        gradients = {one.name: one.gradient for one in trained}
        return self.automatic.follow(gradients, sums, self.settings[0].given_loss_scaling())

    def named(self) -> dict[str, Tensor]:
        """Tensors of the optimiser by PopART's names, for anchors."""
        if self.automatic is None or self.automatic.final is None:
            return {}
        return {FINAL: self.automatic.final, FACTOR: self.automatic.factor}

    def _alike(self, trained: SequenceOf[TrainedParameter], homes: WeightHomes | None) -> list[tuple[int, list[TrainedParameter]]]:
        """Parameters that are updated together: those of one group, type and home."""
        together: dict[tuple[int, ElementType, str], list[TrainedParameter]] = {}
        for one in trained:
            if one.name in self.host.groups and one.weight.numElements():
                home = "" if homes is None else homes.home(one.name)
                together.setdefault((self.host.groups[one.name], one.weight.elementType(), home), []).append(one)
        return [(group, parameters) for (group, *_), parameters in together.items()]

    def _step(self, group: int, parameters: list[TrainedParameter], sums: Accumulation) -> ParameterStep:
        compiled = self.settings[group].compiled
        kinds = descent_states(compiled, FLOAT, combined=False) if self.kind == "SGD" else STATES[self.kind](compiled)
        step = self._bundle(group, parameters, kinds, sums)
        step.gradient = sums.total(step.gradient, step.weight, self.accumulator, step.sizes, step.name)
        return step

    def _combined_step(self, group: int, parameters: list[TrainedParameter], sums: Accumulation) -> ParameterStep:
        """A step of gradient descent whose velocities take up the gradients of each batch."""
        compiled, type = self.settings[group].compiled, parameters[0].weight.elementType()
        if compiled.fixed["nesterov"] or compiled.fixed["max_grad_norm"] != math.inf:
            raise MissingFeature("SGD: use_combined_accum=True is missing with nesterov=True and with max_grad_norm")
        step = self._bundle(group, parameters, descent_states(compiled, type, combined=True), sums)
        (velocity,) = step.states.values()
        share_velocity(self.graph, velocity, self.ahead, f"{step.name}/replicas")
        scale = combined_scale(self.settings[group], sums.divisor)
        name = f"{step.name}/accumulate"
        for portion in sums.portions(step.sizes):
            own, added = (one.slice(portion.begin, portion.end) for one in (velocity, step.gradient))
            popops.scaledAddTo(self.graph, own, added, self._near(scale, portion.part.ipu, name), portion.part.program, name)
        return step

    def _near(self, number: float | Tensor, ipu: int, name: str) -> float | Tensor:
        """A number that the host writes to the first IPU, on another one."""
        if ipu == 0 or not isinstance(number, Tensor):
            return number
        return poputil.copyToIpu(self.graph, number, self.ahead, ipu, f"{name}/fromIpu")

    def _bundle(self, group: int, parameters: list[TrainedParameter], kinds: list[StateKind], sums: Accumulation) -> ParameterStep:
        """A step of parameters, with new states."""
        weight = concat([one.weight.flatten() for one in parameters])
        gradient = concat([one.gradient.flatten() for one in parameters])
        states = {kind.name: self._state(kind, parameters, weight) for kind in kinds}
        settings, scalars = self.settings[group], self.scalars[group]
        return ParameterStep(self.graph, settings, scalars, parameters, weight, gradient, states, sums.divisor, clip=None)

    def _state(self, kind: StateKind, parameters: list[TrainedParameter], weight: Tensor) -> Tensor:
        handle = f"{parameters[0].name}/{kind.name}"
        state = self.graph.clone(kind.type, weight, handle)
        self.graph.setInitialValue(state, kind.initial)  # one number, which the host has once
        self.graph.createHostRead(handle, state)
        self.graph.createHostWrite(handle, state)
        named = tuple((one.name, tuple(one.weight.shape())) for one in parameters)
        self.host.states.append(DeviceState(kind.name, handle, kind.type, kind.initial, named))
        return state

    def _share_count(self, scalars: StepScalars, steps: list[ParameterStep]) -> None:
        """Let the host read and write how many steps a group has made, if that is counted."""
        if scalars.steps is not None:
            handle = f"optimizer/{scalars.group}/step"
            self.graph.createHostRead(handle, scalars.steps)
            self.graph.createHostWrite(handle, scalars.steps)
            own = [step for step in steps if step.scalars is scalars]
            self.host.counts.append(StepCount(handle, tuple(one.name for step in own for one in step.parameters)))

    def _clip(self, steps: list[ParameterStep], prog: Sequence) -> None:
        """Let gradients be no longer, over all parameters, than the optimiser says."""
        longest = self.first["max_grad_norm"]
        if longest == math.inf or not steps:
            return
        name = "optimizer/update/clip"
        reductions = [popops.SingleReduceOp(step.gradient, [0], SQUARES, FLOAT) for step in steps]
        update = ElementUpdate(self.graph, [])
        clip = self.graph.addVariable(FLOAT, [], name)
        self.graph.setTileMapping(clip, 0)
        update = ElementUpdate(self.graph, [clip])
        squares: Any = 0.0
        for step, one in zip(steps, popops.reduceMany(self.graph, reductions, [], prog, name), strict=True):
            scale = update.leaf(step.gradient_scale())
            squares = squares + update.leaf(one) * (scale * scale)
        update.replace(clip, longest / Max(Sqrt(squares), longest))
        update.add_to(prog, name)
        for step in steps:
            step.clip = clip
