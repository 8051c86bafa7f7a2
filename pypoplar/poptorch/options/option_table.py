"""All options of PopTorch, a row for each: what it does in pypoplar, and where its value is read.

The documentation's page is made from it. The keys of ``Options._Popart`` have a table of their own: `popart_table`.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen


class Effect(Enum):
    """What becomes of an option. A value that equals the default is fine in all three."""

    DOES = "does what it says"
    NOTHING = "accepted and told once: changes nothing on a simulated machine"
    REFUSED = "refused with MissingFeature"


@frozen
class OptionRow:
    """One option: the `name` by which it is called on an `Options`, and the `attribute` that has its value, if one does.

    `meaning` is what it does, why it changes nothing, or what is missing.
    """

    name: str
    effect: Effect
    meaning: str
    attribute: str = ""

    @property
    def method(self) -> str:
        """The name without that of its group."""
        return self.name.rpartition(".")[2]

    @property
    def group(self) -> str:
        """``"Training"`` and the like; empty for those of `Options` itself."""
        return self.name.rpartition(".")[0]


DOES, NOTHING, REFUSED = Effect.DOES, Effect.NOTHING, Effect.REFUSED

OPTION_TABLE: tuple[OptionRow, ...] = (
    OptionRow(
        "deviceIterations", DOES, "steps that the device makes before it returns, each with its own batch", "device_iterations"
    ),
    OptionRow("outputMode", DOES, "which results of a run's batches are returned: see OutputMode", "output_mode"),
    OptionRow("randomSeed", DOES, "the seed of PyTorch's generator and of the device's", "random_seed"),
    OptionRow("setExecutionStrategy", DOES, "which blocks form a stage or phase, and whether stages overlap"),
    OptionRow(
        "setAvailableMemoryProportion",
        DOES,
        "the share of an IPU's memory that plans may take, by IPU",
        "available_memory_proportion",
    ),
    OptionRow("anchorTensor", DOES, "an inner tensor to return: PoplarExecutor.getAnchoredTensor", "anchored_tensors"),
    OptionRow("enableExecutableCaching", DOES, "a directory that keeps executables for later processes"),
    OptionRow("enableSyntheticData", DOES, "random data made on the device takes the place of the host's"),
    OptionRow("enableProfiling", DOES, "a profile.pop in a directory"),
    OptionRow("enableStableNorm", DOES, "norms sum the squares of differences from the mean"),
    OptionRow("logCycleCount", DOES, "count the cycles of a run: PoplarExecutor.cycleCount"),
    OptionRow("logDir", NOTHING, "messages go to standard error, and nothing writes files of logs", "log_dir"),
    OptionRow("modelName", DOES, "the directory of a profile in that of all profiles", "model_name"),
    OptionRow(
        "autoRoundNumIPUs",
        DOES,
        "a number of IPUs that is no power of two becomes the next one, instead of an error",
        "auto_round_num_ipus",
    ),
    OptionRow("connectionType", DOES, "when a model takes its IPUs", "connection_type"),
    OptionRow("useOfflineIpuTarget", DOES, "compile for a Mk1 (1) or a Mk2 (2), never run", "ipu_version"),
    OptionRow("useIpuModel", DOES, "every run is on a simulated Bow; False, for hardware, is told so", "use_model"),
    OptionRow("relaxOptimizerAttributesChecks", NOTHING, "no attribute of an optimiser is unknown: its class says which there are"),
    OptionRow("loadFromFile", DOES, "options from a file, a call in each line"),
    OptionRow("useIpuId", NOTHING, "simulated IPUs are all alike", "ipu_id"),
    OptionRow("syncPattern", NOTHING, "IPUs wait for each other where a program's data needs it", "sync_pattern"),
    OptionRow("maxRepeatLogs", NOTHING, "messages are not repeated", "max_repeat_logs"),
    OptionRow("showCompilationProgressBar", NOTHING, "bars are those of the engine's option pypoplar.progress"),
    OptionRow("disableModuleNamescope", NOTHING, "names in a profile have the path of their module"),
    OptionRow("sourceLocationExcludes", NOTHING, "lines in a report are those of files that are neither PyTorch's nor pypoplar's"),
    OptionRow(
        "appendToLocationExcludes", NOTHING, "lines in a report are those of files that are neither PyTorch's nor pypoplar's"
    ),
    OptionRow("updatableNamedBuffers", NOTHING, "all buffers can be written; names that the model does not have are refused"),
    OptionRow("broadcastBuffers", DOES, "whether replicas have to have the same buffers", "broadcast_buffers"),
    OptionRow("replicationFactor", DOES, "replicas of a model, each with batches of its own", "replication_factor"),
    OptionRow("inputReplicaGrouping", DOES, "which replicas are given the same batches", "input_group_size"),
    OptionRow(
        "Training.gradientAccumulation", DOES, "micro-batches whose gradients are added before an update", "gradient_accumulation"
    ),
    OptionRow(
        "Training.accumulationAndReplicationReductionType",
        DOES,
        "whether their mean or their sum is the update's gradient",
        "accumulation_and_replication_reduction_type",
    ),
    OptionRow(
        "Training.setMeanAccumulationAndReplicationReductionStrategy",
        DOES,
        "when the mean is divided by their number",
        "meanAccumulationAndReplicationReductionStrategy",
    ),
    OptionRow("Training.setConvolutionDithering", DOES, "convolutions begin on different tiles"),
    OptionRow(
        "Training.setAutomaticLossScaling",
        DOES,
        "the loss scaling doubles behind each step, and halves where gradients in halves are too large",
    ),
    OptionRow("Precision.setPartialsType", DOES, "the type of partial sums of products of matrices and convolutions"),
    OptionRow("Precision.enableStochasticRounding", DOES, "halves are rounded up or down at random"),
    OptionRow(
        "Precision.enableFloatingPointExceptions", DOES, "an invalid operation, a division by zero or an overflow is an error"
    ),
    OptionRow("Precision.halfFloatCasting", NOTHING, "an operation on a half and a float is one on floats, as in PyTorch"),
    OptionRow(
        "Precision.runningStatisticsAlwaysFloat", NOTHING, "running statistics have the type of the module's buffers, as in PyTorch"
    ),
    OptionRow("TensorLocations.numIOTiles", NOTHING, "all tiles compute", "numIOTiles"),
    OptionRow("TensorLocations.setActivationLocation", NOTHING, "all tensors are in tiles' memory", "location_activation"),
    OptionRow(
        "TensorLocations.setWeightLocation",
        DOES,
        "with phased execution, which weights are in streaming memory between phases; else all are in tiles' memory",
        "location_weight",
    ),
    OptionRow("TensorLocations.setOptimizerLocation", NOTHING, "all tensors are in tiles' memory", "location_optimizer"),
    OptionRow("TensorLocations.setAccumulatorLocation", NOTHING, "all tensors are in tiles' memory", "location_accumulator"),
    OptionRow(
        "Distributed.configureProcessId",
        DOES,
        "which share of the data a data loader gives; models are spread by poprun alone",
        "num_distributed_processes",
    ),
    OptionRow("Distributed.setEnvVarNames", REFUSED, "models spread over processes"),
    OptionRow("Distributed.disable", DOES, "this process has the whole model, whatever the environment says"),
    OptionRow("Jit.traceModel", NOTHING, "models are exported, never traced; True is an error, as in PopTorch"),
    OptionRow("_Popart.set", DOES, "an option of PopART, by its name: some have a meaning here"),
    OptionRow("_Popart.setEngineOptions", DOES, "options of the Engine, by Poplar's names"),
    OptionRow("_Popart.setPatterns", NOTHING, "patterns are PopART's"),
)
OPTION_ROWS = {row.name: row for row in OPTION_TABLE}
