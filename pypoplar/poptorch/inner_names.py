"""Names of PopTorch that programs hardly use: its printer of modules, and parts of how it works within, which are missing here."""

from __future__ import annotations

import builtins
from typing import Any, NoReturn

import torch

from pypoplar.errors import MissingFeature, PoplarError, PoplarTypeError
from pypoplar.tracebacks import public


@public
def createPoptorchError(msg: str) -> PoplarError:
    """A `poptorch.Error` with a message, to be raised.

    Parameters
    ----------
    msg:
        The message.

    Returns
    -------
    PoplarError
        Which is what `poptorch.Error` is.
    """
    return PoplarError(msg)


@public
def module_repr(m: torch.nn.Module) -> str:
    """A module's text, with the hooks of its forward pass, such as `BeginBlock`'s, before each layer.

    Parameters
    ----------
    m:
        The module.

    Returns
    -------
    str
        A line for each layer, as PyTorch writes it.

    Raises
    ------
    PoplarTypeError
        For what is no module.
    """
    if not isinstance(m, torch.nn.Module):
        raise PoplarTypeError(f"poptorch.module_repr takes a torch.nn.Module, got {m!r}")
    hooks = "".join(f"{hook!r} " for hook in m._forward_pre_hooks.values())
    lines = [line for line in m.extra_repr().split("\n") if line]
    if lines and not m._modules:
        return f"{hooks}{m._get_name()}({', '.join(lines)})"
    lines += [f"({name}): " + module_repr(layer).replace("\n", "\n  ") for name, layer in m.named_children()]
    within = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
    return f"{hooks}{m._get_name()}({within})"


@public
def print(m: torch.nn.Module) -> None:
    """Print a module with its hooks, as `module_repr` has it.

    Parameters
    ----------
    m:
        The module.
    """
    builtins.print(module_repr(m))


def _missing(name: str, instead: str) -> Any:
    def missing(*arguments: Any, **keywords: Any) -> NoReturn:
        raise MissingFeature(f"poptorch.{name} is part of how PopTorch works within, and missing; {instead}")

    missing.__name__ = missing.__qualname__ = name
    missing.__doc__ = f"""Missing, since it is part of how PopTorch works within: {instead}.

    Parameters
    ----------
    arguments, keywords:
        Any.

    Raises
    ------
    MissingFeature
        Always.
    """
    return missing


accessAttributes = _missing("accessAttributes", "the functions of registerCustomOp get their attributes as a dict")
getIpuTensorId = _missing("getIpuTensorId", "tensors have names: PoplarExecutor.getTensorNames")
importPoptorchMetadataFromFile = _missing("importPoptorchMetadataFromFile", "poptorch.load reads files")
registerGeometricCustomArgParsers = _missing("registerGeometricCustomArgParsers", "registerCustomArgParser takes a class")
