"""PopART's enumerations, with its numbers: programs for PopTorch pass them on as ``int(popart.X.Y)``."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


def _numbered(name: str, members: str, doc: str) -> Any:
    enumeration: Any = IntEnum  # whose name is an argument here
    made = enumeration(name, {member: number for number, member in enumerate(members.split())}, module=__name__)
    made.__doc__ = f"{doc} In the order of their numbers: {', '.join(f'``{one}``' for one in members.split())}."
    return made


AccumulateOuterFragmentSchedule = _numbered(
    "AccumulateOuterFragmentSchedule",
    "Scheduler Serial OverlapCycleOptimized OverlapMemoryOptimized",
    "In which order the update of weights runs on several IPUs.",
)
AnchorReturnTypeId = _numbered("AnchorReturnTypeId", "Final EveryN All Sum", "Of which batches an anchor comes back.")
AutodiffStitchStrategy = _numbered(
    "AutodiffStitchStrategy",
    "RecomputeMinimal RecomputeAllNonInputs AddFwdOutputs SafeAddFwdOutputs",
    "Where the backward pass has what it needs of the forward pass.",
)
BatchSerializationBatchSchedule = _numbered(
    "BatchSerializationBatchSchedule", "Scheduler Isomorphic OverlapOnIo OverlapOnCompute", "The order of parts of a batch."
)
BatchSerializationMethod = _numbered("BatchSerializationMethod", "UnrollDynamic UnrollStatic Loop", "How a batch is cut.")
BatchSerializationTransformContext = _numbered("BatchSerializationTransformContext", "Fwd Bwd", "When a batch is cut.")
ExecutionPhaseIOSchedule = _numbered("ExecutionPhaseIOSchedule", "Preload OnDemand", "When tensors are loaded.")
ExecutionPhaseSchedule = _numbered("ExecutionPhaseSchedule", "Interleaving Batch BatchClusteredIO", "The order of updates.")
GradientTensorTrackingMethod = _numbered(
    "GradientTensorTrackingMethod",
    "AllNonViewChangingGradientTensors ConvAndMatmulGradients GradientsOfUserSpecifiedTensors",
    "Which gradients a loss scaling follows.",
)
Instrumentation = _numbered("Instrumentation", "Outer Inner", "Which loop is measured.")
MergeVarUpdateType = _numbered("MergeVarUpdateType", "None_ All AutoLoose AutoTight", "Which updates are merged.")
MeanReductionStrategy = _numbered("MeanReductionStrategy", "Running Post PostAndLoss", "How means over batches are formed.")
RecomputationType = _numbered(
    "RecomputationType", "None_ Standard NormOnly Pipeline RecomputeAll", "What the backward pass computes again."
)
ReductionType = _numbered("ReductionType", "Sum Mean NoReduction", "What becomes of the values of a loss.")
ScatterReduction = _numbered("ScatterReduction", "Sum Max Min Mul None_", "What becomes of elements with the same index.")
SubgraphCopyingStrategy = _numbered("SubgraphCopyingStrategy", "OnEnterAndExit JustInTime", "When arguments are copied.")
SyntheticDataMode = _numbered("SyntheticDataMode", "Off Zeros RandomNormal", "Where inputs come from.")
SyncPattern = _numbered("SyncPattern", "Full SinglePipeline ReplicaAndLadder", "Which IPUs wait for each other.")
TensorStorage = _numbered("TensorStorage", "OffChip OnChip", "Where a tensor is.")
VirtualGraphMode = _numbered("VirtualGraphMode", "Off Manual Auto ExecutionPhases", "Who says on which IPU operations are.")
WeightDecayMode = _numbered("WeightDecayMode", "Decay L2Regularization", "What weight decay is added to.")
AdamMode = _numbered("AdamMode", "Adam AdamNoBias AdaMax Lamb LambNoBias", "Kinds of Adam.")
AdaptiveMode = _numbered("AdaptiveMode", "AdaGrad RMSProp CenteredRMSProp AdaDelta", "Kinds of adaptive optimisers.")
SGDAccumulatorAndMomentum = _numbered("SGDAccumulatorAndMomentum", "Combined Separate", "Where SGD keeps its momentum.")
RecomputeType = _numbered("RecomputeType", "Undefined Checkpoint Recompute Recomputed", "Whether an operation is computed again.")
PatternsLevel = _numbered("PatternsLevel", "NoPatterns Minimal Default All", "How many patterns of the compiler are on.")
DeviceConnectionType = _numbered("DeviceConnectionType", "Always OnDemand Never", "When a device is taken.")

NAMES = sorted(
    name for name, value in vars().items() if isinstance(value, type) and issubclass(value, IntEnum) and value is not IntEnum
)
