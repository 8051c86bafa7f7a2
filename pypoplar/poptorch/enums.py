"""The choices that PopTorch's options and calls offer, by its names and with its numbers."""

from __future__ import annotations

from enum import Enum, IntEnum


class MeanReductionStrategy(IntEnum):
    """When accumulated gradients are divided by their number, where their reduction is `ReductionType.Mean`.

    Attributes
    ----------
    Running:
        The accumulator is the mean of the gradients so far, which is never larger than the largest of them.
    Post:
        The accumulator is their sum, and divided at the end.
    PostAndLoss:
        `Post` where there are no replicas.
    """

    Running = 0
    Post = 1
    PostAndLoss = 2


class DataLoaderMode(IntEnum):
    """Who fetches the samples of a `DataLoader`.

    Attributes
    ----------
    Sync:
        The caller, when it asks for them.
    Async:
        A worker, ahead of the caller: see `AsynchronousDataAccessor`.
    AsyncRebatched:
        As `Async`, and the worker makes the batches, so that those of several loading processes leave no remainders.
    """

    Sync = 0
    Async = 1
    AsyncRebatched = 2


class SharingStrategy(IntEnum):
    """How PopTorch's worker of `DataLoaderMode.Async` gets its data set. Here the worker is a thread, which needs no way.

    Attributes
    ----------
    SharedMemory:
        By memory that processes share.
    FileSystem:
        By files.
    Fork:
        As a copy of the process.
    ForkServer:
        As a copy of a process that was made for that.
    """

    SharedMemory = 0
    FileSystem = 1
    Fork = 2
    ForkServer = 3


class OutputMode(IntEnum):
    """Which of the results of a run's micro-batches a model returns.

    Attributes
    ----------
    Final:
        Those of the last one.
    EveryN:
        Those of every Nth one.
    All:
        Those of all, one after the other along the first dimension.
    Sum:
        The sum of those of all.
    Default:
        `All` for inference, `Final` for training.
    """

    Final = 0
    EveryN = 1
    All = 2
    Sum = 3
    Default = 4


class ConnectionType(IntEnum):
    """When a model takes its IPUs.

    Attributes
    ----------
    Always:
        When it is made.
    OnDemand:
        When it runs for the first time, or is attached.
    Never:
        Not at all: it can be compiled and not run.
    """

    Always = 0
    OnDemand = 1
    Never = 2


class HalfFloatCastingBehavior(IntEnum):
    """What becomes of a half and a float in one operation: a float, as in PyTorch. PopTorch has given up the others.

    Attributes
    ----------
    FloatDowncastToHalf:
        A half, in earlier releases of PopTorch.
    HalfUpcastToFloat:
        A float.
    Default:
        A float.
    """

    FloatDowncastToHalf = 0
    HalfUpcastToFloat = 1
    Default = 2


class ReductionType(IntEnum):
    """What several values, such as the gradients of several batches, become.

    Attributes
    ----------
    Sum:
        Their sum.
    Mean:
        Their mean.
    NoReduction:
        They stay several.
    """

    Sum = 0
    Mean = 1
    NoReduction = 2


class SyncPattern(IntEnum):
    """Which IPUs wait for each other when one of them speaks with the host; accepted, and changes nothing.

    Attributes
    ----------
    Full:
        All.
    SinglePipeline:
        None.
    ReplicaAndLadder:
        Those of a group.
    """

    Full = 0
    SinglePipeline = 1
    ReplicaAndLadder = 2


class MatMulSerializationMode(Enum):
    """The dimension of a product of matrices that `serializedMatMul` works off piece by piece.

    Attributes
    ----------
    InputChannels:
        The rows of the left matrix.
    ReducingDim:
        The dimension that is summed over.
    OutputChannels:
        The columns of the right matrix.
    Disabled:
        None.
    """

    InputChannels = "input_channels"
    ReducingDim = "reducing_dim"
    OutputChannels = "output_channels"
    Disabled = "none"


class Liveness(IntEnum):
    """Where activations are between the phases of phased execution; here they are in the memory of tiles, whatever is asked for.

    Attributes
    ----------
    AlwaysLive:
        In the memory of tiles.
    OffChipAfterFwd:
        Off the chip between the passes forward and backward.
    OffChipAfterFwdNoOverlap:
        The same, with copies that overlap with nothing.
    OffChipAfterEachPhase:
        Off the chip between any two phases.
    """

    AlwaysLive = 0
    OffChipAfterFwd = 1
    OffChipAfterFwdNoOverlap = 2
    OffChipAfterEachPhase = 3


class OverlapMode(Enum):
    """How far ahead a tensor travels between host and IPU while the IPU computes; accepted, and changes nothing.

    Attributes
    ----------
    NoOverlap:
        Not at all.
    OverlapAccumulationLoop:
        Within the batches whose gradients are accumulated.
    OverlapDeviceIterationLoop:
        Within all batches of a call.
    """

    NoOverlap = "no_overlap"
    OverlapAccumulationLoop = "overlap_accumulation_loop"
    OverlapDeviceIterationLoop = "overlap_device_iteration_loop"


class AutoStage(IntEnum):
    """Which stages the blocks of a model are, where an execution strategy does not list them.

    Attributes
    ----------
    SameAsIpu:
        The stage has the number of the block's IPU.
    AutoIncrement:
        Every new block is a new stage.
    """

    SameAsIpu = 0
    AutoIncrement = 1


class MultiConvPlanType(IntEnum):
    """How the convolutions of a `MultiConv` are run; here always one after the other.

    Attributes
    ----------
    Parallel:
        Beside each other.
    Serial:
        One after the other.
    """

    Parallel = 0
    Serial = 1


class CommGroupType(IntEnum):
    """Which replicas share values; pypoplar has no replicas yet.

    Attributes
    ----------
    All:
        All of them.
    Consecutive:
        Those whose numbers follow each other.
    Orthogonal:
        Those whose numbers lie equally far apart.
    NoGrouping:
        None: each has values of its own.
    """

    All = 0
    Consecutive = 1
    Orthogonal = 2
    NoGrouping = 3


class VariableRetrievalMode(IntEnum):
    """Which copies of a value that groups of replicas share are given back.

    Attributes
    ----------
    OnePerGroup:
        That of the first replica of each group.
    AllReplicas:
        Those of all replicas.
    """

    OnePerGroup = 0
    AllReplicas = 2
