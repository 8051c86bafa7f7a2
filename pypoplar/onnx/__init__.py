"""Models of ONNX on the simulated IPU: ``pypoplar.onnx.load("model.onnx")``.

It needs the packages onnx and PyTorch, which the extra ``onnx`` installs. The package ``onnx`` itself keeps its name.
"""

from pypoplar.extras import install_command as _install_command

try:
    import onnx as _onnx  # noqa: F401
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name not in ("onnx", "torch"):
        raise
    raise ModuleNotFoundError(
        f"pypoplar.onnx needs the packages onnx and PyTorch, and {missing.name} is not installed: {_install_command('onnx')}",
        name=missing.name,
    ) from None

from pypoplar.onnx.graph_training import training
from pypoplar.onnx.model import Model, ModelTensor, load
from pypoplar.onnx.model_problems import MissingValue, ModelError

__all__ = ["MissingValue", "Model", "ModelError", "ModelTensor", "load", "training"]
