"""PopART on the simulated IPU: builders and sessions of ONNX models, with PopART's names.

Enumerations, types and devices need nothing else; `Builder` and sessions need the packages onnx and PyTorch, which the extra
``onnx`` has.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from pypoplar.extras import install_command as _install_command
from pypoplar.popart.popart_devices import DeviceInfo, DeviceManager
from pypoplar.popart.popart_enums import (
    AccumulateOuterFragmentSchedule,
    AdamMode,
    AdaptiveMode,
    AnchorReturnTypeId,
    AutodiffStitchStrategy,
    BatchSerializationBatchSchedule,
    BatchSerializationMethod,
    BatchSerializationTransformContext,
    DeviceConnectionType,
    ExecutionPhaseIOSchedule,
    ExecutionPhaseSchedule,
    GradientTensorTrackingMethod,
    Instrumentation,
    MeanReductionStrategy,
    MergeVarUpdateType,
    PatternsLevel,
    RecomputationType,
    RecomputeType,
    ReductionType,
    ScatterReduction,
    SGDAccumulatorAndMomentum,
    SubgraphCopyingStrategy,
    SyncPattern,
    SyntheticDataMode,
    TensorStorage,
    VirtualGraphMode,
    WeightDecayMode,
)
from pypoplar.popart.popart_types import (
    AnchorReturnType,
    DataFlow,
    InputSettings,
    InputShapeInfo,
    PyStepIO,
    PyStepIOCallback,
    PyWeightsIO,
    TensorInfo,
    popart_exception,
)
from pypoplar.popart.session_options import Patterns, SessionOptions
from pypoplar.spelling import nearest as _nearest

_WITH_ONNX = {
    "Adam": "popart_optimizers",
    "Adaptive": "popart_optimizers",
    "Builder": "graph_builder",
    "ConstSGD": "popart_optimizers",
    "InferenceSession": "popart_sessions",
    "OutOfMemoryException": "popart_sessions",
    "SGD": "popart_optimizers",
    "TrainingSession": "popart_sessions",
}


def versionString() -> str:
    """The version of PopART whose names these are, with pypoplar's own behind it."""
    from importlib.metadata import version

    return f"3.4.0+pypoplar.{version('pypoplar')}"


def reservedGradientPrefix() -> str:
    """What stands before a tensor's name in that of its gradient."""
    return "Gradient___"


def getLogger(name: str = "popart") -> object:
    """A logger of Python's, which has a program's own messages.

    Parameters
    ----------
    name:
        Its name.

    Returns
    -------
    logging.Logger
        The logger.
    """
    import logging

    return logging.getLogger(name)


if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """What needs the packages onnx and PyTorch, loaded when it is asked for."""
        if name not in _WITH_ONNX:
            raise AttributeError(f"module 'popart' has no attribute {name!r}{_nearest(name, __all__)}")
        try:
            return getattr(_import_module(f"pypoplar.popart.{_WITH_ONNX[name]}"), name)
        except ModuleNotFoundError as missing:
            if missing.name not in ("onnx", "torch"):
                raise
            raise ModuleNotFoundError(
                f"popart.{name} needs the packages onnx and PyTorch; {missing.name} is not installed: {_install_command('onnx')}",
                name=missing.name,
            ) from None


__all__ = [
    "AccumulateOuterFragmentSchedule",
    "Adam",
    "AdamMode",
    "Adaptive",
    "AdaptiveMode",
    "AnchorReturnType",
    "AnchorReturnTypeId",
    "AutodiffStitchStrategy",
    "BatchSerializationBatchSchedule",
    "BatchSerializationMethod",
    "BatchSerializationTransformContext",
    "Builder",
    "ConstSGD",
    "DataFlow",
    "DeviceConnectionType",
    "DeviceInfo",
    "DeviceManager",
    "ExecutionPhaseIOSchedule",
    "ExecutionPhaseSchedule",
    "GradientTensorTrackingMethod",
    "InferenceSession",
    "InputSettings",
    "InputShapeInfo",
    "Instrumentation",
    "MeanReductionStrategy",
    "MergeVarUpdateType",
    "OutOfMemoryException",
    "Patterns",
    "PatternsLevel",
    "PyStepIO",
    "PyStepIOCallback",
    "PyWeightsIO",
    "RecomputationType",
    "RecomputeType",
    "ReductionType",
    "SGD",
    "SGDAccumulatorAndMomentum",
    "ScatterReduction",
    "SessionOptions",
    "SubgraphCopyingStrategy",
    "SyncPattern",
    "SyntheticDataMode",
    "TensorInfo",
    "TensorStorage",
    "TrainingSession",
    "VirtualGraphMode",
    "WeightDecayMode",
    "getLogger",
    "popart_exception",
    "reservedGradientPrefix",
    "versionString",
]
