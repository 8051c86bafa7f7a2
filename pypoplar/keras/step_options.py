"""How a model's steps are compiled: what its strategy and its own methods say, as `poptorch.Options`."""

from __future__ import annotations

from attrs import define

from pypoplar.errors import InvalidOption
from pypoplar.keras.captured_step import StepKind
from pypoplar.keras.ipu.config import IPUConfig
from pypoplar.keras.ipu.utils import device_seed
from pypoplar.keras.pipeline_stages import stage_name
from pypoplar.poptorch.enums import OutputMode
from pypoplar.poptorch.enums import ReductionType as TorchReduction
from pypoplar.poptorch.options import Options
from pypoplar.poptorch.options.execution_strategies import PipelinedExecution, Stage


@define(eq=False)
class StepOptions:
    """The options of one model."""

    config: IPUConfig
    accumulated: int = 1
    reduction: TorchReduction = TorchReduction.Sum
    pipelined: bool = False
    copies: int = 1  # replicas of the model, each with batches of its own
    device_mapping: list[int] | None = None  # the IPU of each stage

    def set_pipeline(self, device_mapping: list[int] | None) -> None:
        """Let the model be a pipeline."""
        self.pipelined, self.device_mapping = True, device_mapping

    def replicas(self, stages: int) -> int:
        """How many copies of a model of so many stages train together: as many as the configuration has IPUs for."""
        if not self.config.auto_select_ipus:
            return 1
        needed = 1 if not self.pipelined else stages if self.device_mapping is None else max(self.device_mapping) + 1
        return max(1, self.config.ipus // max(1, needed))

    @property
    def loss_weight(self) -> int:
        """What losses are multiplied by, so that gradients are summed over batches while those of replicas are averaged."""
        return self.accumulated if self.copies > 1 and self.reduction is TorchReduction.Sum else 1

    def of_step(self, kind: StepKind, batches: int, stages: int | None = None) -> Options:
        """Those of a step of a kind that takes so many batches in a call, of a model of so many `stages`, if that is known."""
        accumulated = self.accumulated if kind is StepKind.TRAIN else 1
        replicas = self.copies if batches % self.copies == 0 else 1
        options = Options()
        options.deviceIterations(batches // (accumulated * replicas)).outputMode(OutputMode.All)
        options.replicationFactor(replicas)
        if kind is StepKind.TRAIN:
            options.Training.gradientAccumulation(accumulated)
            reduction = TorchReduction.Mean if replicas > 1 else self.reduction
            options.Training.accumulationAndReplicationReductionType(reduction)
        seed = device_seed().seed
        if seed is not None:
            options.randomSeed(seed)
        self._check_ipus(self._place(options, stages))
        self.config.apply_to(options)
        return options

    def _place(self, options: Options, stages: int | None) -> int | None:
        """Let a pipeline's stages be on their IPUs; how many these are, if that is known."""
        if not self.pipelined:
            return 1
        mapping = self.device_mapping if self.device_mapping is not None or stages is None else list(range(stages))
        if mapping is None:
            options.setExecutionStrategy(PipelinedExecution())  # a block says its IPU
            return None
        if stages is not None and len(mapping) != stages:
            raise InvalidOption(f"set_pipelining_options: device_mapping has {len(mapping)} IPUs for {stages} stages")
        placed = [Stage(stage_name(number)).ipu(ipu) for number, ipu in enumerate(mapping)]
        options.setExecutionStrategy(PipelinedExecution(*placed))
        return max(mapping) + 1

    def _check_ipus(self, needed: int | None) -> None:
        """Refuse a configuration of other IPUs than a model needs; one that says nothing has as many."""
        if needed is None or not self.config.auto_select_ipus:
            return
        had = self.config.ipus
        if had < needed:
            raise InvalidOption(
                f"IPUConfig: auto_select_ipus is {had}, and the pipeline's stages are on {needed} IPUs: set it to {needed}"
            )
