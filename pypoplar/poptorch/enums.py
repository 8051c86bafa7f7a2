"""The choices that PopTorch's options and calls offer, by its names and with its numbers."""

from __future__ import annotations

from enum import Enum, IntEnum


class MeanReductionStrategy(IntEnum):
    """When accumulated gradients are divided by their number, where their reduction is `ReductionType.Mean`."""

    Running = 0
    """The accumulator is the mean of the gradients so far, which is never larger than the largest of them."""
    Post = 1
    """The accumulator is their sum, and divided at the end."""
    PostAndLoss = 2
    """`Post` where there are no replicas."""


class DataLoaderMode(IntEnum):
    """Who fetches the samples of a `DataLoader`."""

    Sync = 0
    """The caller, when it asks for them."""
    Async = 1
    """A worker, ahead of the caller: see `AsynchronousDataAccessor`."""
    AsyncRebatched = 2
    """As `Async`, and the worker makes the batches, so that those of several loading processes leave no remainders."""


class SharingStrategy(IntEnum):
    """How PopTorch's worker of `DataLoaderMode.Async` gets its data set. Here the worker is a thread, which needs no way."""

    SharedMemory = 0
    FileSystem = 1
    Fork = 2
    ForkServer = 3


class OutputMode(IntEnum):
    """Which of the results of a run's micro-batches a model returns."""

    Final = 0
    """Those of the last one."""
    EveryN = 1
    """Those of every Nth one."""
    All = 2
    """Those of all, one after the other along the first dimension."""
    Sum = 3
    """The sum of those of all."""
    Default = 4
    """`All` for inference, `Final` for training."""


class ConnectionType(IntEnum):
    """When a model takes its IPUs."""

    Always = 0
    """When it is made."""
    OnDemand = 1
    """When it runs for the first time, or is attached."""
    Never = 2
    """Not at all: it can be compiled and not run."""


class HalfFloatCastingBehavior(IntEnum):
    """What becomes of a half and a float in one operation: `HalfUpcastToFloat`, as in PyTorch. PopTorch has given up the others."""

    FloatDowncastToHalf = 0
    HalfUpcastToFloat = 1
    Default = 2


class ReductionType(IntEnum):
    """What several values become."""

    Sum = 0
    Mean = 1
    NoReduction = 2


class SyncPattern(IntEnum):
    """Which IPUs wait for each other when one of them speaks with the host."""

    Full = 0
    """All."""
    SinglePipeline = 1
    """None."""
    ReplicaAndLadder = 2
    """Those of a group."""


class MatMulSerializationMode(Enum):
    """The dimension of a product of matrices that is worked off piece by piece."""

    InputChannels = "input_channels"
    """The rows of the left matrix."""
    ReducingDim = "reducing_dim"
    """The dimension that is summed over."""
    OutputChannels = "output_channels"
    """The columns of the right matrix."""
    Disabled = "none"
    """None."""


class Liveness(IntEnum):
    """Where tensors are between the phases of phased execution, which pypoplar does not have."""

    AlwaysLive = 0
    OffChipAfterFwd = 1
    OffChipAfterFwdNoOverlap = 2
    OffChipAfterEachPhase = 3


class OverlapMode(Enum):
    """How far ahead a tensor travels between host and IPU while the IPU computes."""

    NoOverlap = "no_overlap"
    OverlapAccumulationLoop = "overlap_accumulation_loop"
    OverlapDeviceIterationLoop = "overlap_device_iteration_loop"


class AutoStage(IntEnum):
    """Which stages the blocks of a model are, where an execution strategy does not list them."""

    SameAsIpu = 0
    """The stage has the number of the block's IPU."""
    AutoIncrement = 1
    """Every new block is a new stage."""


class MultiConvPlanType(IntEnum):
    """How the convolutions of a `MultiConv` are run."""

    Parallel = 0
    """Beside each other."""
    Serial = 1
    """One after the other."""


class CommGroupType(IntEnum):
    """Which replicas share values; pypoplar has no replicas yet."""

    All = 0
    Consecutive = 1
    Orthogonal = 2
    NoGrouping = 3


class VariableRetrievalMode(IntEnum):
    """Which copies of a value that groups of replicas share are given back."""

    OnePerGroup = 0
    AllReplicas = 2
