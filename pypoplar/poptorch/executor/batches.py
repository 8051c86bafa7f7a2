"""How a call's batch is cut: by iterations of the device's loop, by batches whose gradients are added up, and by replicas.

As in PopTorch an iteration's accumulated batches come one after the other, and of each the replicas' come one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch
from attrs import field, frozen

from pypoplar.errors import InvalidOption, TensorShapeError
from pypoplar.poptorch.enums import OutputMode
from pypoplar.poptorch.options.replica_groups import ReplicaGroups


@frozen
class Batches:
    """What one call does: `iterations` times, on each replica, a step of `accumulated` batches; and which results come back."""

    iterations: int
    accumulated: int
    mode: OutputMode
    period: int = field(default=1)  # of OutputMode.EveryN, in iterations
    groups: ReplicaGroups = field(factory=ReplicaGroups)  # of this process
    processes: int = 1  # that share all replicas
    process: int = 0

    @property
    def all_replicas(self) -> int:
        """The replicas of all processes."""
        return self.groups.replicas * self.processes

    @property
    def first_replica(self) -> int:
        """The number of this process's first."""
        return self.groups.replicas * self.process

    @property
    def count(self) -> int:
        """Batches that a replica takes in a call."""
        return self.iterations * self.accumulated

    @property
    def given(self) -> int:
        """Batches that a call is given, of all replicas; those of a group have the same ones."""
        return self.count * self.groups.count

    def returned(self, mode: OutputMode, period: int) -> int:
        """How many of a replica's batches in a call have results that come back in an output mode."""
        match mode:
            case OutputMode.All:
                return self.count
            case OutputMode.EveryN:
                if self.iterations % period:
                    raise InvalidOption(f"OutputMode.EveryN: {period} does not divide deviceIterations, {self.iterations}")
                return self.iterations // period
        return 1

    def first(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        """The first batch of a call's tensor."""
        if self.given == 1:
            return tensor
        if tensor.dim() == 0 or tensor.shape[0] % self.given:
            raise TensorShapeError(
                f"{name} has shape {tuple(tensor.shape)}: a call takes {self.iterations} device iterations of {self.accumulated} "
                f"accumulated batches{self._shared_out()}, so its first dimension is a multiple of {self.given}"
            )
        return tensor[: tensor.shape[0] // self.given]

    def _shared_out(self) -> str:
        if self.groups.replicas == 1:
            return ""
        return f" for each of {self.groups.count} {'replicas' if self.groups.size == 1 else 'groups of replicas'}"

    def of_each(self, values: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """[replicas, count, ...]: what each replica takes, in batches of a shape, of what a call is given."""
        batches = values.reshape(self.count, self.groups.count, *shape)
        return (batches if self.groups.size == 1 else batches[:, self.groups.of_each]).swapaxes(0, 1)


@frozen
class CallLoops:
    """The loops of a call's program, the outer ones first."""

    times: int
    period: int  # iterations from one result to the next
    accumulated: int

    @property
    def count(self) -> int:
        """How many of them are loops: what is done once is none."""
        return sum(rounds > 1 for rounds in (self.times, self.period, self.accumulated))

    def place(self, left: list[int]) -> str:
        """Which batch it is, given the rounds that each loop has left, the present one included; -1 where none has begun."""
        rounds, ahead = (self.times, self.period, self.accumulated), iter(left)
        done = [0 if many == 1 else min(_begun(many, next(ahead)), many - 1) for many in rounds]
        return self.place_of((done[0] * self.period + done[1]) * self.accumulated + done[2])

    def place_of(self, batch: int) -> str:
        """A batch in words, by its number in the call."""
        iterations = self.times * self.period
        iteration = batch // self.accumulated
        return f"batch {batch + 1} of {iterations * self.accumulated}, device iteration {iteration + 1} of {iterations}"

    @property
    def in_pipeline(self) -> int:
        """How many batches follow each other through a pipeline before it is empty."""
        return self.accumulated if self.accumulated > 1 else self.times * self.period

    @property
    def steps(self) -> CallLoops:
        """Those whose batches are in a pipeline at once: the ones around a training step; in inference none."""
        return CallLoops(self.times, self.period, 1) if self.accumulated > 1 else CallLoops(1, 1, 1)

    def place_in_pipeline(self, left: list[int]) -> str:
        """The same, of the rounds of `steps`, where a step's batches are in a pipeline."""
        iterations = self.times * self.period
        if self.accumulated == 1:
            return f"one of {iterations} batches, several of which are in the pipeline at once"
        iteration = self.steps.place(left).rpartition(", ")[2]
        return f"one of the {self.accumulated} batches of {iteration}"


def _begun(rounds: int, left: int) -> int:
    """How many rounds of a loop came before the present one."""
    return rounds - left if left >= 0 else 0


def joined_results(results: npt.NDArray[Any], shape: list[int]) -> torch.Tensor:
    """Results [replicas, batches, ...] as one tensor: of each batch one replica after the other, joined along the first dimension.

    Numbers become a vector. What one replica gives of one batch is as it is.
    """
    tensor, count = torch.from_numpy(results.swapaxes(0, 1).copy()), results.shape[0] * results.shape[1]
    if count == 1:
        return tensor.reshape(shape)
    return tensor.reshape([count * shape[0], *shape[1:]] if shape else [count])
