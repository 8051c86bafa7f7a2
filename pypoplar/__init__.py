"""Poplar-like graph programs, with codelets in Python, on a simulated Graphcore IPU.

The names are Poplar's. Programs are in `pypoplar.program`, device intrinsics in `pypoplar.ipu`, the libraries in
`pypoplar.poputil`, `pypoplar.popops`, `pypoplar.poplin` and `pypoplar.popnn`, help for unit tests in `pypoplar.testing`.
"""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from types import ModuleType as _ModuleType

from pypoplar import program
from pypoplar.arrays.intervals import Interval, VariableInterval
from pypoplar.codelet.language.fields import InOut, Input, MultiVertex, Output, SupervisorVertex, Vector, VectorList, Vertex
from pypoplar.device import Device, DeviceManager, IPUModel
from pypoplar.engine.engine import Engine, compileGraph
from pypoplar.engine.streams import StreamCallback
from pypoplar.errors import (
    ApplicationRuntimeError,
    AtomicStoreError,
    CodeletArithmeticError,
    CodeletError,
    CodeletIndexError,
    CodeletRuntimeError,
    ControlProgramError,
    CycleLimitError,
    FileLoadError,
    GraphConnectionError,
    GraphCycleError,
    GraphMemoryAllocationError,
    InvalidOption,
    InvalidTileMapping,
    MissingFeature,
    PoplarError,
    PoplarIndexError,
    PoplarRuntimeError,
    PoplarTypeError,
    StreamConnectionError,
    StreamMemoryAllocationError,
    TensorIOStateError,
    TensorShapeError,
    TensorWriteError,
    TypeNotSupportedError,
    UninitialisedReadError,
    UnknownField,
    UnknownHandle,
    UnknownVertexType,
)
from pypoplar.executable.executable import Executable
from pypoplar.graph.cloning import TensorCloneMethod
from pypoplar.graph.estimators import VertexIntrospector, VertexPerfEstimate
from pypoplar.graph.graph import Graph, VariableMappingMethod
from pypoplar.graph.host_links import DataStream, Function, HostFunction, RemoteBuffer, ReplicatedStreamMode
from pypoplar.graph.tensor import Tensor, UpsampleMethod
from pypoplar.graph.vertices import ComputeSet, FieldRef, VertexRange, VertexRef
from pypoplar.graph.views import append, concat, stack
from pypoplar.program import (
    FloatingPointBehaviour,
    SyncType,
    cycleCount,
    cycleStamp,
    setFloatingPointBehaviour,
    setSeed,
    setStochasticRounding,
)
from pypoplar.target import GlobalExchangeConstraint, GlobalExchangeFlow, RelativeSyncDelayType, Target, TargetType
from pypoplar.types import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LONG,
    LONGLONG,
    QUARTER,
    SHORT,
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONG,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
)

__version__ = _version("pypoplar")
_LIBRARIES = ("ipu", "poplin", "popnn", "popops", "poputil", "testing")


def __getattr__(name: str) -> _ModuleType:
    """The libraries are there as attributes, imported when they are first used."""
    if name in _LIBRARIES:
        return _import_module(f"pypoplar.{name}")
    raise AttributeError(f"module 'pypoplar' has no attribute {name!r}")


__all__ = [
    "ApplicationRuntimeError",
    "AtomicStoreError",
    "BOOL",
    "CHAR",
    "CodeletArithmeticError",
    "CodeletError",
    "CodeletIndexError",
    "CodeletRuntimeError",
    "ComputeSet",
    "ControlProgramError",
    "CycleLimitError",
    "DOUBLE",
    "DataStream",
    "Device",
    "DeviceManager",
    "Engine",
    "Executable",
    "FLOAT",
    "FieldRef",
    "FileLoadError",
    "FloatingPointBehaviour",
    "Function",
    "GlobalExchangeConstraint",
    "GlobalExchangeFlow",
    "Graph",
    "GraphConnectionError",
    "GraphCycleError",
    "GraphMemoryAllocationError",
    "HALF",
    "HostFunction",
    "INT",
    "IPUModel",
    "InOut",
    "Input",
    "Interval",
    "InvalidOption",
    "InvalidTileMapping",
    "LONG",
    "LONGLONG",
    "MissingFeature",
    "MultiVertex",
    "Output",
    "PoplarError",
    "PoplarIndexError",
    "PoplarRuntimeError",
    "PoplarTypeError",
    "QUARTER",
    "RelativeSyncDelayType",
    "RemoteBuffer",
    "ReplicatedStreamMode",
    "SHORT",
    "SIGNED_CHAR",
    "StreamCallback",
    "StreamConnectionError",
    "StreamMemoryAllocationError",
    "SupervisorVertex",
    "SyncType",
    "Target",
    "TargetType",
    "Tensor",
    "TensorCloneMethod",
    "TensorIOStateError",
    "TensorShapeError",
    "TensorWriteError",
    "TypeNotSupportedError",
    "UNSIGNED_CHAR",
    "UNSIGNED_INT",
    "UNSIGNED_LONG",
    "UNSIGNED_LONGLONG",
    "UNSIGNED_SHORT",
    "UninitialisedReadError",
    "UnknownField",
    "UnknownHandle",
    "UnknownVertexType",
    "UpsampleMethod",
    "VariableInterval",
    "VariableMappingMethod",
    "Vector",
    "VectorList",
    "Vertex",
    "VertexIntrospector",
    "VertexPerfEstimate",
    "VertexRange",
    "VertexRef",
    "append",
    "compileGraph",
    "concat",
    "cycleCount",
    "cycleStamp",
    "program",
    "setFloatingPointBehaviour",
    "setSeed",
    "setStochasticRounding",
    "stack",
]
