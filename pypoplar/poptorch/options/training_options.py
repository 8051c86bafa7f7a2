"""``Options.Training``: how gradients become an update."""

from __future__ import annotations

from typing import ClassVar, Self

from pypoplar.errors import InvalidOption
from pypoplar.poptorch.enums import MeanReductionStrategy, ReductionType
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.poptorch.options.option_values import OptionValues
from pypoplar.poptorch.options.popart_options import PopartOptions
from pypoplar.tracebacks import public


@public
class TrainingOptions(OptionValues):
    """Options of training models."""

    _group: ClassVar[str] = "Training"

    def __init__(self, popart: PopartOptions) -> None:
        self._popart_options = popart
        super().__init__(
            gradient_accumulation=1,
            accumulation_and_replication_reduction_type=ReductionType.Mean,
            meanAccumulationAndReplicationReductionStrategy=MeanReductionStrategy.Post,
        )

    def gradientAccumulation(self, gradient_accumulation: int) -> Self:
        """Add up the gradients of so many micro-batches before each update of the weights."""
        option = self._option("gradientAccumulation")
        return self._keep(gradient_accumulation=checks.whole_number(option, gradient_accumulation, 1))

    def accumulationAndReplicationReductionType(self, reduction_type: ReductionType) -> Self:
        """Update with the mean of the accumulated gradients, `ReductionType.Mean`, or with their sum, `ReductionType.Sum`."""
        option = self._option("accumulationAndReplicationReductionType")
        reduction = checks.member(option, reduction_type, ReductionType)
        if reduction is ReductionType.NoReduction:
            raise InvalidOption(f"{option} takes poptorch.ReductionType.Mean or poptorch.ReductionType.Sum, got NoReduction")
        return self._keep(accumulation_and_replication_reduction_type=reduction)

    def setMeanAccumulationAndReplicationReductionStrategy(self, mean_reduction_strategy: MeanReductionStrategy) -> Self:
        """When the mean is divided by the number of gradients; see `MeanReductionStrategy`.

        Optimisers whose accumulators are halves take `MeanReductionStrategy.Running`.
        """
        option = self._option("setMeanAccumulationAndReplicationReductionStrategy")
        strategy = checks.member(option, mean_reduction_strategy, MeanReductionStrategy)
        return self._keep(meanAccumulationAndReplicationReductionStrategy=strategy)

    def setAutomaticLossScaling(self, enabled: bool) -> Self:
        """A loss scaling that follows the gradients: `MissingFeature` if it is `enabled`."""
        if checks.flag(self._option("setAutomaticLossScaling"), enabled):
            self._refuse("setAutomaticLossScaling", enabled)
        self._popart_options.put("automaticLossScalingSettings.enabled", False)
        return self

    def setConvolutionDithering(self, enabled: bool) -> Self:
        """Let convolutions of different parameters begin on different tiles."""
        dithering = checks.flag(self._option("setConvolutionDithering"), enabled)
        self._popart_options.put("convolutionOptions", {"enableConvDithering": dithering})
        return self
