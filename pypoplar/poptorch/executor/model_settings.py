"""What the options of a model come to when it is compiled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from attrs import field, fields, frozen

from pypoplar.arrays.number_ranges import counted
from pypoplar.errors import InvalidOption, MissingFeature
from pypoplar.graph.graph import Graph
from pypoplar.poptorch.enums import ConnectionType, MeanReductionStrategy, OutputMode, ReductionType
from pypoplar.poptorch.executor.batches import Batches
from pypoplar.poptorch.options import Options
from pypoplar.poptorch.options.execution_strategies import ExecutionStrategy, PhasedExecution
from pypoplar.poptorch.options.model_options import TARGETS
from pypoplar.poptorch.options.plan_options import PlanOptions
from pypoplar.poptorch.options.replica_groups import ReplicaGroups
from pypoplar.poptorch.pipelines.checkpoints import Recomputation
from pypoplar.poptorch.update.accumulation import GradientReduction
from pypoplar.poptorch.update.automatic_loss_scaling import LossScalingRule
from pypoplar.poptorch.user_log import say_once
from pypoplar.program import FloatingPointBehaviour, Sequence, setFloatingPointBehaviour
from pypoplar.spelling import nearest_or_all

MEANS = {
    MeanReductionStrategy.Running: GradientReduction.RUNNING_MEAN,
    MeanReductionStrategy.Post: GradientReduction.MEAN,
    MeanReductionStrategy.PostAndLoss: GradientReduction.MEAN_AND_LOSS,
}
LEAST_STREAMED = 2  # elements, PopART's minElementsForOffChip
SYNTHETIC_ZEROS, SYNTHETIC_RANDOM = 1, 2  # of PopART's syntheticDataMode


@frozen
class Anchor:
    """An inner tensor that is returned too: the `name` for the user, that of the tensor, and which batches' values come back."""

    name: str
    tensor: str
    mode: OutputMode
    period: int


@frozen
class ModelSettings:
    """All that `Options` say of a compiled model."""

    batches: Batches
    reduction: GradientReduction  # of accumulated gradients
    anchors: tuple[Anchor, ...]
    plans: PlanOptions = field(factory=PlanOptions)
    engine: Mapping[str, Any] = field(factory=dict)  # options of the Engine
    name: str = ""  # of the Engine and its profile's directory
    synthetic: int = 0  # PopART's syntheticDataMode
    stochastic_rounding: bool = False
    exceptions: bool = False  # of floating-point operations
    cache: Path | None = None  # the directory of executables
    strategy: ExecutionStrategy | None = field(default=None, eq=False)
    rounds: bool = False  # the number of IPUs to a power of two
    runs: bool = True  # whether there is a device; else the model is compiled alone
    stable_norms: bool = False  # sum squares of differences from the mean
    chip: str = "bow"
    outline_threshold: float | None = 1.0  # what operations that repeat are worth at least to be a function; None for no functions
    outline_prunes: bool = True  # functions whose copies of arguments take too much
    same_buffers: bool = True  # whether all replicas are to have the same ones
    recomputation: Recomputation = Recomputation.NONE  # what stages of a pipeline compute again
    loss_scaling: LossScalingRule | None = None  # by which it follows the gradients
    named_buffers: tuple[str, ...] = ()  # that a program says it writes
    streamed: int | None = None  # elements from which on a weight of a phase is in streaming memory; None where all are on tiles

    @classmethod
    def of(cls, options: Options, training: bool) -> ModelSettings:
        """Those of a model's options, whose output mode is chosen."""
        popart = options._Popart.options
        accumulated = options.Training.gradient_accumulation if training else 1
        spread = options.Distributed
        spread.check_model()
        if spread.numProcesses > 1 and options.input_group_size > 1:
            raise MissingFeature(
                "Options.inputReplicaGrouping: pypoplar does not have groups of replicas that are spread over processes yet"
            )
        groups = ReplicaGroups.of_options(options)
        batches = Batches(
            options.device_iterations,
            accumulated,
            options.output_mode,
            options.output_return_period,
            groups,
            spread.numProcesses,
            spread.processId,
        )
        anchors = tuple(
            Anchor(name, tensor, batches.mode, batches.period) if as_outputs else Anchor(name, tensor, mode, period)
            for name, (tensor, as_outputs, mode, period) in options.anchored_tensors.items()
        )
        named = options.model_name if options.exists("model_name") else "training" if training else "inference"
        caches = popart.get("enableEngineCaching") and popart.get("cachePath")
        return cls(
            batches,
            _reduction(options),
            anchors,
            _plans(options),
            dict(popart.get("engineOptions", {})),
            named,
            int(popart.get("syntheticDataMode", 0)),
            bool(popart.get("enableStochasticRounding", False)),
            bool(popart.get("enableFloatingPointChecks", False)),
            Path(popart["cachePath"]) if caches else None,
            options.execution_strategy,
            options.auto_round_num_ipus,
            options.connection_type is not ConnectionType.Never,
            bool(popart.get("enableStableNorm", False)),
            TARGETS[options.ipu_version] if options.exists("ipu_version") else "bow",
            float(popart.get("outlineThreshold", 1.0)) if popart.get("enableOutlining", True) else None,
            bool(popart.get("enableOutliningCopyCostPruning", True)),
            options.broadcast_buffers,
            Recomputation(popart.get("autoRecomputation", 0)),
            _loss_scaling(popart) if training else None,
            tuple(popart.get("updatableNamedBuffers", ())),
            _streamed(options),
        )

    def check_buffers(self, module: torch.nn.Module) -> None:
        """`InvalidOption` if a program says that it writes buffers that a module does not have."""
        known = [name for name, _ in module.named_buffers(remove_duplicate=False)]
        for name in self.named_buffers:
            if name not in known:
                raise InvalidOption(
                    f"Options.updatableNamedBuffers: {type(module).__name__} has no buffer {name!r}{nearest_or_all(name, known)}"
                )

    def check_pipeline(self, stages: int, training: bool) -> None:
        """`InvalidOption` unless a call has as many batches as a pipeline of so many stages takes to fill."""
        if stages == 1 or self.strategy is None or not self.strategy.overlaps:
            return
        if training:
            needed, given, name = 2 * stages - 1, self.batches.accumulated, "Training.gradientAccumulation"
            more = (
                f" Please note that a model with {stages} pipeline stages in PopTorch will have an additional {stages - 1} stages "
                "when training."
            )
        else:
            needed, given, name, more = stages, self.batches.iterations, "deviceIterations", ""
        if given < needed:
            raise InvalidOption(
                f"poptorch.Options().{name} must be greater than or equal to the number of pipeline stages ({needed}) when using "
                f"poptorch.PipelinedExecution.{more} It is {given}; poptorch.ShardedExecution takes any number"
            )

    def check_replicas(self, changed: Collection[str], buffers: Collection[str], ipus: int) -> None:
        """Check that a model of so many IPUs, which changes arguments and buffers of these names, can have its replicas."""
        replicas = self.batches.all_replicas
        if replicas == 1:
            return
        needed = ipus * replicas
        if needed & (needed - 1) and not self.rounds:
            raise InvalidOption(
                f"Options.replicationFactor({replicas}): {replicas} replicas of a model of {counted(ipus, 'IPU')} take {needed} "
                "IPUs; devices have a power of two of them: take as many replicas, or call Options.autoRoundNumIPUs(True)"
            )
        if changed and self.batches.groups.size > 1:
            raise MissingFeature(
                f"the argument {min(changed)} is changed in place, and several replicas are given the same batches of it: "
                "make a new tensor, as in x = x + 1"
            )
        if buffers and self.same_buffers:
            raise InvalidOption(
                "PopTorch does not support broadcasting buffers. If your model is able to tolerate buffers becoming out of sync "
                "between replicas, you can disable buffer broadcasting using poptorch.Options.broadcastBuffers(False). The model "
                f"changes {', '.join(sorted(buffers))}, of which each of the {replicas} replicas would have values of its "
                "own; the module gets those of the first"
            )

    def prologue(self, graph: Graph) -> Sequence:
        """What a program sets before it computes."""
        prog = Sequence()
        if self.exceptions or self.stochastic_rounding:
            checks = self.exceptions
            behaviour = FloatingPointBehaviour(inv=checks, div0=checks, oflo=checks, esr=self.stochastic_rounding, nanoo=checks)
            setFloatingPointBehaviour(graph, prog, behaviour)
        return prog


def _streamed(options: Options) -> int | None:
    """From how many elements on weights are in streaming memory between phases; None where all are on tiles."""
    phased, place = isinstance(options.execution_strategy, PhasedExecution), _weight_place(options)
    if not phased and not place.get("onChip", 1):
        say_once(
            "Options.TensorLocations.setWeightLocation: weights stay in the memory of tiles; they are in streaming memory with "
            "poptorch.SerialPhasedExecution and ParallelPhasedExecution"
        )
    if not phased or place.get("onChip", 0):
        return None
    if options.Distributed.numProcesses > 1:
        raise MissingFeature("phased execution: pypoplar does not have replicas that are spread over processes with it yet")
    return int(place.get("minElementsForOffChip", LEAST_STREAMED))


def _weight_place(options: Options) -> Mapping[str, int]:
    locations = options.TensorLocations
    return dict(locations.location_weight) if locations.exists("location_weight") else {}


def _loss_scaling(popart: Mapping[str, Any]) -> LossScalingRule | None:
    group = "automaticLossScalingSettings."
    if not popart.get(f"{group}enabled", False):
        return None
    names = [one.name for one in fields(LossScalingRule)]
    return LossScalingRule(**{name: popart[group + name] for name in names if group + name in popart})


def _reduction(options: Options) -> GradientReduction:
    training = options.Training
    if training.accumulation_and_replication_reduction_type is not ReductionType.Mean:
        return GradientReduction.SUM
    return MEANS[training.meanAccumulationAndReplicationReductionStrategy]


def _plans(options: Options) -> PlanOptions:
    popart = options._Popart.options
    partials = popart.get("partialsTypeMatMuls")
    products = {} if partials is None else {"partialsType": partials}
    return PlanOptions(
        dict(options.available_memory_proportion),
        dict(popart.get("convolutionOptions", {})),
        {**products, **popart.get("matmulOptions", {})},
        dict(popart.get("lstmOptions", {})),
    )
