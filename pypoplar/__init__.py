"""Poplar-like graph programs, with codelets in Python, on a simulated Graphcore IPU.

The names are Poplar's. Programs are in `pypoplar.program`, device intrinsics in `pypoplar.ipu`, the libraries in
`pypoplar.poputil`, `pypoplar.popops`, `pypoplar.poprand`, `pypoplar.poplin` and `pypoplar.popnn`, help for unit tests in
`pypoplar.testing`.
"""

import os as _os
from typing import TYPE_CHECKING

from pypoplar.errors import (
    ApplicationRuntimeError,
    AtomicStoreError,
    CodeletArithmeticError,
    CodeletCompileError,
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
    MemoryElemConstraintsError,
    MissingFeature,
    MissingMember,
    PoplarAttributeError,
    PoplarError,
    PoplarIndexError,
    PoplarMemoryError,
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

if TYPE_CHECKING:
    from pypoplar import gcl, ipu, poplin, popnn, popops, poprand, poputil, program, testing  # noqa: F401
    from pypoplar.arrays.intervals import Interval, VariableInterval
    from pypoplar.codelet.language.cpp_source import CodeletFileType
    from pypoplar.codelet.language.fields import (
        Aligned,
        InOut,
        Input,
        MultiVertex,
        Output,
        SupervisorVertex,
        Vector,
        VectorList,
        Vertex,
        default,
    )
    from pypoplar.codelet.language.records import Array, Record
    from pypoplar.codelet.listing import listing
    from pypoplar.device import Device, DeviceManager, IPUModel
    from pypoplar.engine.engine import Engine, compileGraph
    from pypoplar.engine.streams import StreamCallback
    from pypoplar.executable.executable import Executable
    from pypoplar.graph.cloning import TensorCloneMethod
    from pypoplar.graph.graph import Graph, VariableMappingMethod
    from pypoplar.graph.host_links import DataStream, Function, HostFunction, RemoteBuffer, ReplicatedStreamMode
    from pypoplar.graph.location import location
    from pypoplar.graph.tensor import Tensor, UpsampleMethod
    from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
    from pypoplar.graph.vertices import ComputeSet, FieldRef, VertexRange, VertexRef
    from pypoplar.graph.views import append, concat, stack
    from pypoplar.prediction.predicting import predict
    from pypoplar.prediction.prediction import Prediction
    from pypoplar.prediction.sweeps import SweepTable, sweep
    from pypoplar.program import (
        FloatingPointBehaviour,
        SyncType,
        cycleCount,
        cycleStamp,
        setFloatingPointBehaviour,
        setSeed,
        setStochasticRounding,
    )
    from pypoplar.program.assumptions import assume, assume_count, assume_share
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

_MODULES = ("gcl", "ipu", "poplin", "popnn", "popops", "poprand", "poputil", "program", "pva", "testing")
_HOMES = {
    "pypoplar.arrays.intervals": "Interval VariableInterval",
    "pypoplar.codelet.language.cpp_source": "CodeletFileType",
    "pypoplar.codelet.language.fields": "Aligned InOut Input MultiVertex Output SupervisorVertex Vector VectorList Vertex default",
    "pypoplar.codelet.language.records": "Array Record",
    "pypoplar.codelet.listing": "listing",
    "pypoplar.device": "Device DeviceManager IPUModel",
    "pypoplar.engine.engine": "Engine compileGraph",
    "pypoplar.engine.streams": "StreamCallback",
    "pypoplar.executable.executable": "Executable",
    "pypoplar.graph.cloning": "TensorCloneMethod",
    "pypoplar.graph.vertex_introspector": "VertexIntrospector VertexPerfEstimate",
    "pypoplar.graph.graph": "Graph VariableMappingMethod",
    "pypoplar.graph.host_links": "DataStream Function HostFunction RemoteBuffer ReplicatedStreamMode",
    "pypoplar.graph.location": "location",
    "pypoplar.graph.tensor": "Tensor UpsampleMethod",
    "pypoplar.graph.vertices": "ComputeSet FieldRef VertexRange VertexRef",
    "pypoplar.graph.views": "append concat stack",
    "pypoplar.prediction.predicting": "predict",
    "pypoplar.prediction.prediction": "Prediction",
    "pypoplar.prediction.sweeps": "SweepTable sweep",
    "pypoplar.program": (
        "FloatingPointBehaviour SyncType cycleCount cycleStamp setFloatingPointBehaviour setSeed setStochasticRounding"
    ),
    "pypoplar.program.assumptions": "assume assume_count assume_share",
    "pypoplar.target": "GlobalExchangeConstraint GlobalExchangeFlow RelativeSyncDelayType Target TargetType",
    "pypoplar.types": (
        "BOOL CHAR DOUBLE FLOAT HALF INT LONG LONGLONG "
        "QUARTER SHORT SIGNED_CHAR UNSIGNED_CHAR UNSIGNED_INT UNSIGNED_LONG UNSIGNED_LONGLONG UNSIGNED_SHORT"
    ),
}
"""Where the other public names are, module by module: as type checkers see them above."""


if not TYPE_CHECKING:  # to type checkers there is no other name

    def __getattr__(name: str) -> object:
        """A public name or module, imported when it is first used: what a program does not use costs it nothing."""
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"pypoplar.{name}")
        if name == "__version__":
            from importlib.metadata import version

            return version("pypoplar")
        home = next((module for module, names in _HOMES.items() if name in names.split()), None)
        if home is None:
            raise AttributeError(f"module 'pypoplar' has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(home), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *__all__, "__version__"})


__all__ = [
    "Aligned",
    "ApplicationRuntimeError",
    "Array",
    "AtomicStoreError",
    "BOOL",
    "CHAR",
    "CodeletArithmeticError",
    "CodeletCompileError",
    "CodeletError",
    "CodeletFileType",
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
    "MemoryElemConstraintsError",
    "MissingFeature",
    "MissingMember",
    "MultiVertex",
    "Output",
    "PoplarAttributeError",
    "PoplarError",
    "PoplarIndexError",
    "PoplarMemoryError",
    "PoplarRuntimeError",
    "PoplarTypeError",
    "Prediction",
    "QUARTER",
    "RelativeSyncDelayType",
    "Record",
    "RemoteBuffer",
    "ReplicatedStreamMode",
    "SHORT",
    "SIGNED_CHAR",
    "StreamCallback",
    "StreamConnectionError",
    "StreamMemoryAllocationError",
    "SupervisorVertex",
    "SweepTable",
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
    "assume",
    "assume_count",
    "assume_share",
    "compileGraph",
    "concat",
    "cycleCount",
    "cycleStamp",
    "default",
    "ipu",
    "listing",
    "location",
    "predict",
    "program",
    "setFloatingPointBehaviour",
    "setSeed",
    "setStochasticRounding",
    "stack",
    "sweep",
]

if _os.environ.get("POPDIST_NUM_TOTAL_REPLICAS"):  # poprun has started this process: errors name its instance
    import pypoplar.engine.processes.ending as _ending

    _ending.name_errors()
