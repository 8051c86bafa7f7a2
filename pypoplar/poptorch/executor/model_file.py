"""Files of compiled models."""

from __future__ import annotations

import os
import pickle
from typing import Any

import attrs
import torch
from attrs import frozen

from pypoplar.errors import FileLoadError, PoplarTypeError
from pypoplar.poptorch.options import Options

FORMAT = "pypoplar.poptorch model 2"


@frozen(eq=False)
class ModelFile:
    """What a file holds."""

    executable: bytes  # an `Executable`
    made_for: str  # what tells the model apart from others
    arguments: Any  # args and kwargs like those that it was compiled for
    options: Options
    exported: tuple[torch.nn.Module, torch.optim.Optimizer | None] | None  # None where the executable is all
    random_state: list[int] | None


def write_model(path: str | os.PathLike[str], file: ModelFile) -> None:
    """Write a file; folders on the way are made."""
    if not isinstance(path, str | os.PathLike):
        raise PoplarTypeError(f"save takes the name of a file, got {path!r}")
    place = os.fspath(path)
    if os.path.isdir(place):
        place = os.path.join(place, "model.poptorch")
    os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
    torch.save({"format": FORMAT, **attrs.asdict(file, recurse=False)}, place)


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a file; `FileLoadError` if it is none of ours. As with `torch.load`, read only files that you trust."""
    try:
        content = torch.load(path, weights_only=False)
    except FileNotFoundError:
        raise FileLoadError(f"there is no file {os.fspath(path)}") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as problem:
        raise FileLoadError(f"{os.fspath(path)} is no file of a model: {problem}") from problem
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileLoadError(f"{os.fspath(path)} is no file of a model that `save` wrote")
    content.pop("format")
    return ModelFile(**content)
