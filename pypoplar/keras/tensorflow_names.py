"""The names that scripts for IPU TensorFlow import: ``tensorflow.python.ipu``, ``keras.ipu``, and a stand-in of ``tensorflow``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import keras
import numpy as np
import torch
from keras.src.backend.torch.core import to_torch_dtype

from pypoplar.keras import ipu
from pypoplar.keras.ipu.missing_names import INSTEAD as ABSENT
from pypoplar.keras.ipu.missing_names import MissingModule, MissingName, missing
from pypoplar.keras.pipeline_stages import PipelineStage, PipelineStageAssignment
from pypoplar.keras.tensorflow_data import Dataset

REAL = {"tensorflow.keras": "keras", "tensorflow.python.keras": "keras", "tensorflow.python.ipu": "pypoplar.keras.ipu"}
"""The modules that names stand for, with all of their parts."""
TYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
INSTEAD = {
    "GradientTape": "a loop over a tape is Python that runs step by step: compile the model and call fit or train_on_batch",
    "Session": "sessions are TensorFlow 1: compile a Keras model and call fit",
    "compat": "TensorFlow 1 is not there: make a Keras model in IPUStrategy().scope(), compile it and call fit",
    "distribute": "strategies beside ipu.ipu_strategy.IPUStrategy are not there",
    "estimator": "estimators are TensorFlow 1: compile a Keras model and call fit",
    "function": "functions are not compiled by themselves: compile a Keras model, whose fit, evaluate and predict run on the IPU",
    "placeholder": "placeholders are TensorFlow 1: make a Keras model with keras.Input",
}


class RealNames(MetaPathFinder, Loader):
    """Finds ``tensorflow.keras.X`` as the module ``keras.X`` itself, so that no class is there twice."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Where a module is that a script imports as a part of one of the names."""
        real = real_name(fullname)
        _refuse_module(fullname)
        if real is None or importlib.util.find_spec(real) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that the name stands for."""
        module = import_module(str(real_name(spec.name)))
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already; it keeps its own spec."""
        module.__spec__ = self._spec


def _refuse_module(name: str) -> None:
    """Refuse modules that are known not to be there, such as ``tensorflow.compat.v1``, with what to use instead."""
    package, _, rest = name.partition(".")
    first = rest.partition(".")[0]
    if package == "tensorflow" and first in INSTEAD and isinstance(sys.modules.get("tensorflow"), StandIn):
        raise MissingModule(f"tf.{first}: {INSTEAD[first]}")
    within = name.removeprefix("tensorflow.python.ipu.").partition(".")[0]
    if name.startswith("tensorflow.python.ipu.") and within in ABSENT:
        raise missing("ipu", within, ())


def real_name(name: str) -> str | None:
    """The module that a name stands for; None for other names."""
    for beginning, real in REAL.items():
        if name == beginning or name.startswith(f"{beginning}."):
            return real + name[len(beginning) :]
    return None


def install() -> None:
    """Give scripts the names, for this process. An installed TensorFlow stays, and gets ``tensorflow.python.ipu``."""
    extension = ModuleType("keras.ipu", "The extensions of IPU Keras.")
    vars(extension).update(
        PipelineStage=PipelineStage,
        PipelineStageAssignment=PipelineStageAssignment,
        FunctionalLayerPipelineStageAssignment=PipelineStageAssignment,
        ModelLayerPipelineStageAssignment=PipelineStageAssignment,
    )
    keras.ipu = sys.modules["keras.ipu"] = extension
    if importlib.util.find_spec("tensorflow") is None or isinstance(sys.modules.get("tensorflow"), StandIn):
        python = ModuleType("tensorflow.python")
        python.__path__ = []
        vars(python).update(ipu=ipu)
        sys.modules["tensorflow"], sys.modules["tensorflow.python"] = StandIn(python), python
    else:
        import_module("tensorflow.python").ipu = ipu  # type: ignore[attr-defined]
    if not any(isinstance(finder, RealNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, RealNames())


class _Seeding:
    """What ``tf.random.set_seed`` does: all that Keras draws begins anew from the seed. Keras asks for it itself, meanwhile."""

    def __init__(self) -> None:
        self._begun = False

    def __call__(self, seed: int) -> None:
        if self._begun:
            return
        self._begun = True
        try:
            keras.utils.set_random_seed(seed)
        finally:
            self._begun = False


class StandIn(ModuleType):
    """What scripts take of ``tensorflow`` beside Keras: data sets, types, and a few functions of tensors, which are PyTorch's."""

    def __init__(self, python: ModuleType) -> None:
        super().__init__("tensorflow", "Stands in for TensorFlow, which is not installed.")
        self.__path__: list[str] = []
        self.__spec__ = ModuleSpec("tensorflow", None, is_package=True)
        self.keras, self.python = keras, python
        self.data = ModuleType("tensorflow.data")
        vars(self.data).update(Dataset=Dataset, AUTOTUNE=-1, experimental=ModuleType("tensorflow.data.experimental"))
        self.data.experimental.AUTOTUNE = -1
        self.__version__ = "2.16.0+pypoplar"
        self.Tensor, self.TensorShape, self.DType, self.TypeSpec = torch.Tensor, tuple, torch.dtype, _Absent
        self.SparseTensor, self.RaggedTensor, self.Variable = _Absent, _Absent, keras.Variable
        self.random = ModuleType("tensorflow.random")
        self.random.set_seed = _Seeding()  # type: ignore[attr-defined]
        for name in TYPES:
            setattr(self, name, to_torch_dtype(name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in INSTEAD:
            raise MissingName(f"tf.{name}: {INSTEAD[name]}")
        if hasattr(keras.ops, name):
            return getattr(keras.ops, name)
        raise MissingName(
            f"tf.{name} is not in the stand-in of TensorFlow, which is not installed; keras.ops has functions of tensors"
        )

    @staticmethod
    def cast(x: Any, dtype: Any) -> torch.Tensor:
        """A tensor or array in another type.

        Parameters
        ----------
        x:
            The tensor.
        dtype:
            The type, or its name.
        """
        chosen = dtype if isinstance(dtype, torch.dtype) else to_torch_dtype(dtype)
        return torch.as_tensor(x if isinstance(x, torch.Tensor) else np.asarray(x)).to(chosen)

    @staticmethod
    def constant(value: Any, dtype: Any = None) -> torch.Tensor:
        """A tensor of values.

        Parameters
        ----------
        value:
            Numbers.
        dtype:
            Their type, or its name; None: as they are.
        """
        tensor = torch.as_tensor(value)
        return tensor if dtype is None else StandIn.cast(tensor, dtype)


class _Absent:
    """A class of TensorFlow's of which nothing is ever an instance."""
