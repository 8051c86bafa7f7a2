"""How a call's batch is cut: by iterations of the device's loop and by batches whose gradients are added up."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch
from attrs import field, frozen

from pypoplar.errors import InvalidOption, TensorShapeError
from pypoplar.poptorch.enums import OutputMode


@frozen
class Batches:
    """What one call does: `iterations` times, a step of `accumulated` batches, and which of the results come back."""

    iterations: int
    accumulated: int
    mode: OutputMode
    period: int = field(default=1)  # of OutputMode.EveryN, in iterations

    @property
    def count(self) -> int:
        """Batches of a call."""
        return self.iterations * self.accumulated

    def returned(self, mode: OutputMode, period: int) -> int:
        """How many batches of a call have results that come back in an output mode."""
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
        if self.count == 1:
            return tensor
        if tensor.dim() == 0 or tensor.shape[0] % self.count:
            raise TensorShapeError(
                f"{name} has shape {tuple(tensor.shape)}: a call takes {self.iterations} device iterations of {self.accumulated} "
                f"accumulated batches, so its first dimension is a multiple of {self.count}"
            )
        return tensor[: tensor.shape[0] // self.count]


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
        iteration, iterations = done[0] * self.period + done[1], self.times * self.period
        batch = iteration * self.accumulated + done[2]
        return f"batch {batch + 1} of {iterations * self.accumulated}, device iteration {iteration + 1} of {iterations}"


def _begun(rounds: int, left: int) -> int:
    """How many rounds of a loop came before the present one."""
    return rounds - left if left >= 0 else 0


def joined(results: npt.NDArray[Any], shape: list[int]) -> torch.Tensor:
    """Results of batches as one tensor: joined along the first dimension; numbers become a vector. Those of one are as they are."""
    tensor = torch.from_numpy(results.copy())
    if len(results) == 1:
        return tensor.reshape(shape)
    return tensor.reshape([len(results) * shape[0], *shape[1:]] if shape else [len(results)])
