"""PyTorch on the simulated IPU, with PopTorch's names: ``import pypoplar.poptorch as poptorch``.

It needs PyTorch, which is an extra, ``pytorch``. A script that says ``import poptorch`` runs as it is under
``python -m pypoplar.poptorch SCRIPT``.
"""

import warnings as _warnings
from typing import TYPE_CHECKING as _TYPE_CHECKING

from pypoplar.arrays.garbage import made_to_stay as _made_to_stay
from pypoplar.extras import install_command as _install_command
from pypoplar.poptorch.importing import importing as _importing

try:
    with _importing("torch", "PyTorch"):
        import torch as _torch
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise  # a part of PyTorch that is missing is told by itself
    raise ModuleNotFoundError(
        f"pypoplar.poptorch needs PyTorch, which is not installed: {_install_command('pytorch')}", name="torch"
    ) from None

OLDEST_TORCH, NEWEST_TORCH = "2.13", "2.13"  # that were tried, and what pyproject.toml says

if tuple(map(int, _torch.__version__.split(".")[:2])) < tuple(map(int, OLDEST_TORCH.split("."))):
    raise ImportError(f"pypoplar.poptorch needs PyTorch {OLDEST_TORCH} or newer, this is {_torch.__version__}", name="torch")
if tuple(map(int, _torch.__version__.split(".")[:2])) > tuple(map(int, NEWEST_TORCH.split("."))):
    _warnings.warn(  # no error: it may do, and how else could one try
        f"the newest PyTorch that pypoplar.poptorch was tried with is {NEWEST_TORCH}, this is {_torch.__version__}: what it uses "
        f"of PyTorch's inside may be gone or mean something else; {_install_command('pytorch')} installs one that was tried",
        RuntimeWarning,
        stacklevel=2,
    )

with _importing("pypoplar.poptorch.executor", "PyTorch's capture and the libraries"), _made_to_stay():
    from pypoplar.poptorch.executor import PoplarExecutor  # and with it nearly all that follows

from pypoplar.errors import PoplarError as Error
from pypoplar.poptorch import enums, optim, options, profiling
from pypoplar.poptorch.argument_parsers import ICustomArgParser, registerCustomArgParser
from pypoplar.poptorch.capture import CaptureError
from pypoplar.poptorch.capture.model_blocks import BeginBlock, Block, BlockFunction, removeBlocks
from pypoplar.poptorch.data import AsynchronousDataAccessor, DataLoader
from pypoplar.poptorch.enums import (
    AutoStage,
    CommGroupType,
    ConnectionType,
    DataLoaderMode,
    HalfFloatCastingBehavior,
    Liveness,
    MatMulSerializationMode,
    MeanReductionStrategy,
    MultiConvPlanType,
    OutputMode,
    OverlapMode,
    ReductionType,
    SharingStrategy,
    SyncPattern,
    VariableRetrievalMode,
)
from pypoplar.poptorch.executor.compile_hooks import registerPostCompileHook, registerPreCompileHook
from pypoplar.poptorch.hardware import RecoverableError, UnrecoverableError, ipuHardwareIsAvailable, ipuHardwareVersion
from pypoplar.poptorch.inner_names import (
    accessAttributes,
    createPoptorchError,
    getIpuTensorId,
    importPoptorchMetadataFromFile,
    module_repr,
    registerGeometricCustomArgParsers,
)
from pypoplar.poptorch.inner_names import (
    print as print,
)
from pypoplar.poptorch.lowering.lowering_table import UnsupportedOperation
from pypoplar.poptorch.models import inferenceModel, load, trainingModel
from pypoplar.poptorch.operators import (
    CPU,
    MultiConv,
    NameScope,
    cond,
    ctc_beam_search_decoder,
    custom_op,
    dynamic_slice,
    dynamic_update,
    for_loop,
    fps,
    identity_loss,
    ipu_print_tensor,
    isRunningOnIpu,
    nearest,
    nop,
    recomputationCheckpoint,
    registerCustomOp,
    serializedMatMul,
    set_available_memory,
    set_overlap_for_input,
    set_overlap_for_output,
)
from pypoplar.poptorch.options import (
    Attribute,
    ConfigFileError,
    Options,
    ParallelPhasedExecution,
    Phase,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
    TensorLocationSettings,
)
from pypoplar.poptorch.user_log import logger, setLogLevel
from pypoplar.spelling import nearest as _nearest

if not _TYPE_CHECKING:  # to type checkers there is no other name

    def __getattr__(name: str) -> str:
        """The version, which is pypoplar's, when it is asked for: a checkout that is not installed has none."""
        if name == "__version__":
            from importlib.metadata import version

            return version("pypoplar")
        raise AttributeError(f"module 'pypoplar.poptorch' has no attribute {name!r}{_nearest(name, __all__)}")


__all__ = [
    "AsynchronousDataAccessor",
    "Attribute",
    "AutoStage",
    "BeginBlock",
    "Block",
    "BlockFunction",
    "CPU",
    "CommGroupType",
    "ConfigFileError",
    "ConnectionType",
    "DataLoader",
    "DataLoaderMode",
    "Error",
    "HalfFloatCastingBehavior",
    "ICustomArgParser",
    "Liveness",
    "MatMulSerializationMode",
    "MeanReductionStrategy",
    "MultiConv",
    "MultiConvPlanType",
    "NameScope",
    "Options",
    "OutputMode",
    "OverlapMode",
    "ParallelPhasedExecution",
    "Phase",
    "PipelinedExecution",
    "PoplarExecutor",
    "RecoverableError",
    "ReductionType",
    "SerialPhasedExecution",
    "ShardedExecution",
    "SharingStrategy",
    "Stage",
    "SyncPattern",
    "TensorLocationSettings",
    "UnrecoverableError",
    "CaptureError",
    "UnsupportedOperation",
    "VariableRetrievalMode",
    "accessAttributes",
    "cond",
    "createPoptorchError",
    "ctc_beam_search_decoder",
    "custom_op",
    "dynamic_slice",
    "dynamic_update",
    "enums",
    "for_loop",
    "fps",
    "getIpuTensorId",
    "identity_loss",
    "importPoptorchMetadataFromFile",
    "inferenceModel",
    "ipuHardwareIsAvailable",
    "ipuHardwareVersion",
    "ipu_print_tensor",
    "isRunningOnIpu",
    "load",
    "logger",
    "module_repr",
    "nearest",
    "nop",
    "optim",
    "options",
    "profiling",
    "recomputationCheckpoint",
    "registerCustomArgParser",
    "registerCustomOp",
    "registerGeometricCustomArgParsers",
    "registerPostCompileHook",
    "registerPreCompileHook",
    "removeBlocks",
    "serializedMatMul",
    "setLogLevel",
    "set_available_memory",
    "set_overlap_for_input",
    "set_overlap_for_output",
    "trainingModel",
]
