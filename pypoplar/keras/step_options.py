"""How a model's steps are compiled: what its strategy and its own methods say, as `poptorch.Options`."""

from __future__ import annotations

from attrs import define

from pypoplar.errors import MissingFeature
from pypoplar.keras.captured_step import StepKind
from pypoplar.keras.ipu.config import IPUConfig
from pypoplar.keras.ipu.utils import device_seed
from pypoplar.poptorch.enums import OutputMode
from pypoplar.poptorch.enums import ReductionType as TorchReduction
from pypoplar.poptorch.options import Options


@define(eq=False)
class StepOptions:
    """The options of one model."""

    config: IPUConfig
    accumulated: int = 1
    reduction: TorchReduction = TorchReduction.Sum

    def of_step(self, kind: StepKind, batches: int) -> Options:
        """Those of a step of a kind that takes so many batches in a call."""
        accumulated = self.accumulated if kind is StepKind.TRAIN else 1
        options = Options()
        options.deviceIterations(batches // accumulated).outputMode(OutputMode.All)
        if kind is StepKind.TRAIN:
            options.Training.gradientAccumulation(accumulated)
            options.Training.accumulationAndReplicationReductionType(self.reduction)
        seed = device_seed().seed
        if seed is not None:
            options.randomSeed(seed)
        if self.config.ipus != 1:
            raise MissingFeature(
                f"IPUConfig: auto_select_ipus is {self.config.ipus}, and the model needs 1 IPU: there are no replicas of it"
            )
        self.config.apply_to(options)
        return options
