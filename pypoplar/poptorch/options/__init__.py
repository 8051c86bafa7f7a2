"""Options of models and data loaders, with PopTorch's names."""

from pypoplar.poptorch.options.attribute_scope import Attribute
from pypoplar.poptorch.options.config_file import ConfigFileError
from pypoplar.poptorch.options.execution_strategies import (
    BlockId,
    ParallelPhasedExecution,
    Phase,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
)
from pypoplar.poptorch.options.model_options import Options
from pypoplar.poptorch.options.tensor_locations import TensorLocationSettings

__all__ = [
    "Attribute",
    "BlockId",
    "ConfigFileError",
    "Options",
    "ParallelPhasedExecution",
    "Phase",
    "PipelinedExecution",
    "SerialPhasedExecution",
    "ShardedExecution",
    "Stage",
    "TensorLocationSettings",
]
