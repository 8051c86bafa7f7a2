"""The options of PopART that ``Options._Popart.set`` takes: their types, and what those with a meaning here do."""

from __future__ import annotations

from typing import Any

from pypoplar.errors import InvalidOption, MissingFeature, PoplarTypeError
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.spelling import nearest

MEANINGS = {
    "autoRecomputation": "what a pipeline's stages but the last compute again: 3 and 4 all, 2 norms, 1 between cheap places; 0",
    "automaticLossScalingSettings.binEdgeLocation": "from which share of the largest half on a gradient is too large; 0.125",
    "automaticLossScalingSettings.enabled": "Options.Training.setAutomaticLossScaling",
    "automaticLossScalingSettings.thresholdUpperCountProportion": "which share of gradients may be: the loss scaling grows; 1e-7",
    "automaticLossScalingSettings.updatePeriod": "behind how many steps it changes; 1",
    "cachePath": "the directory of Options.enableExecutableCaching",
    "convolutionOptions": "options of poplin's convolutions",
    "enableEngineCaching": "whether Options.enableExecutableCaching is on",
    "enableFloatingPointChecks": "Options.Precision.enableFloatingPointExceptions",
    "enableStableNorm": "Options.enableStableNorm",
    "enableStochasticRounding": "Options.Precision.enableStochasticRounding",
    "enableOutlining": "whether operations that repeat become a function of the graph; on",
    "enableOutliningCopyCostPruning": "whether not, where copies of its arguments would take more than 3 % of it; on",
    "engineOptions": "options of the Engine",
    "instrumentWithHardwareCycleCounter": "Options.logCycleCount",
    "lstmOptions": "options of popnn's LSTM layers",
    "matmulOptions": "options of poplin's products of matrices",
    "outlineThreshold": "what such a run of operations is worth at least: 1 for a large one, 0.01 for one of elements; 1.0",
    "partialsTypeMatMuls": "the type of partial sums of products of matrices: 'float' or 'half'",
    "syntheticDataMode": "Options.enableSyntheticData: 0 off, 1 zeros, 2 random",
}
"""Those that do what they say; others change nothing."""

REFUSED = {
    "enableDistributedReplicatedGraphs": (False, "replicas that are spread over processes"),
    "enableReplicatedGraphs": (False, "replicas by this key, but by Options.replicationFactor"),
    "executionPhaseSettings.phases": (0, "phased execution"),
    "globalReplicaOffset": (0, "replicas that are spread over processes"),
    "globalReplicationFactor": (1, "replicas that are spread over processes"),
}
"""What is missing, beside the value that is fine."""

FLAGS = """
    aliasZeroCopy automaticLossScalingSettings.enabled batchSerializationSettings.concatOnExecutionPhaseChange
    batchSerializationSettings.concatOnPipelineStageChange batchSerializationSettings.concatOnVirtualGraphChange compileEngine
    constantWeights decomposeGradSum delayVarUpdates disableGradAccumulationTensorStreams disableOptimizerStateTensorStreams
    dotOpNames enableDistributedReplicatedGraphs enableEngineCaching enableExplicitIR enableExplicitMainLoops
    enableFloatingPointChecks enableFullyConnectedPass enableGradientAccumulation enableInplaceAmbiguityChecking
    enableLoadAndOffloadRNGState enableMergeExchange enableNonStableSoftmax enableOutlining enableOutliningCopyCostPruning
    enablePipelining enablePrefetchDatastreams enableReplicatedGraphs enableSerializedMatmuls enableStableNorm
    enableStochasticRounding enableSupportedDataTypeCasting ensureFp32LossScaleTensor explicitRecomputation
    exportPoplarComputationGraph exportPoplarVertexGraph groupHostSync groupNormStridedChannelGrouping
    instrumentWithHardwareCycleCounter opxAliasChecking opxModifyChecking rearrangeAnchorsOnHost rearrangeStreamsOnHost
    replicatedCollectivesSettings.mergeAllReduceCollectives replicatedCollectivesSettings.prepareScheduleForMergingCollectives
    scheduleNonWeightUpdateGradientConsumersEarly separateCallOpPdfs strictOpVersions useHostCopyOps
"""
NUMBERS = """
    accumulateOuterFragmentSettings.schedule accumulationAndReplicationReductionType accumulationFactor autoRecomputation
    autodiffSettings.stitchStrategy automaticLossScalingSettings.gradientTensorTrackingMethod
    automaticLossScalingSettings.updatePeriod batchSerializationSettings.batchSchedule batchSerializationSettings.factor
    batchSerializationSettings.method batchSerializationSettings.transformContext compilationProgressTotal defaultBufferingDepth
    defaultPrefetchBufferingDepth executionPhaseSettings.phases executionPhaseSettings.stages finalDotOp firstDotOp
    globalReplicaOffset globalReplicationFactor looseThresholdAtPeak meanAccumulationAndReplicationReductionStrategy
    mergeVarUpdate mergeVarUpdateMemThreshold numIOTiles patterns_level subgraphCopyingStrategy swapLimitScheduler
    syntheticDataMode transitiveClosureOptimizationThreshold virtualGraphMode
"""
FLOATS = """
    automaticLossScalingSettings.binEdgeLocation automaticLossScalingSettings.thresholdUpperCountProportion
    outlineSequenceBreakCost outlineThreshold timeLimitScheduler
"""
TEXTS = """
    cachePath customCodeletCompileFlags kahnTieBreaker logDir partialsTypeMatMuls saveInitializersToFile
    serializedPoprithmsShiftGraphsDir
"""
CONTAINERS = """
    accumulateOuterFragmentSettings.excludedVirtualGraphs convolutionOptions customCodelets dotChecks engineOptions gclOptions
    hardwareInstrumentations lstmOptions matmulOptions patterns reportOptions updatableNamedBuffers
"""


def _container(option: str, value: object) -> object:
    if not isinstance(value, dict | list | tuple | set | frozenset):
        raise PoplarTypeError(f"{option} takes a dict, a list or a set, got {value!r}")
    return value


CHECKS: dict[str, Any] = {
    **dict.fromkeys(FLAGS.split(), checks.flag),
    **dict.fromkeys(NUMBERS.split(), checks.whole_number),
    **dict.fromkeys(FLOATS.split(), checks.finite),
    **dict.fromkeys(TEXTS.split(), checks.text),
    **dict.fromkeys(CONTAINERS.split(), _container),
}
"""How the value of each option of PopART is checked."""


def check_key(key: object, value: object) -> Any:
    """The value of the option `key`; an unknown key, a wrong type or what pypoplar does not have is an error."""
    if not isinstance(key, str) or key not in CHECKS:
        raise InvalidOption(f"Options._Popart.set: PopART has no option {key!r}{nearest(key, CHECKS)}")
    option = f"Options._Popart.set({key!r})"
    if key in FLAGS.split() and type(value) is int and value in (0, 1):
        value = bool(value)  # as programs write them
    value = CHECKS[key](option, value)
    if key == "outlineThreshold" and isinstance(value, float) and value < 0:
        raise InvalidOption(f"{option}: what operations are worth at least is 0 or more, got {value!r}")
    if key in ("automaticLossScalingSettings.binEdgeLocation", "automaticLossScalingSettings.thresholdUpperCountProportion"):
        checks.fraction(option, value)
    if key == "automaticLossScalingSettings.updatePeriod":
        checks.whole_number(option, value, 1)
    if key == "autoRecomputation":
        checks.whole_number(option, value, 0, 4)
    if key == "syntheticDataMode":
        checks.whole_number(option, value, 0, 2)
    if key == "partialsTypeMatMuls" and value not in ("float", "half"):
        raise InvalidOption(f"{option} takes 'float' or 'half', got {value!r}")
    fine, missing = REFUSED.get(key, (value, ""))
    if value != fine:
        raise MissingFeature(f"{option}: pypoplar does not have {missing} yet")
    return value
