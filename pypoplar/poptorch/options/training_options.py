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
    """How gradients become an update, given by `Options.Training`; for training models alone."""

    _group: ClassVar[str] = "Training"

    def __init__(self, popart: PopartOptions) -> None:
        self._popart_options = popart
        super().__init__(
            gradient_accumulation=1,
            accumulation_and_replication_reduction_type=ReductionType.Mean,
            meanAccumulationAndReplicationReductionStrategy=MeanReductionStrategy.Post,
        )

    def gradientAccumulation(self, gradient_accumulation: int) -> Self:
        """Add up the gradients of several micro-batches before each update of the weights.

        Parameters
        ----------
        gradient_accumulation:
            How many, at least 1; a call takes a batch so many times as large.

        Raises
        ------
        PoplarTypeError, InvalidOption
            For what is no such number.
        """
        option = self._option("gradientAccumulation")
        return self._keep(gradient_accumulation=checks.whole_number(option, gradient_accumulation, 1))

    def accumulationAndReplicationReductionType(self, reduction_type: ReductionType) -> Self:
        """What accumulated gradients become in the update.

        Parameters
        ----------
        reduction_type:
            `ReductionType.Mean`, as at first, or `ReductionType.Sum`.

        Raises
        ------
        InvalidOption
            For `ReductionType.NoReduction`.
        PoplarTypeError
            For what is no `ReductionType`.
        """
        option = self._option("accumulationAndReplicationReductionType")
        reduction = checks.member(option, reduction_type, ReductionType)
        if reduction is ReductionType.NoReduction:
            raise InvalidOption(f"{option} takes poptorch.ReductionType.Mean or poptorch.ReductionType.Sum, got NoReduction")
        return self._keep(accumulation_and_replication_reduction_type=reduction)

    def setMeanAccumulationAndReplicationReductionStrategy(self, mean_reduction_strategy: MeanReductionStrategy) -> Self:
        """When the mean is divided by the number of gradients.

        Parameters
        ----------
        mean_reduction_strategy:
            `MeanReductionStrategy.Post` at first; optimisers whose accumulators are halves take `MeanReductionStrategy.Running`.

        Raises
        ------
        PoplarTypeError
            For what is no `MeanReductionStrategy`.
        """
        option = self._option("setMeanAccumulationAndReplicationReductionStrategy")
        strategy = checks.member(option, mean_reduction_strategy, MeanReductionStrategy)
        return self._keep(meanAccumulationAndReplicationReductionStrategy=strategy)

    def setAutomaticLossScaling(self, enabled: bool) -> Self:
        """A loss scaling that follows the gradients: it doubles behind each step, or halves where they are too large for halves.

        The loss scaling of a step is the optimiser's `loss_scaling` times a factor, at first 1, which is the optimiser's state
        ``lossScaleUpdateFactor``. It halves where more than a share of 1e-7 of the elements of the parameters' gradients that are
        halves are an eighth of the largest half at least, or NaN; otherwise it doubles, up to a loss scaling of 32768.

        Parameters
        ----------
        enabled:
            Whether it does.

        Raises
        ------
        PoplarTypeError
            For what is no bool.
        """
        flag = checks.flag(self._option("setAutomaticLossScaling"), enabled)
        self._popart_options.put("automaticLossScalingSettings.enabled", flag)
        return self

    def setConvolutionDithering(self, enabled: bool) -> Self:
        """Let convolutions of different parameters begin on different tiles.

        Parameters
        ----------
        enabled:
            Whether they do.

        Raises
        ------
        PoplarTypeError
            For what is no bool.
        """
        dithering = checks.flag(self._option("setConvolutionDithering"), enabled)
        self._popart_options.put("convolutionOptions", {"enableConvDithering": dithering})
        return self
